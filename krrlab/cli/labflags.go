package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // draws pictures for package plots
)

// labFlags are the flags of commands that create a krrlab.Lab (a problem with its solver): the data, the kernel, the
// configuration, the output files and the ranks.
type labFlags struct {
	dataFlags
	kernelFlags
	krrlab.Config
	krrlab.PrecondSpec
	stageFiles
	rankFlags
	flags *schema.Schema // all options of the command; its IsSet reports which of them were set
}

// newLabFlags returns flags with those defaults of the command line that differ from the defaults of the Go API.
func newLabFlags() labFlags {
	f := labFlags{Config: krrlab.Config{Seed: 1}, rankFlags: rankFlags{Limit: comm.DefaultLimit}}
	f.Target = "-1" // the last column
	return f
}

// Help returns the help texts that differ from those of the Go API.
func (labFlags) Help() map[string]string {
	return map[string]string{
		"lambda": "ridge λ > 0 (default: the registry's for --data, else 0.01)",
	}
}

// check returns an error if the flags are invalid for any data.
func (f *labFlags) check() error {
	hasNoPrecond := f.Solver == krrlab.CG || f.Solver == krrlab.Direct || f.Solver == krrlab.Fourier
	if hasNoPrecond && f.PrecondSpec.Name != cost.None && f.flags.IsSet("precond") {
		return usagef("--solver %v has no preconditioner: leave --precond out", f.Solver)
	}
	_, err := f.Preconditioner(nil)
	return cmp.Or(asUsageError(err), asUsageError(f.dataFlags.check()), asUsageError(f.kernelFlags.check()))
}

// configFor returns the configuration for the data, with its kernel, λ and preconditioner. λ is that of the flags, else
// that of the data, else defaultLambda.
func (f *labFlags) configFor(data *problemData) (cfg krrlab.Config, err error) {
	cfg = f.Config
	cfg.Kernel, err = f.kernelFor(data)
	cfg.Lambda = cmp.Or(f.Lambda, data.lambda, defaultLambda)
	if err != nil {
		return cfg, err
	}
	cfg.Precond, err = f.Preconditioner(cfg.Kernel)
	return cfg, err
}

// memoryLimit returns the bytes that a solve may use if this process, or this rank, is limited to limit bytes, 0 for
// the default.
func (a *app) memoryLimit(limit int64) int64 {
	return accel.ProcessLimit(limit, a.processesHere())
}

// stageFiles are the names of the files to which the result of a stage is written; "" writes no file.
type stageFiles struct {
	JSON string `flag:"json" file:"write" help:"write the result as JSON to this file"`
	CSV  string `flag:"csv" file:"write"`
	pictureFlags
}

// pictureFlags are the file, the title and the size of a picture.
type pictureFlags struct {
	Plot  string      `flag:"plot" file:"picture"`
	Title *string     `flag:"title" in:"plot" with:"plot|plot-solve"`
	Size  pictureSize `flag:"size" in:"plot" with:"plot|plot-solve"`
}

// plotFormats ends the help texts of --plot: it lists the file formats and the options.
const plotFormats = " (.svg, .png, .pdf or .html); options after it: size=5x3 in inches, title=TEXT"

// Help returns the help texts of flags whose tags have none.
func (stageFiles) Help() map[string]string {
	return map[string]string{
		"csv":  "write the table, with all digits, to this file: as CSV, or as a matrix if the name ends in .npy",
		"plot": "draw the result to this file" + plotFormats,
	}
}

// save writes a picture to a file, after it has changed the picture's title and size to those that the flags set.
func (f *pictureFlags) save(figure *plots.Figure, file string) error {
	if f.Title != nil {
		figure.Title = *f.Title
	}
	if f.Size.width > 0 {
		figure.Width, figure.Height = f.Size.width, f.Size.height
	}
	return figure.Save(file)
}

// pictureSize is a width and height in inches, such as 5x3. The zero value stands for the default size of the picture.
type pictureSize struct{ width, height float64 }

// Type returns the text that stands for the value in the help text.
func (s *pictureSize) Type() string { return "WxH" }

// Set parses a width and a height from 1 to 40 inches, such as 5x3.
func (s *pictureSize) Set(text string) error {
	var trailing string // if text goes on after the height, a third value is scanned, which is refused
	n, _ := fmt.Sscanf(text+" ", "%fx%f%s", &s.width, &s.height, &trailing)
	if n != 2 || !(s.width >= 1 && s.width <= 40 && s.height >= 1 && s.height <= 40) {
		return errors.New("want width and height in inches, from 1 to 40, such as 5x3")
	}
	return nil
}
