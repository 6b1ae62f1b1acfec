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

// stageCommand returns the command that runs a stage.
func (a *app) stageCommand(d *stage.Definition) *cobra.Command {
	c := &stageCommand{Definition: d, options: d.NewOptions(), labFlags: newLabFlags()}
	c.setFlags()
	use := string(d.Name) + " (--data NAME | --train FILE"
	if c.flags.Lookup("holdout") != nil {
		use += " [--test FILE | --holdout SHARE]"
	}
	cmd := &cobra.Command{Use: use + ")", Aliases: d.Aliases, Short: d.Short, Long: d.Long, Example: d.Example,
		Annotations: onRanks, GroupID: studyGroup}
	return flagCommand(cmd, c.flags, c, a.runStage)
}

// stageCommand is the state of a stage's command. If the stage is interrupted, the command prints the results obtained
// so far and returns the error of the context.
type stageCommand struct {
	*stage.Definition
	labFlags
	options     stage.Runner  // options of the stage, a pointer
	plansMethod bool          // whether a plan chooses the method, unless flags choose it
	prepared    stage.Command // description of the problem, as the stage's Prepare has left it
}

// methodFlags lists the flags that only some stages have: those that Definition.Flags names.
const methodFlags = "test holdout precond process-timeout features race lambda-p tol max-iter solver residual stop"

// setFlags sets c.flags to the stage's own options, followed by the common flags that the stage accepts. These are all
// flags of labFlags except those of methodFlags that Definition.Flags does not name. setFlags also sets c.plansMethod.
// If the command has the flag solver, the preconditioner is auto unless a flag names one.
func (c *stageCommand) setFlags() {
	accepted := map[string]string{} // Definition.Flags: names of flags, with the value after "=" or ""
	for _, word := range strings.Fields(c.Flags) {
		name, values, _ := strings.Cut(word, "=")
		accepted[name] = values
	}
	solver, plansMethod := accepted["solver"]
	c.plansMethod = plansMethod
	hasSolverFlag := plansMethod && solver == ""
	if solver != "" { // solver=auto: a plan chooses the method, and there is no flag
		delete(accepted, "solver")
	}
	if _, ok := accepted["precond"]; ok {
		accepted["process-timeout"] = ""
	}
	f := schema.Of(&c.labFlags).Remove("keep")
	for _, name := range strings.Fields(methodFlags) {
		if _, ok := accepted[name]; !ok {
			f.Remove(name)
		}
	}
	if o := f.Lookup("tol"); o != nil && !hasSolverFlag {
		o.Help = strings.Replace(o.Help, " (", " to which iterations are counted (", 1)
	}
	if hasSolverFlag {
		c.PrecondSpec.Name = "auto"
		f.SetHelp(plannedHelp())
	}
	stageFields := schema.Of(c.options).Fields
	if h, ok := c.options.(interface{ Help() map[string]string }); ok {
		f.SetHelp(h.Help())
		for name := range h.Help() {
			if o := f.Lookup(name); o != nil { // the stage's help text includes the default
				o.Default = ""
			}
		}
	}
	for _, t := range c.Tables {
		stageFields = append(stageFields, tableFile(t))
	}
	f.Fields = append(stageFields, f.Fields...)
	c.flags = f
}

// tableFile returns an option for the name of the file to which a table of the stage is written. The option is a field
// of a struct type made for it, because package schema reads options from struct tags.
func tableFile(t stage.Table) *schema.Field {
	tag := fmt.Sprintf(`flag:%q help:%q file:"write"`, t.Flag, t.Help)
	path := reflect.StructField{Name: "Path", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}
	return schema.Of(reflect.New(reflect.StructOf([]reflect.StructField{path})).Interface()).Fields[0]
}

