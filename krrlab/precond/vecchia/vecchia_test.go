package vecchia_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/precond/vecchia"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const lambda = 0.01

// problem returns K+λI of n points in the plane and a factor of K of rank r, which is nil for r = 0. The points are
// sparse for the format "csr", rows of a precomputed K for the format "given", and otherwise dense.
func problem(t *testing.T, n, r int, k kernel.Kernel, format string, opts *gram.Options) (*gram.Matrix,
	*points.Dense32) {
	t.Helper()
	x := make([]float64, 2*n)
	rng.New(1).Sub("points").Normals(x, 0)
	var pts points.Points = points.NewDense(n, 2, x)
	switch format {
	case "csr":
		csr := &points.CSR{N: n, D: 2, Ptr: make([]int, n+1), Col: make([]int32, 2*n), Val: x}
		for i := range 2 * n {
			csr.Ptr[i/2+1], csr.Col[i] = 2*(i/2)+2, int32(i%2)
		}
		pts = csr
	case "given":
		given := testkit.Must(gram.New(t.Context(), k, pts, lambda, nil))
		precomputed, err := kernel.NewPrecomputed(&points.Dense{N: n, D: n, Stride: n, Data: denseOf(t,
			given).RawMatrix().Data})
		testkit.OK(t, err)
		k, pts = precomputed, kernel.PrecomputedPoints(n)
	}
	a := testkit.Must(gram.New(t.Context(), k, pts, lambda, opts))
	if r == 0 {
		return a, nil
	}
	f := testkit.Must(lowrank.RPCholesky(t.Context(), a.Exact(1e-9), r, rng.New(2), nil))
	return a, f.F
}

// denseOf returns the dense matrix K, in float64, of a = K+λI.
func denseOf(t *testing.T, a *gram.Matrix) *mat.Dense {
	k := mat.NewDense(a.Dim(), a.Dim(), nil)
	testkit.OK(t, a.Exact(1e-12).DenseTo(t.Context(), k))
	return k
}

// denseDefinition returns m, which is M = FFᵀ+(GᵀG)⁻¹, and shifted, which is ωR+λI with R = K−FFᵀ. The rows of G are
// computed by dense solves, with neighbors that are chosen by comparing all candidates.
func denseDefinition(t *testing.T, a *gram.Matrix, f *points.Dense32, k int, omega float64, order []int32) (m,
	shifted *mat.Dense) {
	t.Helper()
	n := a.Dim()
	denseK := denseOf(t, a)
	outerF := mat.NewDense(n, n, nil)
	if f != nil {
		f64 := mat.NewDense(n, f.D, nil)
		for i := range n {
			points.Widen(f64.RawRowView(i), f.Row(i))
		}
		outerF.Mul(f64, f64.T())
	}
	r := mat.NewDense(n, n, nil)
	r.Sub(denseK, outerF)
	shifted = mat.NewDense(n, n, nil) // ωR+λI
	shifted.Scale(omega, r)
	for i := range n {
		shifted.Set(i, i, shifted.At(i, i)+lambda)
	}
	largest := func(from []int, count int, size func(j int) float64) []int {
		var chosen []int
		used := map[int]bool{}
		for len(chosen) < min(count, len(from)) {
			best := -1
			for _, j := range from {
				if !used[j] && (best < 0 || size(j) > size(best)) {
					best = j
				}
			}
			used[best] = true
			chosen = append(chosen, best)
		}
		return chosen
	}
	g := mat.NewDense(n, n, nil)
	for i := range n {
		var before []int
		for j := range n {
			if order[j] < order[i] {
				before = append(before, j)
			}
		}
		neighbors := largest(before, 3*k, func(j int) float64 {
			return math.Abs(float64(float32(denseK.At(i, j) / math.Sqrt(denseK.At(i, i)*denseK.At(j, j)))))
		})
		if f == nil {
			neighbors = neighbors[:min(k, len(neighbors))]
		} else {
			neighbors = largest(neighbors, k, func(j int) float64 {
				return math.Abs(r.At(i, j)) / math.Sqrt(shifted.At(i, i)*shifted.At(j, j))
			})
		}
		idx := append(neighbors, i)
		local := mat.NewDense(len(idx), len(idx), nil)
		for row, p := range idx {
			for col, q := range idx {
				local.Set(row, col, shifted.At(p, q))
			}
		}
		unit, z := mat.NewVecDense(len(idx), nil), mat.NewVecDense(len(idx), nil)
		unit.SetVec(len(idx)-1, 1)
		testkit.OK(t, z.SolveVec(local, unit))
		for row, p := range idx {
			g.Set(i, p, z.AtVec(row)/math.Sqrt(z.AtVec(len(idx)-1)))
		}
	}
	var gTg, inverse mat.Dense
	gTg.Mul(g.T(), g)
	testkit.OK(t, inverse.Inverse(&gTg))
	inverse.Add(&inverse, outerF)
	return &inverse, shifted
}

