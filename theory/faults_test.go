package theory

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/precond/sketch"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
)

// misprintedSigns is the name of a fault that needs more trials than the others.
const misprintedSigns = "TensorSketch with g₂(i₁)"

// fault is a broken part, and the names of the claims whose checks must detect it.
type fault struct {
	name       string
	parts      Parts
	detectedBy string // names of claims, separated by blanks
}

// faults returns all faults that are tested.
func faults() []fault {
	builtin := builtinParts()
	tensor := func(factor float64) func(kernel.Polynomial) feature.Dist {
		return func(k kernel.Polynomial) feature.Dist { return scaledBy(feature.TensorSketch{Kernel: k}, factor) }
	}
	fourier := func(factor float64) func(kernel.Kernel) feature.Dist {
		return func(k kernel.Kernel) feature.Dist { return scaledBy(feature.Fourier{Kernel: k}, factor) }
	}
	unscaled := func(o sketch.Operator, v []float64) {
		for i := range v {
			v[i] *= math.Sqrt(float64(len(v)))
		}
	}
	orthonormalScale := func(o sketch.Operator, v []float64) { // H/√m with s^(−1/2)
		_, order := o.(srhtEntries).Row(0)
		for i := range v {
			v[i] /= math.Sqrt(float64(order))
		}
	}
	return []fault{
		{"Fourier features without √2", Parts{Fourier: fourier(1 / math.Sqrt2)},
			"features definition2 theorem5"},
		{"TensorSketch times √2", Parts{TensorSketch: tensor(math.Sqrt2)},
			"features lemma4 theorem1 definition2 theorem5 theorem6"},
		{misprintedSigns, Parts{TensorSketch: func(k kernel.Polynomial) feature.Dist {
			return tensorSketchByDefinition(k, true)
		}}, "features lemma4"},
		{"SRHT without its scale", Parts{SRHT: modifiedSketch{builtin.SRHT, unscaled}},
			"features definition3 theorem6"},
		{"SRHT without the scale of an orthonormal H", Parts{SRHT: modifiedSketch{builtin.SRHT, orthonormalScale}},
			"features definition3 theorem6"},
		{"SRHT with a row twice", Parts{SRHT: modifiedSketch{builtin.SRHT, withReplacement}}, "definition3"},
		{"CountSketch without signs", Parts{CountSketch: modifiedSketch{builtin.CountSketch,
			func(_ sketch.Operator, v []float64) {
				for i := range v {
					v[i] = math.Abs(v[i])
				}
			}}}, "definition3"},
		{"λ instead of λ_p", Parts{Precond: func(ctx context.Context, z *points.Dense32, lambda, _ float64,
			form precond.Form) (Preconditioner, error) {
			return builtin.Precond(ctx, z, lambda, lambda, form)
		}}, "lambda-p"},
		{"λ in C, λ_p in front", Parts{Precond: func(ctx context.Context, z *points.Dense32, lambda, lambdaP float64,
			form precond.Form) (Preconditioner, error) {
			m, err := builtin.Precond(ctx, z, lambda, lambda, form)
			return rescaledInverse{m, lambda / lambdaP}, err
		}}, "lambda-p"},
		{"U = L⁻ᵀZᵀ, a transposition missing", Parts{Precond: misprintedPreconditioner},
			"definition1 proposition2 proposition3 theorem1 lambda-p general"},
		{"K of another scale", Parts{Kernel: func(ctx context.Context, k kernel.Kernel, x points.Points,
			st gram.Storage) (*mat.Dense, error) {
			m, err := builtin.Kernel(ctx, k, x, st)
			if err == nil {
				m.Scale(1.001, m)
			}
			return m, err
		}}, "remark1 proposition8 proposition9 remark3 fixed16"},
		{"16-bit numbers truncated", Parts{Kernel: truncateFixed16}, "fixed16"},
		{"half of the iterations", Parts{Iterations: func(kappa,
			eps float64) int {
			return (pcg.IterationBound(kappa, eps) + 1) / 2
		}}, "iterations"},
		{"a λ_p bound with one factor", Parts{RidgeBound: func(lambda, lambdaP,
			eta float64) float64 {
			return math.Max(1, (lambda+eta)/lambdaP)
		}}, "lambda-p"},
		{"Theorem 7 without the cross term", Parts{SpectrumBounds: func(c sketchsize.ConditionConstants) (float64,
			float64) {
			return (1 - c.Gamma) / (1 + c.Theta), 1 + c.Gamma + c.Alpha
		}}, "general"},
		{"a prediction bound with λ for √λ",
			Parts{PredictionBound: func(diag, r, lambda float64) float64 { return math.Sqrt(diag) * r / (2 * lambda) }},
			"prediction"},
		{"leave-one-out by the fit of all",
			Parts{LeaveOneOut: func(c, diag []float64) []float64 { return slices.Clone(c) }}, "leave-one-out"},
		{"a test that accepts by looser constants",
			Parts{Search: func(ctx context.Context, p sketchsize.Problem, o *sketchsize.Options,
				g rng.Stream) (*sketchsize.Result,
				error) {
				loose := *o
				loose.Constants = sketchsize.ConditionConstants{Theta: o.Constants.Theta,
					Alpha: 1.5 * o.Constants.Alpha,
					Gamma: min(1.5*o.Constants.Gamma, 0.99)}
				return sketchsize.Search(ctx, p, &loose, g)
			}}, "theorem7"},
		{"a solver that stops at ten times τ",
			Parts{Solve: func(ctx context.Context, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense,
				o *pcg.Options) (*pcg.Result, error) {
				loose := *o
				loose.Tol *= 10
				return pcg.Solve(ctx, a, m, b, &loose)
			}}, "remark2"},
		{"the last of the candidates",
			Parts{Choose: func(_ context.Context, _ pcg.Operator, xs []*mat.Dense) (*mat.Dense, error) {
				return xs[len(xs)-1], nil
			}}, "remark4"},
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
			}}}, "nystrom"},
	}
}

