package testkit

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Normals returns n standard normal numbers.
func Normals(seed, stream uint64, n int) []float64 {
	rnd := rand.New(rand.NewPCG(seed, stream))
	v := make([]float64, n)
	for i := range v {
		v[i] = rnd.NormFloat64()
	}
	return v
}

// RandomPoints returns n points of dimension d whose coordinates are the normal numbers of rng.New(seed).
func RandomPoints(seed uint64, n, d int) *points.Dense {
	x := points.NewDense(n, d, nil)
	rng.New(seed).Normals(x.Data, 0)
	return x
}

// RandomMatrix returns an n×k matrix of the normal numbers of rng.New(seed).
func RandomMatrix(seed uint64, n, k int) *mat.Dense {
	return mat.NewDense(n, k, RandomPoints(seed, n, k).Data)
}

// KernelMatrix returns the kernel matrix of the points, computed with Eval for each pair.
func KernelMatrix(k interface{ Eval(x, z []float64) float64 }, x points.Points) *mat.SymDense {
	n, d := x.Dims()
	matrix, xi, xj := mat.NewSymDense(n, nil), make([]float64, d), make([]float64, d)
	for i := range n {
		x.RowTo(xi, i)
		for j := range i + 1 {
			x.RowTo(xj, j)
			matrix.SetSym(i, j, k.Eval(xi, xj))
		}
	}
	return matrix
}

// ToCSR converts points to sparse storage without their zeros.
func ToCSR(x *points.Dense) *points.CSR {
	csr := &points.CSR{N: x.N, D: x.D, Ptr: []int{0}}
	for i := range x.N {
		for j, v := range x.Row(i) {
			if v != 0 {
				csr.Col, csr.Val = append(csr.Col, int32(j)), append(csr.Val, v)
			}
		}
		csr.Ptr = append(csr.Ptr, len(csr.Col))
	}
	return csr
}

// RoundToFloat32 rounds the coordinates of x to float32, in place, and returns the same points in that format.
func RoundToFloat32(x *points.Dense) *points.Dense32 {
	y := points.NewDense32(x.N, x.D, nil)
	for i := range x.N {
		for j, v := range x.Row(i) {
			y.Row(i)[j] = float32(v)
			x.Row(i)[j] = float64(y.Row(i)[j])
		}
	}
	return y
}

// PointsInEachFormat returns n points of dimension d in each storage format, by name. Each coordinate is nonzero with
// probability 1/3. The formats float64, float32 and sparse have the same points; the format bytes has others.
func PointsInEachFormat(n, d int, g rng.Stream) map[string]points.Points {
	x, bytePoints := points.NewDense(n, d, nil), points.NewBytes(n, d, 0.01, nil)
	for i := range x.Data {
		if g.Sub("zero").IntN(uint64(i), 3) == 0 {
			x.Data[i] = g.Normal(uint64(i))
		}
	}
	float32Points := RoundToFloat32(x)
	for i, v := range x.Data {
		// Mod keeps the numbers below 256, because the conversion of larger ones depends on the machine.
		bytePoints.Row(i / d)[i%d] = uint8(math.Mod(100*math.Abs(v), 256))
	}
	return map[string]points.Points{"float64": x, "float32": float32Points, "sparse": ToCSR(x), "bytes": bytePoints}
}
