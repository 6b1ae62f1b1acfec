package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/precond"
)

// tolText is the help of --tol, whose default is defaultTol.
const tolText = "tolerance τ of ‖y−Ac‖/‖y‖ (default: 1e-3 for classification, 1e-5 for regression)"

func defaultTol(task datasets.Task) float64 {
	if task == datasets.Regression {
		return 1e-5
	}
	return 1e-3
}

// solveFlags are the flags of the solve.
type solveFlags struct {
	lambda, lambdaP           float64
	features, maxIter, repeat int
	tol                       float64
	sparseFlags
	orthogonal                         bool
	solver, precond, form              string
	sketch                             string
	storage, tiles, memory, exactCheck string
	stop                               string
	seed                               uint64
}

const tilesText = "tiles of K: dense, sparse (none where a kernel that decreases is next to nothing; what is left out is bounded), or auto, which takes what is smaller"

func (f *solveFlags) add(p *pflag.FlagSet) {
	p.Float64Var(&f.lambda, "lambda", 0, "ridge λ > 0 (default: the registry's for --data, else 0.01)")
	p.Float64Var(&f.lambdaP, "lambda-p", 0, "ridge λ_p > 0 of the preconditioner (default: with --precond auto the plan's, else λ)")
	p.IntVar(&f.features, "features", 0, "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: with --precond auto the plan's, else n/10, at least 500, at most 10,000), or that of the factor of vecchia (default: none)")
	p.StringVar(&f.sketch, "sketch", "", "features in several levels (Algorithm 2), such as features:8000,srht:4000,gaussian:2000; s is the last width")
	p.BoolVar(&f.orthogonal, "orthogonal", false, "orthogonal random features")
	p.Float64Var(&f.tol, "tol", 0, tolText)
	p.StringVar(&f.stop, "stop", "residual", "what ends the iteration: residual (at τ), anorm (the bound of ‖c−c*‖_A/‖c*‖_A at τ) or labels=P (at most the share P, such as 1%, of the test labels, or else the training labels, may still change)")
	p.IntVar(&f.maxIter, "max-iter", 1000, "maximum number of iterations")
	p.StringVar(&f.solver, "solver", "auto", "auto, pcg, block-pcg, cg or direct; auto is direct up to 3,000 points (on ranks pcg or block-pcg), and for more points what krrlab plan chooses (on ranks never direct)")
	p.StringVar(&f.precond, "precond", "auto", "preconditioner: auto, which krrlab plan chooses, "+strings.Join(krrlab.PrecondNames, ", "))
	f.sparseFlags.add(p)
	p.StringVar(&f.form, "form", "auto", "form of the preconditioner's inverse: auto, L, Linv, U or eigen")
	p.IntVar(&f.repeat, "repeat", 1, "number of independent preconditioners; the A-norm median of their answers is kept")
	p.StringVar(&f.storage, "storage", "auto", "storage of K: auto, float64, float32, fixed16 or recompute; auto decides by ‖K_stored−K‖₂, predicted from rows of K, and by --memory")
	p.StringVar(&f.tiles, "tiles", "auto", tilesText)
	p.StringVar(&f.memory, "memory", "", "memory limit of the solve, and of a file while it is read, such as 20GB (default: what the machine allows)")
	p.StringVar(&f.exactCheck, "residual", "auto", "K of the true residual: exact (recomputed in float64, with a certain bound of rounding), stored (as stored, checked by 288 rows in float64), or auto (exact up to n²d = 2e10, else stored, refined if the rows miss the tolerance)")
	p.Uint64Var(&f.seed, "seed", 1, "seed of all random numbers")
	wantPositive(p, "lambda", "lambda-p")
	wantShare(p, "tol")
	wantAtLeast(p, 1, "features", "max-iter", "repeat")
}

