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

// scaled is a user-defined preconditioner, M = diag(1+i/n), that can apply its inverse only.
type scaled struct {
	err   error
	short int // the order of M is n−short, which is wrong unless it is 0
}

func (scaled) String() string { return "scaled" }

func (s scaled) Make(_ context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	return diagonal{b.Problem().N - s.short}, s.err
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

// TestUserDefined solves with a user-defined preconditioner and compares the answer with a dense reference, and that
// of two ranks with the answer of one process.
func TestUserDefined(t *testing.T) {
	const n = 120
	if err := precondtest.Test(t.Context(), diagonal{n}, nil); err != nil {
		t.Error(err)
	}
	train := ranksProblem(n)
	cfg := Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-6, Seed: 2}
	p := scaled{}
	cfg.Precond = p
	l := newLab(t, train, cfg)
	sol := solveLab(t, l)
	ref := newReference(t, gauss, train.X, 0.1, l.y)
	if e := relativeDifference(sol.Model.C, &ref.c); e > 1e-5 || !sol.Converged() || sol.Solver != PCG ||
		sol.Precond != p.String() || sol.LambdaP.Known() || sol.S != 0 {
		t.Errorf("%v: off by %.3g; %+v", p, e, sol)
	}
	if text := sol.String(); !strings.Contains(text, "pcg, preconditioner "+p.String()) {
		t.Errorf("%v:\n%s", p, text)
	}
	onEachRank(t, 2, n, cfg, func(rank int, s *Solution) {
		if !mat.Equal(s.Model.C, sol.Model.C) {
			t.Errorf("%v: rank %d has another answer", p, rank)
		}
	})
}

// TestInverseOnly checks that κ has only a lower bound if M cannot draw random vectors, as in the form U.
func TestInverseOnly(t *testing.T) {
	l := newLab(t, ranksProblem(60), Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 40, Form: precond.FormU}})
	given := testkit.Must(l.With(func(c *Config) { c.Precond = Given{M: testkit.Must(l.M(t.Context()))} }))
	q, err := given.Quality(t.Context(), QualityOptions{})
	if err != nil || !math.IsInf(q.Kappa.Hi, 1) || !(q.Kappa.Lo > 1) {
		t.Errorf("%+v, %v", q, err)
	}
}

// wide draws random vectors that are 30 times too large for its matrix M.
type wide struct{ diagonal }

func (w wide) NormalTo(_ context.Context, dst *mat.Dense, g rng.Stream) error {
	dst.Apply(func(i, _ int, _ float64) float64 { return 30 * math.Sqrt(w.at(i)) * g.Normal(uint64(i)) }, dst)
	return nil
}

// narrow draws one feature less than the caller asks for.
type narrow struct{ feature.Dist }

func (n narrow) Sample(d, s int, g rng.Stream) (feature.Map, error) { return n.Dist.Sample(d, s-1, g) }

// TestUserDefinedRefused checks that everything a user-defined preconditioner cannot do is refused with a reason, for
// example because it has no Z or no name in files. An error of Make must be the error of the solve, also on ranks.
func TestUserDefinedRefused(t *testing.T) {
	train := ranksProblem(30)
	for want, run := range map[string]func(l *Lab) error{
		"is of order 7, for n = 30": func(l *Lab) error {
			l.cfg.Precond = scaled{short: 23}
			_, err := l.Solve(t.Context())
			return err
		},
		"is of order 28: want 30": func(l *Lab) error {
			l.cfg.Precond = scaled{short: 2}
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
			l.cfg.Precond = Given{wide{diagonal{30}}, "wide"}
			_, err := l.Quality(t.Context(), QualityOptions{})
			return err
		},
		"has a map of R^4 to R^9: want R^4 to R^10": func(l *Lab) error {
			l.cfg.Precond = Features{S: 10, LambdaP: 1, Map: narrow{feature.Fourier{Kernel: gauss}}}
			_, err := l.Solve(t.Context())
			return err
		},
		"method free needs": func(l *Lab) error {
			return testkit.ErrOf(l.StatDim(t.Context(), StatDimOptions{Method: FreeStatDim}))
		},
	} {
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: scaled{}})
		testkit.Fails(t, run(l), want)
	}
	testkit.Fails(t, testkit.ErrOf(stage.PreconditionerText(scaled{}, gauss)), "scaled is user-defined")
	failed := errors.New("no M today")
	for _, c := range comm.Local(1, 0) {
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: scaled{err: failed}, Comm: c})
		testkit.Fails(t, testkit.ErrOf(l.Solve(t.Context())), "no M today")
		testkit.Fails(t, testkit.ErrOf(l.Quality(t.Context(), QualityOptions{})), "no M today")
	}
}

