package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// stageCommand makes the command of a stage. options points to a struct with its own options, flags names those of the
// method that it has, as stage.Definition does. check, if there is one, refuses flags that no data could
// make right, and run runs it; a stage that was interrupted returns what it has beside the context's error.
type stageCommand struct {
	use, short, long, example string

	options any
	help    map[string]string // of flags that other commands have too
	flags   string
	tol     float64 // the default of --tol; 0: by the task
	maxIter int     // the default of --max-iter; 0: 1000
	check   func(f *labFlags) error
	// cfg completes the configuration, where options of the stage belong to it.
	cfg func(f *labFlags, c *krrlab.Config) error
	// test is a file to judge by, with what is to be done with it once it is read; nil: none.
	test   *string
	tested func(*datasets.Dataset)
	tables []stage.Table // beside that of the result
	hint   func() string // what a user may want to know of the options; nil or "": nothing
	run    func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error)
}

func (a *app) stageCommand(c stageCommand) *cobra.Command {
	f := newLabFlags()
	f.Tol, f.MaxIter = c.tol, c.maxIter
	f.flags = schema.Of(&f).Without("test", "holdout", "keep", "solver", "repeat", "residual", "stop")
	taken := map[string]string{}
	for _, word := range strings.Fields(c.flags) {
		name, values, _ := strings.Cut(word, "=")
		taken[name] = values
	}
	for _, name := range strings.Fields("precond features sketch orthogonal neighbors damping form lambda-p tol " +
		"max-iter") {
		if _, ok := taken[name]; !ok {
			f.flags.Without(name)
		}
	}
	if f.preconds = taken["precond"]; f.preconds != "" {
		f.flags.Lookup("precond").Help = "what approximates K: " + strings.ReplaceAll(f.preconds, ",", ", ")
	}
	own := schema.Of(c.options).Fields
	for _, t := range c.tables {
		own = append(own, tableFile(t))
	}
	f.flags.Fields = append(own, f.flags.Fields...)
	if _, ok := taken["tol"]; ok && c.tol > 0 {
		f.flags.Lookup("tol").Help = "tolerance τ of ‖y−Ac‖/‖y‖ to which iterations are counted"
	}
	for name, text := range c.help {
		f.flags.Lookup(name).Help = text
	}
	cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.long, Example: c.example, Args: noArgs,
		Annotations: onRanks}
	return withOptions(cmd, f.flags, func(ctx context.Context, _ []string) error { return a.stage(ctx, &f, &c) })
}

// tableFile is the option of a file for a table.
func tableFile(t stage.Table) *schema.Field {
	tag := fmt.Sprintf(`flag:%q help:%q file:"write"`, t.Flag, t.Help)
	path := reflect.StructField{Name: "Path", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}
	return schema.Of(reflect.New(reflect.StructOf([]reflect.StructField{path})).Interface()).Fields[0]
}

// stage runs a stage, prints it and writes what was asked for.
func (a *app) stage(ctx context.Context, f *labFlags, c *stageCommand) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.preconds != "" && f.Name != "" && !slices.Contains(strings.Split(f.preconds, ","), f.Name) {
		return usagef("--precond %s: want one of %s", f.Name, strings.ReplaceAll(f.preconds, ",", ", "))
	}
	if c.check != nil {
		if err := c.check(f); err != nil {
			return err
		}
	}
	if c.test != nil {
		f.Test = *c.test
	}
	progress := a.newProgress()
	defer progress.clear()
	start := time.Now()
	if err := a.start(ctx, &f.rankFlags, f.flags); err != nil {
		return err
	}
	data, err := a.loadSame(ctx, f, progress)
	if err != nil {
		return err
	}
	if c.tested != nil {
		c.tested(data.test)
	}
	if c.hint != nil {
		data.hint("%s", c.hint())
	}
	a.showHints(data, progress)
	lab, err := a.lab(f, data, c, progress)
	if err != nil {
		return err
	}
	s, err := c.run(ctx, lab)
	progress.clear()
	interrupted := err != nil && ctx.Err() != nil && hasValue(s)
	if err != nil && !interrupted {
		return err
	}
	err = a.writeStage(&f.stageFiles, s)
	for _, t := range c.tables {
		if file := f.flags.Lookup(t.Flag).String(); err == nil && file != "" && a.first() {
			err = writeTable(file, t.Of(s))
		}
	}
	if !interrupted {
		err = a.agree(ctx, err)
	}
	if err != nil {
		return err
	}
	a.printf("%s%s", s, a.ranksText())
	a.printWrote(f.flags)
	if interrupted {
		if a.first() {
			fmt.Fprintf(a.env.Stderr, "krrlab: interrupted after %.0f seconds; the above is what was measured until "+
				"then\n",
				time.Since(start).Seconds())
		}
		return errStatus(exitInterrupted)
	}
	return nil
}

// writeStage writes a stage to the files that are named.
func (a *app) writeStage(f *stageFiles, s krrlab.Stage) (err error) {
	if !a.first() {
		return nil
	}
	if f.JSON != "" {
		err = stage.WriteJSON(f.JSON, s)
	}
	if err == nil && f.CSV != "" {
		err = writeTable(f.CSV, s.Table())
	}
	if err == nil && f.Plot != "" {
		err = f.save(s.Plot())
	}
	return err
}

// writeTable writes the numbers of a table: as CSV, or as a matrix, a vector if it has one column, to a file named
// .npy.
func writeTable(name string, t *plots.Table) error {
	if filepath.Ext(name) != ".npy" {
		return atomicfile.Put(name, []byte(t.CSV()))
	}
	data := make([]float64, 0, len(t.Rows)*len(t.Columns))
	for _, row := range t.Rows {
		for j := range t.Columns {
			v := math.NaN()
			if j < len(row) {
				if w, ok := row[j].Float(); ok {
					v = w
				}
			}
			data = append(data, v)
		}
	}
	shape := []int{len(t.Rows), len(t.Columns)}
	if len(t.Columns) == 1 {
		shape = shape[:1]
	}
	return atomicfile.Write(name, func(w io.Writer) error { return npy.Write(w, data, shape...) })
}

// printWrote names the files that were written.
func (a *app) printWrote(s *schema.Schema) {
	_, writes := filesOf(s)
	for _, w := range writes {
		if w.path != "" {
			a.printf("%-14s %s\n", "wrote", w.path)
		}
	}
}

// hasValue reports whether a stage is there: a nil pointer in the interface is none.
func hasValue(s krrlab.Stage) bool {
	if s == nil {
		return false
	}
	v := reflect.ValueOf(s)
	return v.Kind() != reflect.Pointer || !v.IsNil()
}

// lab makes the bench for the data and the flags.
func (a *app) lab(f *labFlags, data *loaded, c *stageCommand, progress *progress) (*krrlab.Lab, error) {
	cfg, err := f.settled(data)
	if err != nil {
		return nil, err
	}
	if cfg.Solver, cfg.Monitor = krrlab.PCG, progress.show; f.flags.Lookup("tol") == nil {
		cfg.Tol = 0
	}
	if c.cfg != nil {
		if err := c.cfg(f, &cfg); err != nil {
			return nil, err
		}
	}
	a.deal(f, &cfg)
	return krrlab.New(data.train, cfg)
}