// truncateFixed16 returns the stored kernel matrix with 16-bit numbers rounded down.
func truncateFixed16(ctx context.Context, k kernel.Kernel, x points.Points, storage gram.Storage) (*mat.Dense, error) {
	m, err := kernelByGram(ctx, k, x, gram.Float64)
	if err == nil && storage == gram.Fixed16 {
		m.Apply(func(_, _ int, v float64) float64 { return math.Floor(v/fixedStep) * fixedStep }, m)
	}
	return m, err
}

// TestFaults checks that every fault is detected by every claim that is listed with it, and that every claim detects a
// fault. In make test a fault is checked with its first claim and with those that no earlier
// fault lists.
func TestFaults(t *testing.T) {
	allClaims := !suite.Small()
	listed := map[string]bool{} // names of the claims that a fault so far lists
	for _, f := range faults() {
		var claims []string
		for name := range strings.FieldsSeq(f.detectedBy) {
			if allClaims || len(claims) == 0 || !listed[name] {
				claims = append(claims, name)
			}
			listed[name] = true
		}
		t.Run(f.name, func(t *testing.T) {
			trials := 40
			if f.name == misprintedSigns {
				trials = 1000
			}
			for _, name := range claims {
				got := runCheck(t, name, &Options{Trials: trials, Parts: f.parts})
				if got.Verdict != Fail || got.Margin >= 0 {
					t.Errorf("%s does not detect the fault: %v", name, got)
				} else {
					t.Logf("%s: margin %.3g by %q", name, got.Margin, got.worst().Name)
				}
			}
		})
	}
	for _, c := range Claims() {
		if !listed[c.Name] {
			t.Errorf("%s detects no fault", c.Name)
		}
	}
}

// runCheck returns the result of the check of a claim. The test ends if the check does.
func runCheck(t *testing.T, name string, o *Options) *Result {
	t.Helper()
	return must(findClaims(t, name)[0].Check(t.Context(), o))
}

// TestTensorSketchByDefinition checks that tensorSketchByDefinition with the right signs passes, so that
// misprintedSigns is wrong only in its signs.
func TestTensorSketchByDefinition(t *testing.T) {
	parts := Parts{TensorSketch: func(k kernel.Polynomial) feature.Dist { return tensorSketchByDefinition(k, false) }}
	for _, name := range []string{"features", "lemma4"} {
		if r := runCheck(t, name, &Options{Trials: 40, Parts: parts}); r.Verdict != Pass {
			t.Error(r)
		}
	}
}

// TestAllClaimsPass checks that all claims pass on the project's own parts, and that every claim has all its texts and
// a program.
func TestAllClaimsPass(t *testing.T) {
	if len(Claims()) != len(programs) {
		t.Errorf("%d claims have %d programs", len(Claims()), len(programs))
	}
	for _, c := range Claims() {
		if c.Name == "" || c.Place == "" || c.Statement == "" || c.Measured == "" || c.Fails == "" ||
			c.program.trial == nil && c.program.check == nil {
			t.Errorf("claim %+v lacks a text or a program", c)
		}
		trials := suite.Scale(minTrials, 40, 40)
		if r := runCheck(t, c.Name, &Options{Trials: trials}); r.Verdict != Pass || r.Trials < trials || r.Kind != c.Kind {
			t.Error(r)
		}
	}
}
