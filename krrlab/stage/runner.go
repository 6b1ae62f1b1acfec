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

// Runner is a stage as it is asked for: its options, which run on a bench. krrlab.Lab.Run runs it. A stage that ctx
// ends may return what it has beside the error.
type Runner interface {
	Run(ctx context.Context, b Bench) (Stage, error)
}

// Definition makes a stage known by a name: to the command line, and to ranks, which get its options and give its
// value as JSON. The tags of its options are those of package schema.
type Definition struct {
	Name    Name
	Aliases []string // other names of its command
	Options Runner   // a value; zero fields mean the defaults
	Result  Stage    // a nil pointer of the type that Run returns

	Short, Long, Example string // of its command
	// Flags are those of the test rows and the method that its command takes: test, holdout, precond and those beside
	// it, tol, max-iter, solver and those beside it. With solver they are those of
	// krrlab fit; solver=auto leaves the method to the plan, without a flag. What a Help of the options says of flags
	// that other commands have too goes for this one.
	Flags  string
	Tables []Table // that its command can write, beside that of the result

	Indefinite bool   // K need not be positive semi-definite
	NoBackend  string // why no Backend runs it, and what to do; "": one does
}

// Hinter is a Runner that may know what the user of its command may want to know of its options; "" for nothing.
type Hinter interface{ Hint() string }

// Preparer is a pointer to a Runner that its command completes before the data are read.
type Preparer interface{ Prepare(c *Command) error }

// Command is what the command of a stage knows of the problem before the data are read.
type Command struct {
	Precond Preconditioner             // that the flags name; nil: none
	Given   func(flags ...string) bool // whether any of these flags was set
	Kernel  kernel.Spec                // as the flags have it
	// Lengths are those of --sigma, for each feature; nil: it has one for all.
	Lengths []float64
	Lambda  float64 // 0: by the data
	Fit     string  // the krrlab fit command of the data
	// TestFile is read as --test is, if the stage sets it, and Tested, unless nil, called with the test rows.
	TestFile string
	Tested   func(*datasets.Dataset)
}

// Table is a table that the command of a stage can write to a file.
type Table struct {
	Flag, Help string
	Build      func(Stage) *plots.Table
}

// Zero returns a pointer to options for a caller to fill, which run as they do.
func (d *Definition) Zero() Runner {
	return reflect.New(reflect.TypeOf(d.Options)).Interface().(Runner)
}

// Decode returns the options that JSON has.
func (d *Definition) Decode(options []byte) (Runner, error) {
	o, in := d.Zero(), json.NewDecoder(bytes.NewReader(options))
	in.DisallowUnknownFields()
	if err := in.Decode(o); err != nil {
		return nil, fmt.Errorf("options of %s: %w", d.Name, err)
	}
	return o, nil
}

// New returns a result to decode JSON into.
func (d *Definition) New() Stage {
	return reflect.New(reflect.TypeOf(d.Result).Elem()).Interface().(Stage)
}
