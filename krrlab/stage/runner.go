package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

// Runner is a stage with its options, ready to run on a bench. krrlab.Lab.Run runs it. If ctx ends the stage, Run may
// return a partial result together with the error.
type Runner interface {
	Run(ctx context.Context, bench Bench) (Stage, error)
}

// Definition makes a stage available by name: on the command line, and to ranks, which receive its options and return
// its result as JSON. The tags of the options are those of package schema.
type Definition struct {
	Name    Name
	Aliases []string // other names of its command
	Options Runner   // options, as a value; zero fields mean the defaults
	Result  Stage    // a nil pointer of the type that Run returns

	Short, Long, Example string // texts of its command
	// Flags lists the flags for test rows and for the method that the command accepts: test, holdout, precond with its
	// related flags, tol, max-iter, and solver with its related flags. With solver they mean the same as for krrlab
	// fit; solver=auto leaves the method to the plan and defines no flag. A Help method of the options may also
	// describe flags that other commands have.
	Flags  string
	Tables []Table // additional tables that the command can write

	Indefinite bool   // whether the stage also accepts a K that is not positive semi-definite
	NoBackend  string // reason why no krrlab.Backend (ranks elsewhere) can run the stage, with advice; "": one can
}

// Hinter is a Runner that can give the user of its command a hint about the options. Hint returns "" if there is none.
type Hinter interface{ Hint() string }

// Preparer is implemented by a pointer to a Runner. The command calls Prepare before it reads the data; the method
// completes the options and may return an error.
type Preparer interface{ Prepare(c *Command) error }

// Command has the properties of the problem that the command of a stage knows before the data are read.
type Command struct {
	Precond Preconditioner             // preconditioner that the flags name; nil: none
	IsSet   func(flags ...string) bool // reports whether any of these flags was set
	Kernel  kernel.Spec                // kernel that the flags specify
	// Distance has the length scales of the features that --sigma lists, for datasets.ChangeDistance; nil: one length
	// scale serves all features.
	Distance   []float64
	Lambda     float64 // ridge; 0: chosen from the data
	FitCommand string  // krrlab fit command for these data
	// TestFile is a file of test rows to read, if the stage sets it, and OnTestRows, unless nil, is called with the
	// test rows.
	TestFile   string
	OnTestRows func(*datasets.Dataset)
}

// Table is a table that the command of a stage can write to a file.
type Table struct {
	Flag, Help string                   // flag with the name of the file, and its help text
	Build      func(Stage) *plots.Table // returns the table of a result
}

// NewOptions returns a pointer to zero options, which the caller can set and run.
func (d *Definition) NewOptions() Runner {
	return reflect.New(reflect.TypeOf(d.Options)).Interface().(Runner)
}

// Decode returns the options that a JSON text sets. It returns an error for unknown keys.
func (d *Definition) Decode(options []byte) (Runner, error) {
	decoded, decoder := d.NewOptions(), json.NewDecoder(bytes.NewReader(options))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(decoded); err != nil {
		return nil, fmt.Errorf("options of %s: %w", d.Name, err)
	}
	return decoded, nil
}

// NewResult returns an empty result into which JSON can be decoded.
func (d *Definition) NewResult() Stage {
	return reflect.New(reflect.TypeOf(d.Result).Elem()).Interface().(Stage)
}