// TestPrecondKept checks that a preconditioner passed to New or With is the one that solves and that Quality judges,
// for every solver that can use it. Together with a solver that uses no preconditioner it must be refused.
func TestPrecondKept(t *testing.T) {
	train := ranksProblem(60)
	for _, p := range []Preconditioner{Features{}, Features{S: 20}, Nystrom{S: 30}, RPCholesky{S: 30},
		RPCholesky{LambdaP: 2}, Vecchia{S: 10}, Vecchia{Neighbors: 5}, scaled{}} {
		if text, err := stage.PreconditionerText(p, gauss); err == nil { // the text is the form of p in JSON
			p = testkit.Must(stage.ParsePreconditioner(text))
		}
		for _, asked := range []Solver{AutoSolver, PCG, BlockPCG, CG, Direct} {
			cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: asked}
			later, withErr := newLab(t, train, cfg).With(func(c *Config) { c.Precond = p })
			cfg.Precond = p
			now, err := New(train, cfg)
			if unpreconditioned(asked) {
				for _, err := range []error{err, withErr} {
					testkit.Fails(t, err, "has no preconditioner, and Precond is "+p.String())
				}
				continue
			}
			if err != nil || withErr != nil {
				t.Fatal(err, withErr)
			}
			for _, l := range []*Lab{now, later} {
				q := testkit.Must(l.Quality(t.Context(), QualityOptions{Steps: 3, NoSolve: true, MaxExactN: -1}))
				first, _, _ := strings.Cut(q.String(), "\n")
				if unpreconditioned(l.cfg.Solver) || !strings.HasPrefix(l.cfg.Precond.String(), p.String()) &&
					q.Features == "" ||
					!strings.Contains(first, cmp.Or(q.Features, stage.NameOf(l.cfg.Precond))) {
					t.Errorf("%v, %v: solver %v, preconditioner %v, judged: %s", asked, p, l.cfg.Solver, l.cfg.Precond,
						first)
				}
			}
			_, err = later.With(func(c *Config) { c.Solver = Direct })
			testkit.Fails(t, err, "has no preconditioner, and Precond is "+p.String())
		}
	}
	for want, change := range map[Solver]func(*Config){PCG: func(c *Config) { c.Solver = PCG },
		Direct: func(c *Config) { c.Tol = 1e-5 }, CG: func(c *Config) { c.Solver = CG }} {
		m, err := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1}).With(change)
		if err != nil || m.cfg.Solver != want || m.isIdentity() != unpreconditioned(want) {
			t.Errorf("want %v: %v, %v", want, m, err)
		}
	}
}

// TestVecchiaSeed checks that labs of one problem with different seeds do not share the sparse inverse. The problem
// holds only the one that was made last.
func TestVecchiaSeed(t *testing.T) {
	l := newLab(t, ranksProblem(60), Config{Kernel: gauss, Lambda: 0.1, Precond: Vecchia{Neighbors: 5}})
	m := testkit.Must(l.M(t.Context()))
	other := testkit.Must(l.With(func(c *Config) { c.Seed++ }))
	if m == testkit.Must(other.M(t.Context())) || m == testkit.Must(l.M(t.Context())) {
		t.Error("labs with different seeds share M")
	}
}
