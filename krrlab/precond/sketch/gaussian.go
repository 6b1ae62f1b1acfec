package sketch

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Gaussian is the distribution of S = s^(−1/2)·G, where the entries of G, s×m, are independent standard normal
// variables. Row i of G depends on the stream and i only. The first s rows of the 2s×m sketch from the same stream are
// therefore √½ times the s×m sketch.
type Gaussian struct{}

// GaussianOperator is a draw of Gaussian. It stores G in float32, in 4ms bytes. The entries are rounded when they are
// drawn, so Apply32 and Apply64 use the same G.
type GaussianOperator struct {
	m, s  int
	g     []float32 // s×m
	scale float64   // s^(−1/2)
}

var (
	_ Dist     = Gaussian{}
	_ Operator = (*GaussianOperator)(nil)
)

// convertedEntries is the number of entries of G that Apply64 converts to float64 together (4 MB). A larger value makes
// the matrix products larger and faster, and needs more memory.
const convertedEntries = 1 << 19

// String implements Dist.
func (Gaussian) String() string { return "gaussian" }

// operatorBytes returns the memory of an operator in bytes.
func (Gaussian) operatorBytes(m, s int) int64 {
	return accel.SaturateInt64(4 * float64(m) * float64(s))
}

// Sample implements Dist. Row i of G is drawn from stream.Sub("gaussian row", i). Sample returns an error if G needs
// more memory than is available.
func (d Gaussian) Sample(m, s int, stream rng.Stream) (Operator, error) {
	if err := checkSample(d, m, s); err != nil {
		return nil, err
	}
	if err := accel.AvailableMemory(0, 1).Check(d.operatorBytes(m, s), fmt.Sprintf("sketch: a Gaussian sketch from "+
		"dimension %d to %d", m, s), "put an srht before it"); err != nil {
		return nil, err
	}
	operator := &GaussianOperator{m: m, s: s, g: make([]float32, m*s), scale: 1 / math.Sqrt(float64(s))}
	rows := make([][]float64, accel.Threads())
	accel.Each(s, func(worker, i int) {
		row := buffer.Grow(&rows[worker], m)
		stream.Sub("gaussian row", uint64(i)).Normals(row, 0)
		for j, v := range row {
			operator.g[i*m+j] = float32(v)
		}
	})
	return operator, nil
}

// Dims implements Operator.
func (o *GaussianOperator) Dims() (m, s int) { return o.m, o.s }

// At returns S_ij.
func (o *GaussianOperator) At(i, j int) float64 { return o.scale * float64(o.g[i*o.m+j]) }

// Apply32 implements Operator by a matrix product, dst = s^(−1/2)·src·Gᵀ.
func (o *GaussianOperator) Apply32(rows Rows32, _ *Workspace) {
	rows.check(o)
	if rows.Count == 0 {
		return
	}
	x := blas32.General{Rows: rows.Count, Cols: o.m, Stride: rows.SrcStride, Data: rows.Src}
	g := blas32.General{Rows: o.s, Cols: o.m, Stride: o.m, Data: o.g}
	y := blas32.General{Rows: rows.Count, Cols: o.s, Stride: rows.DstStride, Data: rows.Dst}
	blas32.Gemm(blas.NoTrans, blas.Trans, float32(o.scale), x, g, 0, y)
}

// Apply64 implements Operator. G is converted in blocks of rows.
func (o *GaussianOperator) Apply64(rows Rows64, w *Workspace) {
	rows.check(o)
	if rows.Count == 0 {
		return
	}
	x := blas64.General{Rows: rows.Count, Cols: o.m, Stride: rows.SrcStride, Data: rows.Src}
	step := min(o.s, max(1, convertedEntries/o.m))
	for i := 0; i < o.s; i += step {
		k := min(step, o.s-i)
		block := buffer.Grow(&w.block64, k*o.m)
		for j, v := range o.g[i*o.m : (i+k)*o.m] {
			block[j] = float64(v)
		}
		y := blas64.General{Rows: rows.Count, Cols: k, Stride: rows.DstStride, Data: rows.Dst[i:]}
		blas64.Gemm(blas.NoTrans, blas.Trans, o.scale, x, blas64.General{Rows: k, Cols: o.m, Stride: o.m, Data: block},
			0, y)
	}
}
