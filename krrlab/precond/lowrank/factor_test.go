package lowrank_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// condition returns the condition number of (K̂+λ_pI)⁻¹(K+λI).
func condition(t *testing.T, k mat.Symmetric, f *lowrank.Factor, lambda, lambdaP float64) float64 {
	t.Helper()
	eigenvalues := testkit.PencilEigenvalues(t, testkit.AddRidge(k, lambda), testkit.AddRidge(approximationOf(f),
		lambdaP))
	return eigenvalues[len(eigenvalues)-1] / eigenvalues[0]
}

// TestCondBound checks that CondBound is at least the condition number, and that without the allowance for rounding
// it follows its formula, 1 + tr(K−K̂)/λ for λ_p = λ.
func TestCondBound(t *testing.T) {
	for name, k := range map[string]*denseSource{"gaussian": gaussianMatrix(1, 80, 4, 1.5),
		"smooth kernel": gaussianMatrix(2, 80, 1, 2),
		"scaled":        rescaled(gaussianMatrix(3, 80, 4, 2))} {
		for methodName, method := range methods {
			for _, rank := range []int{3, 20, 60} {
				f := testkit.Must(method(ctx, k, rank, rng.New(9), nil))
				for _, lambda := range []float64{1e-3, 0.1, 3} {
					lambda *= f.Trace / 80
					for _, ratio := range []float64{0.1, 1, 1.5, 10, 1000} {
						got, bound := condition(t, k, f, lambda, ratio*lambda), f.CondBound(lambda, ratio*lambda)
						if !(got <= bound*(1+1e-9)) {
							t.Errorf("%s, %s, rank %d, λ = %g, λ_p = %gλ: κ = %v, bound %v", name, methodName, rank,
								lambda, ratio, got, bound)
						}
					}
					if b, want := f.CondBound(lambda, lambda),
						1+max(0, f.Residual)/lambda; math.Abs(b-want) > 4*f.Rounding/lambda*want {
						t.Errorf("%s, %s, rank %d: bound %v, want about %v", name, methodName, rank, b, want)
					}
				}
			}
		}
	}
	f := &lowrank.Factor{Residual: -1e-9, Rounding: 1e-6}
	testkit.Near(t, f.CondBound(1, 1), (1 + 3e-6), 1e-9)
	if got := f.CondBound(1e-7, 1); !math.IsInf(got, 1) {
		t.Errorf("bound %v with λ below the rounding", got)
	}
	f = &lowrank.Factor{Residual: 3}
	for lambdaP, want := range map[float64]float64{1: 4, 2: 4, 4: 4, 8: 8, 0.5: 8} {
		testkit.Equal(t, f.CondBound(1, lambdaP), want, lambdaP)
	}
}

// TestCondBoundMisuse checks that CondBound panics unless λ ≥ 0 and λ_p > 0, and is infinite for λ = 0.
func TestCondBoundMisuse(t *testing.T) {
	nan := math.NaN()
	for _, lambdas := range [][2]float64{{-1e-300, 1}, {nan, 1}, {1, 0}, {1, -1}, {1, nan}} {
		testkit.Panics(t, map[string]func(){fmt.Sprint(lambdas): func() {
			(&lowrank.Factor{}).CondBound(lambdas[0],
				lambdas[1])
		}})
	}
	if bound := (&lowrank.Factor{}).CondBound(0, 1); !math.IsInf(bound, 1) {
		t.Errorf("bound %g at λ = 0", bound)
	}
}

// TestDuplicatePoints checks the factors of the matrix of 60 points with 12 different ones, which has rank 12, and of
// one point repeated 30 times, which has rank 1. Progress must ascend to its total.
func TestDuplicatePoints(t *testing.T) {
	var pts [][]float64
	for i := range 60 {
		pts = append(pts, []float64{float64(i % 12), float64(i % 12 * i % 12)})
	}
	repeated := make([][]float64, 30)
	for i := range repeated {
		repeated[i] = []float64{0.5}
	}
	for methodName, method := range methods {
		for _, block := range []int{1, 5, 40} {
			name := fmt.Sprintf("%s, block %d", methodName, block)
			var calls []int
			var lastTotal int
			f := testkit.Must(method(ctx, gaussianMatrixOf(pts, 1), 50, rng.New(1),
				&lowrank.Options{Block: block, Progress: func(done, total int) {
					calls = append(calls, done)
					lastTotal = total
				}}))
			checkFactor(t, name, gaussianMatrixOf(pts, 1), f)
			if f.Rank() != 12 || math.Abs(f.Residual) > 1e-6*f.Trace {
				t.Errorf("%s: %v", name, f)
			}
			if !slices.IsSorted(calls) || calls[len(calls)-1] != lastTotal {
				t.Errorf("%s: progress %v", name, calls)
			}
			f = testkit.Must(method(ctx, gaussianMatrixOf(repeated, 1), 30, rng.New(1), &lowrank.Options{Block: block}))
			checkFactor(t, name, gaussianMatrixOf(repeated, 1), f)
			if f.Rank() != 1 || math.Abs(f.Residual) > 1e-5*f.Trace || f.F.Stride != 1 {
				t.Errorf("%s, constant matrix: %v", name, f)
			}
		}
	}
}

