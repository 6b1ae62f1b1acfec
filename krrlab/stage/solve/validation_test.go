package solve_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestCrossValidate checks that the folds are a partition of the rows that keeps groups together and the shares of
// classes equal. The errors of cross-validation must agree with those of dense fits to the other folds, centered by the
// mean of their rows.
func TestCrossValidate(t *testing.T) {
	const foldCount = 4
	for seed := uint64(1); seed <= 3; seed++ {
		classes := datasets.SyntheticClasses(90, 2, 3, 0.1, seed)
		folds := testkit.Must(classes.Folds(foldCount, seed))
		var counts [3][foldCount]int // number of rows of each class in each fold
		seen := map[int]bool{}
		for fold, rows := range folds {
			for _, i := range rows {
				counts[classes.Class[i]][fold]++
				seen[i] = true
			}
		}
		for class, count := range counts {
			for fold := range foldCount {
				if excess := count[fold] - count[0]; excess < -1 || excess > 1 || len(seen) != 90 {
					t.Errorf("seed %d: class %d has %v rows in the folds, %d rows in all", seed, class, count,
						len(seen))
				}
			}
		}
		set := datasets.SyntheticRegression(60, 2, 0.3, seed)
		groups := make([]int, 60)
		for i := range groups {
			groups[i] = i / 3
		}
		set = set.GroupBy(groups).Center()
		lab := testkit.Must(krrlab.New(set, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Seed: seed}))
		result := testkit.Must(lab.CrossValidate(t.Context(), foldCount, 0))
		mean := 0.0
		for fold, rows := range testkit.Must(set.Folds(foldCount, seed)) {
			heldOut := make([]bool, 60)
			for _, i := range rows {
				heldOut[i] = true
			}
			for i := range groups {
				if heldOut[i] != heldOut[i/3*3] {
					t.Errorf("seed %d: the group of row %d is divided", seed, i)
				}
			}
			denseError := denseFoldError(set, heldOut)
			testkit.Near(t, result.Errors[fold], denseError, 1e-3*denseError, "fold") // 1e-3: tolerance of the solver
			mean += denseError / foldCount
		}
		testkit.Near(t, result.Mean, mean, 1e-3*mean, "mean")
		sum := 0.0
		for _, foldError := range result.Errors {
			sum += (foldError - result.Mean) * (foldError - result.Mean)
		}
		testkit.Near(t, result.StandardError, math.Sqrt(sum/(foldCount-1)/foldCount), 1e-12, "standard error")
	}
	fiveRows := datasets.SyntheticRegression(5, 1, 0, 1)
	for _, count := range []int{1, 6} {
		testkit.Fails(t, testkit.ErrOf(fiveRows.Folds(count, 1)), "want at least 2, and no more than there are groups")
	}
}

// denseFoldError returns the RMSE on the rows marked in heldOut of a dense fit to the other rows, with λ = 0.1.
func denseFoldError(set *datasets.Dataset, heldOut []bool) float64 {
	row := func(i int) []float64 {
		x := make([]float64, set.Dim())
		set.X.RowTo(x, i)
		return x
	}
	var trainRows []int
	mean := 0.0
	for i, isHeldOut := range heldOut {
		if !isHeldOut {
			trainRows = append(trainRows, i)
			mean += set.Target[i]
		}
	}
	mean /= float64(len(trainRows))
	k := kernel.Gaussian{Sigma: 1}
	var trainK mat.SymDense // kernel matrix of the other rows
	trainK.SubsetSym(testkit.KernelMatrix(k, set.X), trainRows)
	y := mat.NewVecDense(len(trainRows), nil)
	for p, i := range trainRows {
		y.SetVec(p, set.Target[i]-mean)
	}
	var c mat.VecDense
	if err := c.SolveVec(testkit.AddRidge(&trainK, 0.1), y); err != nil {
		return math.NaN()
	}
	sum, n := 0.0, 0.0 // sum of squared errors, and number of rows
	for i, isHeldOut := range heldOut {
		if !isHeldOut {
			continue
		}
		f := mean
		for p, j := range trainRows {
			f += c.AtVec(p) * k.Eval(row(i), row(j))
		}
		sum, n = sum+(f-set.Target[i])*(f-set.Target[i]), n+1
	}
	return math.Sqrt(sum / n)
}
