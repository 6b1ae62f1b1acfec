package model

import (
	"context"
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

const (
	batchRows = 256 // points predicted together by one worker
	tileCols  = 512 // training points a tile spans
	// float32Accuracy is the largest error, relative to the largest |f| of the
	// first batch, at which tiles of K may be formed in float32.
	float32Accuracy = 1e-6
)

// Options are the options of Decision; nil means all defaults.
type Options struct {
	// Scaled says that the points have been scaled already.
	Scaled bool
	// Float64 forms all tiles in float64.
	Float64 bool
	// Progress, if not nil, is called after each batch with the number of points
	// done; calls do not overlap.
	Progress func(done, total int)
}

// Decision returns F, m×t, with F_aj = Σ_i C_ij k(x_i, z_a) for the m points z_a of
// raw, to which the model's scaling is applied first. Kernel values are formed in
// tiles and summed in float64, so that beside the result only tiles are held. The
// tiles are formed in float32 where the first batch, formed in both precisions,
// differs by at most 1e-6 of its largest |F|, and in float64 otherwise.
//
// Decision returns an error if raw's dimension is not the model's, or the
// context's error if it ends first.
func (m *Model) Decision(ctx context.Context, raw points.Points, o *Options) (*mat.Dense, error) {
	if o == nil {
		o = &Options{}
	}
	n, d, t := m.Dims()
	rows, dz := raw.Dims()
	if dz != d {
		return nil, fmt.Errorf("model: points have %d features, the model was fitted on %d", dz, d)
	}
	if rows == 0 {
		return nil, fmt.Errorf("model: no points to predict")
	}
	z := raw
	if m.Scaling != nil && !o.Scaled {
		z = m.Scaling.Apply(raw)
	}
	p := &predictor{m: m, n: n, t: t, z: points.NewPanel(z), x: points.NewPanel(m.X), f: mat.NewDense(rows, t, nil)}
	p.work = make([]worker, accel.Threads())
	if !o.Float64 {
		if err := p.choose(ctx, min(rows, batchRows)); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex
	done := 0
	err := accel.ForEach(ctx, (rows+batchRows-1)/batchRows, func(w, b int) {
		i, j := b*batchRows, min((b+1)*batchRows, rows)
		p.batch(&p.work[w], p.f.Slice(i, j, 0, t).(*mat.Dense), i, j, p.single)
		mu.Lock()
		defer mu.Unlock()
		if done += j - i; o.Progress != nil {
			o.Progress(done, rows)
		}
	})
	if err != nil {
		return nil, err
	}
	return p.f, nil
}

type predictor struct {
	m      *Model
	n, t   int
	z, x   points.Panel
	f      *mat.Dense
	single bool // tiles are formed in float32
	work   []worker
}

type worker struct {
	kernel kernel.Workspace
	t64    []float64
	t32    []float32
}

// choose sets p.single by predicting the first rows in both precisions.
func (p *predictor) choose(ctx context.Context, rows int) error {
	var f [2]*mat.Dense
	for k := range f {
		f[k] = mat.NewDense(rows, p.t, nil)
	}
	const step = 32
	err := accel.ForEach(ctx, (rows+step-1)/step, func(w, b int) {
		i, j := b*step, min((b+1)*step, rows)
		for k := range f {
			p.batch(&p.work[w], f[k].Slice(i, j, 0, p.t).(*mat.Dense), i, j, k == 1)
		}
	})
	var diff, size float64
	for i, v := range f[0].RawMatrix().Data {
		diff = max(diff, math.Abs(v-f[1].RawMatrix().Data[i]))
		size = max(size, math.Abs(v))
	}
	p.single = diff <= float32Accuracy*size
	return err
}

// batch sets f to the decision values of points i … j-1 of z:
// f = Σ_b T_b C_b over the column blocks b of K(z, x).
func (p *predictor) batch(w *worker, f *mat.Dense, i, j int, single bool) {
	w.t64 = grow(w.t64, batchRows*tileCols)
	z := p.z.Slice(i, j)
	for lo := 0; lo < p.n; lo += tileCols {
		hi := min(lo+tileCols, p.n)
		ld := hi - lo
		x := p.x.Slice(lo, hi)
		if single {
			w.t32 = grow(w.t32, batchRows*tileCols)
			kernel.Tile32(w.t32, ld, p.m.Kernel, z, x, kernel.Float32, &w.kernel)
			for k, v := range w.t32[:(j-i)*ld] {
				w.t64[k] = float64(v)
			}
		} else {
			kernel.Tile64(w.t64, ld, p.m.Kernel, z, x, &w.kernel)
		}
		tile := blas64.General{Rows: j - i, Cols: ld, Stride: ld, Data: w.t64[:(j-i)*ld]}
		c := p.m.C.Slice(lo, hi, 0, p.t).(*mat.Dense).RawMatrix()
		beta := 1.0
		if lo == 0 {
			beta = 0
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, tile, c, beta, f.RawMatrix())
	}
}

func grow[T float32 | float64](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