// identity returns the identity matrix of order n.
func identity(n int) *mat.Dense {
	return mat.DenseCopyOf(mat.NewDiagDense(n, slices.Repeat([]float64{1}, n)))
}

// randomOrder returns a random order: element i is the position of point i.
func randomOrder(n int, g rng.Stream) []int32 {
	order := make([]int32, n)
	for position, i := range g.Perm(n) {
		order[i] = int32(position)
	}
	return order
}

// checkRows returns an error unless each row of G ends with its diagonal, has at most k neighbors, and each neighbor
// comes before the point in the order.
func checkRows(m *vecchia.Inverse, order []int32) error {
	for i := range m.Dim() {
		cols, values := m.Row(i)
		last := len(cols) - 1
		if last > m.Neighbors() || int(cols[last]) != i || !(values[last] > 0) {
			return fmt.Errorf("row %d is %v, %v", i, cols, values)
		}
		for _, j := range cols[:last] {
			if order[j] >= order[i] {
				return fmt.Errorf("row %d has %d, which comes after it", i, j)
			}
		}
	}
	return nil
}

// TestDefinition compares M, its inverse and G with dense float64 matrices, for all kinds of points, kernels and
// storages. With all points as neighbors, conjugate gradients must converge in one step.
func TestDefinition(t *testing.T) {
	narrow, wide := kernel.Gaussian{Sigma: 0.3}, kernel.Gaussian{Sigma: 1}
	rational := kernel.Func{Name: "rational", F: func(x, z []float64) float64 {
		return 1 / (1 + math.Pow(x[0]-z[0], 2) + math.Pow(x[1]-z[1], 2))
	}}
	for _, test := range []struct {
		n, k, r int
		omega   float64
		kern    kernel.Kernel
		format  string
		storage gram.Storage
	}{
		{300, 8, 20, 1, wide, "", gram.Float32},
		{120, 0, 0, 1, narrow, "", gram.Float32},                     // Jacobi
		{120, 0, 20, 1, kernel.Matern32{Sigma: 1}, "", gram.Float32}, // FITC: Woodbury with a diagonal
		{120, 0, 20, 0.5, wide, "", gram.Recompute},                  // FITC, damped
		{120, 8, 0, 1, narrow, "csr", gram.Float64},                  // the sparse inverse alone
		{120, 8, 0, 0.3, kernel.Laplacian{Sigma: 1}, "", gram.Fixed16},
		{120, 8, 20, 0.2, wide, "csr", gram.Recompute},
		{120, 8, 20, 0.2, wide, "given", gram.Float32},
		{120, 6, 5, 1, kernel.Polynomial{Gamma: 0.05, Coef0: 1, Degree: 3}, "", gram.Float64},
		{120, 6, 5, 1, kernel.Matern52{Sigma: 1}, "", gram.Recompute},
		{120, 6, 5, 1, rational, "", gram.Float32},
		{120, 119, 0, 1, kernel.Laplacian{Sigma: 1}, "", gram.Float64}, // all points: M = K+λI
		{120, 500, 10, 1, kernel.Matern32{Sigma: 1}, "given", gram.Float64},
		{1, 3, 1, 1, wide, "", gram.Float64},
	} {
		a, f := problem(t, test.n, test.r, test.kern, test.format, &gram.Options{Storage: test.storage})
		opts := &vecchia.Options{Neighbors: cmp.Or(test.k, -1), Damping: test.omega,
			Order: randomOrder(test.n, rng.New(3))}
		m, err := vecchia.New(t.Context(), a, f, opts)
		if err != nil {
			t.Fatalf("%+v: %v", test, err)
		}
		want, shifted := denseDefinition(t, a, f, min(test.k, test.n-1), test.omega, opts.Order)
		unitMatrix := identity(test.n)
		inverse, column := mat.NewDense(test.n, test.n, nil), mat.NewDense(test.n, 1, nil)
		e0 := mat.DenseCopyOf(unitMatrix.Slice(0, test.n, 0, 1))
		if err := errors.Join(m.SolveTo(t.Context(), inverse, unitMatrix), m.SolveTo(t.Context(), column, e0),
			checkRows(m, opts.Order)); err != nil {
			t.Fatalf("%+v: %v", test, err)
		}
		checkNorm := func(name string, got, want mat.Matrix, limit float64) {
			var difference mat.Dense
			difference.Sub(got, want)
			if relative := mat.Norm(&difference, 2) / mat.Norm(want, 2); !(relative < limit) {
				t.Errorf("%+v: %s has a relative error of %.2g", test, name, relative)
			}
		}
		var product mat.Dense
		product.Mul(inverse, want)
		if det, sign := mat.LogDet(inverse); sign < 0 || math.Abs(m.LogDet()+det) > 1e-6*float64(test.n) {
			t.Errorf("%+v: ln det M = %g, of M⁻¹ %g", test, m.LogDet(), det)
		}
		checkNorm("M⁻¹M", &product, unitMatrix, 2e-3) // 2⁻²⁴κ(M)
		checkNorm("M⁻¹e in many columns", inverse.Slice(0, test.n, 0, 1), column, 1e-10)
		for i := range test.n { // diag(G(ωR+λI)Gᵀ) = 1
			cols, values := m.Row(i)
			var sum float64
			for row, p := range cols {
				for col, q := range cols {
					sum += float64(values[row]) * float64(values[col]) * shifted.At(int(p), int(q))
				}
			}
			testkit.Near(t, sum, 1, 1e-3, test, i)
		}
		if test.k < test.n-1 {
			continue
		}
		if res, err := pcg.Solve(t.Context(), a, m, e0, &pcg.Options{Tol: 1e-3}); err != nil || res.Iterations != 1 {
			t.Errorf("%+v: with all points as neighbors %d iterations (%v)", test, res.Iterations, err)
		}
	}
}

