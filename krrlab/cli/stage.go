package cli

import (
	"cmp"
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

	"github.com/krrlab/lab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// stageCommand makes the command of a stage.
func (a *app) stageCommand(d *stage.Definition) *cobra.Command {
	options := reflect.New(reflect.TypeOf(d.Options)) // a pointer to them
	c := &stageCommand{Definition: d, options: options.Interface(), labFlags: newLabFlags()}
	c.setFlags()
	use := string(d.Name) + " (--data NAME | --train FILE"
	if c.flags.Lookup("holdout") != nil {
		use += " [--test FILE | --holdout SHARE]"
	}
	cmd := &cobra.Command{Use: use + ")", Aliases: d.Aliases, Short: d.Short, Long: d.Long, Example: d.Example,
		Args: noArgs, Annotations: onRanks, GroupID: study}
	return withOptions(cmd, c.flags, func(ctx context.Context, _ []string) error { return a.stage(ctx, c) })
}

// stageCommand is the command of a stage: a stage that was interrupted returns what it has beside the context's error.
type stageCommand struct {
	*stage.Definition
	labFlags
	options  any  // a pointer to those of the stage
	auto     bool // the method is left to the plan, unless flags say otherwise
	prepared stage.Command
}

// methodFlags are those that Definition.Flags chooses from.
const methodFlags = "test holdout precond features sketch neighbors damping race form spectral landmarks lambda-p " +
	"tol max-iter solver residual stop"

// setFlags puts the flags together: the stage's, and of the others those that it takes.
func (c *stageCommand) setFlags() {
	taken := map[string]string{}
	for _, word := range strings.Fields(c.Flags) {
		name, values, _ := strings.Cut(word, "=")
		taken[name] = values
	}
	solver, fits := taken["solver"]
	if c.auto = fits; solver != "" {
		fits = false
		delete(taken, "solver")
	}
	if _, ok := taken["tol"]; ok && !fits {
		c.Tol = 1e-3
	}
	f := schema.Of(&c.labFlags).Without("keep")
	for _, name := range strings.Fields(methodFlags) {
		if _, ok := taken[name]; !ok {
			f.Without(name)
		}
	}
	if c.preconds = taken["precond"]; c.preconds != "" {
		f.Lookup("precond").Help = "what approximates K: " + strings.ReplaceAll(c.preconds, ",", ", ")
	}
	if c.Tol > 0 {
		f.Lookup("tol").Help = "tolerance τ of ‖y−Ac‖/‖y‖ to which iterations are counted"
	}
	if fits {
		c.PrecondSpec.Name = "auto"
		f.Describe(plannedHelp)
	}
	own := schema.Of(c.options).Fields
	if h, ok := c.options.(interface{ Help() map[string]string }); ok {
		f.Describe(h.Help())
		for name := range h.Help() {
			if o := f.Lookup(name); o != nil { // what is said of it says what it is by default
				o.Default = ""
			}
		}
	}
	for _, t := range c.Tables {
		own = append(own, tableFile(t))
	}
	f.Fields = append(own, f.Fields...)
	c.flags = f
}

// tableFile is the option of a file for a table.
func tableFile(t stage.Table) *schema.Field {
	tag := fmt.Sprintf(`flag:%q help:%q file:"write"`, t.Flag, t.Help)
	path := reflect.StructField{Name: "Path", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}
	return schema.Of(reflect.New(reflect.StructOf([]reflect.StructField{path})).Interface()).Fields[0]
}

// stage runs a stage, prints it and writes what was asked for.
func (a *app) stage(ctx context.Context, c *stageCommand) error {
	if o, ok := c.options.(*plan.Options); ok && o.Nodes > 0 {
		if done, err := a.nodes(ctx, c, o); done || err != nil {
			return err
		}
	}
	if err := c.prepare(); err != nil {
		return err
	}
	progress := a.newProgress()
	defer progress.clear()
	start := time.Now()
	data, cfg, err := a.open(ctx, &c.labFlags, progress, func(data *loaded) {
		if c.prepared.Tested != nil && data.test != nil {
			c.prepared.Tested(data.test)
		}
		if h, ok := c.options.(stage.Hinter); ok {
			data.hint("%s", h.Hint())
		}
	})
	if err != nil {
		return err
	}
	if !c.auto {
		cfg.Solver = krrlab.PCG
	}
	if c.flags.Lookup("tol") == nil {
		cfg.Tol = 0
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return err
	}
	s, err := lab.Run(ctx, reflect.ValueOf(c.options).Elem().Interface().(stage.Runner))
	progress.clear()
	interrupted := err != nil && ctx.Err() != nil && hasValue(s)
	if err != nil && !interrupted {
		return err
	}
	err = a.writeStage(&c.stageFiles, s, nil)
	for _, t := range c.Tables {
		err = cmp.Or(err, a.put(c.flags.Lookup(t.Flag).String(), func(file string) error {
			return writeTable(file, t.Of(s))
		}))
	}
	if !interrupted {
		err = a.agree(ctx, err)
	}
	a.printf("%s%s", s, a.ranksText())
	a.printWrote(c.flags, 14, "")
	if err != nil {
		return err
	}
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

// prepare refuses what no data could make right, and completes the options.
func (c *stageCommand) prepare() error {
	if err := c.check(); err != nil {
		return err
	}
	if name := c.PrecondSpec.Name; c.preconds != "" && name != "" &&
		!slices.Contains(strings.Split(c.preconds, ","), name) {
		return usagef("--precond %s: want one of %s", name, strings.ReplaceAll(c.preconds, ",", ", "))
	}
	p, ok := c.options.(stage.Preparer)
	if !ok {
		return nil
	}
	c.prepared = *c.command()
	if err := p.Prepare(&c.prepared); err != nil {
		return errUsage{err}
	}
	c.Test = cmp.Or(c.prepared.TestFile, c.Test)
	return nil
}

// command returns what the flags say of the problem.
func (f *labFlags) command() *stage.Command {
	return &stage.Command{
		Given: f.flags.Given, Kernel: f.spec(f.Sigma.value), Lengths: f.Sigma.lengths, Lambda: f.Lambda,
		Fit: f.fitCommandLine(),
	}
}

// writeStage writes a stage to the files that are named, all that can be, with its picture, or another unless nil.
func (a *app) writeStage(f *stageFiles, s krrlab.Stage, figure *plots.Figure) error {
	err := a.put(f.JSON, func(file string) error { return stage.WriteJSON(file, s) })
	err = cmp.Or(err, a.put(f.CSV, func(file string) error { return writeTable(file, s.Table()) }))
	return cmp.Or(err, a.put(f.Plot, func(string) error {
		if figure == nil {
			figure = s.Plot()
		}
		return f.save(figure)
	}))
}

// put writes a file that is named, by the first rank, for printWrote.
func (a *app) put(file string, write func(file string) error) error {
	if file == "" || !a.first() {
		return nil
	}
	err := write(file)
	if err == nil {
		a.wrote = append(a.wrote, file)
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

// printWrote names the files that were written, in lines whose names have a width, and what the picture is.
func (a *app) printWrote(s *schema.Schema, width int, what string) {
	_, writes := filesOf(s)
	for _, w := range writes {
		wrote := slices.Contains(a.wrote, w.path)
		if what != "" && w.flag == "--plot" {
			w.path += " (" + what + ")"
		}
		if wrote {
			a.printf("%-*s %s\n", width, "wrote", w.path)
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
