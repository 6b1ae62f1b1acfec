package sketchsize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Stage defines the stage sketch-size.
var Stage = stage.Definition{
	Name: "sketch-size", Options: Options{}, Result: (*Result)(nil), Flags: "lambda-p",
	Short: "Double the number of features s until a test of them accepts",
	Long: `Sketch-size draws features, tests them as a preconditioner and doubles s until the
test accepts (section 5 of the paper). --test kappa accepts where the upper end of the
interval of κ(M⁻¹A) is at most --kappa-target; --test theorem7 where both conditions of
the paper's Theorem 7 hold with the constants of --preset. The record of every rung is
the result. If no s below n is accepted the status is none, and the rung of least
predicted time is named.`,
	Example: `  krrlab sketch-size --data mnist --n 10000
  krrlab sketch-size --data mnist --n 10000 --test theorem7 --preset kappa10 --plot ladder.svg`,
}

// TestName is the name of a test of Z.
type TestName string

const (
	Kappa    TestName = "kappa"    // κ(M⁻¹A) ≤ Options.Target
	Theorem7 TestName = "theorem7" // conditions 1 and 2 of Theorem 7
)

// Options of the stage, and of Search. Zero values mean the defaults.
type Options struct {
	Test   TestName `flag:"test" default:"kappa" check:"one of kappa theorem7" help:"kappa or theorem7"`
	Target float64  `flag:"kappa-target" default:"30" check:">1" help:"largest κ(M⁻¹A) that kappa accepts, above 1"`
	// Preset names the constants of Theorem7, unless Constants are set.
	Preset    string             `flag:"preset" check:"one of paper kappa5 kappa10" not:"constants" help:"constants of theorem7: paper, kappa5 or kappa10 (default: kappa5)"`
	Constants ConditionConstants `flag:"constants" help:"θ,α,γ of theorem7, instead of a preset: P takes eigenvalues of ZZᵀ above θλ, ‖(I−P)K(I−P)‖ ≤ αλ, ratios within 1±γ"`
	First     int                `flag:"first" check:">=1" help:"first s (default: 128, or n/8 if that is less)"`
	Max       int                `flag:"max" check:">=1" help:"largest s, below n (default: n−1)"`
	// Eigen is the largest s at which the conditions are measured although they are refuted already, because the
	// spectrum of M⁻¹A leaves the range that they imply.
	Eigen int `flag:"conditions-up-to" default:"2048" check:">=-1" zero:"-1" help:"largest s at which theorem7 measures conditions that κ refutes already (9s³ flops); -1 for never"`
	// Confidence is the probability that no rung is accepted wrongly. All possible rungs up to Max have equal shares of
	// 1−Confidence.
	Confidence float64 `flag:"confidence" default:"0.95" check:"(0,1)" help:"probability that no s is accepted wrongly"`
	Steps      int     `default:"150" check:">=1"` // maximum number of steps of a Lanczos process

	memory accel.Budget // memory budget for the features and their factors
	// progress is called before every rung and after the last one with the completed work. A rung counts (s/First)².
	progress func(completed, total int)
}

// Prepare returns an error if an option of one test was set for the other, which ignores it.
func (o *Options) Prepare(c *stage.Command) error {
	switch {
	case o.Test == Kappa && c.IsSet("preset", "constants", "conditions-up-to"):
		return errors.New("--preset, --constants and --conditions-up-to go with --test theorem7")
	case o.Test == Theorem7 && c.IsSet("kappa-target"):
		return errors.New("--kappa-target goes with --test kappa")
	}
	return nil
}

// setDefaults replaces zeros by the defaults for n points, and returns an error for invalid options. lambdaP must not
// be 0.
func (o *Options) setDefaults(n int, lambda, lambdaP float64) error {
	if err := schema.Complete(o); err != nil {
		return err
	}
	if o.Constants == (ConditionConstants{}) {
		o.Constants = map[string]ConditionConstants{"paper": PaperConstants, "kappa10": Kappa10Constants,
			"kappa5": Kappa5Constants}[cmp.Or(o.Preset, "kappa5")]
		o.Preset = ""
	}
	o.First = cmp.Or(o.First, max(1, min(128, n/8)))
	o.Max = cmp.Or(o.Max, n-1)
	switch {
	case o.First >= n:
		return fmt.Errorf("first s = %d for n = %d points: want 1 ≤ s < n", o.First, n)
	case o.Max < o.First || o.Max >= n:
		return fmt.Errorf("largest s = %d with first s = %d and n = %d points: want first ≤ largest < n", o.Max,
			o.First, n)
	case o.Test == Theorem7 && lambdaP != lambda:
		return fmt.Errorf("λ_p = %g with λ = %g: Theorem 7 needs λ_p = λ", lambdaP, lambda)
	}
	return o.Constants.Validate()
}

// Run doubles s until a test of the features accepts. A solve can use the tested Z: with Fourier features, the
// preconditioner Features with the same seed and S: s has this Z; with other features, a preconditioner whose Map is
// feature.Doubling{Dist, First} has it. Theorem7 requires λ_p = λ, and returns an error for other values. If ctx ends,
// Run returns the rungs so far together with ctx's error.
func (o Options) Run(ctx context.Context, bench stage.Bench) (stage.Stage, error) {
	start, problem := time.Now(), bench.Problem()
	searchProblem := Problem{Comm: problem.Comm, X: problem.X, Lambda: problem.Lambda, LambdaP: problem.Lambda,
		RHS: problem.T, Tol: problem.Tol}
	var err error
	if configuredMap := problem.Z.Map(); configuredMap != nil {
		searchProblem.Map, searchProblem.LambdaP = configuredMap, problem.Z.LambdaP
	} else if searchProblem.Map, err = feature.For(problem.Kernel); err != nil {
		return nil, err
	}
	o.progress = stage.Progress(ctx, bench.Notify, Stage.Name)
	// The options are checked before K is formed.
	if err := o.setDefaults(problem.N, searchProblem.Lambda, searchProblem.LambdaP); err != nil {
		return nil, err
	}
	k, err := bench.K(ctx, 0)
	if err != nil {
		return nil, err
	}
	searchProblem.K, searchProblem.Error = k, k.Error
	memory := problem.Memory.Reserve(k.Bytes())
	// The search may use all free memory.
	if available := accel.AvailableMemory(0, 1); available.Free() < memory.Free() {
		memory = available
	}
	if o.memory, err = comm.SmallestBudget(ctx, problem.Comm, memory); err != nil {
		return nil, err
	}
	r, err := Search(ctx, searchProblem, &o, rng.New(problem.Seed))
	if r == nil {
		return nil, err
	}
	r.Header, r.LambdaP, r.Features = problem.Header, searchProblem.LambdaP, searchProblem.Map.String()
	r.Storage, r.KBound = k.Storage().String(), stage.Number(searchProblem.Error)
	if r.Test == Theorem7 {
		r.Coverage = coverage(problem.Kernel, searchProblem.Map, r.Target)
	}
	r.Seconds = time.Since(start).Seconds()
	return r, err
}