// TestFactorDeterminism checks that a factor has the same bits for any number of threads, and that another seed gives
// other landmarks.
func TestFactorDeterminism(t *testing.T) {
	threadsBefore := accel.Threads()
	defer accel.SetThreads(threadsBefore)
	k := gaussianMatrix(7, 700, 6, 2)
	for methodName, method := range methods {
		var first *lowrank.Factor
		for _, threads := range []int{1, 2, 5} {
			accel.SetThreads(threads)
			f := testkit.Must(method(ctx, k, 70, rng.New(5), &lowrank.Options{Block: 33}))
			if first == nil {
				first = f
			}
			if !slices.Equal(first.Landmarks, f.Landmarks) || !slices.Equal(first.F.Data, f.F.Data) ||
				first.Residual != f.Residual || first.Rounding != f.Rounding || first.Columns != f.Columns {
				t.Errorf("%s differs on %d threads", methodName, threads)
			}
		}
		other := testkit.Must(method(ctx, k, 70, rng.New(6), nil))
		if slices.Equal(first.Landmarks, other.Landmarks) {
			t.Errorf("%s: the same landmarks for two seeds", methodName)
		}
	}
}

// TestFactorOnRanks checks that every rank, also one without rows, gets its rows of the factor of one process and the
// same certificate, whether landmarks are dropped (points that occur more than once) or not. The traffic is limited: a
// rank sends its part of W for Nystrom, and rows of F at the proposed pivots for RPCholesky, but neither K nor the
// residual diagonal.
func TestFactorOnRanks(t *testing.T) {
	const n, rank, block = 1100, 60, 25
	repeated := make([][]float64, n)
	for i := range repeated {
		repeated[i] = []float64{float64(i % 40), 0}
	}
	for name, k := range map[string]*denseSource{"gaussian": gaussianMatrix(7, n, 6, 2),
		"repeated points": gaussianMatrixOf(repeated, 1),
		"scaled":          rescaled(gaussianMatrix(3, n, 4, 1.5))} {
		for methodName, method := range methods {
			want := testkit.Must(method(ctx, k, rank, rng.New(5), &lowrank.Options{Block: block}))
			for _, ranks := range []int{2, 3, 5} {
				comm.RunLocal(ranks, func(c comm.Comm) {
					f, err := method(ctx, &denseSource{SymDense: k.SymDense}, rank, rng.New(5),
						&lowrank.Options{Block: block, Comm: c})
					if err != nil {
						t.Error(err)
						return
					}
					r := c.Rank()
					lo, hi := comm.RowRange(n, precond.RankRows, r, ranks)
					// Each block of proposals sends at most the rows of F at the proposals, and some numbers per rank.
					blocks := int64(want.Columns+block-1) / block
					limit := blocks * int64(8*block*(want.Rank()+2)+64*ranks)
					if methodName == "Nyström" {
						limit = int64(8*rank + 24 + 64*ranks)
					}
					if got := c.Traffic().Bytes; got > limit {
						t.Errorf("%s, %s: rank %d of %d sent %d bytes, want at most %d", name, methodName, r, ranks,
							got, limit)
					}
					if !slices.Equal(f.F.Data, want.F.Data[lo*want.Rank():hi*want.Rank()]) {
						t.Errorf("%s, %s: other rows at rank %d of %d", name, methodName, r, ranks)
					}
					other := *f
					other.F = want.F
					if !reflect.DeepEqual(lowrank.WithoutT(&other),
						lowrank.WithoutT(want)) { // T is stored by one process only
						t.Errorf("%s, %s: rank %d of %d: %v, want %v", name, methodName, r, ranks, f, want)
					}
				})
			}
		}
	}
}

