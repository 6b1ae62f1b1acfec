package krrlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// diagonalPrecond is a user-defined preconditioner, M = diag(1+i/n), that can only apply M⁻¹.
type diagonalPrecond struct {
	err         error
	missingRows int // the order of M is n−missingRows, which is an error unless missingRows is 0
}

func (diagonalPrecond) String() string { return "scaled" }

func (p diagonalPrecond) Make(_ context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	return diagonal{b.Problem().N - p.missingRows}, p.err
}

// diagonal is the matrix diag(1+i/n) of order n.
type diagonal struct{ n int }

func (d diagonal) at(i int) float64 { return 1 + float64(i)/float64(d.n) }
func (d diagonal) Dim() int         { return d.n }

func (d diagonal) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if n, _ := r.Dims(); n != d.n {
		return fmt.Errorf("%d rows for order %d", n, d.n)
	}
	dst.Apply(func(i, _ int, v float64) float64 { return v / d.at(i) }, r)
	return ctx.Err()
}

// TestUserDefinedPrecond solves with a user-defined preconditioner and compares the answer with a dense reference, and
// the answer of two ranks with that of one process.
func TestUserDefinedPrecond(t *testing.T) {
	const n = 120
	if err := precondtest.Test(t.Context(), diagonal{n}, nil); err != nil {
		t.Error(err)
	}
	train := ranksProblem(n)
	cfg := Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-6, Seed: 2}
	p := diagonalPrecond{}
	cfg.Precond = p
	lab := newLab(t, train, cfg)
	sol := solveLab(t, lab)
	ref := newReference(t, gauss, train.X, 0.1, lab.y)
	if difference := relativeDifference(sol.Model.C, &ref.c); difference > 1e-5 || !sol.Converged() ||
		sol.Solver != PCG || sol.Precond != p.String() || sol.LambdaP.Known() || sol.S != 0 {
		t.Errorf("%v: off by %.3g; %+v", p, difference, sol)
	}
	if text := sol.String(); !strings.Contains(text, "pcg, preconditioner "+p.String()) {
		t.Errorf("%v:\n%s", p, text)
	}
	onEachRank(t, 2, n, cfg, func(rank int, rankSol *Solution) {
		if !mat.Equal(rankSol.Model.C, sol.Model.C) {
			t.Errorf("%v: rank %d has another answer", p, rank)
		}
	})
}

// TestQualityWithInverseOnly checks that κ has only a lower bound if M cannot draw random vectors, as in the form U.
func TestQualityWithInverseOnly(t *testing.T) {
	lab := newLab(t, ranksProblem(60),
		Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 40, Form: precond.FormU}})
	givenLab := testkit.Must(lab.With(func(c *Config) { c.Precond = Given{M: testkit.Must(lab.M(t.Context()))} }))
	quality, err := givenLab.Quality(t.Context(), QualityOptions{})
	if err != nil || !math.IsInf(quality.Kappa.Hi, 1) || !(quality.Kappa.Lo > 1) {
		t.Errorf("%+v, %v", quality, err)
	}
}

// wronglyScaledSampler draws random vectors that are 30 times too large for its matrix M.
type wronglyScaledSampler struct{ diagonal }

func (w wronglyScaledSampler) NormalTo(_ context.Context, dst *mat.Dense, random rng.Stream) error {
	dst.Apply(func(i, _ int, _ float64) float64 { return 30 * math.Sqrt(w.at(i)) * random.Normal(uint64(i)) }, dst)
	return nil
}

// oneFeatureShort draws one feature less than the caller asks for.
type oneFeatureShort struct{ feature.Dist }

func (f oneFeatureShort) Sample(d, s int, random rng.Stream) (feature.Map, error) {
	return f.Dist.Sample(d, s-1, random)
}