// TestPermutedPoints checks that a permutation of the points, with their positions in the order, permutes M. It also
// checks that checkRows detects a neighbor that comes after its point.
func TestPermutedPoints(t *testing.T) {
	const n = 200
	x := make([]float64, 2*n)
	rng.New(1).Sub("points").Normals(x, 0)
	perm, positionOf := rng.New(7).Perm(n), randomOrder(n, rng.New(3))
	inverse := func(source func(i int) int) (*vecchia.Inverse, []int32, *mat.Dense) {
		pts, positions, landmarks := points.NewDense(n, 2, nil), make([]int32, n), make([]int, 9)
		for i := range n {
			copy(pts.Data[2*i:2*i+2], x[2*source(i):])
			if positions[i] = positionOf[source(i)]; source(i) < 9 {
				landmarks[source(i)] = i
			}
		}
		a := testkit.Must(gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, pts, lambda, nil))
		f := testkit.Must(lowrank.NystromAt(t.Context(), a.Exact(1e-9), landmarks, nil))
		m := testkit.Must(vecchia.New(t.Context(), a, f.F,
			&vecchia.Options{Order: positions, Neighbors: 9, Damping: 0.7}))
		out := mat.NewDense(n, n, nil)
		testkit.OK(t, errors.Join(m.SolveTo(t.Context(), out, identity(n)), checkRows(m, positions)))
		return m, positions, out
	}
	_, _, want := inverse(func(i int) int { return i })
	m, positions, got := inverse(func(i int) int { return perm[i] })
	size := mat.Max(want)
	for i := range n {
		for j := range n {
			if deviation := math.Abs(got.At(i, j) - want.At(perm[i], perm[j])); !(deviation < 1e-4*size) {
				t.Fatalf("entry (%d, %d) of M⁻¹ has an error of %g of %g", i, j, deviation, size)
			}
		}
	}
	cols, _ := m.Row(slices.Index(positions, n/2))
	cols[0] = int32(slices.Index(positions, n-1))
	if checkRows(m, positions) == nil {
		t.Error("a neighbor that comes after its point is not noticed")
	}
}

