package fourier

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
)

// maxIterations bounds the iterations of conjugate gradients.
const maxIterations = 5000

// toeplitz applies ΦᵀΦ by fast Fourier transforms: among complex exponentials it is a multilevel Toeplitz matrix.
type toeplitz struct {
	series   *Series
	sizes    []int        // points of the transform along each axis, at least 4m+1
	spectrum []complex128 // transform of the moments Σ_i w_i exp(−iq·θ_i), −2m ≤ q ≤ 2m
	grid     []complex128
	plans    [][]*fourier.CmplxFFT // for each axis, one for each worker
}

// smooth returns the least number that is at least n and has no prime factor above 5.
func smooth(n int) int {
	for ; ; n++ {
		odd := n >> bits.TrailingZeros(uint(n))
		for _, p := range []int{3, 5} {
			for odd%p == 0 {
				odd /= p
			}
		}
		if odd == 1 {
			return n
		}
	}
}

func newToeplitz(ctx context.Context, b *Normal) (*toeplitz, error) {
	t := &toeplitz{series: b.series}
	total := 1
	for _, top := range b.series.frequencies(2) {
		size := smooth(2*top + 1)
		t.sizes = append(t.sizes, size)
		total *= size
		workers := make([]*fourier.CmplxFFT, accel.Threads())
		for k := range workers {
			workers[k] = fourier.NewCmplxFFT(size)
		}
		t.plans = append(t.plans, workers)
	}
	t.spectrum, t.grid = make([]complex128, total), make([]complex128, total)
	t.placeMoments(b, 0, 0, 0, 1)
	return t, t.transform(ctx, t.spectrum, forward)
}

// placeMoments adds the moments to the grid, by the axes from axis on: exp(−iqθ) = cos qθ − i sin qθ. place is the place
// among the moments, cell that in the grid, and factor the product over the axes before.
func (t *toeplitz) placeMoments(b *Normal, axis, place, cell int, factor complex128) {
	if axis == len(t.sizes) {
		t.spectrum[cell] += factor * complex(b.moments[place], 0)
		return
	}
	top := b.series.frequencies(2)[axis]
	for q := -top; q <= top; q++ {
		size, k := t.sizes[axis], q
		sign := complex(0, -1)
		if q < 0 {
			k, sign = -q, complex(0, 1)
		}
		target := cell*size + (q+size)%size
		t.placeMoments(b, axis+1, place*width(top)+2*k, target, factor)
		if k > 0 {
			t.placeMoments(b, axis+1, place*width(top)+2*k+1, target, factor*sign)
		}
	}
}

// forward and backward are the transforms of a line of the grid, both without a factor.
func forward(plan *fourier.CmplxFFT, line []complex128)  { plan.Coefficients(line, line) }
func backward(plan *fourier.CmplxFFT, line []complex128) { plan.Sequence(line, line) }

// transform replaces a grid by its transform along all axes.
func (t *toeplitz) transform(ctx context.Context, grid []complex128, apply func(*fourier.CmplxFFT, []complex128)) error {
	inner := 1
	for axis := len(t.sizes) - 1; axis >= 0; axis-- {
		size := t.sizes[axis]
		lines := make([][]complex128, accel.Threads())
		err := accel.ForEach(ctx, len(grid)/size, func(worker, k int) {
			if lines[worker] == nil {
				lines[worker] = make([]complex128, size)
			}
			line, offset := lines[worker], k/inner*inner*size+k%inner
			for i := range line {
				line[i] = grid[offset+i*inner]
			}
			apply(t.plans[axis][worker], line)
			for i, v := range line {
				grid[offset+i*inner] = v
			}
		})
		if err != nil {
			return err
		}
		inner *= size
	}
	return nil
}

// exponentials calls use with the cells of the grid and the factors of the exponentials that a mode consists of:
// cos jθ = (e^{ijθ} + e^{−ijθ})/2 and sin jθ = (e^{ijθ} − e^{−ijθ})/2i. mirrored is the cell of the opposite frequencies.
func (t *toeplitz) exponentials(m *mode, axis, cell, mirrored int, factor complex128, use func(cell, mirrored int, factor complex128)) {
	if axis == len(t.sizes) {
		use(cell, mirrored, factor)
		return
	}
	size := t.sizes[axis]
	j, positive, negative := m.index[axis]/2, complex(0.5, 0), complex(0.5, 0)
	if m.index[axis]%2 == 1 {
		positive, negative = complex(0, -0.5), complex(0, 0.5)
	}
	if j == 0 {
		t.exponentials(m, axis+1, cell*size, mirrored*size, factor, use)
		return
	}
	t.exponentials(m, axis+1, cell*size+j, mirrored*size+size-j, factor*positive, use)
	t.exponentials(m, axis+1, cell*size+size-j, mirrored*size+j, factor*negative, use)
}

