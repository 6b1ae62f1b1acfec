package fourier

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/krrlab/lab/krrlab/accel"
)

// denseNodes is the largest number of nodes of an axis for which its transform is a matrix product. For more it is a
// fast Fourier transform, which has fewer operations, but slower ones.
const denseNodes = 1024

// grid applies ΦᵀΦ by a quadrature rule whose nodes are equispaced over the periods of the axes:
//
//	ΦᵀΦ = TᵀDT,   T: the modes at the nodes,   D = diag(μ).
//
// The weights μ, some of which are negative, are those for which the products of two modes have the same sums over the
// nodes as over the points. Such products have frequencies of at most 2m, for which N ≥ 4m+1 nodes along each axis
// suffice.
type grid struct {
	series    *Series
	weights   []float64        // μ
	axes      [MaxDim]gridAxis // transforms between modes and nodes
	modes     tensor           // scratch memory of multiply
	transform [2][]float64     // scratch memory of evaluate and sum
}

// newGrid returns the grid for a matrix. It computes the weights from the moments: μ = Σ_q 2^k moment_q t_q/N, where
// t_q are the products of cosines and sines of the moments at the nodes, k is the number of axes along which t_q is not
// constant, and N the number of nodes.
func newGrid(ctx context.Context, normal *NormalMatrix) (*grid, error) {
	s := normal.series
	g, moments := &grid{series: s, modes: s.newTensor(1)}, s.newTensor(2)
	var momentAxes [MaxDim]gridAxis
	scaled := slices.Clone(normal.moments)
	total := 1
	for axisIndex, width := range moments.widths {
		nodes := gridNodes(width)
		total *= nodes
		momentAxes[axisIndex] = newGridAxis(nodes, width)
		g.axes[axisIndex] = newGridAxis(nodes, g.modes.widths[axisIndex])
	}
	for k := range scaled {
		index := k // of the moment along the axes up to axisIndex
		for axisIndex := MaxDim - 1; axisIndex >= 0; axisIndex-- {
			width := moments.widths[axisIndex]
			if index%width > 1 { // not cos 0 or sin 0
				scaled[k] *= 2
			}
			index /= width
		}
		scaled[k] /= float64(total)
	}
	for i := range g.transform {
		g.transform[i] = make([]float64, total)
	}
	values, err := g.evaluate(ctx, &momentAxes, scaled)
	g.weights = slices.Clone(values)
	return g, err
}

// gridNodes returns the number of nodes along an axis for moments of the given width, 4m+2: at least the width. For a
// fast Fourier transform it has no prime factor above 5.
func gridNodes(width int) int {
	for width > denseNodes && !isSmooth(width) {
		width++
	}
	return width
}

// isSmooth reports whether n is 5-smooth: it has no prime factor above 5.
func isSmooth(n int) bool {
	n >>= bits.TrailingZeros(uint(n))
	for _, p := range []int{3, 5} {
		for n%p == 0 {
			n /= p
		}
	}
	return n == 1
}

// multiply sets dst = (ΦᵀΦ + λI)v.
func (g *grid) multiply(ctx context.Context, dst, v []float64, lambda float64) error {
	modes := g.series.modes
	for k := range modes {
		g.modes.data[g.series.position(&modes[k])] = modes[k].root * v[k]
	}
	values, err := g.evaluate(ctx, &g.axes, g.modes.data)
	if err != nil {
		return err
	}
	for i, w := range g.weights {
		values[i] *= w
	}
	sums, err := g.sum(ctx, values)
	if err != nil {
		return err
	}
	for k := range modes {
		dst[k] = modes[k].root*sums[g.series.position(&modes[k])] + lambda*v[k]
	}
	return nil
}

// evaluate returns Σ_k c_k t_k at the nodes, where c are the coefficients of a tensor and t_k its products of cosines
// and sines. The result is scratch memory of g.
func (g *grid) evaluate(ctx context.Context, axes *[MaxDim]gridAxis, coefficients []float64) ([]float64, error) {
	data, target := coefficients, 0
	for axisIndex := MaxDim - 1; axisIndex >= 0; axisIndex-- { // each transform makes the last axis the first
		a := &axes[axisIndex]
		lineCount := len(data) / a.width
		out := g.transform[target][:a.nodes*lineCount]
		if err := a.evaluate(ctx, matrix(a.nodes, lineCount, out), matrix(lineCount, a.width, data)); err != nil {
			return nil, err
		}
		data, target = out, 1-target
	}
	return data, nil
}

