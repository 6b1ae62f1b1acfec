package fourier

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// MaxDim is the largest dimension for which there is a series: the number of modes grows as a power of it.
const MaxDim = 3

// Options say how accurate and how large a series may be. Zero values mean the defaults.
type Options struct {
	EntryError  float64 // bound of |K̃_ij − K_ij| to reach; default 10⁻¹³
	MaxModes    int     // more modes are an error; default 300,000
	DirectModes int     // most modes for which ΦᵀΦ + λI is factored; default 5,000
}

func (o Options) withDefaults() Options {
	if o.EntryError <= 0 {
		o.EntryError = 1e-13
	}
	if o.MaxModes <= 0 {
		o.MaxModes = 300_000
	}
	if o.DirectModes <= 0 {
		o.DirectModes = 5000
	}
	return o
}

// axis is the series of one factor of the kernel.
type axis struct {
	low, side float64   // the box of the points
	spacing   float64   // 1/P
	weights   []float64 // w_0, 2w_1, …, 2w_m: those of cos(2πj(x−z)/P)
	delta     float64   // bound of the error of the factor on the box
}

// Series is K̃ for the points of a box.
type Series struct {
	options Options
	axes    []axis
	modes   []mode
	entry   float64
}

// mode is a column of Φ: √weight times the product over the axes of cos(jθ), or sin(jθ) if odd.
type mode struct {
	index  [MaxDim]int // column of each axis in the block that cosinesAndSines makes: cos j at j, sin j at m+1+j
	root   float64     // √weight
	weight float64
}

// New returns the series of a kernel for some sets of points, all in the same one to three dimensions. It returns an error
// if the kernel is not Gaussian, if the points have more dimensions, or if more modes than Options.MaxModes are needed.
func New(k kernel.Kernel, o Options, sets ...points.Points) (*Series, error) {
	n, d := sets[0].Dims()
	gaussian, ok := k.(kernel.Gaussian)
	switch {
	case !ok:
		return nil, fmt.Errorf("the kernel %v has no Fourier series with a proved bound: take the Gaussian kernel", k)
	case d < 1 || d > MaxDim:
		return nil, fmt.Errorf("points in %d dimensions: a Fourier series needs 1 to %d", d, MaxDim)
	case n < 1:
		return nil, fmt.Errorf("no points")
	}
	s := &Series{options: o.withDefaults(), entry: 1}
	row := make([]float64, d)
	low, high := make([]float64, d), make([]float64, d)
	for k, x := range sets {
		n, _ := x.Dims()
		for i := range n {
			x.RowTo(row, i)
			for a, v := range row {
				if k == 0 && i == 0 {
					low[a], high[a] = v, v
				}
				low[a], high[a] = min(low[a], v), max(high[a], v)
			}
		}
	}
	modes := 1.0
	for a := range d {
		// The factors multiply: (1+δ)^d − 1 ≤ ε for δ = ε/(2d).
		factor := gaussianAxis(low[a], high[a]-low[a], gaussian.Sigma, s.options.EntryError/float64(2*d))
		s.axes = append(s.axes, factor)
		s.entry *= 1 + factor.delta
		modes *= float64(2*len(factor.weights) - 1)
	}
	if s.entry--; modes > float64(s.options.MaxModes) {
		return nil, fmt.Errorf("the kernel is narrow for the box of the points: a Fourier series takes %.3g modes, more than "+
			"the %d that are allowed; sparse tiles suit a narrow kernel, and an outlying point enlarges the box", modes,
			s.options.MaxModes)
	}
	s.listModes(0, mode{weight: 1})
	return s, nil
}

