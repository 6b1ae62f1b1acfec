package feature

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

const (
	// phaseLimit is the largest ‖w_j‖·‖x_i‖ for which phases are computed in float32. A larger value is faster and less
	// accurate.
	phaseLimit = 1024
	// chunkEntries is the number of entries of W that are converted to float64 together (4 MB). A larger value needs
	// more memory and gives longer matrix products.
	chunkEntries = 1 << 19
	// sparseCost is the cost of a multiply-add of a loop over nonzeros, in units of a multiply-add of a dense product.
	// With a larger value, sparse points are converted to dense ones at a smaller density. Measured at s = 2,000: the
	// loop takes 0.1–0.2 ns, a dense multiply-add takes 0.015–0.02 ns with OpenBLAS and 0.15 ns with gonum's BLAS. The
	// value does not depend on the BLAS in use, and neither do the results.
	sparseCost = 8
)

// MapTo implements Map. Phases and cosines are in float64.
func (m *FourierMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	for start := 0; start < n; start += panelRows {
		end := min(start+panelRows, n)
		out := z[start*ld:]
		m.phases64(out, ld, panel(x, start, end), nil, w)
		for i := range end - start {
			row := out[i*ld : i*ld+m.s]
			for j, phase := range row {
				row[j] = m.scale * math.Cos(phase) // φ_j(x_i) = √(2/s)·cos(w_jᵀx_i + b_j)
			}
		}
	}
}

// MapTo32 implements Map32.
func (m *FourierMap) MapTo32(z []float32, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	scale := float32(m.scale)
	for start := 0; start < n; start += panelRows {
		end := min(start+panelRows, n)
		out := z[start*ld:]
		m.phases32(out, ld, panel(x, start, end), w)
		for i := range end - start {
			row := out[i*ld : i*ld+m.s]
			simd.Cos32(row, row)
			for j := range row {
				row[j] *= scale // φ_j(x_i) = √(2/s)·cos(w_jᵀx_i + b_j)
			}
		}
	}
}

// panel returns points i, …, j-1. If these are all points, it does not allocate.
func panel(x points.Points, i, j int) points.Points {
	if n, _ := x.Dims(); i == 0 && j == n {
		return x
	}
	return x.Slice(i, j)
}

// phases64 computes phases in float64: phases[i*ld+k] = b_j + Σ_c x_ic·w_jc for all points i of a panel and the
// features j = subset[k]. If subset is nil, it computes all features.
func (m *FourierMap) phases64(phases []float64, ld int, x points.Points, subset []int, w *Workspace) {
	n, _ := x.Dims()
	s := m.s
	if subset != nil {
		s = len(subset)
	}
	for i := range n {
		selectFeatures(phases[i*ld:i*ld+s], m.b, subset)
	}
	if x, ok := asSparse(x); ok {
		for i := range n {
			m.addSparse64(phases[i*ld:i*ld+s], x, i, subset)
		}
		return
	}
	xd := dense64(x, w)
	out := blas64.General{Rows: n, Cols: s, Stride: ld, Data: phases}
	step := min(m.d, max(1, chunkEntries/s))
	for c0 := 0; c0 < m.d; c0 += step {
		c1 := min(c0+step, m.d)
		xc := blas64.General{Rows: n, Cols: c1 - c0, Stride: xd.Stride, Data: xd.Data[c0:]}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, xc, m.columns64(c0, c1, s, subset, w), 1, out) // P += X_c·W_cᵀ
	}
}

// selectFeatures sets dst to the numbers in src of the features in subset, or of all features if subset is nil.
func selectFeatures[T float32 | float64](dst []float64, src []T, subset []int) {
	if subset == nil {
		for j, v := range src {
			dst[j] = float64(v)
		}
		return
	}
	for k, j := range subset {
		dst[k] = float64(src[j])
	}
}

// columns64 returns columns c0, …, c1-1 of W, transposed and in float64, for the s features in subset, or for all
// features if subset is nil.
func (m *FourierMap) columns64(c0, c1, s int, subset []int, w *Workspace) blas64.General {
	g := blas64.General{Rows: c1 - c0, Cols: s, Stride: s, Data: buffer.Grow(&w.w64, (c1-c0)*s)}
	for c := c0; c < c1; c++ {
		selectFeatures(g.Data[(c-c0)*s:(c-c0+1)*s], m.wt[c*m.s:(c+1)*m.s], subset)
	}
	return g
}

// addSparse64 adds Σ_c x_ic·w_jc, over the nonzeros of point i, to phases, for the features j in subset, or for all
// features if subset is nil.
func (m *FourierMap) addSparse64(phases []float64, x *points.CSR, i int, subset []int) {
	columns, values := x.Row(i)
	for nonzero, c := range columns {
		v, src := values[nonzero], m.wt[int(c)*m.s:(int(c)+1)*m.s]
		if subset == nil {
			for j := range phases {
				phases[j] += v * float64(src[j])
			}
			continue
		}
		for k, j := range subset {
			phases[k] += v * float64(src[j])
		}
	}
}

