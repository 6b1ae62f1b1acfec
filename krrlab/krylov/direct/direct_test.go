package direct_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

var precisions = []direct.Precision{direct.Float64, direct.Float32Refined}

// normalPoints returns n points with d normal coordinates.
func normalPoints(seed uint64, n, d int) *points.Dense {
	return points.NewDense(n, d, testkit.Normals(seed, 5, n*d))
}

// targets returns an n×t matrix of normal numbers.
func targets(seed uint64, n, t int) *mat.Dense {
	return mat.NewDense(n, t, testkit.Normals(seed, 6, n*t))
}

// checkSolution solves for the points x, which stored contains in any format, and compares the result with a dense
// Cholesky solve. A result may be called converged only if the true residual and its rounding together are at most the
// tolerance.
func checkSolution(t *testing.T, label string, k kernel.Kernel, x *points.Dense, stored points.Points, lambda float64,
	y *mat.Dense, opts *direct.Options) {
	t.Helper()
	res, err := direct.Solve(context.Background(), k, stored, lambda, y, opts)
	if err != nil {
		t.Fatalf("%s: %v", label, err)
	}
	a := testkit.AddRidge(testkit.KernelMatrix(k, x), lambda)
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		t.Fatal("K+λI is not positive definite")
	}
	var want, r mat.Dense
	testkit.OK(t, chol.SolveTo(&want, y))
	isProved := true
	for j, v := range res.TrueRelRes {
		isProved = isProved && v+res.Rounding[j] <= res.Tol
	}
	if (res.Status == pcg.Converged) != isProved || !isProved && res.Status != pcg.Inaccurate ||
		!(res.MaxTrueRelRes() <= res.Tol) {
		t.Errorf("%s: %v", label, res)
	}
	r.Mul(a, res.X)
	r.Sub(y, &r)
	for j := range res.TrueRelRes {
		norm := mat.Norm(y.ColView(j), 2)
		if norm == 0 {
			continue
		}
		if relRes := mat.Norm(r.ColView(j), 2) / norm; relRes > 1.1*res.Tol ||
			math.Abs(relRes-res.TrueRelRes[j]) > min(1e-11, 2*res.Rounding[j]) {
			t.Errorf("%s: column %d: residual %.3g, reported %.3g", label, j, relRes, res.TrueRelRes[j])
		}
	}
	var difference mat.Dense
	difference.Sub(res.X, &want)
	if deviation := mat.Norm(&difference, 2); deviation > 2*res.Tol*mat.Norm(y, 2)/lambda {
		t.Errorf("%s: the solution has an error of %.3g", label, deviation)
	}
}

// TestAgainstDense compares both precisions with dense solves, for several kernels, numbers of columns and types of
// points.
func TestAgainstDense(t *testing.T) {
	kernels := []kernel.Kernel{
		kernel.Gaussian{Sigma: 2}, kernel.Laplacian{Sigma: 3}, kernel.Matern32{Sigma: 2}, kernel.Matern52{Sigma: 2},
		kernel.Polynomial{Gamma: 0.1, Coef0: 1, Degree: 3},
		kernel.Func{Name: "min", F: func(x, z []float64) float64 { return 1 / (1 + math.Abs(x[0]-z[0])) }},
	}
	x := normalPoints(1, 150, 5)
	for _, k := range kernels {
		for _, precision := range precisions {
			for _, cols := range []int{1, 2, 3, 10, 17} {
				for _, stored := range []points.Points{x, testkit.ToCSR(x)} {
					checkSolution(t, fmt.Sprintf("%v %v t = %d %T", k, precision, cols, stored), k, x, stored, 0.1,
						targets(uint64(cols), x.N, cols), &direct.Options{Precision: precision, Tol: 1e-10})
				}
			}
		}
	}
}

// TestSeveralTiles solves a problem of more than one tile, with each BLAS, and checks the progress.
func TestSeveralTiles(t *testing.T) {
	x := normalPoints(2, 1100, 6)
	y := targets(1, x.N, 2)
	run := func(t *testing.T) {
		for _, precision := range precisions {
			completed := 0
			checkSolution(t, precision.String(), kernel.Gaussian{Sigma: 2}, x, x, 0.01, y,
				&direct.Options{Precision: precision, Tol: 1e-10, Progress: func(count, total int) {
					if total != 6 || count != completed+1 {
						t.Errorf("progress %d of %d after %d", count, total, completed)
					}
					completed = count
				}})
			testkit.Equal(t, completed, 6)
		}
	}
	testkit.EachBLAS(t, run)
}

