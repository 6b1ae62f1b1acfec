package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// qualityFlags are the flags of krrlab quality.
type qualityFlags struct {
	approximationFlags
	iterationFlags
	krrlab.QualityOptions
	spectrum string
}

func (a *app) qualityCommand() *cobra.Command {
	f := &qualityFlags{}
	return a.stageCommand(stageCommand{
		use:   "quality (--data NAME | --train FILE)",
		short: "Interval of κ(M⁻¹A) that holds with a stated confidence, predicted against actual iterations",
		long: `Quality judges a preconditioner M = ZZᵀ+λ_pI. It gives a two-sided interval of κ, the
condition number of M⁻¹(K+λI), by the Lanczos process from a random start; the interval
misses κ with at most the stated probability. For small n it also computes all eigenvalues.
It compares the iterations predicted from κ and from the Ritz values with those that PCG
takes. The interval is of K itself: it is widened by ‖K_stored−K‖₂, which is predicted from
rows of K and not covered by the probability.`,
		example: `  krrlab quality --data mnist --n 10000 --features 2000 --lambda-p 0.1 --plot q.svg
  krrlab quality --data ijcnn1 --n 2000 --precond nystrom --features 300 --json q.json`,
		add:   f.add,
		check: f.check, tables: []stageTable{{stage.Table{Flag: "spectrum", Help: "write all eigenvalues of M⁻¹A, or where they are not computed the Ritz values, to this file (.csv or .npy)", Of: func(s stage.Stage) *plots.Table { return s.(*krrlab.Quality).SpectrumTable() }}, &f.spectrum}},
		cfg: func(set *pflag.FlagSet, c *krrlab.Config) error {
			f.iterationFlags.config(c)
			return f.approximationFlags.config(set, c)
		},
		run: func(ctx context.Context, l *krrlab.Lab) (krrlab.Stage, error) {
			return l.Quality(ctx, f.QualityOptions)
		},
	})
}

func (f *qualityFlags) add(p *pflag.FlagSet) {
	addConfidence(p, &f.Confidence, "of κ's interval, between 0 and 1")
	p.Float64Var(&f.Width, "width", 0.2, "relative width of κ's interval at which to stop")
	p.IntVar(&f.Steps, "steps", 300, "maximum number of Lanczos steps, a product with K each")
	p.IntVar(&f.ExactBelow, "exact-below", 2000, "largest n for which all eigenvalues are computed; -1 for never")
	p.BoolVar(&f.NoSolve, "no-solve", false, "do not run PCG")
	wantPositive(p, "width")
	wantAtLeast(p, 1, "steps")
	f.approximationFlags.add(p)
	f.iterationFlags.add(p, 1000)
}

func (f *qualityFlags) check(set *pflag.FlagSet) error {
	if f.ExactBelow < -1 {
		return usagef("--exact-below %d: want a number of points, or -1", f.ExactBelow)
	}
	f.ExactBelow = cmp.Or(f.ExactBelow, -1)
	return f.approximationFlags.check(set)
}

// iterationFlags say how far PCG goes.
type iterationFlags struct {
	tol     float64
	maxIter int
}

func (f *iterationFlags) add(p *pflag.FlagSet, most int) {
	p.Float64Var(&f.tol, "tol", 1e-3, "tolerance τ of ‖y−Ac‖/‖y‖ to which iterations are counted")
	p.IntVar(&f.maxIter, "max-iter", most, "maximum number of iterations")
	wantShare(p, "tol")
	wantAtLeast(p, 1, "max-iter")
}

func (f *iterationFlags) config(c *krrlab.Config) { c.Tol, c.MaxIter = f.tol, f.maxIter }

// approximationFlags say what approximates K.
type approximationFlags struct {
	precond    string
	features   int
	lambdaP    float64
	orthogonal bool
	sparseFlags
}

func (f *approximationFlags) add(p *pflag.FlagSet) {
	f.addZ(p)
	addLambdaP(p, &f.lambdaP)
}

func addLambdaP(p *pflag.FlagSet, to *float64) {
	p.Float64Var(to, "lambda-p", 0, "ridge λ_p > 0 of the preconditioner (default: λ)")
	wantPositive(p, "lambda-p")
}

// addZ adds those without λ_p.
func (f *approximationFlags) addZ(p *pflag.FlagSet) {
	p.StringVar(&f.precond, "precond", "", "what approximates K: "+strings.Join(krrlab.PrecondNames, ", ")+" (default: features, or rpcholesky for a kernel without them)")
	p.IntVar(&f.features, "features", 0, "random features s, or the rank of nystrom and rpcholesky, 1 ≤ s ≤ n (default: n/10, at least 500, at most 10,000)")
	p.BoolVar(&f.orthogonal, "orthogonal", false, "orthogonal random features")
	f.sparseFlags.add(p)
	wantAtLeast(p, 1, "features")
}

// check refuses a preconditioner that there is not, and flags that it has no use for.
func (f *approximationFlags) check(set *pflag.FlagSet) error {
	if err := checkPrecond(f.precond); err != nil {
		return err
	}
	if f.precond == "none" {
		return checkUnused(set, "--precond none", "orthogonal")
	}
	if f.orthogonal && f.precond != "features" && f.precond != "" {
		return usagef("--orthogonal goes with --precond features only")
	}
	return f.sparseFlags.check(set, f.precond)
}

func (f *approximationFlags) config(set *pflag.FlagSet, c *krrlab.Config) (err error) {
	c.Precond, err = krrlab.PrecondSpec{Name: f.precond, S: f.features, LambdaP: f.lambdaP, Orthogonal: f.orthogonal, Neighbors: f.asked(set), Damping: f.damping}.Preconditioner(c.Kernel)
	return err
}
