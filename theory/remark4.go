package theory

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var remark4 = Claim{
	Name: "remark4", Place: "second remark on Theorem 6, section 4", Kind: Probability,
	Statement: "Of R candidates take the i whose list of ‖c̃_i−c̃_j‖_A has the least median. If more than R/2 are within ε, it is within 3ε;\n" +
		"so if each is with probability 1−p, p < ½, it fails with probability at most P(Binomial(R, p) ≥ R/2) ≤ e^(−2R(½−p)²).",
	Measured: "the choice of pcg.Repeat among PCG runs with features of their own, cut off after a fixed count: its error over 3ε where most are within ε, and the share of failures against δ, both sides of which come from p's draws.",
	Fails:    "the mean or the last candidate in place of the median one, or candidates that share their features.",
	run:      checkRemark4,
}

func checkRemark4(ctx context.Context, e *experiment) error {
	const runs, s, iterations = 7, 24, 4
	g := e.g.Sub("problem")
	p, err := newProblem(g, plain(2), cloud(g, 30, 8, 0.9), 6)
	if err != nil {
		return err
	}
	const eps = 0.006
	out, err := e.sample(ctx, "trial", e.trials, 2+runs, func(_ int, g rng.Stream, out []float64) error {
		rep := pcg.Repeat{R: runs, New: func(ctx context.Context, i int) (pcg.Preconditioner, error) {
			z, err := p.features(ctx, e.parts.TensorSketch(plain(2)), s, g.Sub("candidate", uint64(i)))
			if err != nil {
				return nil, err
			}
			return e.parts.Precond(ctx, z, p.lambda, p.lambda, precond.FormLInv)
		}}
		r, err := rep.Solve(ctx, operator{p.a}, column(p.y), &pcg.Options{Tol: 1e-15, MaxIter: iterations})
		if err != nil {
			return err
		}
		good := 0
		for i, run := range r.Runs {
			if out[2+i] = p.distance(run.X.ColView(0)); out[2+i] <= eps {
				good++
			}
		}
		out[0] = p.distance(r.X.ColView(0))
		out[1] = float64(good)
		return nil
	})
	if err != nil {
		return err
	}
	var ratios []float64
	bad := 0.0
	for t := range e.trials {
		if out[1][t] > runs/2.0 {
			ratios = append(ratios, out[0][t]/(3*eps))
		}
		bad += runs - out[1][t]
	}
	if len(ratios) == 0 {
		return fmt.Errorf("no trial had most of its candidates within ε = %g", eps)
	}
	e.atMost(fmt.Sprintf("the chosen error over 3ε, where most of %d are within ε = %g", runs, eps), ratios, 1)
	share := bad / float64(e.trials*runs)
	e.add(Measure{Name: "p, the share of candidates beyond ε (wanted: between 0 and ½)", Value: share, Limit: 0.5, Ratio: ratioIf(share <= 0 || share >= 0.5)})
	// δ of what p may be at most, seen over all candidates.
	worst := clopperPearsonUpper(int(bad), e.trials*runs)
	delta := 1 - distuv.Binomial{N: runs, P: math.Min(worst, 1)}.CDF((runs-1)/2) // P(bad ≥ R/2), R odd
	e.share(fmt.Sprintf("share of choices beyond 3ε, R = %d, p = %.2g", runs, share), out[0], 3*eps, delta)
	return nil
}
