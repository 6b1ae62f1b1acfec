package datasets

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Info describes a data set of the registry: one of the paper's, a stand-in, or a built-in
// problem.
type Info struct {
	Name    string // as in --data
	Title   string
	Task    Task
	N, D    int // training points and features
	TestN   int // test points
	Classes int // 0 for regression
	// Files are what must be there; none for a built-in problem.
	Files []File
	// Split says how training and test rows are told apart.
	Split string
	// Scale is the scaling used unless another is asked for, one of Scalings.
	Scale string
	// Note says what is special about the data; for a subset or a stand-in it says so.
	Note    string
	Licence string
	Page    string // where the data are described
	// Similar names a set that may be at hand instead.
	Similar string
	// Endless says that there are more training rows than N: LoadOptions.N may ask for any
	// number, and those after the first N are generated from them.
	Endless bool

	Paper *PaperSettings // nil if the set is not in the paper
	// Sigma and Lambda are the settings used unless others are asked for: the paper's, or
	// for other sets a choice that works; 0 for none.
	Sigma, Lambda float64

	target   string                 // the column of the answers in a table; default: the last
	one      string                 // the class that is told from the rest; default: all classes
	generate func(i *Info) *Dataset // built-in: all N+TestN rows
}

//go:embed registry.json
var registryText []byte

var registry = parseRegistry()

// parseRegistry returns the data sets of registry.json: each by the fields of Info, the paths of its files, the column of
// its answers (Target) and the class that is told from the rest (One).
func parseRegistry() (all []Info) {
	var text struct {
		Sets []struct {
			Info
			Files       []string
			Target, One string
		}
		Files map[string]File
	}
	d := json.NewDecoder(bytes.NewReader(registryText))
	d.DisallowUnknownFields()
	if err := d.Decode(&text); err != nil {
		panic("datasets: registry.json: " + err.Error())
	}
	for _, set := range text.Sets {
		i := set.Info
		for _, path := range set.Files {
			f := text.Files[path]
			f.Path = path
			i.Files = append(i.Files, f)
		}
		if i.Classes > 0 {
			i.Task = Classification
		}
		if i.Paper != nil {
			i.Sigma, i.Lambda = i.Paper.Sigma, i.Paper.Lambda
		}
		i.Split, i.Scale = cmp.Or(i.Split, "a separate test file"), cmp.Or(i.Scale, "none")
		i.target, i.one, i.generate = set.Target, set.One, generators[i.Name]
		all = append(all, i)
	}
	return all
}

// generators make the built-in problems, by their names.
var generators = map[string]func(i *Info) *Dataset{
	"synthetic-regression": func(i *Info) *Dataset { return SyntheticRegression(i.N+i.TestN, i.D, 0.1, 1) },
	"synthetic-classes":    func(i *Info) *Dataset { return SyntheticClasses(i.N+i.TestN, i.D, i.Classes, 0.05, 1) },
	"synthetic-digits":     func(i *Info) *Dataset { return SyntheticDigits(i.N+i.TestN, 1) },
}

// PaperSettings are a row of the paper's table of running times (Gaussian kernel, λ_p = λ).
type PaperSettings struct {
	Sigma, Lambda float64
	Features      int     // s
	Iterations    int     // at τ = 1e-3, for regression 1e-5
	Seconds       float64 // on the paper's machines
	Error         float64 // error rate, a fraction; for regression ‖ŷ−y‖/‖y‖
}

// Role says what a file of a data set is for.
type Role string

// The roles of files.
const (
	TrainFile   Role = "train"
	TestFile    Role = "test"
	TrainLabels Role = "train labels"
	TestLabels  Role = "test labels"
)

// File is one file of a data set.
type File struct {
	Role Role
	// Path is where Fetch puts the file below a data folder. There it may lie under the same name in another
	// packing, or in none.
	Path string
	// URLs are where Fetch gets it, in order; none if it comes in an archive only.
	URLs []string
	// SHA256 is the checksum of the unpacked content in hexadecimal; "" if it is not known.
	SHA256 string
}