// phases32 sets z[i*ld+j] to the phase of point i of a panel and feature j. If ‖w_j‖·max_i‖x_i‖ > phaseLimit, the phase
// is computed in float64 and reduced to [−π, π]; otherwise it is computed in float32 and not reduced. If more than a
// quarter of the features exceed the limit, all phases are computed in float64 and reduced.
func (m *FourierMap) phases32(z []float32, ld int, x points.Points, w *Workspace) {
	n, _ := x.Dims()
	maxPointNorm := maxNorm(x, w)
	if m.maxNorm*maxPointNorm <= phaseLimit {
		m.products32(z, ld, x, w)
		return
	}
	wideFeatures := w.wideFeatures[:0] // the features whose phases are computed in float64
	for j, v := range m.norms {
		if !(v*maxPointNorm <= phaseLimit) {
			wideFeatures = append(wideFeatures, j)
		}
	}
	w.wideFeatures = wideFeatures
	count := len(wideFeatures)
	if 4*count > m.s {
		wideFeatures, count = nil, m.s // all features
	} else {
		m.products32(z, ld, x, w)
	}
	phases := buffer.Grow(&w.phase64, n*count)
	m.phases64(phases, count, x, wideFeatures, w)
	for i := range n {
		row := z[i*ld : i*ld+m.s]
		for k, v := range phases[i*count : (i+1)*count] {
			j := k
			if wideFeatures != nil {
				j = wideFeatures[k]
			}
			row[j] = reduceAngle(v)
		}
	}
}

// products32 sets z[i*ld+j] = b_j + Σ_c x_ic·w_jc in float32.
func (m *FourierMap) products32(z []float32, ld int, x points.Points, w *Workspace) {
	n, _ := x.Dims()
	for i := range n {
		copy(z[i*ld:i*ld+m.s], m.b32)
	}
	if x, ok := asSparse(x); ok {
		for i := range n {
			row := blas32.Vector{N: m.s, Inc: 1, Data: z[i*ld : i*ld+m.s]}
			columns, values := x.Row(i)
			for nonzero, c := range columns {
				src := blas32.Vector{N: m.s, Inc: 1, Data: m.wt[int(c)*m.s : (int(c)+1)*m.s]}
				blas32.Axpy(float32(values[nonzero]), src, row) // p += x_ic·(column c of W)
			}
		}
		return
	}
	xd := dense32(x, w)
	wt := blas32.General{Rows: m.d, Cols: m.s, Stride: m.s, Data: m.wt}
	out := blas32.General{Rows: n, Cols: m.s, Stride: ld, Data: z}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, xd, wt, 1, out) // P += X·Wᵀ
}

// asSparse returns x as a CSR matrix if a loop over its nonzeros is faster than a dense product.
func asSparse(x points.Points) (*points.CSR, bool) {
	csr, ok := x.(*points.CSR)
	if !ok || float64(csr.NNZ())*sparseCost > float64(csr.N)*float64(csr.D) {
		return nil, false
	}
	return csr, true
}

// dense64 returns the points as a float64 matrix. It copies them unless they are points.Dense.
func dense64(x points.Points, w *Workspace) blas64.General {
	if x, ok := x.(*points.Dense); ok {
		return blas64.General{Rows: x.N, Cols: x.D, Stride: max(x.Stride, 1), Data: x.Data}
	}
	n, d := x.Dims()
	g := blas64.General{Rows: n, Cols: d, Stride: d, Data: buffer.Grow(&w.x64, n*d)}
	points.RowsTo(x, g.Data, d)
	return g
}

// dense32 returns the points as a float32 matrix. It copies them unless they are points.Dense32.
func dense32(x points.Points, w *Workspace) blas32.General {
	if x, ok := x.(*points.Dense32); ok {
		return blas32.General{Rows: x.N, Cols: x.D, Stride: max(x.Stride, 1), Data: x.Data}
	}
	n, d := x.Dims()
	g := blas32.General{Rows: n, Cols: d, Stride: d, Data: buffer.Grow(&w.x32, n*d)}
	points.RowsTo32(x, g.Data, d)
	return g
}

// maxNorm returns max_i ‖x_i‖₂, or +Inf if a norm is NaN or overflows.
func maxNorm(x points.Points, w *Workspace) float64 {
	n, d := x.Dims()
	var maxSq float64 // NaN if a coordinate is NaN
	switch x := x.(type) {
	case *points.Dense32:
		for i := range n {
			maxSq = max(maxSq, sumSq(x.Row(i)))
		}
	case *points.CSR:
		for i := range n {
			_, val := x.Row(i)
			maxSq = max(maxSq, sumSq(val))
		}
	default:
		row := buffer.Grow(&w.point, d)
		for i := range n {
			x.RowTo(row, i)
			maxSq = max(maxSq, sumSq(row))
		}
	}
	if math.IsNaN(maxSq) {
		return math.Inf(1)
	}
	return math.Sqrt(maxSq)
}

// sumSq returns Σ v_i² in float64. It adds in four interleaved partial sums, which the processor computes in parallel.
func sumSq[T float32 | float64](v []T) float64 {
	var s0, s1, s2, s3 float64
	for ; len(v) >= 4; v = v[4:] {
		a, b, c, d := float64(v[0]), float64(v[1]), float64(v[2]), float64(v[3])
		s0, s1, s2, s3 = s0+a*a, s1+b*b, s2+c*c, s3+d*d
	}
	for _, a := range v {
		s0 += float64(a) * float64(a)
	}
	return s0 + s1 + (s2 + s3)
}

// 2π = twoPiHi + twoPiLo (Cody and Waite's argument reduction): twoPiHi has 31 bits, so that n·twoPiHi is exact for |n|
// < 2²².
const (
	twoPiHi = 3373259426.0 / (1 << 29)
	twoPiLo = 2*math.Pi - twoPiHi
)

// reduceAngle returns an angle, rounded to float32, whose cosine is cos(phase). The angle is in [−π, π] up to rounding.
func reduceAngle(phase float64) float32 {
	if math.Abs(phase) < 1<<24 {
		n := math.RoundToEven(phase * (1 / (2 * math.Pi)))
		return float32((phase - n*twoPiHi) - n*twoPiLo)
	}
	return float32(math.Acos(math.Cos(phase)))
}
