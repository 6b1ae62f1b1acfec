package statdim_test

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage/statdim"
)

// TestRun compares every method, with every preconditioner, with the eigenvalues of K, at the λ of the problem and
// along the curve. It also checks the report, the table and the figure.
func TestRun(t *testing.T) {
	train, k := datasets.SyntheticRegression(250, 4, 0.1, 3), kernel.Gaussian{Sigma: 1.5}
	mu := testkit.Eigenvalues(t, testkit.KernelMatrix(k, train.X))
	exactStatDim := func(lambda float64) (sum float64) {
		for _, eigenvalue := range mu {
			sum += eigenvalue / (eigenvalue + lambda)
		}
		return sum
	}
	for _, preconditioner := range []krrlab.Preconditioner{krrlab.Features{S: 60, LambdaP: 0.1},
		krrlab.Nystrom{S: 60, LambdaP: 0.1}, krrlab.RPCholesky{S: 60, LambdaP: 0.1}, krrlab.None{}} {
		lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: k, Solver: krrlab.PCG, Lambda: 0.05, Seed: 3,
			Precond: preconditioner, Storage: gram.Float64}))
		for _, method := range []statdim.Method{statdim.Auto, statdim.Exact, statdim.Hutchinson, statdim.SLQ,
			statdim.Free} {
			result, err := lab.StatDim(t.Context(), statdim.Options{Method: method, Confidence: 0.999})
			if method == statdim.Free && preconditioner == krrlab.Preconditioner(krrlab.None{}) {
				testkit.Fails(t, err, "method free needs features or landmarks")
				continue
			}
			testkit.OK(t, err)
			if method == statdim.Exact && (result.Estimate.RelativeWidth() > 1e-6 || result.Estimate.Confidence != 1) {
				t.Errorf("%v: the interval of all eigenvalues is %v", preconditioner, result.Estimate)
			}
			if exact := exactStatDim(0.05); !result.Estimate.Contains(exact) ||
				method != statdim.Free && !result.WidthReached {
				t.Errorf("%v, %v: s_λ = %.6g, got %v, reached %v", preconditioner, method, exact, result.Estimate,
					result.WidthReached)
			}
			for _, point := range result.Curve {
				if exact := exactStatDim(point.Lambda); !point.Estimate.Contains(exact) ||
					point.Estimate.Lo > point.Estimate.Value || point.Estimate.Hi < point.Estimate.Value {
					t.Errorf("%v, %v: s_%g = %.6g, got %v", preconditioner, method, point.Lambda, exact, point.Estimate)
				}
			}
			wantPoints, series := 21, result.Plot().Series
			if method == statdim.Hutchinson {
				wantPoints = 0
			}
			if len(result.Curve) != wantPoints || len(result.Table().Rows) != max(1, wantPoints) {
				t.Errorf("%v, %v: %d points of the curve, %d rows", preconditioner, method, len(result.Curve),
					len(result.Table().Rows))
			}
			if estimate := series[len(series)-1]; estimate.X[0] != 0.05 || estimate.Y[0] != result.Estimate.Value {
				t.Errorf("%v, %v: the estimate is drawn at %v, %v", preconditioner, method, estimate.X, estimate.Y)
			}
			testkit.Contains(t, result.String(), "method         "+string(result.Method), "at λ = 0.05")
		}
	}
}

// TestMemoryRefusesDense checks that probes are used if the memory budget is too small for all eigenvalues, 8n² bytes,
// and that the report says so. It also checks the notes on a width that was not reached, and on a curve by quadrature
// if another method gave the estimate at λ.
func TestMemoryRefusesDense(t *testing.T) {
	makeLab := func(n int, memory int64) *krrlab.Lab {
		return testkit.Must(krrlab.New(datasets.SyntheticRegression(n, 3, 0.1, 5), krrlab.Config{Memory: memory,
			Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.01, Solver: krrlab.PCG,
			Precond: krrlab.RPCholesky{S: 40, LambdaP: 0.01}}))
	}
	exact := testkit.Must(makeLab(1200, 0).StatDim(t.Context(), statdim.Options{Method: statdim.Exact}))
	limited := testkit.Must(makeLab(1200, 11e6).StatDim(t.Context(), statdim.Options{MaxProbes: 16, Width: 1e-6}))
	if !limited.Estimate.Contains(exact.Estimate.Value) || limited.WidthReached || limited.Method == statdim.Exact {
		t.Errorf("with 11 MB: %v\nby all eigenvalues: %v", limited, exact)
	}
	testkit.Contains(t, limited.String(), "(asked 0.0001 %)",
		"n = 1200 points would take 11.5 MB of memory, and 10.9 MB of 11 MB are free")
	testkit.Fails(t, testkit.ErrOf(makeLab(1200, 11e6).StatDim(t.Context(), statdim.Options{Method: statdim.Exact})),
		"10.9 MB of 11 MB are free: take another method, or allow more by --memory")
	testkit.Fails(t, testkit.ErrOf(makeLab(50, 0).StatDim(t.Context(), statdim.Options{Width: -1})), "Width -1: want")
	free := testkit.Must(makeLab(1200, 11e6).StatDim(t.Context(), statdim.Options{Method: statdim.Free, Width: 1e-6}))
	testkit.Contains(t, free.String(), "tr K and this Z prove no narrower interval")
	illConditioned := testkit.Must(krrlab.New(datasets.SyntheticRegression(700, 3, 0.1, 5), krrlab.Config{Memory: 38e5,
		Kernel: kernel.Gaussian{Sigma: 0.3}, Lambda: 1e-7, Solver: krrlab.PCG, Precond: krrlab.RPCholesky{S: 100}}))
	hutchinson := testkit.Must(illConditioned.StatDim(t.Context(), statdim.Options{MaxProbes: 16, Width: 1e-3}))
	if hutchinson.Method != statdim.Hutchinson || len(hutchinson.Curve) != 21 {
		t.Errorf("method %s with a curve of %d points, want hutchinson and 21: %v", hutchinson.Method,
			len(hutchinson.Curve), hutchinson)
	}
	testkit.Contains(t, hutchinson.String(), "the curve is from it")
	largeRank := testkit.Must(krrlab.New(datasets.SyntheticRegression(1200, 3, 0.1, 5), krrlab.Config{Memory: 11e6,
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.01, Solver: krrlab.PCG, Precond: krrlab.RPCholesky{S: 800}}))
	testkit.Fails(t, testkit.ErrOf(largeRank.StatDim(t.Context(), statdim.Options{})),
		"K of 1200 points as recompute would take")
}
