package kernel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Precomputed is a kernel whose matrix K, N×N, is given. A training point is the number i = 0 … N−1 of a row of K (see
// PrecomputedPoints), and k(x_i, x_j) = K_ij. A new point z, which has no row, is the vector of the N numbers k(z, x_0)
// … k(z, x_{N−1}). The kernel of two new points is not defined: Eval returns NaN. K is not assumed to be positive
// semi-definite (see IsSemidefinite).
type Precomputed struct {
	n         int
	checksum  string        // hash of the lower triangle of K
	matrix    points.Points // *points.Dense or *points.Dense32 (lower triangle); nil in a loaded model
	rowMaxima []float64     // max_j |K_ij| for each row i
}

var _ Kernel = (*Precomputed)(nil)

// maxAsymmetry is the largest accepted difference of K_ij and K_ji, relative to the larger of √(K_iiK_jj) and |K_ij|.
// It accepts rounding in float32, but not more.
const maxAsymmetry = 1e-6

// NewPrecomputed returns the kernel with the given matrix K. After the checks, only the lower triangle of K is used. If
// K is points.Dense or points.Dense32, it is not copied and must not change afterwards. NewPrecomputed returns an error
// if K is not square or has fewer than two rows, and an error that names the entry if K is not finite or |K_ij − K_ji|
// is above 1e-6 times the larger of √|K_iiK_jj| and |K_ij|.
func NewPrecomputed(matrix points.Points) (*Precomputed, error) {
	n, d := matrix.Dims()
	if n != d || n < 2 {
		return nil, fmt.Errorf("kernel: K is %d×%d: want K(train, train), n×n for n ≥ 2 rows", n, d)
	}
	if err := points.CheckFinite(matrix); err != nil {
		return nil, fmt.Errorf("kernel: K: %w", err)
	}
	switch matrix.(type) {
	case *points.Dense, *points.Dense32:
	default:
		dense := points.NewDense(n, n, nil)
		points.RowsTo(matrix, dense.Data, n)
		matrix = dense
	}
	p := &Precomputed{n: n, matrix: matrix, rowMaxima: make([]float64, n)}
	hash, row := sha256.New(), make([]float64, n)
	for i := range n {
		matrix.RowTo(row, i)
		for j, value := range row[:i+1] {
			p.rowMaxima[i], p.rowMaxima[j] = max(p.rowMaxima[i], math.Abs(value)), max(p.rowMaxima[j], math.Abs(value))
			difference := math.Abs(value - p.entry(j, i))
			scale := math.Sqrt(math.Abs(row[i])) * math.Sqrt(math.Abs(p.entry(j, j)))
			if difference > maxAsymmetry*max(scale, math.Abs(value)) {
				return nil,
					fmt.Errorf("kernel: K is not symmetric: entry (%d, %d) is %g and (%d, %d) is %g, %.3g apart, "+
						"more than %g of the larger of √(K_iiK_jj) and |K_ij|: want K(train, train), such as (K+Kᵀ)/2",
						i, j, value, j, i, p.entry(j, i), difference, maxAsymmetry)
			}
		}
		for _, value := range row[:i+1] {
			var encoded [8]byte
			binary.LittleEndian.PutUint64(encoded[:], math.Float64bits(value))
			hash.Write(encoded[:])
		}
	}
	p.checksum = fmt.Sprintf("%x", hash.Sum(nil)[:8])
	return p, nil
}

// entry returns entry (i, j) of the stored matrix.
func (k *Precomputed) entry(i, j int) float64 {
	if m, ok := k.matrix.(*points.Dense32); ok {
		return float64(m.Data[i*m.Stride+j])
	}
	m := k.matrix.(*points.Dense)
	return m.Data[i*m.Stride+j]
}

// PrecomputedPoints returns the training points of a Precomputed with n rows: the numbers 0 … n−1, in one column.
func PrecomputedPoints(n int) *points.Dense {
	x := points.NewDense(n, 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	return x
}

// AsPrecomputed returns k as a *Precomputed, or nil if it is another kernel.
func AsPrecomputed(k Kernel) *Precomputed {
	p, _ := k.(*Precomputed)
	return p
}

// IsSemidefinite reports whether K is known to be positive semi-definite. It is not known for a Precomputed. A
// user-defined kernel is trusted, because every Kernel has to be.
func IsSemidefinite(k Kernel) bool { return AsPrecomputed(k) == nil }

// rowMaximaOf returns max_j |K_ij| for the rows i that are the points x.
func (k *Precomputed) rowMaximaOf(x points.Points) []float64 {
	n, d := x.Dims()
	row, maxima := make([]float64, d), make([]float64, n)
	for i := range maxima {
		x.RowTo(row, i)
		maxima[i] = k.rowMaxima[int(row[0])]
	}
	return maxima
}

// N returns the number of rows of K.
func (k *Precomputed) N() int { return k.n }

// Bytes returns the memory of K in bytes. It is 0 for a nil kernel and for one without K.
func (k *Precomputed) Bytes() int64 {
	if k == nil || k.matrix == nil {
		return 0
	}
	return points.MemoryBytes(k.matrix)
}

// Eval implements Kernel. It returns NaN for two new points, and for two training points if K is absent.
func (k *Precomputed) Eval(x, z []float64) float64 {
	if len(z) > 1 {
		x, z = z, x
	}
	value := [1]float64{math.NaN()}
	if len(z) == 1 && (len(x) > 1 || k.matrix != nil) {
		k.rowTo(value[:], x, []int{int(z[0])})
	}
	return value[0]
}

// rowTo sets dst_b = k(x, x_j) for j = columns[b].
func (k *Precomputed) rowTo(dst, x []float64, columns []int) {
	if len(x) > 1 {
		for b, j := range columns {
			dst[b] = x[j]
		}
		return
	}
	i := int(x[0])
	for b, j := range columns {
		dst[b] = k.entry(max(i, j), min(i, j))
	}
}

// tile calls visit with the index a and the values of each row of the tile k(x_a, z_b). The points z must be numbers of
// rows of K.
func (k *Precomputed) tile(x, z points.Points, w *Workspace, visit func(a int, row []float64)) {
	nx, d := x.Dims()
	nz, _ := z.Dims()
	numbers, xRow, row := buffer.Grow(&w.z, nz), buffer.Grow(&w.x, d), buffer.Grow(&w.row, nz)
	points.RowsTo(z, numbers, 1)
	columns := buffer.Grow(&w.columns, nz)
	for b, j := range numbers {
		columns[b] = int(j)
	}
	for a := range nx {
		x.RowTo(xRow, a)
		k.rowTo(row, xRow, columns)
		visit(a, row)
	}
}

// symmetricRows is the matrix K with its upper triangle replaced by the transpose of the lower one. As a points.Points
// it can be passed to points.FirstEqual.
type symmetricRows struct{ *Precomputed }

// Dims implements points.Points.
func (s symmetricRows) Dims() (n, d int) { return s.n, s.n }

// RowTo implements points.Points.
func (s symmetricRows) RowTo(dst []float64, i int) {
	for j := range dst {
		dst[j] = s.entry(max(i, j), min(i, j))
	}
}

// Slice panics: points.FirstEqual does not call it.
func (symmetricRows) Slice(i, j int) points.Points { panic("kernel: no slices of symmetricRows") }

// FirstEqual numbers the points of all sets consecutively and returns, for each point, the number of the first point
// that equals it, as points.FirstEqual does. The points of a Precomputed are numbers, and two of them are equal if the
// rows of K are equal. New points of a Precomputed equal no other point.
func FirstEqual(k Kernel, sets ...points.Points) []int {
	p := AsPrecomputed(k)
	if p == nil || p.matrix == nil {
		return points.FirstEqual(sets...)
	}
	firstEqualRow, firstPointOfRow := points.FirstEqual(symmetricRows{p}), map[int]int{}
	var result []int
	for _, x := range sets {
		n, d := x.Dims()
		row := make([]float64, d)
		for i := range n {
			x.RowTo(row, i)
			index := len(result)
			if d == 1 {
				matrixRow := firstEqualRow[int(row[0])]
				if _, ok := firstPointOfRow[matrixRow]; !ok {
					firstPointOfRow[matrixRow] = index
				}
				index = firstPointOfRow[matrixRow]
			}
			result = append(result, index)
		}
	}
	return result
}

// CheckRows returns an error if a point is not the number of a row of K.
func (k *Precomputed) CheckRows(x points.Points) error {
	n, d := x.Dims()
	if d != 1 {
		return fmt.Errorf("kernel: points of a precomputed K have dimension %d: want the numbers of its rows "+
			"(kernel.PrecomputedPoints)", d)
	}
	var row [1]float64
	for i := range n {
		if x.RowTo(row[:], i); !(row[0] >= 0 && row[0] < float64(k.n)) || row[0] != math.Trunc(row[0]) {
			return fmt.Errorf("kernel: point %d is row %g of a precomputed K with the rows 0 to %d", i, row[0], k.n-1)
		}
	}
	return nil
}

// String returns the name of the kernel, the number of rows and the checksum of K.
func (k *Precomputed) String() string {
	return fmt.Sprintf("precomputed(rows=%d, sum=%s)", k.n, k.checksum)
}

// precomputedParams are the parameters of a Precomputed in Spec.Params.
type precomputedParams struct {
	Rows int
	Sum  string
}

// spec returns the kernel as data, without K.
func (k *Precomputed) spec() (Spec, error) {
	params, err := json.Marshal(precomputedParams{k.n, k.checksum})
	return Spec{Name: precomputedName, Params: Params(params)}, err
}

// decodePrecomputed returns the kernel with the given parameters, without its K.
func decodePrecomputed(text Params) (*Precomputed, error) {
	var params precomputedParams
	if err := json.Unmarshal([]byte(text), &params); err != nil || params.Rows < 2 {
		return nil, fmt.Errorf("kernel: precomputed with the parameters %q: want rows ≥ 2 and sum", text)
	}
	return &Precomputed{n: params.Rows, checksum: params.Sum}, nil
}
