package krrlab

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// checkAnswer checks that the solution converged and compares its residuals and its error bounds with dense linear
// algebra on all rows of the lab.
func checkAnswer(t *testing.T, description string, lab *Lab, sol *Solution) {
	t.Helper()
	n, _, columns := lab.Dims()
	a := mat.DenseCopyOf(newReference(t, lab.cfg.Kernel, lab.data.X, 0, mat.NewDense(n, 1, nil)).a)
	c := mat.DenseCopyOf(sol.Model.C)
	if weights := lab.data.FitWeights(); weights != nil {
		a.Apply(func(i, j int, v float64) float64 { return v * math.Sqrt(weights[i]*weights[j]) }, a)
		c.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(weights[i]) }, c)
	}
	for i := range n {
		a.Set(i, i, a.At(i, i)+lab.cfg.Lambda)
	}
	var exact, residual, coefficientError, errorProduct mat.Dense
	testkit.OK(t, exact.Solve(a, lab.y))
	residual.Mul(a, c)
	residual.Sub(lab.y, &residual)
	coefficientError.Sub(c, &exact)
	errorProduct.Mul(a, &coefficientError)
	for j := range columns {
		relative := mat.Norm(residual.ColView(j), 2) / mat.Norm(lab.y.ColView(j), 2)
		aNorm := math.Sqrt(mat.Dot(coefficientError.ColView(j), errorProduct.ColView(j))) // the A-norm of the error
		if !sol.Converged() || !(relative <= 1.01*sol.Tol) || math.Abs(relative-sol.ColumnTrueResiduals[j]) > 1e-9 ||
			sol.Error == nil || !(aNorm <= sol.Error.Bounds[j]*(1+1e-9)+1e-12) ||
			sol.Error.Certain != nil && !(aNorm <= sol.Error.Certain[j]*(1+1e-9)+1e-12) {
			t.Errorf("%s, column %d: %v, residual %g, reported %g, tolerance %g; the A-norm of the error is %g, bounds %+v",
				description, j, sol.Status, relative, sol.ColumnTrueResiduals[j], sol.Tol, aNorm, sol.Error)
		}
	}
}

// appendTo solves for the first steps[0] rows of d, appends rows until steps[1], steps[2], … are reached, and solves
// after each append. It returns the last lab and its solution.
func appendTo(t *testing.T, d *datasets.Dataset, cfg Config, steps ...int) (*Lab, *Solution) {
	t.Helper()
	lab := newLab(t, d.Head(steps[0]), cfg)
	sol := solveLab(t, lab)
	for step, rows := range steps[1:] {
		lab = testkit.Must(lab.Append(t.Context(), sol, d.Slice(steps[step], rows)))
		sol = solveLab(t, lab)
	}
	return lab, sol
}

