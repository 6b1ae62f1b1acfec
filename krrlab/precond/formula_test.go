package precond

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

func TestZeroGram(t *testing.T) {
	for _, s := range []int{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a Gram matrix of %d features", s)
				}
			}()
			ZeroGram(s)
		}()
	}
}

// TestNotDefinite: the error names the pivot, the trace and the λ_p that would do.
func TestNotDefinite(t *testing.T) {
	w := &Woodbury{s: 3, lambdaP: 1e-30, factor: []float64{4, 0, 0, 4, 4, 0, 2, 2, 9}}
	err := w.cholesky()
	want := fmt.Sprintf("pivot 2 of 3, 0, is not positive, at λ_p = 1e-30 and tr ZᵀZ = 17; take λ_p above s·2⁻⁵²·tr ZᵀZ = %.3g,", 3*17*0x1p-52)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	w = &Woodbury{s: 2, lambdaP: 5, factor: []float64{4, 7, 6, 8}} // 9 6; 6 13: L = 3 0; 2 3
	if err := w.cholesky(); err != nil || w.factor[0] != 3 || w.factor[1] != 0 || w.factor[2] != 2 || w.factor[3] != 3 {
		t.Errorf("L = %v, %v", w.factor, err)
	}
}

// TestCostFormula: the table of the documentation, worked out for n = 10, s = 6, t = 2 and 3 uses.
func TestCostFormula(t *testing.T) {
	const gram, reads, reads2, middle = 10 * 36, 4 * 10 * 6 * 22, 4 * 10 * 6 * 14, 2 * 36 * 2
	for form, want := range map[Form]float64{
		FormL:     gram + 72 + 3*(reads+2*middle),
		FormLInv:  gram + 144 + 3*(reads+middle),
		FormU:     gram + 72 + 360 + 3*reads2,
		FormEigen: gram + 9*216 + 3*(reads+2*middle),
	} {
		if got := Cost(form, 10, 6, 2, 3); got != want {
			t.Errorf("%v: %v, want %v", form, got, want)
		}
	}
	for _, c := range []struct{ n, s int }{{100, 9}, {512, 9}, {2048, 16}} {
		want := 2 * 0x1p-24 * float64(min(c.n, 512)) * 7 / math.Sqrt(float64(c.n*c.s))
		if got := FastError(7, c.n, c.s); math.Abs(got-want) > 1e-14*want {
			t.Errorf("%+v: error of float32 products %g, want %g", c, got, want)
		}
	}
}

// TestGramBlocks: the blocks hold each entry of the lower triangle from a row on once, and no other.
func TestGramBlocks(t *testing.T) {
	for _, from := range []int{0, 1, gramOrder - 1, gramOrder, gramOrder + 5} {
		for _, more := range []int{0, 1, gramOrder - 1, gramOrder, gramOrder + 1} {
			s := from + more
			seen := make([]uint8, s*s)
			for _, b := range gramBlocks(from, s) {
				if b.rows < 1 || b.cols < 1 || b.rows > gramOrder || b.cols > gramOrder {
					t.Errorf("from %d to %d: block %+v", from, s, b)
				}
				for i := range b.rows {
					for j := range b.width(i) {
						seen[(b.i+i)*s+b.j+j]++
					}
				}
			}
			wrong := 0
			for i := range s {
				for j := range s {
					want := uint8(0)
					if i >= from && j <= i {
						want = 1
					}
					if seen[i*s+j] != want {
						wrong++
					}
				}
			}
			if wrong > 0 {
				t.Errorf("from %d to %d: %d entries wrong", from, s, wrong)
			}
		}
	}
}

