package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/krrlab/lab/datasets"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/schema"
	"github.com/krrlab/lab/plots"
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
	flags    *schema.Schema // of the command, which say what was given
	preconds string         // that it takes, separated by commas; "": all
}

// newLabFlags returns them with the defaults that differ from those of a Go caller.
func newLabFlags() labFlags {
	f := labFlags{Config: krrlab.Config{Seed: 1}, rankFlags: rankFlags{Limit: comm.DefaultLimit}}
	f.Target = "-1"
	return f
}

var precondNames = strings.Join(krrlab.PrecondNames, ", ") + ", or process:COMMAND"

// Help has the texts of the flags of krrlab.Config and krrlab.PrecondSpec.
func (labFlags) Help() map[string]string {
	return map[string]string{
		"lambda": "ridge λ > 0 (default: the registry's for --data, else 0.01)",
		"tol":    "tolerance τ of ‖y−Ac‖/‖y‖ (default: 1e-3 for classification, 1e-5 for regression)",
		"storage": "storage of K: auto, float64, float32, fixed16 or recompute; auto decides by ‖K_stored−K‖₂, " +
			"predicted from rows of K, and by --memory",
		"tiles": "tiles of K: dense, sparse (none where a kernel that decreases is next to nothing; what is left out " +
			"is bounded), or auto, which takes what is smaller",
		"max-iter": "maximum number of iterations",
		"memory": "memory limit of this process, such as 20GB, of which the program itself takes 0.1 GB, and of a file " +
			"while it is read (default: what the machine allows)",
		"seed": "seed of all random numbers",
		"precond": "what approximates K: " + precondNames +
			" (default: features, or rpcholesky for a kernel without them)",
		"features": "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: n/10, at least " +
			"500, at most 10,000)",
		"lambda-p": "ridge λ_p > 0 of the preconditioner (default: λ)",
		"sketch": "features in several levels (Algorithm 2), such as features:8000,srht:4000,gaussian:2000; s is the " +
			"last width",
		"neighbors": "neighbors k of a point in the sparse inverse vecchia (default: 15 to 120, by a rule)",
		"damping":   "its damping ω in (0, 1] (default: by a rule)",
		"landmarks": "rows of the training data, from 0, that nystrom takes, separated by commas, or @FILE that has " +
			"them (default: drawn at random)",
		"spectral": "take λ_p+σ_s² for λ_p of nystrom or rpcholesky, and less of their factor, σ_s² being its least " +
			"squared singular value (Frangella, Tropp and Udell)",
		"form": "form of the preconditioner's inverse: auto, L, Linv, U or eigen",
		"solver": "auto, pcg, block-pcg, cg or direct; auto is direct up to 3,000 points (on ranks pcg or " +
			"block-pcg), and " +
			"for more points what krrlab plan chooses (on ranks never direct)",
		"residual": "K of the true residual: exact (recomputed in float64, with a certain bound of rounding), stored " +
			"(as stored, checked by 288 rows in float64), or auto (exact up to n²d = 2e10, else stored, refined if " +
			"the rows miss the tolerance)",
		"stop": "what ends the iteration: residual (at τ), anorm (the bound of ‖c−c*‖_A/‖c*‖_A at τ) or labels=P (at " +
			"most the share P, such as 1%, of the test labels, or else the training labels, may still change)",
	}
}

// check refuses what no data could make right.
func (f *labFlags) check() error {
	if f.Matrix != "" && f.Name == "features" {
		return usagef("--matrix and --precond features exclude each other: a precomputed K has no random features")
	}
	if f.plain() && f.Name != "none" && f.flags.Given("precond", "sketch", "form") {
		return usagef("--solver %v has no preconditioner: leave --precond, --sketch and --form out",
			f.Solver)
	}
	if f.Stop.Rule != bound.Residual && f.Solver == krrlab.Direct {
		return usagef("--stop %v ends an iteration: --solver direct does not go with it", f.Stop)
	}
	return cmp.Or(usage(f.dataFlags.check()), usage(f.kernelFlags.check()), checkPlot(f.Plot))
}

// settled returns the configuration for the data.
func (f *labFlags) settled(data *loaded) (cfg krrlab.Config, err error) {
	cfg = f.Config
	cfg.Kernel, err = f.kernelFor(data)
	cfg.Lambda = cmp.Or(f.Lambda, data.lambda, defaultLambda)
	cfg.Tol = cmp.Or(f.Tol, defaultTol(data.train.Task))
	if err != nil {
		return cfg, err
	}
	spec := f.PrecondSpec
	// of features only
	if spec.Name == "auto" && (spec.Levels != nil || spec.Form != precond.AutoForm) {
		spec.Name = "features"
	}
	if f.plain() { // as a note says
		spec = krrlab.PrecondSpec{Name: spec.Name}
	}
	cfg.Precond, err = spec.Preconditioner(cfg.Kernel)
	return cfg, err
}

// plain reports whether the flags ask for a solver without a preconditioner.
func (f *labFlags) plain() bool {
	return f.Name == "none" || f.Solver == krrlab.CG || f.Solver == krrlab.Direct
}

func defaultTol(task datasets.Task) float64 {
	if task == datasets.Regression {
		return 1e-5
	}
	return 1e-3
}

const (
	machineShare = 0.9   // the part of the machine's memory, or its control group's, that its ranks may take by default
	programBytes = 100e6 // what the program, its libraries and garbage take, beside what is predicted
)

// memory returns the bytes that a solve may take of a limit of this process, by default its share of the machine's; 0
// if that is not known.
func (a *app) memory(limit int64) int64 {
	if limit == 0 {
		most, _ := accel.MemoryLimit()
		if limit = int64(machineShare * float64(most)); a.party != nil {
			limit /= int64(a.party.node.Ranks)
		}
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
	Title *string     `flag:"title" with:"plot" help:"title of the picture instead of the default; \"\" for none"`
	Size  pictureSize `flag:"size" with:"plot"`
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

// save writes the picture.
func (f *stageFiles) save(figure *plots.Figure) error {
	if f.Title != nil {
		figure.Title = *f.Title
	}
	if f.Size.width > 0 {
		figure.Width, figure.Height = f.Size.width, f.Size.height
	}
	return figure.Save(f.Plot)
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