// TestAppend appends rows twice and compares the answers with dense linear algebra, for regression, for two weighted
// and centered targets, for classes, and for each kind of preconditioner. It also checks which parts the report lists
// as kept and as made anew, and that the answer has the same bits on one thread and on the default number of threads.
func TestAppend(t *testing.T) {
	twoTargets := datasets.SyntheticRegression(110, 3, 0.1, 3)
	twoTargets.MoreTargets, twoTargets.TargetNames = [][]float64{datasets.SyntheticRegression(110, 3, 0.1, 4).Target},
		[]string{"a", "b"}
	for i := range twoTargets.Len() {
		twoTargets.Weights = append(twoTargets.Weights, 1+float64(i%3))
	}
	allKept := "kernel matrix, rows of Z, preconditioner"
	for name, d := range map[string]*datasets.Dataset{"regression": datasets.SyntheticRegression(110, 3, 0.1, 5),
		"targets": twoTargets.Center(), "classes": datasets.SyntheticClasses(110, 3, 4, 0.1, 6)} {
		for _, c := range []struct {
			cfg        Config
			kept, anew string
		}{
			{Config{Precond: RPCholesky{S: 20}}, allKept, ""},
			{Config{Precond: RPCholesky{S: 20, Form: precond.FormU}, Storage: gram.Float32}, allKept, ""},
			{Config{Precond: Nystrom{S: 20}, Solver: BlockPCG, Storage: gram.Float32, Tol: 1e-4}, allKept, ""},
			{Config{Precond: Nystrom{Landmarks: []int{7, 3, 50, 9}, LambdaP: 1}, Storage: gram.Recompute}, allKept, ""},
			{Config{Precond: Features{S: 30, Form: precond.FormL}}, allKept, ""},
			{Config{Precond: Vecchia{}}, "kernel matrix, preconditioner", ""},
			{Config{Precond: Vecchia{S: 12, Neighbors: 8}, Solver: BlockPCG}, allKept, ""},
			{Config{Precond: RPCholesky{S: 20, Spectral: true}}, "kernel matrix",
				"rows of Z: lowrank: the Cholesky factor"}, {Config{Solver: CG}, "kernel matrix", ""},
			{Config{Precond: RPCholesky{S: 20}, Tiles: gram.SparseTiles, Tol: 1e-4}, "rows of Z, preconditioner",
				"kernel matrix: gram: sparse tiles"},
			{Config{Solver: Direct}, "", "all, as a solver without iterations"},
			{Config{Precond: RPCholesky{S: 20}, Stop: bound.Stop{Rule: bound.ByPredictions}, Tol: 1e-6}, allKept, ""},
		} {
			c.cfg.Kernel, c.cfg.Lambda, c.cfg.Seed = kernel.Gaussian{Sigma: 1.2}, 0.1, 1
			if c.cfg.Tol == 0 {
				c.cfg.Tol = 1e-7
			}
			lab, sol := appendTo(t, d, c.cfg, 80, 81, 110)
			description := fmt.Sprintf("%s, %v, %v", name, lab.cfg.Solver, lab.cfg.Precond)
			checkAnswer(t, description, lab, sol)
			kept := strings.TrimPrefix(strings.TrimPrefix(strings.Join(sol.Appended.KeptParts, ", "),
				"coefficients, as a start"), ", ")
			if anew := strings.Join(sol.Appended.NewParts, "; "); kept != c.kept || !strings.HasPrefix(anew, c.anew) ||
				(anew == "") != (c.anew == "") || sol.Appended.Rows != 29 {
				t.Errorf("%s: %v, want kept %q and made anew %q", description, sol.Appended, c.kept, c.anew)
			}
			if name != "targets" {
				continue
			}
			func() {
				defer accel.SetThreads(accel.Threads())
				accel.SetThreads(1)
				if _, single := appendTo(t, d, c.cfg, 80, 81, 110); !mat.Equal(single.Model.C, sol.Model.C) {
					t.Errorf("%s: one thread and two give other coefficients", description)
				}
			}()
		}
	}
}

// TestAppendManyTimes appends one row a hundred times. It judges the answer after every fifty appends and checks that
// all parts are kept each time and that the appends together take fewer iterations than a hundred full solves.
func TestAppendManyTimes(t *testing.T) {
	data := datasets.SyntheticClasses(180, 3, 2, 0.1, 7)
	for _, preconditioner := range []Preconditioner{RPCholesky{S: 25}, Vecchia{S: 10}} {
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.05, Tol: 1e-6, Precond: preconditioner}
		lab := newLab(t, data.Head(80), cfg)
		sol, iterations := solveLab(t, lab), 0
		for rows := 81; rows <= 180; rows++ {
			lab = testkit.Must(lab.Append(t.Context(), sol, data.Slice(rows-1, rows)))
			sol = solveLab(t, lab)
			if iterations += sol.Iterations; rows%50 == 30 {
				checkAnswer(t, fmt.Sprint(preconditioner, rows), lab, sol)
			}
			if len(sol.Appended.KeptParts) != 4 || sol.Appended.NewParts != nil {
				t.Fatalf("%v, %d rows: not all parts are kept: %v", preconditioner, rows, sol.Appended)
			}
		}
		if complete := mustSolve(t, data, lab.cfg); iterations >= 100*complete.Iterations {
			t.Errorf("%v: %d iterations in a hundred appends, %d in one solve", preconditioner, iterations,
				complete.Iterations)
		}
	}
}

