package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

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
	Options Runner // a value; zero fields mean the defaults
	Result  Stage  // a nil pointer of the type that Run returns

	Short, Long, Example string // of its command
	// of the method, that its command takes: precond and those beside it, tol, max-iter; precond=a,b takes these alone
	Flags  string
	Tables []Table // that its command can write, beside that of the result
}

// Hinter is a Runner that may know what the user of its command may want to know of its options; "" for nothing.
type Hinter interface{ Hint() string }

// Table is a table that the command of a stage can write to a file.
type Table struct {
	Flag, Help string
	Of         func(Stage) *plots.Table
}

// Decode returns the options that JSON has.
func (d *Definition) Decode(options []byte) (Runner, error) {
	o := reflect.New(reflect.TypeOf(d.Options))
	if err := json.Unmarshal(options, o.Interface()); err != nil {
		return nil, fmt.Errorf("options of %s: %w", d.Name, err)
	}
	return o.Elem().Interface().(Runner), nil
}

// New returns a result to decode JSON into.
func (d *Definition) New() Stage {
	return reflect.New(reflect.TypeOf(d.Result).Elem()).Interface().(Stage)
}
