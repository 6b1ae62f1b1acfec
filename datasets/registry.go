package datasets

import (
	"context"
	"fmt"
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

	load     loader
	generate func(i *Info) *Dataset // built-in: all N+TestN rows
}

// loader reads the files of a set.
type loader func(ctx context.Context, i *Info, paths map[Role]string, o *LoadOptions) (train, test *Dataset, err error)

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
	// Paths are where the file may lie below a data folder; the first is where
	// Fetch puts it.
	Paths []string
	// URLs are where Fetch gets it, in order; none if it comes in an archive only.
	URLs []string
	// SHA256 is the checksum of the unpacked content in hexadecimal; "" if it is not known.
	SHA256 string
	// Rows is how many the file has where they are more than the set's; it bounds a download.
	Rows int
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