// TestAppendWeights checks an append to balanced classes. The new rows change the weights of all earlier rows, so
// only the kernel matrix and the coefficients, as a start, are kept, the preconditioner is made anew, and the noise
// trace of the earlier solve is not reused.
func TestAppendWeights(t *testing.T) {
	data := datasets.SyntheticClasses(110, 3, 2, 0.3, 8)
	more := *data.Slice(80, 110)
	for i := range more.Class {
		more.Class[i] = 0
	}
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Tol: 1e-7, Precond: Nystrom{S: 20}}
	lab := newLab(t, testkit.Must(data.Head(80).BalanceClasses()), cfg)
	earlier := solveLab(t, lab)
	earlier.Noise = &bound.Noise{Trace: 0.5}
	lab = testkit.Must(lab.Append(t.Context(), earlier, &more))
	testkit.Equal(t, lab.startTrace, 0.)
	sol := solveLab(t, lab)
	checkAnswer(t, "balanced", lab, sol)
	testkit.Equal(t, fmt.Sprint(sol.Appended), "30 rows; kept: coefficients, as a start, kernel matrix; made anew: "+
		"preconditioner: the weights of the earlier rows change")
}

// TestAppendOtherLab checks that Append extends the preconditioner only if the last lab that solved the problem used
// the same method. It also checks that with the stopping rule anorm the report says that the coefficients are not
// kept, because that rule starts from zeros.
func TestAppendOtherLab(t *testing.T) {
	data := datasets.SyntheticRegression(110, 3, 0.1, 12)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Tol: 1e-7}
	methods := []Preconditioner{Vecchia{Neighbors: 8}, Vecchia{S: 12, Neighbors: 8}, RPCholesky{S: 20}, Nystrom{S: 12},
		RPCholesky{S: 12, LambdaP: 1}}
	for i, first := range methods {
		for j, second := range methods {
			cfg.Precond = first
			lab := newLab(t, data.Head(80), cfg)
			sol := solveLab(t, lab)
			solveLab(t, testkit.Must(lab.With(func(c *Config) { c.Precond = second })))
			lab = testkit.Must(lab.Append(t.Context(), sol, data.Slice(80, 110)))
			sol = solveLab(t, lab)
			checkAnswer(t, fmt.Sprint(first, second), lab, sol)
			if parts := strings.Join(sol.Appended.KeptParts, ", "); strings.Contains(parts,
				"preconditioner") != (i == j) {
				t.Errorf("%v after %v: the preconditioner is kept, or made anew, wrongly: %v", first, second,
					sol.Appended)
			}
		}
	}
	cfg.Precond, cfg.Stop, cfg.Tol = RPCholesky{S: 20}, bound.Stop{Rule: bound.ByANorm}, 1e-3
	_, sol := appendTo(t, data, cfg, 80, 110)
	testkit.Equal(t, fmt.Sprint(sol.Appended), "30 rows; kept: kernel matrix, rows of Z, preconditioner; made anew: "+
		"coefficients, as the stopping rule anorm starts from zeros")
}

