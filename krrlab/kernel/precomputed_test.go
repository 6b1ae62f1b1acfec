package kernel_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

func ExampleNewPrecomputed() {
	k, err := kernel.NewPrecomputed(points.NewDense(2, 2, []float64{1, 0.5, 0.5, 1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	x := kernel.PrecomputedPoints(2)
	fmt.Println(k.Eval(x.Row(0), x.Row(1)), "of rows of K;", k.Eval([]float64{0.3, 0.2}, x.Row(1)),
		"of a new point and a row")
	// Output: 0.5 of rows of K; 0.2 of a new point and a row
}

// TestPrecomputed checks that tiles of arbitrary rows consist of the entries of K's lower triangle, in both
// precisions, whether K is dense or sparse. A kernel that is read back from its Spec has no entries.
func TestPrecomputed(t *testing.T) {
	const n = 9
	k, k32, sparse := points.NewDense(n, n, nil), points.NewDense32(n, n, nil), &points.CSR{N: n, D: n, Ptr: []int{0}}
	for i := range n {
		for j := range n {
			v := float64(float32(math.Cos(float64(min(i, j)*n + max(i, j)))))
			k.Row(i)[j], k32.Row(i)[j] = v, float32(v)
			if j > i {
				k.Row(i)[j] += 1e-8 // rounding in the upper triangle, which is ignored
			}
			sparse.Col, sparse.Val = append(sparse.Col, int32(j)), append(sparse.Val, v)
		}
		sparse.Ptr = append(sparse.Ptr, len(sparse.Col))
	}
	rows, cols := []int{3, 0, 8, 5}, []int{1, 8, 5, 0, 2}
	for name, matrix := range map[string]points.Points{"float64": k, "float32": k32, "sparse": sparse} {
		p, err := kernel.NewPrecomputed(matrix)
		if err != nil {
			t.Fatal(name, err)
		}
		x, z := points.NewPanel(points.Gather(kernel.PrecomputedPoints(n), rows)),
			points.NewPanel(points.Gather(kernel.PrecomputedPoints(n), cols))
		var w kernel.Workspace
		d64, d32 := make([]float64, 20), make([]float32, 20)
		kernel.Tile64(d64, 5, p, x, z, kernel.Float64, &w)
		kernel.Tile32(d32, 5, p, x, z, kernel.Float32, &w)
		for a, i := range rows {
			for b, j := range cols {
				want := k.Row(max(i, j))[min(i, j)]
				if d64[a*5+b] != want || d32[a*5+b] != float32(want) ||
					p.Eval([]float64{float64(i)}, []float64{float64(j)}) != want {
					t.Errorf("%s: entry (%d, %d) is %v, %v, want %v", name, i, j, d64[a*5+b], d32[a*5+b], want)
				}
			}
		}
		// The Spec identifies the kernel but does not contain K.
		spec := testkit.Must(kernel.ToSpec(p))
		decoded, err := kernel.FromSpec(spec)
		if err != nil || decoded.String() != p.String() || !math.IsNaN(decoded.Eval([]float64{0}, []float64{0})) ||
			kernel.AsPrecomputed(decoded).Bytes() != 0 {
			t.Errorf("%s: %v, %v", name, decoded, err)
		}
		entryBytes := map[string]int64{"float64": 8, "float32": 4, "sparse": 8}[name]
		if p.N() != n || p.Bytes() != entryBytes*n*n {
			t.Errorf("%s: %d rows in %d bytes, want %d rows in %d", name, p.N(), p.Bytes(), n, entryBytes*n*n)
		}
		testkit.Fails(t, kernel.Check(decoded, kernel.PrecomputedPoints(n)), "holds no K")
		s := kernel.NewPlacement(p, kernel.PrecomputedPoints(n)).DiagonalBounds(nil)
		if s[4] != maxOfRow(k, 4) || kernel.IsSemidefinite(p) {
			t.Errorf("%s: bound %v of row 4, want %v; semi-definite: %v", name, s[4], maxOfRow(k, 4),
				kernel.IsSemidefinite(p))
		}
	}
}

// maxOfRow returns max_j |K_ij| from the lower triangle.
func maxOfRow(k *points.Dense, i int) (maximum float64) {
	for j := range k.N {
		maximum = max(maximum, math.Abs(k.Row(max(i, j))[min(i, j)]))
	}
	return maximum
}

// TestPrecomputedErrors checks that the error for an invalid kernel matrix names the entry and the size of its
// error, and that invalid rows and Specs are errors.
func TestPrecomputedErrors(t *testing.T) {
	withEntry := func(i, j int, v float64) points.Points {
		k := points.NewDense(4, 4, nil)
		for i := range 4 {
			k.Row(i)[i] = 2
		}
		k.Row(i)[j] = v
		return k
	}
	for want, k := range map[string]points.Points{
		"K is 2×3":                              points.NewDense(2, 3, nil),
		"entry (1, 2) is NaN":                   withEntry(1, 2, math.NaN()),
		"entry (3, 1) is 0.25 and (1, 3) is 0,": withEntry(3, 1, 0.25),
		"0.25 apart, more than 1e-06":           withEntry(1, 3, 0.25),
	} {
		testkit.Fails(t, testkit.ErrOf(kernel.NewPrecomputed(k)), want)
	}
	p := testkit.Must(kernel.NewPrecomputed(withEntry(3, 1, 1e-7))) // rounding
	for _, v := range []float64{-1, 4, 0.5, math.NaN()} {
		if err := kernel.Check(p, points.NewDense(1, 1, []float64{v})); err == nil {
			t.Errorf("row index %v is accepted", v)
		}
	}
	for _, params := range []kernel.Params{"", "{}", `{"rows":1,"sum":""}`, `{"sum":"","rows":3}`} {
		if k, err := kernel.FromSpec(kernel.Spec{Name: "precomputed", Params: params}); err == nil {
			t.Errorf("the parameters %s give the kernel %v, want an error", params, k)
		}
	}
}

// TestAllowedAsymmetry checks that the allowed asymmetry of an entry depends on its own rows and not on the largest
// entry of K, and that equal rows of K count as the same point.
func TestAllowedAsymmetry(t *testing.T) {
	for _, c := range []struct {
		name  string
		k     []float64
		valid bool
	}{
		{"error in rows smaller than another", []float64{1e12, 0, 0, 0, 1, 0.5, 0, 0.1, 1}, false},
		{"rounding in small rows", []float64{1e12, 0, 0, 0, 1, 0.5, 0, 0.5 + 1e-8, 1}, true},
		{"rounding in a large one", []float64{1e12, 1e5, 0, 1e5 + 1e-2, 1, 0.5, 0, 0.5, 1}, true},
		{"zero diagonal", []float64{0, 1, 0, 1.1, 0, 0, 0, 0, 0}, false},
		{"error in a tiny row", []float64{1e-200, 1e-201, 0, 2e-201, 1e-200, 0, 0, 0, 1}, false},
	} {
		if _, err := kernel.NewPrecomputed(points.NewDense(3, 3, c.k)); (err == nil) != c.valid {
			t.Errorf("%s: error %v, valid: %v", c.name, err, c.valid)
		}
	}
	for _, upper := range []float64{0.5, 0.5 + 1e-9} { // only the lower triangle counts
		k := testkit.Must(kernel.NewPrecomputed(points.NewDense(3, 3, []float64{1, 1, upper, 1, 1, 0.5, 0.5, 0.5, 1})))
		if got := kernel.FirstEqual(k, points.NewDense(3, 1, []float64{2, 1, 0})); !slices.Equal(got, []int{0, 1, 1}) {
			t.Errorf("K_02 = %v: FirstEqual is %v, want [0 1 1]", upper, got)
		}
	}
}