// TestDrawsCovariance checks that 4,000 draws have the covariance M: the entries of the sample covariance of L⁻¹x, LLᵀ
// = M, must be those of I to five standard errors.
func TestDrawsCovariance(t *testing.T) {
	const n, draws = 30, 4000
	for _, r := range []int{0, 4} {
		a, f := problem(t, n, r, kernel.Matern32{Sigma: 1}, "", nil)
		opts := &vecchia.Options{Neighbors: 5, Damping: 0.5, Order: randomOrder(n, rng.New(3))}
		m, err := vecchia.New(t.Context(), a, f, opts)
		x := mat.NewDense(n, draws, nil)
		if err == nil {
			err = m.NormalTo(t.Context(), x, rng.New(8))
		}
		testkit.OK(t, err)
		dense, _ := denseDefinition(t, a, f, 5, 0.5, opts.Order)
		var chol mat.Cholesky
		testkit.Equal(t, chol.Factorize(mat.NewSymDense(n, dense.RawMatrix().Data)), true)
		var l mat.TriDense
		chol.LTo(&l)
		var whitened, cov mat.Dense
		testkit.OK(t, whitened.Solve(&l, x))
		cov.Mul(&whitened, whitened.T())
		for i := range n {
			for j := range n {
				want, sigma := 0.0, math.Sqrt(draws)
				if i == j {
					want, sigma = draws, math.Sqrt(2*draws)
				}
				if !(math.Abs(cov.At(i, j)-want) < 5*sigma) {
					t.Errorf("r = %d: the covariance of L⁻¹x is %g at (%d, %d)", r, cov.At(i, j)/draws, i, j)
				}
			}
		}
	}
}

// TestConformance runs the tests of every preconditioner.
func TestConformance(t *testing.T) {
	for _, r := range []int{0, 15} {
		a, f := problem(t, 200, r, kernel.Gaussian{Sigma: 0.5}, "", nil)
		m := testkit.Must(vecchia.New(t.Context(), a, f, &vecchia.Options{Neighbors: 10, Seed: rng.New(4)}))
		if err := precondtest.Test(t.Context(), m, &precondtest.Options{InPlace: true, Strided: true,
			Concurrent: true}); err != nil {
			t.Error(err)
		}
	}
}

// TestSameBits checks that M⁻¹R has the same bits on any number of threads and ranks.
func TestSameBits(t *testing.T) {
	const n = 600 // two units of rows
	x := make([]float64, 2*n)
	rng.New(1).Sub("points").Normals(x, 0)
	p := points.NewDense(n, 2, x)
	src := mat.NewDense(n, 2, nil)
	src.Set(0, 0, 1)
	src.Set(n-1, 1, 1)
	solve := func(p points.Points, c comm.Comm, order []int32, src *mat.Dense) (*mat.Dense, error) {
		a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 0.7}, p, lambda,
			&gram.Options{Comm: c, TileSize: 40, Storage: gram.Float32})
		if err != nil {
			return nil, err
		}
		f, err := lowrank.NystromAt(t.Context(), a.Exact(1e-9), []int{3, 14, 15, 92, 65},
			&lowrank.Options{Comm: c})
		if err != nil {
			return nil, err
		}
		m, err := vecchia.New(t.Context(), a, f.F, &vecchia.Options{Order: order, Comm: c})
		if err != nil {
			return nil, err
		}
		out := mat.NewDense(n, 2, nil)
		return out, m.SolveTo(t.Context(), out, src)
	}
	positionOf := randomOrder(n, rng.New(5))
	want := testkit.Must(solve(p, nil, positionOf, src))
	for _, ranks := range []int{1, 2, 3} {
		comm.RunLocal(ranks, func(c comm.Comm) {
			if got, err := solve(p, c, positionOf, src); err != nil || !mat.Equal(got, want) {
				t.Errorf("rank %d of %d: other bits (%v)", c.Rank(), ranks, err)
			}
		})
	}
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(3)
	if got, err := solve(p, nil, positionOf, src); err != nil || !mat.Equal(got, want) {
		t.Errorf("on three threads: other bits (%v)", err)
	}
}