// TestSourceErrorOnRanks checks that an error of one rank's Source is returned on all ranks.
func TestSourceErrorOnRanks(t *testing.T) {
	k := gaussianMatrix(7, 600, 6, 2)
	for _, method := range methods {
		comm.RunLocal(2, func(c comm.Comm) {
			_, err := method(ctx, &denseSource{SymDense: k.SymDense, failingCall: 2 * c.Rank()}, 20, rng.New(5),
				&lowrank.Options{Block: 5, Comm: c})
			testkit.Fails(t, err, "rank 1 of 2: "+errSource.Error())
		})
	}
}

// TestFailingCollectives lets each collective in turn fail, as do all later ones. The error must end the factorization
// or MulRight, whichever calls it.
func TestFailingCollectives(t *testing.T) {
	k := gaussianMatrix(7, 600, 6, 2)
	half := make([]float64, 400)
	for i := range 20 {
		half[21*i] = 0.5
	}
	for methodName, method := range methods {
		for failingCall, succeeded := 1, false; !succeeded; failingCall++ {
			var errs [2]error
			comm.RunLocal(2, func(c comm.Comm) {
				failing := &failingComm{Comm: c, callsLeft: failingCall}
				f, err := method(ctx, &denseSource{SymDense: k.SymDense}, 20, rng.New(5),
					&lowrank.Options{Block: 10, Comm: failing})
				if err == nil {
					err = f.MulRight(ctx, failing, half[:f.F.D*f.F.D])
				}
				if errs[c.Rank()] = err; (err == nil) != (failing.callsLeft > 0) || err != nil && !errors.Is(err,
					errLink) {
					t.Errorf("%s, rank %d: collective %d fails: %v", methodName, c.Rank(), failingCall, err)
				}
			})
			succeeded = errs[0] == nil
		}
	}
}

var errLink = errors.New("no link")

// failingComm is a communicator whose collectives fail from a given call on, with errLink.
type failingComm struct {
	comm.Comm
	callsLeft int // calls until the first failure, counting the failing one
}

func (c *failingComm) call(f func() error) error {
	if c.callsLeft--; c.callsLeft <= 0 {
		return errLink
	}
	return f()
}

func (c *failingComm) AllReduceInt64(ctx context.Context, x []int64) error {
	return c.call(func() error { return c.Comm.AllReduceInt64(ctx, x) })
}

func (c *failingComm) AllGather(ctx context.Context, x []float64, counts []int) error {
	return c.call(func() error { return c.Comm.AllGather(ctx, x, counts) })
}

func (c *failingComm) Broadcast(ctx context.Context, x []byte, root int) error {
	return c.call(func() error { return c.Comm.Broadcast(ctx, x, root) })
}

// TestGramSources factors matrices of package gram for all types of points and storages. The factor of the exact matrix
// must pass checkFactor and have a certificate; the factor of a stored matrix must have no certificate.
func TestGramSources(t *testing.T) {
	const n, d = 130, 5
	x := testkit.RandomPoints(8, n, d)
	for i, v := range x.Data {
		x.Data[i] = max(v, 0)
	}
	x32, csr := testkit.RoundToFloat32(x), testkit.ToCSR(x)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Gaussian{Sigma: 20}, kernel.Laplacian{Sigma: 3},
		kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3}} {
		for methodName, method := range methods {
			var first []int
			for _, pts := range []points.Points{x, x32, csr} {
				for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
					name := fmt.Sprintf("%s, %v, %T, %v", methodName, k, pts, storage)
					stored := testkit.Must(gram.New(ctx, k, pts, 0.1,
						&gram.Options{Storage: storage, TileSize: 48, Accuracy: 1e-12}))
					exact := stored.Exact(1e-9)
					if f := testkit.Must(method(ctx, stored, 40, rng.New(2), nil)); f.Certain() {
						t.Errorf("%s: the factor of the stored matrix has a certificate", name)
					}
					f := testkit.Must(method(ctx, exact, 40, rng.New(2), nil))
					exactK := mat.NewDense(n, n, nil)
					testkit.OK(t, exact.DenseTo(ctx, exactK))
					checkFactor(t, name, mat.NewSymDense(n, exactK.RawMatrix().Data), f)
					if !f.Certain() || math.IsInf(f.CondBound(0.1, 0.1), 1) {
						t.Errorf("%s: no bound, rounding %g", name, f.Rounding)
					}
					if first == nil {
						first = f.Landmarks
					}
					if !slices.Equal(first[:3], f.Landmarks[:3]) {
						t.Errorf("%s: landmarks %v, others began with %v", name, f.Landmarks[:3], first[:3])
					}
				}
			}
		}
	}
}

