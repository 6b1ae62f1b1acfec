package theory

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
	"github.com/krrlab/lab/krrlab/sketchsize"
)

// fault is one thing broken, and the claims whose checks must notice.
type fault struct {
	name   string
	parts  Parts
	caught []string
	trials int // 0: 40
}

func faults() []fault {
	own := builtinParts()
	tensor := func(by float64) func(kernel.Polynomial) feature.Dist {
		return func(k kernel.Polynomial) feature.Dist { return scaledDist{feature.TensorSketch{Kernel: k}, by} }
	}
	fourier := func(by float64) func(kernel.Kernel) feature.Dist {
		return func(k kernel.Kernel) feature.Dist { return scaledDist{feature.Fourier{Kernel: k}, by} }
	}
	unscaled := func(o sketch.Operator, v []float64) {
		for i := range v {
			v[i] *= math.Sqrt(float64(len(v)))
		}
	}
	orthonormalScale := func(o sketch.Operator, v []float64) { // H/√m with s^(−1/2)
		_, order := o.(rowed).Row(0)
		for i := range v {
			v[i] /= math.Sqrt(float64(order))
		}
	}
	return []fault{
		{"Fourier features without √2", Parts{Fourier: fourier(1 / math.Sqrt2)},
			[]string{"features", "definition2", "theorem5"}, 0},
		{"TensorSketch times √2", Parts{TensorSketch: tensor(math.Sqrt2)},
			[]string{"features", "lemma4", "theorem1", "definition2", "theorem5", "theorem6"}, 0},
		{"TensorSketch with g₂(i₁)", Parts{TensorSketch: func(k kernel.Polynomial) feature.Dist {
			return tuples{k,
				printedSign}
		}}, []string{"features", "lemma4"}, 1000},
		{"SRHT without its scale", Parts{SRHT: changed{own.SRHT, unscaled}},
			[]string{"features", "definition3", "theorem6"}, 0},
		{"SRHT with the scale of an orthonormal H left out", Parts{SRHT: changed{own.SRHT, orthonormalScale}},
			[]string{"features", "definition3", "theorem6"}, 0},
		{"SRHT with a row twice", Parts{SRHT: changed{own.SRHT, withReplacement}}, []string{"definition3"}, 0},
		{"CountSketch without signs", Parts{CountSketch: changed{own.CountSketch, func(_ sketch.Operator, v []float64) {
			for i := range v {
				v[i] = math.Abs(v[i])
			}
		}}}, []string{"definition3"}, 0},
		{"λ instead of λ_p", Parts{Precond: func(ctx context.Context, z *points.Dense32, lambda, _ float64,
			form precond.Form) (Preconditioner, error) {
			return own.Precond(ctx, z, lambda, lambda, form)
		}}, []string{"lambda-p"}, 0},
		{"λ in C, λ_p in front", Parts{Precond: func(ctx context.Context, z *points.Dense32, lambda, lambdaP float64,
			form precond.Form) (Preconditioner, error) {
			m, err := own.Precond(ctx, z, lambda, lambda, form)
			return halfRidge{m, lambda / lambdaP}, err
		}}, []string{"lambda-p"}, 0},
		{"U = L⁻ᵀZᵀ, a transposition missing", Parts{Precond: printedU},
			[]string{"definition1", "proposition2", "theorem1", "lambda-p", "general"}, 0},
		{"K of another scale", Parts{Kernel: func(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64,
			st gram.Storage) (*mat.Dense, error) {
			m, err := own.Kernel(ctx, k, x, lambda, st)
			if err == nil {
				m.Scale(1.001, m)
			}
			return m, err
		}}, []string{"remark1", "proposition8", "proposition9", "remark3", "fixed16"}, 0},
		{"16-bit numbers truncated", Parts{Kernel: truncated}, []string{"fixed16"}, 0},
		{"half of the iterations", Parts{Iterations: func(kappa,
			eps float64) int {
			return (pcg.IterationBound(kappa, eps) + 1) / 2
		}}, []string{"iterations"}, 0},
		{"a λ_p bound with one factor", Parts{RidgeBound: func(lambda, lambdaP,
			eta float64) float64 {
			return math.Max(1, (lambda+eta)/lambdaP)
		}}, []string{"lambda-p"}, 0},
		{"Theorem 7 without the cross term", Parts{TestBound: func(c sketchsize.Test) (float64, float64) {
			return (1 - c.Gamma) / (1 + c.Theta), 1 + c.Gamma + c.Alpha
		}}, []string{"general"}, 0},
		{"a prediction bound with λ for √λ",
			Parts{PredictionBound: func(diag, r, lambda float64) float64 { return math.Sqrt(diag) * r / (2 * lambda) }},
			[]string{"prediction"}, 0},
		{"leave-one-out by the fit of all",
			Parts{LeaveOneOut: func(c, diag []float64) []float64 { return slices.Clone(c) }}, []string{"leave-one-out"},
			0},
		{"a test that accepts by looser constants",
			Parts{Search: func(ctx context.Context, p sketchsize.Problem, o *sketchsize.Options,
				g rng.Stream) (*sketchsize.Result,
				error) {
				loose := *o
				loose.Constants = sketchsize.Test{Theta: o.Constants.Theta, Alpha: 1.5 * o.Constants.Alpha,
					Gamma: min(1.5*o.Constants.Gamma, 0.99)}
				return sketchsize.Search(ctx, p, &loose, g)
			}}, []string{"theorem7"}, 0},
		{"a solver that stops at ten times τ",
			Parts{Solve: func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense,
				o *pcg.Options) (*pcg.Result, error) {
				loose := *o
				loose.Tol *= 10
				return pcg.Solve(ctx, a, m, b, &loose)
			}}, []string{"remark2"}, 0},
		{"a low-rank factor above K", Parts{LowRank: []lowRank{
			func(ctx context.Context, src lowrank.Source, rank int, g rng.Stream, o *lowrank.Options) (*lowrank.Factor,
				error) {
				f, err := lowrank.Nystrom(ctx, src, rank, g, o)
				if err == nil {
					for i := range f.F.Data {
						f.F.Data[i] *= 1.05
					}
				}
				return f, err
			}}}, []string{"nystrom"}, 0},
	}
}