// TestDegenerateProblems checks problems with repeated points, constant coordinates, zero and tiny targets, and a
// single point.
func TestDegenerateProblems(t *testing.T) {
	x := normalPoints(3, 60, 3)
	for i := range 60 {
		x.Row(i)[1] = 7
		copy(x.Row(i), x.Row(i%20))
	}
	y := targets(2, 60, 4)
	for i := range 60 {
		y.Set(i, 1, 0)
		y.Set(i, 2, 1e-60*y.At(i, 2))
	}
	for _, precision := range precisions {
		checkSolution(t, precision.String(), kernel.Gaussian{Sigma: 1}, x, x, 0.05, y,
			&direct.Options{Precision: precision, Tol: 1e-10})
		checkSolution(t, precision.String(), kernel.Gaussian{Sigma: 1}, normalPoints(4, 1, 3), normalPoints(4, 1, 3),
			0.05, targets(3, 1, 2),
			&direct.Options{Precision: precision, Tol: 1e-10})
	}
}

// TestFarGroups solves for two distant groups of points, for which inner products lose all distances within a group.
// K must be formed from coordinate differences, and the reported residual must be the true one.
func TestFarGroups(t *testing.T) {
	for _, distance := range []float64{1e4, 1e5, 1e6} {
		x := normalPoints(6, 200, 8)
		for i := range x.N {
			for j := range x.Row(i) {
				x.Row(i)[j] += distance * float64(i%2*2-1)
			}
		}
		y := targets(9, x.N, 2)
		for _, precision := range precisions {
			checkSolution(t, fmt.Sprintf("%v, groups at ±%g", precision, distance), kernel.Gaussian{Sigma: 2}, x, x,
				0.01, y,
				&direct.Options{Precision: precision, Tol: 1e-9})
		}
	}
}

// TestPointsFarFromZero uses points whose distance from zero is large compared with their spread, such as Unix times:
// distances must not suffer from cancellation.
func TestPointsFarFromZero(t *testing.T) {
	x := points.NewDense(120, 1, nil)
	random := rand.New(rand.NewPCG(9, 7))
	for i := range x.Data {
		x.Data[i] = 1.7e9 + 1e4*random.Float64()
	}
	y := targets(9, 120, 2)
	for _, precision := range precisions {
		checkSolution(t, precision.String(), kernel.Gaussian{Sigma: 1e3}, x, x, 1e-3, y,
			&direct.Options{Precision: precision, Tol: 1e-9})
	}
}

// TestRefinement checks that refinement reaches a residual below 1e-12, which is not proved because of rounding, and
// that an unreachable tolerance ends with the status Stagnated.
func TestRefinement(t *testing.T) {
	x := normalPoints(5, 300, 2)
	y := targets(4, 300, 2)
	k := kernel.Gaussian{Sigma: 3}
	res, err := direct.Solve(context.Background(), k, x, 0.01, y,
		&direct.Options{Precision: direct.Float32Refined, Tol: 1e-12})
	if err != nil || res.Status != pcg.Inaccurate || !(res.MaxTrueRelRes() <= 1e-12) || res.Rounds < 1 ||
		len(res.History) != res.Rounds+1 || !(res.History[0][0] > 1e-9) {
		t.Errorf("%v, %v", res, err)
	}
	// No float64 solution has the residual 1e-20.
	for _, precision := range precisions {
		res, err = direct.Solve(context.Background(), k, x, 0.01, y, &direct.Options{Precision: precision, Tol: 1e-20})
		if err != nil || res.Status != pcg.Stagnated || !strings.Contains(res.String(), "stagnated") {
			t.Errorf("%v: %v, %v", precision, res, err)
		}
	}
	// If λ is below the rounding errors of float32, Solve returns an error or a status other than Converged.
	res, err = direct.Solve(context.Background(), k, x, 1e-9, y, &direct.Options{Precision: direct.Float32Refined})
	if err == nil && res.Status == pcg.Converged || err != nil && !strings.Contains(err.Error(), "λ = 1e-09") {
		t.Errorf("%v, %v", res, err)
	}
}