// TestAppendPlanned checks that an append to a planned solve keeps the method without planning again, and takes the
// noise trace from the first solve without new products.
func TestAppendPlanned(t *testing.T) {
	data := datasets.SyntheticRegression(DirectBelow+40, 3, 0.3, 9)
	lab := newLab(t, data.Head(DirectBelow+10), Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.3,
		Precond: Auto{S: 40}, Solver: PCG})
	sol := solveLab(t, lab)
	extended := testkit.Must(lab.Append(t.Context(), sol, data.Slice(DirectBelow+10, DirectBelow+40)))
	second := solveLab(t, extended)
	if second.Method() != sol.Method() || second.Plan != nil || second.Noise == nil || !second.CriterionMet() ||
		!(second.TrueResidual <= stage.Number(second.Tol)) {
		t.Errorf("the append does not keep the method, plans again or does not converge:\n%v\nbefore:\n%v", second, sol)
	}
	if second.Noise.Products != 0 || !(second.Noise.Trace >= sol.Noise.Trace) {
		t.Errorf("noise %+v, before %+v", second.Noise, sol.Noise)
	}
}

// TestAppendRanks checks that an append on two ranks makes the kernel matrix and the preconditioner anew, says so,
// and gives an answer that passes the comparison with dense linear algebra.
func TestAppendRanks(t *testing.T) {
	data := datasets.SyntheticRegression(110, 3, 0.1, 10)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Tol: 1e-7, Precond: RPCholesky{S: 20}}
	onRanks(2, func(ranks comm.Comm) {
		cfg := cfg
		cfg.Comm = ranks
		lab, err := New(data.Head(80), cfg)
		if err != nil {
			t.Error(err)
			return
		}
		sol, err := lab.Solve(t.Context())
		if err == nil {
			if lab, err = lab.Append(t.Context(), sol, data.Slice(80, 110)); err == nil {
				sol, err = lab.Solve(t.Context())
			}
		}
		if err != nil || !sol.Converged() ||
			sol.Appended.NewParts[0] != "K and preconditioner, as they are distributed over ranks" {
			t.Errorf("error %v; want K and the preconditioner made anew: %v", err, sol)
			return
		}
		checkAnswer(t, "ranks", lab, sol)
	})
}

// TestAppendRefused checks that rows that do not fit the lab and solutions of another lab are refused with a reason,
// and that a canceled append ends with the error of its context.
func TestAppendRefused(t *testing.T) {
	data := datasets.SyntheticClasses(110, 3, 2, 0.1, 11)
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Precond: RPCholesky{S: 20}}
	lab := newLab(t, data.Head(80), cfg)
	sol := solveLab(t, lab)
	more := data.Slice(80, 110)
	unknown := *more
	unknown.Labels = []string{"1", "new"}
	grouped := *more
	grouped.Groups = make([]int, 30)
	for want, rows := range map[string]*datasets.Dataset{
		`the label "new" is not among those of the fit`: &unknown,
		"the numbers of given groups":                   &grouped,
		"have 4 features, the others 3":                 datasets.SyntheticClasses(9, 4, 2, 0.1, 1),
		"need answers for the same classification":      datasets.SyntheticRegression(9, 3, 0.1, 1),
	} {
		testkit.Fails(t, testkit.ErrOf(lab.Append(t.Context(), sol, rows)), want)
	}
	testkit.Fails(t, testkit.ErrOf(newLab(t, data.Head(80), cfg).Append(t.Context(), sol, more)), "not one of this lab")
	testkit.Fails(t, testkit.ErrOf(StartFrom(mat.NewDense(130, 1, nil), data, cfg)), "coefficients 130×1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if next, err := lab.Append(ctx, sol, more); err != context.Canceled || next != nil {
		t.Errorf("a canceled append returns the lab %v and the error %v", next, err)
	}
	partial := testkit.Must(lab.Append(t.Context(), sol, more))
	partial = testkit.Must(partial.With(func(c *Config) { c.MaxIter = 1 }))
	if s := solveLab(t, partial); s.Status != pcg.MaxIterations || s.Appended == nil || s.History[0].Residual > 0.9 {
		t.Errorf("a lab with another method does not start from the coefficients: %v", s)
	}
}