// TestScales: each is the power of two that brings the largest number of its column into [½, 1), 1 of zeros; and
// ‖Z‖_F² is right to rounding.
func TestScales(t *testing.T) {
	const n = RankRows + 3
	z := points.NewDense32(n, 5, nil)
	z.Row(n - 1)[0], z.Row(2)[0] = -3, 1
	z.Row(7)[1], z.Row(RankRows)[1] = 0.5, 0.25
	z.Row(0)[2] = math.MaxFloat32
	z.Row(RankRows - 1)[3] = -math.SmallestNonzeroFloat32
	k, err := newRows(t.Context(), nil, held(z))
	if err != nil {
		t.Fatal(err)
	}
	for j, want := range []float64{0.25, 1, 0x1p-128, 0x1p148, 1} {
		if k.scale[j] != want {
			t.Errorf("column %d: scale %g, want %g", j, k.scale[j], want)
		}
	}
	z.Row(0)[2] = 10
	if k, err = newRows(t.Context(), nil, held(z)); err != nil {
		t.Fatal(err)
	}
	if got, err := k.normSq(t.Context(), z); err != nil || math.Abs(got-110.3125) > 1e-9 {
		t.Errorf("‖Z‖_F² = %v, %v", got, err)
	}
	if k.n != n || k.first != 0 || k.own != n || k.units() != 2 || k.panels() != 8 {
		t.Errorf("%+v", k)
	}
	at := 0
	for q := range k.panels() { // the panels follow each other
		i0, i1 := k.panel(q)
		if i0 < i1 && i0 != at {
			t.Errorf("panel %d has rows %d to %d after %d", q, i0, i1, at)
		}
		at = max(at, i1)
	}
	if at != n {
		t.Errorf("panels of %d rows, want %d", at, n)
	}
}

// TestSums: of squares, and of numbers converted, of any count.
func TestSums(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 16, 23, 1023, 1024, 1025, 2500} {
		x, wide, single := make([]float64, n), make([]float64, n), make([]float32, n)
		for i := range x {
			x[i] = float64(i + 1)
			single[i] = float32(-i)
		}
		if got, want := sumSquares(x), float64(n)*float64(n+1)*float64(2*n+1)/6; got != want {
			t.Errorf("1² + … + %d² = %v, want %v", n, got, want)
		}
		points.Widen(wide, single)
		for i, v := range wide {
			if v != -float64(i) {
				t.Errorf("%d of %d numbers is %v", i, n, v)
			}
		}
	}
}

// TestScratchBytes: eight for each number that a solve holds.
func TestScratchBytes(t *testing.T) {
	p := &solve{sums: make([]int64, 1), v: make([]float64, 10), u: make([]float64, 100), dense: make([]float64, 1000), workers: []scratch{
		{rt: make([]float64, 10000), out: make([]float64, 100000)}, {rt: make([]float64, 1000000)},
	}}
	if got := p.bytes(); got != 8*1111111 {
		t.Errorf("%d bytes, want %d", got, 8*1111111)
	}
}

// TestDrawShapes: draws are of n rows, those of a family of a column for each λ_p.
func TestDrawShapes(t *testing.T) {
	const n = 12
	w, err := New(t.Context(), wide(n, 4), 0.1, &Options{Form: FormEigen})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Family([]float64{0.1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rows, cols       int
		family, woodbury bool
	}{{n, 2, true, true}, {n, 1, false, true}, {n, 3, false, true}, {n - 1, 2, false, false}, {n + 1, 2, false, false}} {
		dst := mat.NewDense(c.rows, c.cols, nil)
		for what, fits := range map[string]bool{"family": c.family, "Woodbury": c.woodbury} {
			var v any
			func() {
				defer func() { v = recover() }()
				draw := f.NormalColumnsTo
				if what == "Woodbury" {
					draw = w.NormalTo
				}
				if err := draw(t.Context(), dst, rng.New(1)); err != nil {
					t.Error(err)
				}
			}()
			if words, _ := v.(string); fits != (v == nil) || !fits && !strings.HasPrefix(words, "precond: ") {
				t.Errorf("%s, %d×%d: panic %v", what, c.rows, c.cols, v)
			}
		}
	}
}