// TestErrors checks the errors for an invalid λ or kernel and for a K that is not positive semidefinite, the status
// for targets that are not finite, and cancellation.
func TestErrors(t *testing.T) {
	x := normalPoints(6, 80, 2)
	y := targets(5, 80, 1)
	ctx := context.Background()
	gaussian := kernel.Gaussian{Sigma: 1}
	for _, lambda := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := direct.Solve(ctx, gaussian, x, lambda, y, nil); err == nil {
			t.Errorf("λ = %v accepted", lambda)
		}
	}
	if _, err := direct.Solve(ctx, kernel.Gaussian{}, x, 1, y, nil); err == nil {
		t.Error("σ = 0 accepted")
	}
	notDefinite := kernel.Func{Name: "not psd", F: func(x, z []float64) float64 { return -x[0] * z[0] }}
	for _, precision := range precisions {
		_, err := direct.Solve(ctx, notDefinite, x, 1e-3, y, &direct.Options{Precision: precision})
		if err == nil || !strings.Contains(err.Error(), "not positive definite in "+precision.String()) ||
			!strings.Contains(err.Error(), "λ = 0.001") || strings.Contains(err.Error(), "pivot 0") {
			t.Errorf("%v: %v", precision, err)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		notFinite := targets(5, 80, 1)
		notFinite.Set(4, 0, v)
		if res := testkit.Must(direct.Solve(ctx, gaussian, x, 1, notFinite, nil)); res.Status != pcg.Stagnated {
			t.Errorf("%v: %v", v, res)
		}
	}
	testkit.CheckCancellation(t, func(ctx context.Context) error {
		return testkit.ErrOf(direct.Solve(ctx, gaussian, x, 1, y, nil))
	})
	testkit.Panics(t, map[string]func(){"targets of other points": func() {
		_, _ = direct.Solve(ctx, gaussian, x, 1, targets(1, 79, 1), nil)
	}})
}

// TestSecondsAdd checks that Add sums every part of the seconds.
func TestSecondsAdd(t *testing.T) {
	s := direct.Seconds{Kernel: 1, Factor: 2, Solve: 3, Residual: 4, Total: 11}
	s.Add(direct.Seconds{Kernel: 10, Factor: 20, Solve: 30, Residual: 40, Total: 101})
	if want := (direct.Seconds{Kernel: 11, Factor: 22, Solve: 33, Residual: 44, Total: 112}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// TestMemory checks that the memory limit is kept and that only one n×n array is allocated.
func TestMemory(t *testing.T) {
	const n = 1200
	x := normalPoints(7, n, 3)
	y := targets(6, n, 1)
	_, err := direct.Solve(context.Background(), kernel.Gaussian{Sigma: 1}, x, 1, y,
		&direct.Options{Memory: accel.Budget{Limit: 7 * n * n}})
	testkit.Fails(t, err, "would take 11.6 MB of memory, and 10.1 MB of 10.1 MB are free: float32-refined (5.8 MB) fits, or allow more by")
	_, err = direct.Solve(context.Background(), kernel.Gaussian{Sigma: 1}, x, 1, y,
		&direct.Options{Memory: accel.Budget{Limit: 3 * n * n}})
	testkit.Fails(t, err, "take an iterative solver")
	// Only the n×n array grows like n²; tiles and the rows that gram samples do not. From n to 2n, the memory
	// therefore grows by that of one array, 3n² entries. The test uses the minimum of three runs, because the first
	// run also fills pools. Garbage collection, which would empty the pools, is off.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	minBytes := func(precision direct.Precision, n int) float64 {
		bytes := int64(math.MaxInt64)
		for range 3 {
			bytes = min(bytes, testkit.AllocatedBytes(func() {
				res, err := direct.Solve(context.Background(), kernel.Gaussian{Sigma: 1}, normalPoints(7, n, 3), 1,
					targets(6, n, 1), &direct.Options{Precision: precision})
				if err != nil || res.Bytes != direct.MemoryNeeded(precision, n, 1) {
					t.Fatal(res, err)
				}
			}))
		}
		return float64(bytes)
	}
	for precision, entryBytes := range map[direct.Precision]float64{direct.Float64: 8, direct.Float32Refined: 4} {
		growth, arrayGrowth := minBytes(precision, 2*n)-minBytes(precision, n), entryBytes*3*n*n
		if growth > 1.3*arrayGrowth {
			t.Errorf("%v: from n to 2n %.3g bytes more, one array grows by %.3g", precision, growth, arrayGrowth)
		}
	}
}

func ExampleSolve() {
	x := points.NewDense(3, 1, []float64{0, 1, 2})
	y := mat.NewDense(3, 1, []float64{0, 1, 0})
	res, err := direct.Solve(context.Background(), kernel.Gaussian{Sigma: 1}, x, 0.1, y, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v\n%.4f\n", res.Status, mat.Formatted(res.X))
	// Output:
	// converged
	// ⎡-0.9734⎤
	// ⎢ 1.9825⎥
	// ⎣-0.9734⎦
}
