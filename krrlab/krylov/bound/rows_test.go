package bound

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestResidualRows checks that the first rows are the outliers, which have the largest norms, and that the others are
// drawn at random. All rows are used if there are no more than MaxResidualRows.
func TestResidualRows(t *testing.T) {
	for _, n := range []int{1200, MaxResidualRows, 20} {
		for seed := range uint64(4) {
			x := points.NewDense(n, 4, nil)
			rng.New(seed).Sub("x").Normals(x.Data, 0)
			outliers := min(outlierRows, n/2)
			for i := range outliers { // the outliers are consecutive rows
				x.Row(n/2 + i)[0] += 20 + float64(i)
			}
			// The stored K has float32 inner products, so these outliers are checked.
			rows := NewResidualRows(kernel.Gaussian{Sigma: 1.5}, x, 0.1, 1e-2, gram.Choice{}, rng.New(seed))
			if rows.Len() != min(n, MaxResidualRows) || rows.weights[outliers-1] != 1 ||
				slices.Min(rows.indices[:outliers]) != n/2 ||
				slices.Max(rows.indices[:outliers]) != n/2+outliers-1 {
				t.Errorf("%d rows, the outliers %v", rows.Len(), rows.indices[:outliers])
			}
			if slices.Sort(rows.indices); len(slices.Compact(rows.indices)) != min(n, MaxResidualRows) {
				t.Error("a row is in the sample twice")
			}
		}
	}
}

// TestResidualEstimate compares the estimated residual with that of K, formed entry by entry, and its difference from
// another residual. If all rows are used the estimates are exact, otherwise they are right to the factor
// SamplingFactor. A column of zeros has the residual 0, and a column whose squares underflow has the same estimate as
// its scaled copy.
func TestResidualEstimate(t *testing.T) {
	k, lambda := kernel.Gaussian{Sigma: 1.5}, 0.1
	for _, n := range []int{1200, MaxResidualRows} {
		x := testkit.RandomPoints(2, n, 3)
		y, c, r := testkit.RandomMatrix(3, n, 3), testkit.RandomMatrix(4, n, 3), mat.NewDense(n, 3, nil)
		for i := range n {
			y.Set(i, 1, math.Ldexp(y.At(i, 0), -600))
			c.Set(i, 1, math.Ldexp(c.At(i, 0), -600))
			y.Set(i, 2, 0)
			c.Set(i, 2, 0)
		}
		r.Mul(testkit.AddRidge(testkit.KernelMatrix(k, x), lambda), c)
		r.Sub(y, r)
		stored := testkit.RandomMatrix(5, n, 3)
		stored.Scale(math.Ldexp(1, -600), stored)
		rows := NewResidualRows(k, x, lambda, 1e-3, gram.Choice{}, rng.New(6))
		residual, differences, err := rows.Estimate(t.Context(), comm.Alone(), y, c, stored)
		testkit.OK(t, err)
		_, withoutStored, err := rows.Estimate(t.Context(), comm.Alone(), y, c, nil)
		if err != nil || residual[2] != 0 || differences[2] != 0 {
			t.Errorf("%v, %v, %v", residual, differences, err)
		}
		var difference mat.Dense
		difference.Sub(r, stored)
		for j := range 2 {
			norm := mat.Norm(y.ColView(j), 2)
			for name, pair := range map[string][2]float64{"residual": {residual[j], mat.Norm(r.ColView(j), 2) / norm},
				"difference":               {differences[j], mat.Norm(difference.ColView(j), 2) / norm},
				"residual without another": {withoutStored[j], residual[j]}} {
				if ratio := pair[0] / pair[1]; ratio > SamplingFactor(n)*(1+1e-9) ||
					ratio < 1/SamplingFactor(n)*(1-1e-9) {
					t.Errorf("n = %d, column %d: %s is %.6g, want %.6g", n, j, name, pair[0], pair[1])
				}
			}
		}
	}
}