// truncated rounds the numbers of 16 bits down.
func truncated(ctx context.Context, k kernel.Kernel, x points.Points, lambda float64, st gram.Storage) (*mat.Dense,
	error) {
	m, err := storedKernel(ctx, k, x, lambda, gram.Float64)
	if err == nil && st == gram.Fixed16 {
		m.Apply(func(_, _ int, v float64) float64 { return math.Floor(v/fixedStep) * fixedStep }, m)
	}
	return m, err
}

// TestFaults breaks one thing at a time; each must be noticed by every claim that it is listed with.
func TestFaults(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			for _, name := range f.caught {
				c, err := Find(name)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Check(context.Background(), []Claim{c}, &Options{Trials: max(40, f.trials), Parts: f.parts},
					nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Claims[0]; got.Verdict != Fail || got.Margin >= 0 || got.Error != "" {
					t.Errorf("%s did not notice: %v", name, &got)
				} else {
					t.Logf("%s: margin %.3g by %q", name, got.Margin, got.worst().Name)
				}
			}
		})
	}
}

// TestTuplesAreTensorSketch makes sure that the faulty TensorSketch is faulty by its signs alone.
func TestTuplesAreTensorSketch(t *testing.T) {
	parts := Parts{TensorSketch: func(k kernel.Polynomial) feature.Dist { return tuples{k, rightSign} }}
	for _, name := range []string{"features", "lemma4"} {
		c, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := c.Check(context.Background(), &Options{Trials: 40, Parts: parts}); err != nil ||
			r.Verdict != Pass {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// TestAllPass checks the project's own parts, and that every claim is stated in full.
func TestAllPass(t *testing.T) {
	for _, c := range Claims() {
		if c.Name == "" || c.Place == "" || c.Statement == "" || c.Measured == "" || c.Fails == "" {
			t.Errorf("claim %+v is not told in full", c)
		}
		r, err := c.Check(context.Background(), &Options{Trials: 40})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if r.Verdict != Pass || r.Trials < 40 {
			t.Error(r)
		}
		if got := fmt.Sprint(r.Kind); got != string(c.Kind) {
			t.Errorf("%s: kind %s", c.Name, got)
		}
	}
}