// gaussianAxis returns the series of exp(−x²/2σ²) for |x| ≤ side with an error of at most delta.
func gaussianAxis(low, side, sigma, delta float64) axis {
	margin := sigma * math.Sqrt(2*math.Log(8/delta)) // R: periodic images are below δ/2
	period := side + margin
	images := func() float64 {
		return 2 * math.Exp(-margin*margin/(2*sigma*sigma)) / -math.Expm1(-margin*period/(sigma*sigma))
	}
	for images() > delta/2 {
		margin *= 1.05
		period = side + margin
	}
	h := 1 / period
	s := 2 * math.Pi * math.Pi * sigma * sigma * h * h
	weight := func(j int) float64 { return math.Sqrt(2*math.Pi) * sigma * h * math.Exp(-s*float64(j)*float64(j)) }
	tail := func(m int) float64 {
		ratio := s * float64(2*m+1)
		return 2 * weight(m) * math.Exp(-ratio) / -math.Expm1(-ratio)
	}
	m := 0
	for tail(m) > delta/2 {
		m++
	}
	a := axis{low: low, side: side, spacing: h, weights: make([]float64, m+1), delta: images() + tail(m)}
	for j := range a.weights {
		if a.weights[j] = 2 * weight(j); j == 0 {
			a.weights[j] /= 2
		}
	}
	return a
}

// listModes appends the modes whose indices along the axes before a are those of m.
func (s *Series) listModes(a int, m mode) {
	if a == len(s.axes) {
		m.root = math.Sqrt(m.weight)
		s.modes = append(s.modes, m)
		return
	}
	weights := s.axes[a].weights
	for j, w := range weights {
		longer := m
		longer.index[a], longer.weight = j, m.weight*w
		s.listModes(a+1, longer)
		if j > 0 {
			longer.index[a] = len(weights) + j
			s.listModes(a+1, longer)
		}
	}
}

// Modes returns the number M of columns of Φ.
func (s *Series) Modes() int { return len(s.modes) }

// Work returns the multiplications that Project and Eval take for each point and column.
func (s *Series) Work() float64 {
	work := 2.0
	for _, top := range s.frequencies(1) {
		work *= float64(width(top))
	}
	return work
}

// Bytes returns the memory that Normal and Factor take: the moments, the factors of a block of points, and the matrix of
// the modes with its factor, or the grids of the transforms with the factor of the preconditioner.
func (s *Series) Bytes() int64 {
	moments, widths, grid := 1.0, []float64{}, 1.0
	for _, top := range s.frequencies(2) {
		w := float64(width(top))
		moments *= w
		grid *= float64(smooth(2*top + 1))
		widths = append(widths, w)
	}
	block := 0.0
	for _, w := range widths {
		block += 2 * blockRows * w
	}
	if len(widths) == MaxDim {
		block += blockRows * widths[0] * widths[1]
	}
	modes := float64(len(s.modes))
	matrices := 2 * modes * modes
	if len(s.modes) > s.options.DirectModes {
		matrices = 4*grid + blockModes*blockModes + 8*modes
	}
	return int64(8 * (moments + block + matrices))
}

// EntryError returns a bound of |K̃_ij − K_ij| for all points of the box; ‖K̃ − K‖₂ is at most n times as much.
func (s *Series) EntryError() float64 { return s.entry }

// width returns the columns of the block of axis a up to frequency q: cosines 0, …, q, then sines 0, …, q.
func width(q int) int { return 2 * (q + 1) }

// angle returns θ = 2π(x−low)/P.
func (a *axis) angle(x float64) float64 { return 2 * math.Pi * a.spacing * (x - a.low) }

// restart is how many frequencies are computed by recurrence between two evaluations of sine and cosine.
const restart = 16

// cosinesAndSines sets row, of width(q) numbers, to cos(jθ) and sin(jθ), j = 0, …, q.
func cosinesAndSines(row []float64, theta float64, q int) {
	cosines, sines := row[:q+1], row[q+1:]
	sin1, cos1 := math.Sincos(theta)
	for j := range cosines {
		if j%restart == 0 {
			sines[j], cosines[j] = math.Sincos(float64(j) * theta)
			continue
		}
		c, s := cosines[j-1], sines[j-1]
		cosines[j], sines[j] = c*cos1-s*sin1, s*cos1+c*sin1
	}
}