// multiply sets dst = (ΦᵀΦ + λI)v.
func (t *toeplitz) multiply(ctx context.Context, dst, v []float64, lambda float64) error {
	clear(t.grid)
	modes := t.series.modes
	for k := range modes {
		coefficient := complex(modes[k].root*v[k], 0)
		t.exponentials(&modes[k], 0, 0, 0, 1, func(cell, _ int, factor complex128) { t.grid[cell] += factor * coefficient })
	}
	if err := t.transform(ctx, t.grid, forward); err != nil {
		return err
	}
	for i, f := range t.spectrum {
		t.grid[i] *= f
	}
	if err := t.transform(ctx, t.grid, backward); err != nil {
		return err
	}
	scale := 1 / float64(len(t.grid))
	return accel.ForEach(ctx, len(modes), func(_, k int) {
		sum := 0.0
		t.exponentials(&modes[k], 0, 0, 0, 1, func(_, mirrored int, factor complex128) { sum += real(factor * t.grid[mirrored]) })
		dst[k] = scale*modes[k].root*sum + lambda*v[k]
	})
}

// weightPreconditioner is exact on the modes of largest weight and diagonal on the others.
type weightPreconditioner struct {
	factor   *mat.Dense // of the modes of largest weight, which come first
	diagonal []float64
	scratch  *mat.Dense
}

func newWeightPreconditioner(ctx context.Context, b *Normal, lambda float64) (*weightPreconditioner, error) {
	s := b.series
	count := min(s.options.exactModes, len(s.modes)) // the modes are in order of their weights
	p := &weightPreconditioner{diagonal: make([]float64, len(s.modes))}
	block := &Normal{series: &Series{axes: s.axes, modes: s.modes[:count]}, moments: b.moments}
	var err error
	if p.factor, err = block.Matrix(ctx); err != nil {
		return nil, err
	}
	for k := range count {
		p.factor.Set(k, k, p.factor.At(k, k)+lambda)
	}
	if !accel.Dpotrf(count, p.factor.RawMatrix().Data, count) {
		return nil, fmt.Errorf("ΦᵀΦ + λI is not positive definite in float64: λ = %g is too small", lambda)
	}
	total := b.moments[0] // Σ w_i: the moment of frequency 0
	for k := range p.diagonal {
		p.diagonal[k] = total*s.modes[k].weight/math.Pow(2, float64(s.modes[k].oscillating(s))) + lambda
	}
	p.scratch = mat.NewDense(count, 1, nil)
	return p, nil
}

// oscillating returns along how many axes a mode is not constant: the mean of its square is 2 to the power of minus that.
func (m *mode) oscillating(s *Series) (axes int) {
	for a := range s.axes {
		if m.index[a] != 0 {
			axes++
		}
	}
	return axes
}

// solve sets dst = P⁻¹r.
func (p *weightPreconditioner) solve(dst, r []float64) {
	for k, d := range p.diagonal {
		dst[k] = r[k] / d
	}
	block := p.scratch.RawMatrix().Data
	copy(block, r)
	solveLower(p.factor, p.scratch)
	copy(dst, block)
}

// iterate solves the equations by conjugate gradients, one column after the other.
func (f *Factor) iterate(ctx context.Context, b *mat.Dense, tol float64) (*mat.Dense, int, error) {
	size, columns := b.Dims()
	all, iterations := mat.NewDense(size, columns, nil), 0
	for j := range columns {
		beta, residual := make([]float64, size), mat.Col(nil, j, b)
		z, direction, image := make([]float64, size), make([]float64, size), make([]float64, size)
		start := floats.Norm(residual, 2)
		f.precond.solve(z, residual)
		copy(direction, z)
		rho := floats.Dot(residual, z)
		count := 0
		for ; count < maxIterations && floats.Norm(residual, 2) > tol*start; count++ {
			if err := f.applied.multiply(ctx, image, direction, f.lambda); err != nil {
				return nil, count, err
			}
			alpha := rho / floats.Dot(direction, image)
			if !(alpha > 0) {
				return nil, count, fmt.Errorf("ΦᵀΦ + λI is not positive definite in float64: λ = %g is too small", f.lambda)
			}
			floats.AddScaled(beta, alpha, direction)
			floats.AddScaled(residual, -alpha, image)
			f.precond.solve(z, residual)
			previous := rho
			rho = floats.Dot(residual, z)
			floats.Scale(rho/previous, direction)
			floats.Add(direction, z)
		}
		iterations = max(iterations, count)
		all.SetCol(j, beta)
	}
	return all, iterations, nil
}
