package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/npy"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// stageFlags are the flags that the commands of all stages share.
type stageFlags struct {
	dataFlags
	kernelFlags
	rankFlags
	lambda  float64
	seed    uint64
	storage string
	tiles   string
	memory  string
	stageFiles
}

// stageFiles are where a stage is written to; "" is nowhere.
type stageFiles struct {
	plotFlags
	json, csv string
}

func (f *stageFiles) add(p *pflag.FlagSet, what, drawn string) {
	p.StringVar(&f.json, "json", "", "write "+what+" as JSON to this file")
	p.StringVar(&f.csv, "csv", "", "write the numbers of its table, with every digit, to this file: CSV, or a matrix with NaN for words if it is named .npy")
	f.plotFlags.add(p, drawn)
}

func (f *stageFiles) writes() []namedFile {
	return []namedFile{{"--json", f.json}, {"--csv", f.csv}, {"--plot", f.plot}}
}

func (f *stageFlags) add(p *pflag.FlagSet) {
	f.addTraining(p)
	f.kernelFlags.add(p)
	p.Float64Var(&f.lambda, "lambda", 0, "ridge λ > 0 (default: the registry's for --data, else 0.01)")
	wantPositive(p, "lambda")
	p.StringVar(&f.storage, "storage", "auto", "storage of K: auto, float64, float32, fixed16 or recompute; auto decides by ‖K_stored−K‖₂, predicted from rows of K, and by --memory")
	p.StringVar(&f.tiles, "tiles", "auto", tilesText)
	p.StringVar(&f.memory, "memory", "", "memory limit of the stage, and of a file while it is read, such as 20GB (default: what the machine allows)")
	p.Uint64Var(&f.seed, "seed", 1, "seed of all random numbers")
	f.stageFiles.add(p, "the stage", "the stage")
	f.rankFlags.add(p)
}

// stageCommand makes the command of a stage. options, a pointer to a struct as of package schema, and add have the stage's
// own flags, check, if there is one, refuses those that no data could make right, and run runs it; a stage that was
// interrupted returns what it has beside the context's error.
type stageCommand struct {
	use, short, long, example string

	options any
	add     func(p *pflag.FlagSet)
	check   func(set *pflag.FlagSet) error
	// cfg completes the configuration, where flags of the stage's own belong to it.
	cfg func(set *pflag.FlagSet, c *krrlab.Config) error
	// test is a file to judge by, with what is to be done with it once it is read; nil: none.
	test   *string
	tested func(*datasets.Dataset)
	tables []stageTable // that can be written, beside that of the result
	// hint returns what a user may want to know of the flags; nil or "": nothing.
	hint func() string
	run  func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error)

	settle func() error // of options
}

func (a *app) stageCommand(c stageCommand) *cobra.Command {
	f := &stageFlags{}
	cmd := &cobra.Command{
		Use: c.use, Short: c.short, Long: c.long, Example: c.example,
		Args:        noArgs,
		Annotations: onRanks,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.stage(cmd.Context(), cmd.Flags(), f, &c) },
	}
	p := cmd.Flags()
	if c.options != nil {
		c.settle = addOptions(p, c.options).Settle
	}
	if c.add != nil {
		c.add(p)
	}
	for _, t := range c.tables {
		p.StringVar(t.path, t.Flag, "", t.Help)
	}
	f.add(p)
	p.SortFlags = false
	return cmd
}

// stage runs a stage, prints it and writes what was asked for.
func (a *app) stage(ctx context.Context, set *pflag.FlagSet, f *stageFlags, c *stageCommand) error {
	if err := f.checkFlags(set); err != nil {
		return err
	}
	if c.settle != nil {
		if err := c.settle(); err != nil {
			return errUsage{err}
		}
	}
	if c.check != nil {
		if err := c.check(set); err != nil {
			return err
		}
	}
	if err := a.join(ctx, set, &f.rankFlags); err != nil {
		return err
	}
	writes := f.writes()
	for _, t := range c.tables {
		writes = append(writes, namedFile{"--" + t.Flag, *t.path})
	}
	if err := a.mayWrite(ctx, []namedFile{{"--train", f.train}}, writes); err != nil {
		return err
	}
	start := time.Now()
	progress := a.newProgress()
	defer progress.clear()
	progress.show(krrlab.Event{Stage: stage.Load})
	f.readLimit, f.dataFlags.lengths, f.dataFlags.matrix = f.memory, f.kernelFlags.lengths, f.kernelFlags.matrix
	if c.test != nil {
		f.test = *c.test
	}
	data, err := a.loadSame(ctx, &f.dataFlags)
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
	lab, err := a.lab(set, f, data, c, progress)
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
		if err == nil && *t.path != "" && a.first() {
			err = writeTable(*t.path, t.Of(s))
		}
	}
	if !interrupted {
		err = a.agree(ctx, err)
	}
	if err != nil {
		return err
	}
	a.printf("%s%s", s, a.ranksText())
	for _, w := range writes {
		a.printWrote(w.path)
	}
	if interrupted {
		if a.first() {
			fmt.Fprintf(a.env.Stderr, "krrlab: interrupted after %.0f seconds; the above is what was measured until then\n", time.Since(start).Seconds())
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
	if f.json != "" {
		err = stage.WriteJSON(f.json, s)
	}
	if err == nil && f.csv != "" {
		err = writeTable(f.csv, s.Table())
	}
	if err == nil && f.plot != "" {
		err = f.save(s.Plot())
	}
	return err
}

// writeTable writes the numbers of a table: as CSV, or as a matrix, a vector if it has one column, to a file named .npy.
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

func (a *app) printWrote(names ...string) {
	for _, name := range given(names...) {
		a.printf("%-14s %s\n", "wrote", name)
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

func (f *stageFlags) checkFlags(set *pflag.FlagSet) error {
	if _, err := gram.ParseStorage(f.storage); err != nil {
		return errUsage{err}
	}
	if _, err := gram.ParseTiles(f.tiles); err != nil {
		return errUsage{err}
	}
	return cmp.Or(knownData(f.data), checkMemory(f.memory), f.plotFlags.check(), f.dataFlags.check(set), f.kernelFlags.check(set))
}

// lab makes the bench for the data and the flags.
func (a *app) lab(set *pflag.FlagSet, f *stageFlags, data *loaded, c *stageCommand, progress *progress) (*krrlab.Lab, error) {
	cfg := krrlab.Config{Lambda: cmp.Or(f.lambda, data.lambda, defaultLambda), Seed: f.seed, Solver: krrlab.PCG, Monitor: progress.show}
	var err error
	if cfg.Kernel, err = f.kernel(set, data); err != nil {
		return nil, err
	}
	if cfg.Storage, err = gram.ParseStorage(f.storage); err != nil {
		return nil, errUsage{err}
	}
	if cfg.Tiles, err = gram.ParseTiles(f.tiles); err != nil {
		return nil, errUsage{err}
	}
	if cfg.Memory, err = memoryLimit(f.memory); err != nil {
		return nil, err
	}
	if c.cfg != nil {
		if err := c.cfg(set, &cfg); err != nil {
			return nil, err
		}
	}
	if cfg.Tol == 0 && set.Lookup("tol") != nil {
		cfg.Tol = defaultTol(data.train.Task)
	}
	a.deal(set, &cfg)
	return krrlab.New(data.train, cfg)
}
