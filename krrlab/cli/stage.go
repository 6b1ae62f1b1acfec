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

// stageCommand returns the command that runs a stage, a measurement or a solve with options and a result.
func (a *app) stageCommand(definition *stage.Definition) *cobra.Command {
	c := &stageCommand{Definition: definition, options: definition.NewOptions(), labFlags: newLabFlags()}
	c.setFlags()
	use := string(definition.Name) + " (--data NAME | --train FILE"
	if c.flags.Lookup("holdout") != nil {
		use += " [--test FILE | --holdout SHARE]"
	}
	cmd := &cobra.Command{Use: use + ")", Aliases: definition.Aliases, Short: definition.Short, Long: definition.Long,
		Example: definition.Example, Annotations: onRanks, GroupID: studyGroup}
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
	flags := schema.Of(&c.labFlags).Remove("keep")
	for _, name := range strings.Fields(methodFlags) {
		if _, ok := accepted[name]; !ok {
			flags.Remove(name)
		}
	}
	if option := flags.Lookup("tol"); option != nil && !hasSolverFlag {
		option.Help = strings.Replace(option.Help, " (", " to which iterations are counted (", 1)
	}
	if hasSolverFlag {
		c.PrecondSpec.Name = "auto"
		flags.SetHelp(plannedHelp())
	}
	stageFields := schema.Of(c.options).Fields
	if helper, ok := c.options.(interface{ Help() map[string]string }); ok {
		flags.SetHelp(helper.Help())
		for name := range helper.Help() {
			if option := flags.Lookup(name); option != nil { // the stage's help text includes the default
				option.Default = ""
			}
		}
	}
	for _, table := range c.Tables {
		stageFields = append(stageFields, tableFile(table))
	}
	flags.Fields = append(stageFields, flags.Fields...)
	c.flags = flags
}

// tableFile returns an option for the name of the file to which a table of the stage is written. The option is a field
// of a struct type made for it, because package schema reads options from struct tags.
func tableFile(table stage.Table) *schema.Field {
	tag := fmt.Sprintf(`flag:%q help:%q file:"write"`, table.Flag, table.Help)
	path := reflect.StructField{Name: "Path", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tag)}
	return schema.Of(reflect.New(reflect.StructOf([]reflect.StructField{path})).Interface()).Fields[0]
}

// runStage runs a stage on all ranks together, prints its result and writes the files that the flags name. Stage plan
// with --nodes does not need the data.
func (a *app) runStage(ctx context.Context, c *stageCommand) error {
	if planOptions, ok := c.options.(*plan.Options); ok && planOptions.Nodes > 0 {
		if handled, err := a.predictNodes(ctx, c, planOptions); handled || err != nil {
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
		if hinter, ok := c.options.(stage.Hinter); ok {
			data.addHint("%s", hinter.Hint())
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

	result, err := lab.Run(ctx, c.options)
	// An interrupted stage may return partial results with the error.
	if result == nil || err != nil && ctx.Err() == nil {
		return err
	}
	writeErr := a.printAndWrite(&c.stageFiles, result)
	for _, table := range c.Tables {
		writeErr = cmp.Or(writeErr, a.writeOutput(c.flags.Lookup(table.Flag).String(), func(file string) error {
			return writeTable(file, table.Build(result))
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
func (a *app) printAndWrite(f *stageFiles, result krrlab.Stage) error {
	a.printf("%s%s", result, a.ranksText())
	return a.writeStage(f, result, nil)
}

// prepare completes the options of the stage from the flags. It returns an error if the flags are invalid for any data.
func (c *stageCommand) prepare() error {
	if err := c.check(); err != nil {
		return err
	}
	preparer, hasPrepare := c.options.(stage.Preparer)
	if !hasPrepare {
		return nil
	}
	c.prepared = *c.command()
	if err := preparer.Prepare(&c.prepared); err != nil {
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
func (a *app) writeStage(f *stageFiles, result krrlab.Stage, figure *plots.Figure) error {
	err := a.writeOutput(f.JSON, func(file string) error { return stage.WriteJSON(file, result) })
	err = cmp.Or(err, a.writeOutput(f.CSV, func(file string) error { return writeTable(file, result.Table()) }))
	return cmp.Or(err, a.writeOutput(f.Plot, func(file string) error {
		if figure == nil {
			figure = result.Plot()
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
func writeTable(name string, table *plots.Table) error {
	if filepath.Ext(name) != ".npy" {
		return atomicfile.WriteFile(name, []byte(table.CSV()))
	}
	return writeArray(name, len(table.Rows), len(table.Columns), func(i, j int) (float64, error) {
		if row := table.Rows[i]; j < len(row) {
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

// Widths of the first column of reports, which has the labels of the lines.
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