// TestFactorErrors checks that each invalid argument and each failure of the Source yields an error that names it, that
// a factorization can be canceled at any time, and that invalid options panic.
func TestFactorErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	good := gaussianMatrix(1, 20, 2, 1)
	withEntry := func(i, j int, v float64) *denseSource {
		k := gaussianMatrix(1, 20, 2, 1)
		k.SetSym(i, j, v)
		return k
	}
	scaledBy := func(s float64) *denseSource {
		k := mat.NewSymDense(20, nil)
		k.ScaleSym(s, good)
		return &denseSource{SymDense: k}
	}
	canceledLater, stop := context.WithCancel(ctx)
	for _, test := range []struct {
		name string
		ctx  context.Context
		k    lowrank.Source
		rank int
		want string
	}{
		{"rank 0", ctx, good, 0, "rank 0 of a matrix of order 20, want 1 to 20"},
		{"rank -3", ctx, good, -3, "rank -3"},
		{"rank n+1", ctx, good, 21, "rank 21 of a matrix of order 20"},
		{"canceled", canceled, good, 3, "context canceled"},
		{"canceled later", canceledLater, &denseSource{SymDense: good.SymDense, failingCall: 2, cancel: stop}, 20,
			"context canceled"},
		{"failing source", ctx, &denseSource{SymDense: good.SymDense, failingCall: 2}, 20, errSource.Error()},
		{"negative diagonal", ctx, withEntry(7, 7, -1), 3, "diagonal entry 7 is -1, want a number ≥ 0"},
		{"NaN on the diagonal", ctx, withEntry(7, 7, math.NaN()), 3, "diagonal entry 7 is NaN"},
		{"zero matrix", ctx, scaledBy(0), 3, "nothing to factor"},
		{"indefinite", ctx, withEntry(3, 11, 5), 20, "not positive semi-definite"},
		{"NaN in a column", ctx, withEntry(3, 11, math.NaN()), 20, " is NaN"},
		{"entries beyond float32", ctx, scaledBy(1e90), 3,
			"of F does not fit float32; the diagonal entry of K is 1e+90"},
		{"trace beyond float64", ctx, scaledBy(1.5e308), 3, "the trace of K, of order 20, is not finite"},
		{"wrong diagonal", ctx, &wrongDiagonal{good}, 20, "on the diagonal"},
	} {
		for methodName, method := range methods {
			_, err := method(test.ctx, test.k, test.rank, rng.New(4), &lowrank.Options{Block: 5})
			if k, ok := test.k.(*denseSource); ok {
				k.calls = 0
			}
			testkit.Fails(t, err, test.want)
			if test.name == "failing source" && !errors.Is(err, errSource) {
				t.Errorf("%s: %v does not wrap the source's error", methodName, err)
			}
		}
	}
	for _, method := range methods { // a context that ends at any time
		testkit.CheckCancellation(t, func(ctx context.Context) error {
			return testkit.ErrOf(method(ctx, &denseSource{SymDense: good.SymDense}, 20, rng.New(4),
				&lowrank.Options{Block: 5}))
		})
	}
	testkit.Panics(t, map[string]func(){
		"blocks":   func() { _, _ = lowrank.Nystrom(ctx, good, 3, rng.New(1), &lowrank.Options{Block: -1}) },
		"error":    func() { _, _ = lowrank.Nystrom(ctx, &wrongBounds{good, -1, 20}, 3, rng.New(1), nil) },
		"diagonal": func() { _, _ = lowrank.Nystrom(ctx, &wrongBounds{good, 0, 19}, 3, rng.New(1), nil) },
	})
}

// wrongBounds is a Source with a given EntryError and a diagonal of a given length.
type wrongBounds struct {
	*denseSource
	entry float64
	n     int
}

func (w *wrongBounds) EntryError() float64 { return w.entry }
func (w *wrongBounds) Diag() []float64     { return w.denseSource.Diag()[:w.n] }

// wrongDiagonal is a Source whose Diag differs from the diagonal entries that Submatrix returns.
type wrongDiagonal struct{ *denseSource }

func (w *wrongDiagonal) Diag() []float64 {
	diagonal := w.denseSource.Diag()
	for i := range diagonal {
		diagonal[i] *= 1.01
	}
	return diagonal
}
