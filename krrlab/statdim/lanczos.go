package statdim

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
)

// step takes one Lanczos step for all starts, with one product and full
// orthogonalization:
//
//	w = Kv_k,  α_k = wᵀv_k,  w ← w − Σ_{i≤k} v_i(v_iᵀw),  β_k = ‖w‖₂,  v_{k+1} = w/β_k
func (t *tridiagonals) step(ctx context.Context, k Matrix) error {
	t.keep()
	if err := k.KMulTo(ctx, t.w, t.v); err != nil {
		return err
	}
	cols := make([][]float64, accel.Threads())
	return accel.ForEach(ctx, t.m, func(who, j int) {
		if t.done[j] {
			return
		}
		if cols[who] == nil {
			cols[who] = make([]float64, t.n+2*t.room)
		}
		t.orthogonalise(j, cols[who][:t.n], cols[who][t.n:])
	})
}

// keep appends v_k to the basis.
func (t *tridiagonals) keep() {
	if t.k == t.room {
		room := max(16, 2*t.room)
		b := make([]float64, t.m*room*t.n)
		for j := range t.m {
			copy(b[j*room*t.n:], t.basis[j*t.room*t.n:j*t.room*t.n+t.k*t.n])
		}
		t.basis, t.room = b, room
	}
	for j := range t.m {
		v := t.basis[(j*t.room+t.k)*t.n : (j*t.room+t.k+1)*t.n]
		for i := range v {
			v[i] = t.v.At(i, j)
		}
	}
	t.k++
}

// orthogonalise completes the step of start j, w being scratch.
func (t *tridiagonals) orthogonalise(j int, w, c []float64) {
	for i := range w {
		w[i] = t.w.At(i, j)
	}
	x := blas64.Vector{N: t.n, Inc: 1, Data: w}
	basis := blas64.General{Rows: t.k, Cols: t.n, Stride: t.n, Data: t.basis[j*t.room*t.n : j*t.room*t.n+t.k*t.n]}
	coef := blas64.Vector{N: t.k, Inc: 1, Data: c[:t.k]}
	start := blas64.Nrm2(x)
	norm := start
	for pass := range 3 {
		blas64.Gemv(blas.NoTrans, 1, basis, x, 0, coef) // Vᵀw
		blas64.Gemv(blas.Trans, -1, basis, coef, 1, x)  // w ← w − V(Vᵀw)
		if pass == 0 {
			t.alpha[j] = append(t.alpha[j], c[t.k-1])
		}
		before := norm
		norm = blas64.Nrm2(x)
		if norm > before/2 { // nothing was lost to cancellation: twice is enough
			break
		}
	}
	t.norm[j] = max(t.norm[j], start)
	t.beta[j] = append(t.beta[j], norm)
	if norm <= 0x1p-50*t.norm[j]*math.Sqrt(float64(t.n)) {
		t.done[j] = true
		return
	}
	blas64.Scal(1/norm, x)
	for i, v := range w {
		t.v.Set(i, j, v)
	}
}