// sum returns the tensor of the sums over the nodes of values times t_k, the transpose of evaluate. values must be the
// memory that evaluate returned. The result is scratch memory of g.
func (g *grid) sum(ctx context.Context, values []float64) ([]float64, error) {
	data, target := values, 1       // evaluate has three transforms, so its result is in transform[0]
	for axisIndex := range g.axes { // each transform makes the first axis the last
		a := &g.axes[axisIndex]
		lineCount := len(data) / a.nodes
		out := g.transform[target][:a.width*lineCount]
		if err := a.sum(ctx, matrix(lineCount, a.width, out), matrix(a.nodes, lineCount, data)); err != nil {
			return nil, err
		}
		data, target = out, 1-target
	}
	return data, nil
}

// gridAxis is the transform along an axis between the coefficients of cos 0, sin 0, cos θ, sin θ, … and the values at
// the nodes.
type gridAxis struct {
	nodes, width int            // numbers of nodes, and of cosines and sines
	dense        blas64.General // nodes×width; empty for a fast Fourier transform
	scratch      []fftScratch   // for a fast Fourier transform: one for each thread; nil for a matrix product
}

// fftScratch is the plan and the scratch memory of a fast Fourier transform along one line of a tensor.
type fftScratch struct {
	plan         *fourier.FFT
	values       []float64
	coefficients []complex128
}

// newGridAxis returns the transform for the given numbers of nodes and of cosines and sines.
func newGridAxis(nodes, width int) gridAxis {
	g := gridAxis{nodes: nodes, width: width}
	if nodes > denseNodes {
		for range accel.Threads() {
			g.scratch = append(g.scratch, fftScratch{fourier.NewFFT(nodes), make([]float64, nodes),
				make([]complex128, nodes/2+1)})
		}
		return g
	}
	g.dense = zeroMatrix(nodes, width)
	for k := range g.dense.Data {
		node, function := k/width, k%width
		sin, cos := math.Sincos(2 * math.Pi * float64(node*(function/2)%nodes) / float64(nodes))
		g.dense.Data[k] = []float64{cos, sin}[function%2]
	}
	return g
}

// evaluate sets dst, nodes×lines, to the values at the nodes for the coefficients in the rows of src, lines×width.
func (g *gridAxis) evaluate(ctx context.Context, dst, src blas64.General) error {
	if g.scratch == nil {
		multiply(blas.NoTrans, blas.Trans, g.dense, src, 0, dst)
		return ctx.Err()
	}
	return accel.ForEach(ctx, src.Rows, func(worker, line int) {
		scratch, row := g.scratch[worker], src.Data[line*g.width:(line+1)*g.width]
		clear(scratch.coefficients)
		for q := range g.width / 2 { // a cos qθ + b sin qθ has the coefficients (a∓ib)/2 of e^{±iqθ}
			scratch.coefficients[q] = complex(row[2*q]/2, -row[2*q+1]/2)
		}
		scratch.coefficients[0] = complex(row[0], 0)
		scratch.plan.Sequence(scratch.values, scratch.coefficients)
		for i, v := range scratch.values {
			dst.Data[i*dst.Stride+line] = v
		}
	})
}

// sum sets dst, lines×width, to the sums over the nodes for the values in the columns of src, nodes×lines.
func (g *gridAxis) sum(ctx context.Context, dst, src blas64.General) error {
	if g.scratch == nil {
		multiply(blas.Trans, blas.NoTrans, src, g.dense, 0, dst)
		return ctx.Err()
	}
	return accel.ForEach(ctx, dst.Rows, func(worker, line int) {
		scratch, row := g.scratch[worker], dst.Data[line*g.width:(line+1)*g.width]
		for i := range scratch.values {
			scratch.values[i] = src.Data[i*src.Stride+line]
		}
		scratch.plan.Coefficients(scratch.coefficients, scratch.values)
		for q := range g.width / 2 {
			row[2*q], row[2*q+1] = real(scratch.coefficients[q]), -imag(scratch.coefficients[q])
		}
	})
}