// runStage runs a stage on all ranks together, prints its result and writes the files that the flags name. Stage plan
// with --nodes does not need the data.
func (a *app) runStage(ctx context.Context, c *stageCommand) error {
	if o, ok := c.options.(*plan.Options); ok && o.Nodes > 0 {
		if handled, err := a.predictNodes(ctx, c, o); handled || err != nil {
			return err
		}
	}
	if err := c.prepare(); err != nil {
		return err
	}

	start := time.Now()
	data, cfg, err := a.loadAndConfigure(ctx, &c.labFlags, func(ctx context.Context) (*problemData, error) {
		data, err := a.loadData(ctx, &c.labFlags)
		if err != nil {
			return nil, err
		}
		if c.prepared.OnTestRows != nil && data.test != nil {
			c.prepared.OnTestRows(data.test)
		}
		if h, ok := c.options.(stage.Hinter); ok {
			data.addHint("%s", h.Hint())
		}
		return data, nil
	})
	if err != nil {
		return err
	}
	if !c.plansMethod {
		cfg.Solver = krrlab.PCG
	}
	lab, err := krrlab.New(data.train, cfg)
	if err != nil {
		return err
	}

	s, err := lab.Run(ctx, c.options)
	if s == nil || err != nil && ctx.Err() == nil { // an interrupted stage may return partial results with the error
		return err
	}
	writeErr := a.printAndWrite(&c.stageFiles, s)
	for _, t := range c.Tables {
		writeErr = cmp.Or(writeErr, a.writeOutput(c.flags.Lookup(t.Flag).String(), func(file string) error {
			return writeTable(file, t.Build(s))
		}))
	}
	a.printWritten(stageLabelWidth, nil)
	if err == nil {
		return a.agree(ctx, writeErr)
	}
	a.interruptedNote = fmt.Sprintf(" after %.0f seconds; the above is what was measured until then",
		time.Since(start).Seconds())
	return cmp.Or(writeErr, err)
}

// printAndWrite prints the result of a stage and writes it to the files that the flags name.
func (a *app) printAndWrite(f *stageFiles, s krrlab.Stage) error {
	a.printf("%s%s", s, a.ranksText())
	return a.writeStage(f, s, nil)
}

// prepare completes the options of the stage from the flags. It returns an error if the flags are invalid for any data.
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

// command returns the description of the problem by the flags, for a stage's Prepare. check must have returned nil.
func (f *labFlags) command() *stage.Command {
	sigma, distance := f.Sigma.scaleAndDistance()
	precond, _ := f.Preconditioner(nil) // check has returned its error
	return &stage.Command{
		IsSet:      f.flags.IsSet,
		Precond:    precond,
		Kernel:     kernel.Spec{Name: string(f.KernelName), Sigma: sigma},
		Distance:   distance,
		Lambda:     f.Lambda,
		FitCommand: f.fitCommandLine(),
	}
}

// writeStage writes the result of a stage to the files of --json, --csv and --plot. The picture is figure, or the
// stage's own if figure is nil. After an error the remaining files are still written, and the first error is returned.
func (a *app) writeStage(f *stageFiles, s krrlab.Stage, figure *plots.Figure) error {
	err := a.writeOutput(f.JSON, func(file string) error { return stage.WriteJSON(file, s) })
	err = cmp.Or(err, a.writeOutput(f.CSV, func(file string) error { return writeTable(file, s.Table()) }))
	return cmp.Or(err, a.writeOutput(f.Plot, func(file string) error {
		if figure == nil {
			figure = s.Plot()
		}
		return f.save(figure, file)
	}))
}

// writeOutput calls write for a file and, if that succeeds, adds its name to a.writtenFiles. It does nothing if the
// name is "", or on a rank other than the first.
func (a *app) writeOutput(file string, write func(file string) error) error {
	if file == "" || !a.isFirstRank() {
		return nil
	}
	err := write(file)
	if err == nil {
		a.writtenFiles = append(a.writtenFiles, file)
	}
	return err
}

// writeTable writes a table as CSV, or, if the name ends in .npy, its numbers as an array with NaN in cells without a
// number.
func writeTable(name string, t *plots.Table) error {
	if filepath.Ext(name) != ".npy" {
		return atomicfile.WriteFile(name, []byte(t.CSV()))
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

// writeArray writes the rows×columns matrix of the values value(i, j) to a file in NumPy's format. A matrix with one
// column is written as a vector.
func writeArray(name string, rows, columns int, value func(i, j int) (float64, error)) error {
	shape, data := []int{rows, columns}, make([]float64, rows*columns)
	for k := range data {
		var err error
		if data[k], err = value(k/columns, k%columns); err != nil {
			return err
		}
	}
	if columns == 1 {
		shape = shape[:1]
	}
	return atomicfile.Write(name, func(w io.Writer) error { return npy.Write(w, data, shape...) })
}

// Widths of the first column of reports, the labels of their lines.
const (
	labelWidth      = 12 // of fit, predict, map and model info
	stageLabelWidth = 14 // of stages, verify and explain
)

// printWritten prints a line for each file that was written. Its label is padded to width. descriptions has texts to
// print after the names of some files.
func (a *app) printWritten(width int, descriptions map[string]string) {
	for _, file := range a.writtenFiles {
		if text := descriptions[file]; text != "" {
			file += " (" + text + ")"
		}
		a.printf("%-*s %s\n", width, "wrote", file)
	}
}