// check refuses flags that no data could make right.
func (f *solveFlags) check(set *pflag.FlagSet) error {
	if err := f.settle(&krrlab.Config{}); err != nil {
		return err
	}
	if err := f.checkPlain(set); err != nil {
		return err
	}
	if f.orthogonal && f.named() != "features" {
		return usagef("--orthogonal goes with --precond features only")
	}
	if err := f.sparseFlags.check(set, f.named()); err != nil {
		return err
	}
	return f.checkSketch(set)
}

// named returns the preconditioner asked for: features where a flag is set that only they have.
func (f *solveFlags) named() string {
	if f.precond == "auto" && (f.orthogonal || f.sketch != "" || f.form != "auto") {
		return "features"
	}
	return f.precond
}

// checkPlain refuses flags of a preconditioner for a solver that has none.
func (f *solveFlags) checkPlain(set *pflag.FlagSet) error {
	without := "--solver " + f.solver
	switch {
	case f.precond == "none":
		without = "--precond none"
	case f.solver != krrlab.CG.String() && f.solver != krrlab.Direct.String():
		return nil
	case set.Changed("precond"):
		return usagef("%s has no preconditioner: --precond %s does not go with it", without, f.precond)
	}
	return checkUnused(set, without, "sketch", "form", "orthogonal")
}

// unused names the flags that are set and have no effect without a preconditioner.
func (f *solveFlags) unused(set *pflag.FlagSet) string {
	var names []string
	for _, name := range []string{"features", "lambda-p"} {
		if set.Changed(name) && (f.precond == "none" || f.solver == krrlab.CG.String() || f.solver == krrlab.Direct.String()) {
			names = append(names, "--"+name)
		}
	}
	return strings.Join(names, ", ")
}

// checkUnused refuses flags of a preconditioner beside the one that says there is none.
func checkUnused(set *pflag.FlagSet, without string, names ...string) error {
	for _, name := range names {
		if set.Changed(name) {
			return usagef("%s has no preconditioner: --%s does not go with it", without, name)
		}
	}
	return nil
}

// checkSketch refuses a chain that does not parse, or that goes with no other flag.
func (f *solveFlags) checkSketch(set *pflag.FlagSet) error {
	if !set.Changed("sketch") {
		return nil
	}
	if set.Changed("features") {
		return usagef("--sketch says how many features: --features does not go with it")
	}
	if f.named() != "features" {
		return usagef("--sketch goes with --precond features only")
	}
	if _, err := feature.ParseLevels(f.sketch); err != nil {
		return usagef("--sketch: %v", err)
	}
	return nil
}

// oneLevel says of a chain that has no sketch what it is; "" of another.
func oneLevel(levels feature.Levels) string {
	if len(levels) != 1 {
		return ""
	}
	return fmt.Sprintf("a chain of one level is %d features without a sketch", levels[0].Width)
}

func checkPrecond(name string) error {
	if _, err := (krrlab.PrecondSpec{Name: name}).Preconditioner(nil); err != nil {
		return errUsage{err}
	}
	return nil
}

// settle puts into a configuration what the flags say of themselves, without the data.
func (f *solveFlags) settle(c *krrlab.Config) (err error) {
	if c.Solver, err = krrlab.ParseSolver(f.solver); err != nil {
		return errUsage{err}
	}
	if err := checkPrecond(f.precond); err != nil {
		return err
	}
	if _, err = precond.ParseForm(f.form); err != nil {
		return errUsage{err}
	}
	if c.Storage, err = gram.ParseStorage(f.storage); err != nil {
		return errUsage{err}
	}
	if c.Tiles, err = gram.ParseTiles(f.tiles); err != nil {
		return errUsage{err}
	}
	if c.Exact, err = krrlab.ParseResidualPolicy(f.exactCheck); err != nil {
		return errUsage{err}
	}
	if c.Stop, err = bound.ParseStop(f.stop); err != nil {
		return usagef("--stop: %v", err)
	}
	if c.Stop.Rule != bound.Residual && (c.Solver == krrlab.Direct || f.repeat > 1) {
		return usagef("--stop %v ends one iteration: --solver direct and --repeat do not go with it", c.Stop)
	}
	c.Memory, err = memoryLimit(f.memory)
	return err
}
