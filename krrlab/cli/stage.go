package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/plots"
)

// stageCommand makes the command of a stage.
func (a *app) stageCommand(d *stage.Definition) *cobra.Command {
	c := &stageCommand{Definition: d, options: d.Zero(), labFlags: newLabFlags()}
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
	options  stage.Runner
	auto     bool // the method is left to the plan, unless flags say otherwise
	prepared stage.Command
}

// methodFlags are those that Definition.Flags chooses from.
const methodFlags = "test holdout precond features race lambda-p tol max-iter solver residual stop"

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
	f := schema.Of(&c.labFlags).Without("keep")
	for _, name := range strings.Fields(methodFlags) {
		if _, ok := taken[name]; !ok {
			f.Without(name)
		}
	}
	if _, ok := taken["precond"]; !ok { // nor its options
		for _, o := range schema.Of(&c.PrecondSpec).Fields {
			if o.Hidden {
				f.Without(o.Name)
			}
		}
	}
	if o := f.Lookup("tol"); o != nil && !fits {
		o.Help = strings.Replace(o.Help, " (", " to which iterations are counted (", 1)
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
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return err
	}
	s, err := lab.Run(ctx, c.options)
	progress.clear()
	if s == nil || err != nil && ctx.Err() == nil {
		return err
	}
	written := a.show(&c.stageFiles, s)
	for _, t := range c.Tables {
		written = cmp.Or(written, a.put(c.flags.Lookup(t.Flag).String(), func(file string) error {
			return writeTable(file, t.Build(s))
		}))
	}
	a.printWrote(14, "", "")
	if err == nil {
		return a.agree(ctx, written)
	}
	a.left = fmt.Sprintf(" after %.0f seconds; the above is what was measured until then", time.Since(start).Seconds())
	return cmp.Or(written, err)
}

// show prints the value of a stage, and writes it to the files that are named.
func (a *app) show(f *stageFiles, s krrlab.Stage) error {
	a.printf("%s%s", s, a.ranksText())
	return a.writeStage(f, s, nil)
}

// prepare refuses what no data could make right, and completes the options.
func (c *stageCommand) prepare() error {
	if err := c.check(); err != nil {
		return err
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
	sigma, lengths := f.Sigma.split()
	precond, _ := f.recipe(nil).Preconditioner(nil) // check has
	return &stage.Command{Given: f.flags.Given, Precond: precond, Kernel: kernel.Spec{Name: string(f.KernelName),
		Sigma: sigma, Gamma: f.Gamma, Coef0: f.Coef0, Degree: f.Degree}, Lengths: lengths, Lambda: f.Lambda,
		Fit: f.fitCommandLine()}
}

// writeStage writes a stage to the files that are named, all that can be, with its picture, or another unless nil.
func (a *app) writeStage(f *stageFiles, s krrlab.Stage, figure *plots.Figure) error {
	err := a.put(f.JSON, func(file string) error { return stage.WriteJSON(file, s) })
	err = cmp.Or(err, a.put(f.CSV, func(file string) error { return writeTable(file, s.Table()) }))
	return cmp.Or(err, a.put(f.Plot, func(file string) error {
		if figure == nil {
			figure = s.Plot()
		}
		return f.save(figure, file)
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
	return writeArray(name, len(t.Rows), len(t.Columns), func(i, j int) (float64, error) {
		if row := t.Rows[i]; j < len(row) {
			if v, ok := row[j].Float(); ok {
				return v, nil
			}
		}
		return math.NaN(), nil
	})
}

// writeArray writes a matrix, of one column a vector, to a file in NumPy's form.
func writeArray(name string, rows, columns int, at func(i, j int) (float64, error)) error {
	shape, data := []int{rows, columns}, make([]float64, rows*columns)
	for k := range data {
		var err error
		if data[k], err = at(k/columns, k%columns); err != nil {
			return err
		}
	}
	if columns == 1 {
		shape = shape[:1]
	}
	return atomicfile.Write(name, func(w io.Writer) error { return npy.Write(w, data, shape...) })
}

// printWrote names the files that were written, in lines whose names have a width, and what the picture is.
func (a *app) printWrote(width int, plot, what string) {
	for _, file := range a.wrote {
		if file == plot && what != "" {
			file += " (" + what + ")"
		}
		a.printf("%-*s %s\n", width, "wrote", file)
	}
}