// TestUserDefinedPrecondRefused checks that everything a user-defined preconditioner cannot do is refused with a
// reason, for example because it has no Z or no name in files. An error of Make must be the error of the solve, also on
// ranks.
func TestUserDefinedPrecondRefused(t *testing.T) {
	train := ranksProblem(30)
	for want, run := range map[string]func(l *Lab) error{
		"is of order 7, for n = 30": func(l *Lab) error {
			l.cfg.Precond = diagonalPrecond{missingRows: 23}
			_, err := l.Solve(t.Context())
			return err
		},
		"is of order 28: want 30": func(l *Lab) error {
			l.cfg.Precond = diagonalPrecond{missingRows: 2}
			_, err := l.Quality(t.Context(), QualityOptions{})
			return err
		},
		"no λ_p":   func(l *Lab) error { _, err := l.LambdaP(t.Context(), LambdaPOptions{}); return err },
		"has no Z": func(l *Lab) error { _, err := l.Z(t.Context()); return err },
		"its text does not identify it": func(l *Lab) error {
			l.cfg.Checkpoint = &Checkpoint{Dir: t.TempDir()}
			_, err := l.Solve(t.Context())
			return err
		},
		"preconditioner wide: lanczos: xᵀM⁻¹x": func(l *Lab) error {
			l.cfg.Precond = Given{wronglyScaledSampler{diagonal{30}}, "wide"}
			_, err := l.Quality(t.Context(), QualityOptions{})
			return err
		},
		"has a map of R^4 to R^9: want R^4 to R^10": func(l *Lab) error {
			l.cfg.Precond = Features{S: 10, LambdaP: 1, Map: oneFeatureShort{feature.Fourier{Kernel: gauss}}}
			_, err := l.Solve(t.Context())
			return err
		},
		"method free needs": func(l *Lab) error {
			return testkit.ErrOf(l.StatDim(t.Context(), StatDimOptions{Method: FreeStatDim}))
		},
	} {
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: diagonalPrecond{}})
		testkit.Fails(t, run(l), want)
	}
	testkit.Fails(t, testkit.ErrOf(stage.PreconditionerText(diagonalPrecond{}, gauss)), "scaled is user-defined")
	makeErr := errors.New("no M today")
	for _, ranks := range comm.Local(1, 0) {
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: diagonalPrecond{err: makeErr}, Comm: ranks})
		testkit.Fails(t, testkit.ErrOf(l.Solve(t.Context())), "no M today")
		testkit.Fails(t, testkit.ErrOf(l.Quality(t.Context(), QualityOptions{})), "no M today")
	}
}

// TestPrecondKept checks that a preconditioner passed to New or With is the one that solves and that Quality judges,
// for every solver that can use it. Together with a solver that uses no preconditioner it must be refused.
func TestPrecondKept(t *testing.T) {
	train := ranksProblem(60)
	for _, p := range []Preconditioner{Features{}, Features{S: 20}, Nystrom{S: 30}, RPCholesky{S: 30},
		RPCholesky{LambdaP: 2}, Vecchia{S: 10}, Vecchia{Neighbors: 5}, diagonalPrecond{}} {
		if text, err := stage.PreconditionerText(p, gauss); err == nil { // the text is the form of p in JSON
			p = testkit.Must(stage.ParsePreconditioner(text))
		}
		for _, solver := range []Solver{AutoSolver, PCG, BlockPCG, CG, Direct} {
			cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: solver}
			byWith, withErr := newLab(t, train, cfg).With(func(c *Config) { c.Precond = p })
			cfg.Precond = p
			byNew, err := New(train, cfg)
			if unpreconditioned(solver) {
				for _, err := range []error{err, withErr} {
					testkit.Fails(t, err, "has no preconditioner, and Precond is "+p.String())
				}
				continue
			}
			if err != nil || withErr != nil {
				t.Fatal(err, withErr)
			}
			for _, lab := range []*Lab{byNew, byWith} {
				quality := testkit.Must(lab.Quality(t.Context(),
					QualityOptions{Steps: 3, NoSolve: true, MaxExactN: -1}))
				firstLine, _, _ := strings.Cut(quality.String(), "\n")
				if unpreconditioned(lab.cfg.Solver) || !strings.HasPrefix(lab.cfg.Precond.String(), p.String()) &&
					quality.Features == "" ||
					!strings.Contains(firstLine, cmp.Or(quality.Features, stage.NameOf(lab.cfg.Precond))) {
					t.Errorf("%v, %v: solver %v, preconditioner %v, judged: %s", solver, p, lab.cfg.Solver,
						lab.cfg.Precond, firstLine)
				}
			}
			_, err = byWith.With(func(c *Config) { c.Solver = Direct })
			testkit.Fails(t, err, "has no preconditioner, and Precond is "+p.String())
		}
	}
	for want, change := range map[Solver]func(*Config){PCG: func(c *Config) { c.Solver = PCG },
		Direct: func(c *Config) { c.Tol = 1e-5 }, CG: func(c *Config) { c.Solver = CG }} {
		changed, err := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1}).With(change)
		if err != nil || changed.cfg.Solver != want || changed.isIdentity() != unpreconditioned(want) {
			t.Errorf("want %v: %v, %v", want, changed, err)
		}
	}
}

// TestVecchiaSeed checks that labs of one problem with different seeds do not share the sparse inverse. The problem
// holds only the one that was made last.
func TestVecchiaSeed(t *testing.T) {
	lab := newLab(t, ranksProblem(60), Config{Kernel: gauss, Lambda: 0.1, Precond: Vecchia{Neighbors: 5}})
	m := testkit.Must(lab.M(t.Context()))
	otherSeed := testkit.Must(lab.With(func(c *Config) { c.Seed++ }))
	if m == testkit.Must(otherSeed.M(t.Context())) || m == testkit.Must(lab.M(t.Context())) {
		t.Error("labs with different seeds share M")
	}
}
