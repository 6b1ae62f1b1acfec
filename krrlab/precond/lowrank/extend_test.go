package lowrank_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// leadingBlock returns the leading n×n block of k.
func leadingBlock(k *denseSource, n int) *denseSource {
	block := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			block.SetSym(i, j, k.At(i, j))
		}
	}
	return &denseSource{SymDense: block}
}

// TestExtend extends factors twice. The result must pass checkFactor, and its K̂ must equal the Nyström approximation
// C(W+νD)⁻¹Cᵀ of the whole K with the same landmarks (nystromByDefinition). The bits must be the same on one thread and
// on two.
func TestExtend(t *testing.T) {
	const n = 150
	for seed := range uint64(3) {
		for scale, k := range map[string]*denseSource{"": gaussianMatrix(seed, n, 3, 1.5),
			"spread": rescaled(gaussianMatrix(seed, n, 3, 1.5))} {
			for name, method := range methods {
				first := testkit.Must(method(ctx, leadingBlock(k, 90), 20, rng.New(seed), nil))
				extended := func(threads int) *lowrank.Factor {
					defer accel.SetThreads(accel.Threads())
					accel.SetThreads(threads)
					f := testkit.Must(first.Extend(ctx, leadingBlock(k, 91), nil))
					return testkit.Must(f.Extend(ctx, k, nil))
				}
				f, oneProcess := extended(2), extended(1)
				checkFactor(t, name+scale, k, f)
				if !mat.Equal(inFloat64(f.F), inFloat64(oneProcess.F)) || !mat.Equal(inFloat64(f.F).Slice(0, 90, 0,
					f.Rank()), inFloat64(first.F)) ||
					f.Residual != oneProcess.Residual || f.Rounding != oneProcess.Rounding || !f.Certain() ||
					f.RequestedRank != 20 {
					t.Errorf("%s%s: rows of F differ between threads or from those before, or %v", name, scale, f)
				}
				want, approximation := nystromByDefinition(t, k, f.Landmarks, f.Shift), approximationOf(f)
				for i := range n {
					for j := range n {
						if deviation := math.Abs(approximation.At(i, j) - want.At(i,
							j)); !(deviation <= 1e-6*math.Sqrt(k.At(i, i)*k.At(j, j))) {
							t.Fatalf("%s%s: K̂(%d, %d) has an error of %g", name, scale, i, j, deviation)
						}
					}
				}
			}
		}
	}
}

// inexactSource is a matrix whose entries have errors of up to epsilon.
type inexactSource struct {
	*denseSource
	epsilon float64
}

func (k inexactSource) EntryError() float64 { return k.epsilon }

// TestExtendInexact extends factors of a matrix whose squared distances are computed as ‖x‖²+‖z‖²−2xᵀz for clusters
// far from the origin. The extension uses a source with accurate entries. The certificate must still cover the rows
// from the inexact entries: it is compared with the smallest eigenvalue of K−FFᵀ.
func TestExtendInexact(t *testing.T) {
	const n, clusters, radius = 330, 10, 1e5
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		x, centers := make([][]float64, n), [2 * clusters]float64{}
		for j := range centers {
			centers[j] = radius * (2*rnd.Float64() - 1)
		}
		for i := range x {
			x[i] = []float64{centers[i%clusters] + rnd.NormFloat64(), centers[clusters+i%clusters] + rnd.NormFloat64()}
		}
		k := gaussianMatrixOf(x, 1)
		inexactHead := inexactSource{leadingBlock(k, 300), 16 * 0x1p-53 * radius * radius}
		for i := range 300 {
			for j := range i {
				cross := x[i][0]*x[j][0] + x[i][1]*x[j][1]
				sqDistance := x[i][0]*x[i][0] + x[i][1]*x[i][1] + (x[j][0]*x[j][0] + x[j][1]*x[j][1]) - 2*cross
				inexactHead.SetSym(i, j, math.Exp(-max(0, sqDistance)/2))
				if deviation := math.Abs(inexactHead.At(i, j) - k.At(i, j)); deviation > inexactHead.epsilon {
					t.Fatalf("an inexact entry has an error of %g, above the bound", deviation)
				}
			}
		}
		for name, method := range methods {
			first := testkit.Must(method(ctx, inexactHead, 30, rng.New(seed), nil))
			f, err := first.Extend(ctx, k, nil)
			if err != nil && name == "Nyström" { // landmarks were dropped
				continue
			}
			testkit.OK(t, err)
			if smallest := testkit.Eigenvalues(t,
				residualOf(k, f))[0]; !(smallest >= -f.Rounding) || !(f.Rounding >= first.Rounding) ||
				f.EntryError != inexactHead.epsilon {
				t.Errorf("%s: the smallest eigenvalue of K−FFᵀ is %g, the rounding %g, before %g", name, smallest,
					f.Rounding, first.Rounding)
			}
			again := testkit.Must(f.Extend(ctx, k, nil))
			testkit.Equal(t, again.EntryError, inexactHead.epsilon)
			if !(again.Rounding >= f.Rounding) {
				t.Errorf("%s: the rounding %g of a second extension is below %g", name, again.Rounding, f.Rounding)
			}
		}
	}
}

// TestExtendErrors checks that Extend refuses a source with larger errors of its entries, and a factor whose Cholesky
// factor is no longer known. It can be canceled.
func TestExtendErrors(t *testing.T) {
	k := gaussianMatrix(1, 60, 2, 1)
	f := testkit.Must(lowrank.RPCholesky(ctx, leadingBlock(k, 40), 10, rng.New(1), nil))
	_, err := f.Extend(ctx, inexactSource{k, 1e-9}, nil)
	testkit.Fails(t, err, "rounding errors of K have grown")
	testkit.CheckCancellation(t, func(ctx context.Context) error { return testkit.ErrOf(f.Extend(ctx, k, nil)) })
	testkit.Panics(t, map[string]func(){"40 rows extended to 30": func() {
		_, _ = f.Extend(ctx, leadingBlock(k, 30), nil)
	}})
	testkit.OK(t, f.MulRight(ctx, comm.Alone(), make([]float64, 100)))
	_, err = f.Extend(ctx, k, nil)
	testkit.Fails(t, err, "Cholesky factor of F is not known")
}