// TestCountOutliers checks the number of points that are so far from the origin that an entry between two of them may
// have an error of τ/4. The count is 0 if they are more than an eighth of all points, and at most maxOutlierRows.
func TestCountOutliers(t *testing.T) {
	const n = 64
	gaussian := kernel.Gaussian{Sigma: 1.5}
	rows := &ResidualRows{k: gaussian, x: points.NewDense(n, 4, nil), tol: 1e-3}
	// limitSquare is the squared norm ‖x‖² at which the error bound of float32, 4·16·2⁻⁵³·2²⁹·max‖x‖²/(2σ²) + 16·2⁻²⁴,
	// is τ/4.
	limitSquare := (1e-3/4 - 16*0x1p-24) / (64 * 0x1p-24) * 2 * gaussian.Sigma * gaussian.Sigma
	for _, test := range []struct {
		outliers int
		factor   float64
		choice   gram.Choice
		want     int
	}{
		{5, 1.001, gram.Choice{}, 5}, {5, 0.999, gram.Choice{}, 0}, {8, 1.001, gram.Choice{}, 8},
		{9, 1.001, gram.Choice{}, 0}, {0, 1, gram.Choice{}, 0},
		{5, 1.001, gram.Choice{Arithmetic: kernel.Float64}, 0},
		{5, 1.01 * 0x1p29, gram.Choice{Arithmetic: kernel.Float64}, 5},
		{5, 0x1p29, gram.Choice{Arithmetic: kernel.Differences}, 0},
	} {
		norms := make([]float64, n)
		for i := range test.outliers {
			norms[7*i] = test.factor * limitSquare
		}
		testkit.Equal(t, rows.countOutliers(norms, test.choice), test.want, test)
	}
	manyRows := &ResidualRows{k: gaussian, x: points.NewDense(8*maxOutlierRows+16, 1, nil), tol: 1e-3}
	norms := make([]float64, 8*maxOutlierRows+16)
	for i := range maxOutlierRows + 2 {
		norms[i] = 1e9
	}
	testkit.Equal(t, manyRows.countOutliers(norms, gram.Choice{}), maxOutlierRows)
	polynomialRows := &ResidualRows{k: kernel.Polynomial{Gamma: 1, Degree: 2}, x: rows.x, tol: 1e-3}
	testkit.Equal(t, polynomialRows.countOutliers(norms[:5], gram.Choice{}), 0)
}

// TestSamplingFactor checks that SamplingFactor is 1 if all rows are in the sample, and 1.15 otherwise.
func TestSamplingFactor(t *testing.T) {
	if SamplingFactor(MaxResidualRows) != 1 || SamplingFactor(MaxResidualRows+1) != 1.15 {
		t.Errorf("SamplingFactor is %g for all rows and %g for one more", SamplingFactor(MaxResidualRows),
			SamplingFactor(MaxResidualRows+1))
	}
}

// TestResidualEstimateOfWeighted checks that the estimates for weighted points are those of SKS, S = diag(√w_i),
// however unequal the weights are, also if the residual is in rows of small weight.
func TestResidualEstimateOfWeighted(t *testing.T) {
	const n, lambda = 1500, 0.1
	k := kernel.Gaussian{Sigma: 1.5}
	base := testkit.RandomPoints(2, n, 3)
	for weighting, weight := range []func(i int) float64{
		func(i int) float64 {
			if i%80 == 3 {
				return 40
			}
			return 0.5
		},
		func(i int) float64 { return math.Exp(6 * math.Sin(float64(i*i))) },
		func(i int) float64 {
			if i == 777 {
				return 1e8
			}
			return 1
		},
	} {
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = weight(i)
		}
		x := testkit.Must(points.NewWeighted(base, weights))
		y, c, r := testkit.RandomMatrix(3, n, 2), testkit.RandomMatrix(4, n, 2), mat.NewDense(n, 2, nil)
		// Rows of small weight have as large a part of column 1 as rows of large weight.
		for i, factor := range x.Factors {
			y.Set(i, 0, factor*y.At(i, 0))
			c.Set(i, 1, c.At(i, 1)/max(1, factor*factor))
		}
		a := testkit.KernelMatrix(k, base) // SKS
		for i, factor := range x.Factors {
			for l := range i + 1 {
				a.SetSym(i, l, factor*a.At(i, l)*x.Factors[l])
			}
		}
		r.Mul(testkit.AddRidge(a, lambda), c)
		r.Sub(y, r)
		for seed := range uint64(5) {
			rows := NewResidualRows(k, x, lambda, 1e-3, gram.Choice{}, rng.New(seed))
			residual, _, err := rows.Estimate(t.Context(), comm.Alone(), y, c, nil)
			testkit.OK(t, err)
			for j := range 2 {
				want := mat.Norm(r.ColView(j), 2) / mat.Norm(y.ColView(j), 2)
				if ratio := residual[j] / want; ratio > SamplingFactor(n) || ratio < 1/SamplingFactor(n) {
					t.Errorf("weights %d, column %d: %.6g, want %.6g", weighting, j, residual[j], want)
				}
			}
		}
	}
}

// TestLargest checks that largest returns the rows of largest norm in the order of a stable sort.
func TestLargest(t *testing.T) {
	for seed := range uint64(20) {
		order := rng.New(seed).Perm(int(40 + 10*seed))
		norms := make([]float64, len(order))
		for i := range norms {
			norms[i] = float64(i * i % 17)
		}
		want := slices.Clone(order)
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(norms[b], norms[a]) })
		for _, k := range []int{0, 1, 5, 32, len(order)} {
			if got := largest(order, norms, k); !slices.Equal(got, want[:k]) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want[:k])
			}
		}
	}
}