// TestAutomaticNeighbors compares the automatic k and ω with the definition of the rule, by dense solves with S = R+λI,
// R = K−FFᵀ. For each of the last quarter of the points in the order, at most 128, the neighbors are the nearest of the
// points before that quarter by c_ij² = R_ij²/(S_ii·S_jj). The rule doubles k, starting from 15, as long as the mean
// logarithm of the conditional variances falls by more than 0.05, and sets ω = max(ρ³, 0.05), where ρ is the share of
// the nearest k in the sum of all c_ij².
func TestAutomaticNeighbors(t *testing.T) {
	const n = 250
	seen := map[int]bool{}
	for sigma, r := range map[float64]int{0.01: 0, 0.3: 0, 0.2: 20} {
		a, f := problem(t, n, r, kernel.Gaussian{Sigma: sigma}, "", nil)
		positionOf := randomOrder(n, rng.New(5))
		_, shifted := denseDefinition(t, a, f, 0, 1, positionOf)
		pointAt := make([]int, n)
		for i, position := range positionOf {
			pointAt[position] = i
		}
		rows := (n + 3) / 4
		var logs, energy [4]float64
		var total float64
		for _, i := range pointAt[n-rows:] {
			candidates := slices.Clone(pointAt[:n-rows])
			square := func(j int) float64 {
				return shifted.At(i, j) * shifted.At(i, j) / (shifted.At(i, i) * shifted.At(j, j))
			}
			slices.SortFunc(candidates, func(x, y int) int { return cmp.Compare(square(y), square(x)) })
			for position, j := range candidates {
				total += square(j)
				for doublings := range energy {
					if position < 15<<doublings {
						energy[doublings] += square(j)
					}
				}
			}
			for doublings := range logs {
				idx := append(slices.Clone(candidates[:15<<doublings]), i)
				local := mat.NewDense(len(idx), len(idx), nil)
				local.Apply(func(x, y int, _ float64) float64 { return shifted.At(idx[x], idx[y]) }, local)
				var inverse mat.Dense
				testkit.OK(t, inverse.Inverse(local))
				logs[doublings] -= math.Log(inverse.At(len(idx)-1, len(idx)-1)) / float64(rows)
			}
		}
		doublings := 0
		for doublings < 3 && logs[doublings]-logs[doublings+1] > 0.05 {
			doublings++
		}
		omega := min(1, max(0.05, math.Pow(energy[doublings]/total, 3)))
		m := testkit.Must(vecchia.New(t.Context(), a, f, &vecchia.Options{Order: positionOf}))
		testkit.Equal(t, m.Neighbors(), 15<<doublings, sigma, logs)
		testkit.Near(t, m.Damping(), omega, 1e-3*omega, sigma, energy, total)
		build, apply := m.Flops()
		k, rank := float64(m.Neighbors()), float64(r)
		if build != n*(k*k*rank+k*k*k/3+2*k*rank+rank*rank) || apply != 4*n*(k+rank) || m.Rank() != r {
			t.Errorf("rank %d: %g flops to build and %g to apply", m.Rank(), build, apply)
		}
		want := fmt.Sprintf("sparse inverse on %d neighbors, ω = %.2g", m.Neighbors(), m.Damping())
		if r > 0 {
			want += fmt.Sprintf(", beside %d pivots", r)
		}
		testkit.Equal(t, m.String(), want+", n = 250")
		seen[m.Neighbors()] = true
		// Options.Neighbors and Options.Damping replace the rule.
		for neighbors, want := range map[int]int{0: m.Neighbors(), 20: 20, -1: 0} {
			withOptions := testkit.Must(vecchia.New(t.Context(), a, f, &vecchia.Options{Order: positionOf,
				Neighbors: neighbors, Damping: 0.3}))
			testkit.Equal(t, withOptions.Neighbors(), want)
			testkit.Equal(t, withOptions.Damping(), 0.3)
		}
	}
	testkit.Equal(t, len(seen) > 1, true, seen)
}

// TestNotDefinite checks that the error names the first point in the order of the rows of G whose local matrix is not
// positive definite, on any number of threads.
func TestNotDefinite(t *testing.T) {
	const n = 500
	f := points.NewDense32(n, 1, nil)
	a, _ := problem(t, n, 0, kernel.Gaussian{Sigma: 1}, "", nil)
	for _, i := range a.TreeOrder()[31:] {
		f.Row(i)[0] = 9 // FFᵀ exceeds K at this point
	}
	defer accel.SetThreads(accel.Threads())
	for _, threads := range []int{1, 2, 2, 2, 2, 2, 5, 5, 5, 5} {
		accel.SetThreads(threads)
		// Without neighbors a local matrix has one entry.
		_, err := vecchia.New(t.Context(), a, f, &vecchia.Options{Neighbors: -1, Damping: 1})
		testkit.Fails(t, err, fmt.Sprintf("among point %d and its neighbors is not positive definite",
			a.TreeOrder()[31]))
	}
}
