package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/plots"
)

// demoCase is a problem of the demonstration, which is solved with and without the preconditioner.
type demoCase struct {
	data    string  // name of the data set
	n       int     // number of training rows; 0 for all
	s       int     // number of random features of the preconditioner; 0 for the default
	lambdaP float64 // ridge λ_p of the preconditioner; 0 for the default
}

// demoCases are the problems, in the order in which they are solved. A case whose data set is not found is skipped.
var demoCases = []demoCase{
	{data: "synthetic-regression"},
	{data: "synthetic-classes"},
	{data: "mnist", n: 10000, s: 2000, lambdaP: 0.1},
}

// demoFlags are the flags of krrlab demo.
type demoFlags struct {
	Dir string `flag:"dir" default:"." help:"folder to write the figure to"`
}

// demoCommand returns the command krrlab demo.
func (a *app) demoCommand() *cobra.Command {
	f := &demoFlags{}
	return flagCommand(&cobra.Command{
		Use:   "demo [--dir DIR]",
		Short: "Solve the built-in problems, and MNIST when it is found",
		Long: `Demo solves two built-in problems whose best possible error is known, and a problem with
the first 10,000 rows of MNIST if that data set is found. It solves each problem twice: with
the preconditioner, and by conjugate gradients without one. It then prints a table and draws
the convergence of all solves.`,
	}, schema.Of(f), f, a.demo)
}

// demo solves the cases, prints a table of the results and writes the convergence figure into the folder --dir.
func (a *app) demo(ctx context.Context, f *demoFlags) error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return fmt.Errorf("cannot write to %s: %w", f.Dir, err)
	}
	start := time.Now()
	a.printf("BLAS: %v, %s\n\n", accel.CurrentBLAS(), plural.Count(accel.Threads(), "thread"))
	table := &plots.Table{Title: "Kernel ridge regression to a residual of 1e-5 (classes 1e-3), with the " +
		"paper's preconditioner and without", Columns: plots.ParseColumns("data", "n", "s", "solver", "iterations",
		"status",
		"true residual %.1e", "κ(M⁻¹A)", "test error", "best possible", "seconds %.1f")}
	var series []plots.Series
	for _, problem := range demoCases {
		for _, solver := range []krrlab.Solver{krrlab.PCG, krrlab.CG} {
			result, err := a.demoFit(ctx, problem, solver)
			if _, missing := errors.AsType[*datasets.MissingFilesError](err); missing {
				a.printf("%s: not found, left out (krrlab data info %s says where to get it)\n", problem.data,
					problem.data)
				break
			}
			if err != nil {
				return err
			}
			table.Add(demoRow(result.sol)...)
			convergence := result.sol.ConvergenceSeries()
			convergence.Name = fmt.Sprintf("%s, %v", problem.data, solver)
			series = append(series, convergence)
		}
	}
	a.printf("%s\n", table.Text())
	figure := plots.Convergence("With random-features preconditioning (pcg) and without (cg)", 0, series...)
	figure.X.Log = true // there are hundreds of iterations without the preconditioner and tens with it
	figure.HLines = []plots.RefLine{{At: 1e-3, Label: "asked of classifiers"}, {At: 1e-5, Label: "asked of regression"}}
	for _, ext := range []string{".svg", ".png"} {
		name := filepath.Join(f.Dir, "demo-convergence"+ext)
		if err := figure.Save(name); err != nil {
			return err
		}
		a.printf("figure: %s\n", name)
	}
	a.printf("%.0f seconds in all, peak memory %s\n", time.Since(start).Seconds(), accel.FormatBytes(accel.PeakRSS()))
	return nil
}

// demoFit solves a problem with the given solver: PCG with random features, or CG without a preconditioner.
func (a *app) demoFit(ctx context.Context, problem demoCase, solver krrlab.Solver) (*fitResult, error) {
	f := newFitFlags()
	f.Data, f.Center, f.Solver, f.MaxRows = problem.data, "no", solver, problem.n
	f.Stop.Rule = bound.ByResidual // both solvers reach the same tolerance, which the figure shows
	f.PrecondSpec = krrlab.PrecondSpec{Name: "none"}
	if solver == krrlab.PCG {
		f.PrecondSpec = krrlab.PrecondSpec{Name: "features", S: problem.s, LambdaP: problem.lambdaP}
	}
	return a.solve(ctx, f)
}

// demoRow returns the cells of the table's row for a solution. The errors are error rates in percent for classes, and
// RMSE for a regression.
func demoRow(sol *krrlab.Solution) []any {
	formatted := func(format string, v krrlab.Number) any {
		if !v.Known() {
			return nil
		}
		return fmt.Sprintf(format, v)
	}
	errorFormat, value, unit := "%.2f %%", sol.TestError, krrlab.Number(100)
	if !value.Known() {
		errorFormat, value, unit = "RMSE %.4f", sol.RMSE, 1
	}
	return []any{sol.Dataset, sol.N, sol.S, sol.Solver.String(), sol.Iterations, sol.Status.String(),
		float64(sol.TrueResidual),
		formatted("%.3g", sol.Kappa), formatted(errorFormat, unit*value), formatted(errorFormat, unit*sol.BestError),
		sol.Seconds.Total}
}
