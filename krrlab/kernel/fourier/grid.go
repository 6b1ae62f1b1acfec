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
	weights   []float64 // μ
	axes      [MaxDim]gridAxis
	modes     tensor       // scratch memory of multiply
	transform [2][]float64 // scratch memory of evaluate and sum
}

// newGrid computes the weights from the moments: μ = Σ_q 2^k moment_q t_q/N, where t_q are the products of cosines and
// sines of the moments at the nodes, k is the number of axes along which t_q is not constant, and N the number of
// nodes.
func newGrid(ctx context.Context, b *NormalMatrix) (*grid, error) {
	s := b.series
	g, moments := &grid{series: s, modes: s.newTensor(1)}, s.newTensor(2)
	var momentAxes [MaxDim]gridAxis
	scaled := slices.Clone(b.moments)
	total := 1
	for place, width := range moments.widths {
		nodes := gridNodes(width)
		total *= nodes
		momentAxes[place], g.axes[place] = newGridAxis(nodes, width), newGridAxis(nodes, g.modes.widths[place])
	}
	for k := range scaled {
		index := k // of the moment along the axes up to place
		for place := MaxDim - 1; place >= 0; place-- {
			width := moments.widths[place]
			if index%width > 1 { // not cos 0 or sin 0
				scaled[k] *= 2
			}
			index /= width
		}
		scaled[k] /= float64(total)
	}
	for k := range g.transform {
		g.transform[k] = make([]float64, total)
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
	data, buffer := coefficients, 0
	for place := MaxDim - 1; place >= 0; place-- { // each transform makes the last axis the first
		a := &axes[place]
		lines := len(data) / a.width
		out := g.transform[buffer][:a.nodes*lines]
		if err := a.evaluate(ctx, matrix(a.nodes, lines, out), matrix(lines, a.width, data)); err != nil {
			return nil, err
		}
		data, buffer = out, 1-buffer
	}
	return data, nil
}

// sum returns the tensor of the sums over the nodes of values times t_k, the transpose of evaluate. values must be the
// memory that evaluate returned. The result is scratch memory of g.
func (g *grid) sum(ctx context.Context, values []float64) ([]float64, error) {
	data, buffer := values, 1   // evaluate has three transforms, so its result is in transform[0]
	for place := range g.axes { // each transform makes the first axis the last
		a := &g.axes[place]
		lines := len(data) / a.nodes
		out := g.transform[buffer][:a.width*lines]
		if err := a.sum(ctx, matrix(lines, a.width, out), matrix(a.nodes, lines, data)); err != nil {
			return nil, err
		}
		data, buffer = out, 1-buffer
	}
	return data, nil
}

// gridAxis is the transform along an axis between the coefficients of cos 0, sin 0, cos θ, sin θ, … and the values at
// the nodes.
type gridAxis struct {
	nodes, width int
	dense        blas64.General // nodes×width; empty for a fast Fourier transform
	lines        []line         // for a fast Fourier transform: one for each thread
}

// line is the scratch memory of a fast Fourier transform.
type line struct {
	plan         *fourier.FFT
	values       []float64
	coefficients []complex128
}

// newGridAxis returns the transform for the given numbers of nodes and of cosines and sines.
func newGridAxis(nodes, width int) gridAxis {
	g := gridAxis{nodes: nodes, width: width}
	if nodes > denseNodes {
		for range accel.Threads() {
			g.lines = append(g.lines, line{fourier.NewFFT(nodes), make([]float64, nodes),
				make([]complex128, nodes/2+1)})
		}
		return g
	}
	g.dense = general(nodes, width)
	for k := range g.dense.Data {
		node, function := k/width, k%width
		sin, cos := math.Sincos(2 * math.Pi * float64(node*(function/2)%nodes) / float64(nodes))
		g.dense.Data[k] = []float64{cos, sin}[function%2]
	}
	return g
}

// evaluate sets dst, nodes×r, to the values for r rows of coefficients src.
func (g *gridAxis) evaluate(ctx context.Context, dst, src blas64.General) error {
	if g.lines == nil {
		multiply(blas.NoTrans, blas.Trans, g.dense, src, 0, dst)
		return ctx.Err()
	}
	return accel.ForEach(ctx, src.Rows, func(worker, r int) {
		l, row := g.lines[worker], src.Data[r*g.width:(r+1)*g.width]
		clear(l.coefficients)
		for q := range g.width / 2 { // a cos qθ + b sin qθ has the coefficients (a∓ib)/2 of e^{±iqθ}
			l.coefficients[q] = complex(row[2*q]/2, -row[2*q+1]/2)
		}
		l.coefficients[0] = complex(row[0], 0)
		l.plan.Sequence(l.values, l.coefficients)
		for i, v := range l.values {
			dst.Data[i*dst.Stride+r] = v
		}
	})
}

// sum sets dst, r×width, to the sums over the nodes for r columns of values src.
func (g *gridAxis) sum(ctx context.Context, dst, src blas64.General) error {
	if g.lines == nil {
		multiply(blas.Trans, blas.NoTrans, src, g.dense, 0, dst)
		return ctx.Err()
	}
	return accel.ForEach(ctx, dst.Rows, func(worker, r int) {
		l, row := g.lines[worker], dst.Data[r*g.width:(r+1)*g.width]
		for i := range l.values {
			l.values[i] = src.Data[i*src.Stride+r]
		}
		l.plan.Coefficients(l.coefficients, l.values)
		for q := range g.width / 2 {
			row[2*q], row[2*q+1] = real(l.coefficients[q]), -imag(l.coefficients[q])
		}
	})
}