// Registry returns all data sets, in the order of the paper's table, then stand-ins, then
// built-in problems.
func Registry() []Info { return slices.Clone(registry) }

// Lookup returns the data set of that name, in any case.
func Lookup(name string) (*Info, error) {
	var names []string
	for _, info := range registry {
		if strings.EqualFold(info.Name, name) {
			return &info, nil
		}
		names = append(names, info.Name)
	}
	return nil, fmt.Errorf("unknown data set %q; there are %s", name, strings.Join(names, ", "))
}

// BuiltIn reports whether the data are generated and need no file.
func (i *Info) BuiltIn() bool { return i.generate != nil }

// Dirs returns the folders that data are looked for in by default: $KRRLAB_DATA, if it is set, and the
// user's cache, where krrlab data fetch puts them.
func Dirs() []string {
	return slices.DeleteFunc([]string{os.Getenv("KRRLAB_DATA"), CacheDir()}, func(dir string) bool { return dir == "" })
}

// CacheDir returns the program's folder in the user's cache, "" where there is none.
func CacheDir() string {
	d, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(d, "krrlab")
}

// Find returns where the file lies in the first of the folders that has it, or "".
func (f *File) Find(dirs []string) string {
	for _, dir := range dirs {
		for _, p := range packings(f.Path) {
			name := filepath.Join(dir, filepath.FromSlash(p))
			if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}

// Find returns the paths of the files by role and the files that are missing.
func (i *Info) Find(dirs []string) (paths map[Role]string, missing []File) {
	paths = map[Role]string{}
	for _, f := range i.Files {
		if p := f.Find(dirs); p != "" {
			paths[f.Role] = p
		} else {
			missing = append(missing, f)
		}
	}
	return paths, missing
}

// Verify reads the named file through and returns an error if its unpacked content is not
// what f says; known is false if f says nothing of it.
func (f *File) Verify(name string) (known bool, err error) {
	if f.SHA256 == "" {
		return false, nil
	}
	sum, err := contentSum(name)
	if err != nil {
		return true, err
	}
	if sum != f.SHA256 {
		return true, &ParseError{File: name,
			Reason: fmt.Sprintf("bad checksum: the content has sha256 %s, expected %s; get it again", sum, f.SHA256)}
	}
	return true, nil
}

// contentSum is the sha256 of the file's unpacked content.
func contentSum(name string) (string, error) {
	s, err := open(context.Background(), name)
	if err != nil {
		return "", err
	}
	defer s.close()
	h := sha256.New()
	if _, err := io.Copy(h, s.r); err != nil {
		return "", s.failed(0, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// MissingError says that files of a data set are not at hand, where they are to be had, and
// where to put them.
type MissingError struct {
	Info  *Info
	Files []File   // that are missing
	Dirs  []string // that were looked in
}

func (e *MissingError) Error() string {
	dir := "the data folder"
	if len(e.Dirs) > 0 {
		dir = e.Dirs[len(e.Dirs)-1]
	}
	f := e.Files[0]
	put := filepath.Join(dir, filepath.FromSlash(f.Path))
	var b strings.Builder
	fmt.Fprintf(&b, "data set %s: %s is missing", e.Info.Name, f.Path)
	if n := len(e.Files); n > 1 {
		fmt.Fprintf(&b, " (and %d more)", n-1)
	}
	if len(f.URLs) > 0 {
		fmt.Fprintf(&b, "; run krrlab data fetch %s, or get %s and put it at %s", e.Info.Name, f.URLs[0], put)
	} else {
		fmt.Fprintf(&b, "; it cannot be downloaded by itself: see %s and put the file at %s", e.Info.Page, put)
	}
	if e.Info.Similar != "" {
		fmt.Fprintf(&b, "; a subset may be at hand as --data %s", e.Info.Similar)
	}
	return b.String()
}
