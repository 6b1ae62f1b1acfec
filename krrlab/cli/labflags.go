package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // pictures
)

// labFlags are the flags of commands that make a krrlab.Lab: its data, kernel and configuration, where what comes out
// is written, and the ranks.
type labFlags struct {
	dataFlags
	kernelFlags
	krrlab.Config
	krrlab.PrecondSpec
	stageFiles
	rankFlags
	flags *schema.Schema // of the command, which say what was given
}

// newLabFlags returns them with the defaults that differ from those of a Go caller.
func newLabFlags() labFlags {
	f := labFlags{Config: krrlab.Config{Seed: 1}, rankFlags: rankFlags{Limit: comm.DefaultLimit}}
	f.Target = "-1"
	return f
}

// Help has what only a command knows.
func (labFlags) Help() map[string]string {
	return map[string]string{
		"lambda": "ridge λ > 0 (default: the registry's for --data, else 0.01)",
	}
}

// check refuses what no data could make right.
func (f *labFlags) check() error {
	if f.plain() && f.Name != cost.None && f.flags.Given("precond", "sketch", "form") {
		return usagef("--solver %v has no preconditioner: leave --precond, --sketch and --form out",
			f.Solver)
	}
	_, err := f.recipe(nil).Preconditioner(nil)
	return cmp.Or(usage(err), usage(f.dataFlags.check()), usage(f.kernelFlags.check()), checkPlot(f.Plot))
}

// recipe returns the preconditioner that flags ask for: options that auto has not are of the kernel's usual one.
func (f *labFlags) recipe(k kernel.Kernel) krrlab.PrecondSpec {
	spec := f.PrecondSpec
	if spec.Name == "auto" && (spec.Levels != nil || spec.Form != precond.AutoForm) {
		spec.Name = stage.DefaultKind(k).Name
	}
	if f.plain() { // as a note says
		spec.S, spec.LambdaP = 0, 0
	}
	return spec
}

// settled returns the configuration for the data.
func (f *labFlags) settled(data *loaded) (cfg krrlab.Config, err error) {
	cfg = f.Config
	cfg.Kernel, err = f.kernelFor(data)
	cfg.Lambda = cmp.Or(f.Lambda, data.lambda, defaultLambda)
	if err != nil {
		return cfg, err
	}
	cfg.Precond, err = f.recipe(cfg.Kernel).Preconditioner(cfg.Kernel)
	return cfg, err
}

// plain reports whether the flags ask for a solver without a preconditioner.
func (f *labFlags) plain() bool {
	return f.Name == cost.None || f.Solver == krrlab.CG || f.Solver == krrlab.Direct
}

const (
	machineShare = 0.9   // the part of the machine's memory, or its control group's, that its ranks may take by default
	programBytes = 100e6 // what the program, its libraries and garbage take, beside what is predicted
)

// memory returns the bytes that a solve may take of a limit of this process, by default its share of the machine's; 0
// if that is not known.
func (a *app) memory(limit int64) int64 {
	if limit == 0 {
		ranks := 1
		if a.party != nil {
			ranks = a.party.node.Ranks
		}
		most, _ := accel.MemoryShare(ranks)
		limit = int64(machineShare * float64(most))
	}
	if limit == 0 {
		return 0
	}
	return max(1, limit-programBytes)
}

// stageFiles are where a stage is written to; "" is nowhere.
type stageFiles struct {
	JSON  string      `flag:"json" file:"write" help:"write the stage as JSON to this file"`
	CSV   string      `flag:"csv" file:"write"`
	Plot  string      `flag:"plot" file:"write"`
	Title *string     `flag:"title" with:"plot|plot-solve" help:"title of the picture instead of the default; \"\" for none"`
	Size  pictureSize `flag:"size" with:"plot|plot-solve"`
}

// formats says what --plot writes.
const formats = " to this file (.svg, .png, .pdf, or .html with values on hover and zoom)"

func (stageFiles) Help() map[string]string {
	return map[string]string{
		"csv": "write the numbers of its table, with every digit, to this file: CSV, or a matrix with NaN for words " +
			"if it is named .npy",
		"plot": "draw the stage" + formats,
		"size": "width and height of the picture in inches, such as 5x3 (default: its own, mostly 6.5x4)",
	}
}

// save writes a picture, with the title and the size that flags ask for.
func (f *stageFiles) save(figure *plots.Figure, file string) error {
	if f.Title != nil {
		figure.Title = *f.Title
	}
	if f.Size.width > 0 {
		figure.Width, figure.Height = f.Size.width, f.Size.height
	}
	return figure.Save(file)
}

// pictureSize is a width and height in inches, such as 5x3; 0: the picture's own.
type pictureSize struct{ width, height float64 }

func (s *pictureSize) Type() string { return "WxH" }

func (s *pictureSize) Set(text string) error {
	var rest string
	n, _ := fmt.Sscanf(text+" ", "%fx%f%s", &s.width, &s.height, &rest)
	if n != 2 || !(s.width >= 1 && s.width <= 40 && s.height >= 1 && s.height <= 40) {
		return errors.New("want width and height in inches, from 1 to 40, such as 5x3")
	}
	return nil
}
