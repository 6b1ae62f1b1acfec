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

// Info describes a data set of the registry: one of the paper, a stand-in for one, or a built-in problem.
type Info struct {
	Name    string // name, as in --data
	Title   string
	Task    Task
	N, D    int // training points and features
	TestN   int // test points
	Classes int // 0 for regression
	// Files are the files of the data set; none for a built-in problem.
	Files []File
	// Split describes how the rows are split into training and test rows.
	Split string
	// Scale is the default scaling, one of Scalings.
	Scale string
	// Note is a remark about the data, such as that they are a subset or a stand-in.
	Note    string
	License string
	Page    string // web page that describes the data
	// Similar is the name of a data set that may be available instead.
	Similar string
	// Endless states that there are more training rows than N. LoadOptions.N may request any number; the rows after the
	// first N are generated from these.
	Endless bool

	Paper *PaperSettings // settings in the paper; nil if the data set is not in it
	// Sigma and Lambda are the default settings: those of the paper, or for other data sets a choice that works; 0 for
	// none.
	Sigma, Lambda float64

	target        string                 // column of the answers in a table; default: the last
	positiveClass string                 // label to separate from all others; default: the task has all classes
	generate      func(i *Info) *Dataset // returns all N+TestN rows of a built-in problem
}

// registryText is the source of the registry.
//
//go:embed registry.json
var registryText []byte

// registry contains all data sets that have a name.
var registry = parseRegistry()

// parseRegistry returns the data sets of registry.json. Each has the fields of Info, the paths of its files, the column
// of its answers (Target) and the label to separate from all others (One).
func parseRegistry() (sets []Info) {
	var content struct {
		Sets []struct {
			Info
			Files       []string
			Target, One string
		}
		Files map[string]File
	}
	decoder := json.NewDecoder(bytes.NewReader(registryText))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		panic("datasets: registry.json: " + err.Error())
	}
	for _, set := range content.Sets {
		i := set.Info
		for _, path := range set.Files {
			f := content.Files[path]
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
		i.target, i.positiveClass, i.generate = set.Target, set.One, generators[i.Name]
		sets = append(sets, i)
	}
	return sets
}

// generators are the functions that generate the built-in problems, by name.
var generators = map[string]func(i *Info) *Dataset{
	// The last arguments are the noise and the seed.
	"synthetic-regression": func(i *Info) *Dataset { return SyntheticRegression(i.N+i.TestN, i.D, 0.1, 1) },
	"synthetic-classes":    func(i *Info) *Dataset { return SyntheticClasses(i.N+i.TestN, i.D, i.Classes, 0.05, 1) },
	"synthetic-digits":     func(i *Info) *Dataset { return SyntheticDigits(i.N+i.TestN, 1) },
}

// PaperSettings is a row of the table of running times in the paper (Gaussian kernel, λ_p = λ).
type PaperSettings struct {
	Sigma, Lambda float64
	Features      int     // number of random features s
	Iterations    int     // iterations to τ = 1e-3, or for regression to 1e-5
	Seconds       float64 // seconds on the machines of the paper
	Error         float64 // error rate as a fraction, or for regression ‖ŷ−y‖/‖y‖
}

// FileRole is the purpose of a file of a data set.
type FileRole string

// The roles of files.
const (
	TrainFile   FileRole = "train"
	TestFile    FileRole = "test"
	TrainLabels FileRole = "train labels"
	TestLabels  FileRole = "test labels"
)

// File is one file of a data set.
type File struct {
	Role FileRole
	// Path is the path below a data folder to which Fetch writes the file. A file with the same name in a different
	// container, or in none, is accepted too.
	Path string
	// URLs are the addresses from which Fetch downloads the file, in order; none if it is part of an archive only.
	URLs []string
	// SHA256 is the checksum of the unpacked content in hexadecimal; "" if it is not known.
	SHA256 string
}

// Registry returns all data sets: those of the paper in the order of its table, the stand-ins, and the built-in
// problems.
func Registry() []Info { return slices.Clone(registry) }

// Lookup returns the data set with this name, in any case.
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

// Dirs returns the folders in which data are searched by default: $KRRLAB_DATA, if it is set, and the user's cache, to
// which the command krrlab data fetch downloads.
func Dirs() []string {
	return slices.DeleteFunc([]string{os.Getenv("KRRLAB_DATA"), CacheDir()}, func(dir string) bool { return dir == "" })
}

// CacheDir returns the folder of this program in the user's cache, or "" if there is no cache.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "krrlab")
}

// Find returns the path of the file in the first of the folders that has it, or "".
func (f *File) Find(dirs []string) string {
	for _, dir := range dirs {
		for _, path := range packedNames(f.Path) {
			name := filepath.Join(dir, filepath.FromSlash(path))
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				return name
			}
		}
	}
	return ""
}

// Find returns the paths of the files by role, and the files that are missing.
func (i *Info) Find(dirs []string) (paths map[FileRole]string, missing []File) {
	paths = map[FileRole]string{}
	for _, f := range i.Files {
		if path := f.Find(dirs); path != "" {
			paths[f.Role] = path
		} else {
			missing = append(missing, f)
		}
	}
	return paths, missing
}

// Verify reads the named file to its end and returns an error if the checksum of its unpacked content is not f.SHA256.
// hasChecksum is false if f has no checksum.
func (f *File) Verify(name string) (hasChecksum bool, err error) {
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

// contentSum returns the SHA-256 of the unpacked content of a file.
func contentSum(name string) (string, error) {
	s, err := openSource(context.Background(), name)
	if err != nil {
		return "", err
	}
	defer s.close()
	hash := sha256.New()
	if _, err := io.Copy(hash, s.r); err != nil {
		return "", s.readError(0, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// MissingFilesError reports files of a data set that are missing, and says where to get them and where to put them.
type MissingFilesError struct {
	Info  *Info
	Files []File   // the missing files
	Dirs  []string // folders that were searched
}

// Error names the first missing file, and says where to get it and where to put it.
func (e *MissingFilesError) Error() string {
	dir := "the data folder"
	if len(e.Dirs) > 0 {
		dir = e.Dirs[len(e.Dirs)-1]
	}
	f := e.Files[0]
	destination := filepath.Join(dir, filepath.FromSlash(f.Path))
	var text strings.Builder
	fmt.Fprintf(&text, "data set %s: %s is missing", e.Info.Name, f.Path)
	if n := len(e.Files); n > 1 {
		fmt.Fprintf(&text, " (and %d more)", n-1)
	}
	if len(f.URLs) > 0 {
		fmt.Fprintf(&text, "; run krrlab data fetch %s, or get %s and put it at %s", e.Info.Name, f.URLs[0],
			destination)
	} else {
		fmt.Fprintf(&text, "; it cannot be downloaded by itself: see %s and put the file at %s", e.Info.Page,
			destination)
	}
	if e.Info.Similar != "" {
		fmt.Fprintf(&text, "; a subset may be at hand as --data %s", e.Info.Similar)
	}
	return text.String()
}
