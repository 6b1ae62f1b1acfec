package fourier

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	// MaxDim is the largest dimension for which there is a series: the number of modes grows exponentially with the
	// dimension.
	MaxDim = 3
	// gaussianError is the default of Options.EntryError for a Gaussian.
	gaussianError = 1e-13
	// finestError and coarsestError are the limits of the default of Options.EntryError for a Density, whose number of
	// modes grows as a power of 1/error.
	finestError, coarsestError = 1e-12, 1e-6
	// boxFactor is the largest number of frequencies of a box for each mode that is allowed. Most frequencies have 2^d
	// modes, and New takes the modes of largest weight.
	boxFactor = 2
	// maxFrequency limits the search for the top frequency of an axis. It is far above MaxModes, so that a series that
	// reaches it is refused anyway.
	maxFrequency = 1 << 40
)

// Options are the options of New: how accurate a series must be, and how large it may be. A zero value means the
// default.
type Options struct {
	// EntryError is the bound of |K̃_ij − K_ij| to reach. Default: 10⁻¹³ for a Gaussian; for a Density the least power
	// of ten from 10⁻¹² to 10⁻⁶ for which MaxModes modes suffice.
	EntryError  float64
	MaxModes    int // largest number of modes; a series that needs more is an error; default 300,000
	DirectModes int // largest number of modes for which ΦᵀΦ + λI is factored; default 8,000
	// Comm are the ranks that share the passes over the points: all of them have all points, and each takes some of the
	// rows of cells. The first rank alone factors. All results have the same bits as in one process. Default: one
	// process.
	Comm comm.Comm

	// exactModes is the number of modes of largest weight on which the preconditioner of conjugate gradients is exact.
	// Only tests set it; see Series.exactModes.
	exactModes int
}

// withDefaults returns o with the defaults, except that of EntryError, which depends on the kernel.
func (o Options) withDefaults() Options {
	o.MaxModes, o.DirectModes = cmp.Or(o.MaxModes, 300_000), cmp.Or(o.DirectModes, 8000)
	if o.Comm == nil {
		o.Comm = comm.Alone()
	}
	return o
}

// Density is a kernel of ‖x−z‖ with a spectral density S that does not increase with the frequency, k(x, z) = ∫ S(‖ξ‖)
// cos(2πξᵀ(x−z)) dξ over R^d. The error bound of its series is proved if the methods are right.
type Density interface {
	kernel.Kernel
	// SpectralDensity returns S at a frequency f ≥ 0, in cycles per unit of the points, for points in R^d.
	SpectralDensity(d int, f float64) float64
	// SpectralTail returns an upper bound of ∫_f^∞ S(r)·r^(k−1) dr for the spectral density S in R^d, 1 ≤ k ≤ d.
	SpectralTail(d, k int, f float64) float64
	// Envelope returns an amplitude and a length for which |k(x, z)| ≤ amplitude·exp(−‖x−z‖/length).
	Envelope() (amplitude, length float64)
}

// axis is one axis of the box of the points. The angle of a coordinate x is θ = 2π(x−low)/P.
type axis struct {
	low          float64 // smallest coordinate of the box
	side         float64 // length L of the box
	spacing      float64 // 1/P for the period P
	topFrequency int     // highest frequency
}

// Series is the Fourier series K̃ of a kernel for the points of a box.
type Series struct {
	options    Options
	axes       []axis
	modes      []mode  // in the order of decreasing weight
	entryError float64 // bound of |K̃_ij − K_ij|
}

// mode is a column of Φ: √weight times the product over the axes of cos(jθ) or sin(jθ).
type mode struct {
	index  [MaxDim]int // for each axis, 2j for cos(jθ) and 2j+1 for sin(jθ)
	root   float64     // √weight
	weight float64     // coefficient of the mode and its sine counterparts in the series of k
}

// New returns the series of a kernel for the points of all sets, which have the same one to three dimensions. It
// returns an error if the kernel is neither Gaussian nor a Density, if the points have more dimensions or there are
// none in the first set, if more modes than Options.MaxModes are needed, or if Options.EntryError is too small for
// float64.
func New(k kernel.Kernel, o Options, sets ...points.Points) (*Series, error) {
	n, d := sets[0].Dims()
	gaussian, isGaussian := k.(kernel.Gaussian)
	density, isDensity := k.(Density)
	switch {
	case !isGaussian && !isDensity:
		return nil, fmt.Errorf("the kernel %v has no Fourier series with a proved bound: take the Gaussian kernel, "+
			"matern52 or another method (a kernel of your own needs the methods of fourier.Density)", k)
	case d < 1 || d > MaxDim:
		return nil, fmt.Errorf("points in %d dimensions: a Fourier series needs 1 to %d", d, MaxDim)
	case n < 1:
		return nil, fmt.Errorf("no points")
	}
	low, high := bounds(sets)
	o = o.withDefaults()
	if isGaussian {
		o.EntryError = cmp.Or(o.EntryError, gaussianError)
		s := &Series{options: o}
		return s, s.chooseModes(s.gaussianBox(low, high, gaussian.Sigma))
	}
	for entryError := finestError; ; entryError *= 10 {
		s := &Series{options: o}
		s.options.EntryError = cmp.Or(o.EntryError, entryError)
		err := s.chooseModes(s.densityBox(low, high, density))
		switch {
		case err == nil:
			return s, nil
		case o.EntryError == 0 && entryError < coarsestError/2: // the factor ½ tolerates the rounding of powers of ten
			continue
		case errors.Is(err, errNarrow): // a box of size 0 needs the fewest modes
			s = &Series{options: s.options}
			if atOnePlace := s.chooseModes(s.densityBox(low, low, density)); errors.Is(atOnePlace, errNarrow) {
				err = fmt.Errorf("the kernel %v takes more than %d modes in %d dimensions for a Fourier series with an "+
					"error of %.2g, however wide it is: take the Gaussian kernel, or another method", k, o.MaxModes, d,
					s.options.EntryError)
			}
		}
		return nil, err
	}
}

// errNarrow is the error about a series with more modes than are allowed.
var errNarrow = errors.New("the kernel is narrow for the box of the points")

// bounds returns the box of all points.
func bounds(sets []points.Points) (low, high []float64) {
	_, d := sets[0].Dims()
	row := make([]float64, d)
	low, high = slices.Repeat([]float64{math.Inf(1)}, d), slices.Repeat([]float64{math.Inf(-1)}, d)
	for _, x := range sets {
		n, _ := x.Dims()
		for i := range n {
			x.RowTo(row, i)
			for a, v := range row {
				low[a], high[a] = min(low[a], v), max(high[a], v)
			}
		}
	}
	return low, high
}

// weightOf returns the coefficient of Π_a cos(j_a θ_a), j_a ≥ 0, in the series of k as a function of x−z.
type weightOf func(j *[MaxDim]int) float64

// gaussianBox sets the axes for exp(−‖x‖²/2σ²) = Π_a exp(−x_a²/2σ²) such that the error is at most half of
// Options.EntryError before modes are omitted, and sets entryError to a bound of it. It returns the weights.
func (s *Series) gaussianBox(low, high []float64, sigma float64) weightOf {
	d := len(low)
	delta := s.options.EntryError / float64(4*d) // error δ of a factor: (1+δ)^d − 1 ≤ 2dδ
	weights := make([]func(j int) float64, d)
	s.entryError = 1
	for a := range d {
		side := high[a] - low[a]
		margin := sigma * math.Sqrt(2*math.Log(8/delta)) // R: periodic images are below δ/2
		images := func() float64 {
			return 2 * math.Exp(-margin*margin/(2*sigma*sigma)) / -math.Expm1(-margin*(side+margin)/(sigma*sigma))
		}
		for images() > delta/2 {
			margin *= 1.05
		}
		spacing := 1 / (side + margin)
		decay := 2 * math.Pi * math.Pi * sigma * sigma * spacing * spacing
		weight := func(j int) float64 {
			return math.Sqrt(2*math.Pi) * sigma * spacing * math.Exp(-decay*float64(j)*float64(j))
		}
		tail := func(m int) float64 {
			ratio := decay * float64(2*m+1)
			return 2 * weight(m) * math.Exp(-ratio) / -math.Expm1(-ratio)
		}
		m := sort.Search(maxFrequency, func(m int) bool { return tail(m) <= delta/2 }) // the tail decreases
		s.axes = append(s.axes, axis{low: low[a], side: side, spacing: spacing, topFrequency: m})
		s.entryError *= 1 + images() + tail(m)
		weights[a] = func(j int) float64 { return weight(j) * float64(min(j, 1)+1) } // ±j are one cosine for j > 0
	}
	s.entryError--
	return func(j *[MaxDim]int) float64 {
		product := 1.0
		for a := range weights {
			product *= weights[a](j[a])
		}
		return product
	}
}

// densityBox sets the axes for a Density such that the error is at most half of Options.EntryError before modes are
// omitted, and sets entryError to a bound of it. It returns the weights.
//
// With |k(x)| ≤ A exp(−‖x‖/ℓ) for the envelope (A, ℓ) and a margin R on each axis, an image whose largest index is q is
// at a distance of at least qR, and there are (2q+1)^d − (2q−1)^d ≤ 2d(2q+1)^(d−1) of them, so that all images add up
// to at most 2d·3^(d−1)·A·z/(1−3z), z = exp(−R/ℓ). The weights of frequencies outside the box |j_a|h_a ≤ F, h_a =
// 1/P_a, are compared with integrals: for the coordinates in which j is not 0, the cell between j and its neighbor
// toward the origin.
func (s *Series) densityBox(low, high []float64, k Density) weightOf {
	d := len(low)
	goal := s.options.EntryError / 4 // bound for the images, and for the tail
	amplitude, length := k.Envelope()
	imageFactor := 2 * float64(d) * math.Pow(3, float64(d-1))
	margin := length * math.Log(4+1.1*imageFactor*amplitude/goal) // z < 1/4, and imageFactor·A·z/(1−3z) < goal
	z := math.Exp(-margin / length)
	images := imageFactor * amplitude * z / (1 - 3*z)
	h := make([]float64, d)
	for a := range d {
		h[a] = 1 / (high[a] - low[a] + margin)
	}
	sphereArea := []float64{0, 2, 2 * math.Pi, 4 * math.Pi} // area of the unit sphere in R^k
	tail := func(f float64) (sum float64) {
		for nonzero := 1; nonzero < 1<<d; nonzero++ { // bit set of the coordinates in which j is not 0
			size, cell := 0, 1.0
			for a := range d {
				if nonzero>>a&1 == 1 {
					size++
				} else {
					cell *= h[a]
				}
			}
			sum += cell * sphereArea[size] * k.SpectralTail(d, size, f)
		}
		return sum
	}
	topRadius := floats.Max(h)
	for tail(topRadius) > goal {
		topRadius *= 1.02
	}
	volume := 1.0
	for a := range d {
		volume *= h[a]
		s.axes = append(s.axes, axis{low: low[a], side: high[a] - low[a], spacing: h[a],
			topFrequency: int(math.Ceil(topRadius / h[a]))})
	}
	s.entryError = images + tail(topRadius)
	return func(j *[MaxDim]int) float64 {
		w, square := volume, 0.0
		for a := range h {
			w *= float64(min(j[a], 1) + 1)
			square += h[a] * h[a] * float64(j[a]) * float64(j[a])
		}
		return w * k.SpectralDensity(d, math.Sqrt(square))
	}
}

// chooseModes sets the modes: those of the box, without as many of least weight as the accuracy allows. The weights of
// the omitted modes and the error of the expansions (evaluationError) add up to at most half of Options.EntryError, and
// chooseModes adds them to entryError. It lowers the top frequency of each axis accordingly. It returns an error if
// there are too many modes, or if the expansions alone have a larger error.
func (s *Series) chooseModes(weight weightOf) error {
	boxSize := 1.0
	for _, a := range s.axes {
		boxSize *= float64(a.topFrequency + 1)
	}
	tooMany := func(modes float64) error {
		return fmt.Errorf("%w: a Fourier series with an error of %.2g takes %.3g modes, more than the %d that are "+
			"allowed; sparse tiles suit a narrow kernel, and an outlying point enlarges the box",
			errNarrow, s.options.EntryError, modes, s.options.MaxModes)
	}
	if boxSize > boxFactor*float64(s.options.MaxModes) {
		return tooMany(boxSize * math.Pow(2, float64(len(s.axes))) * ballFraction[len(s.axes)])
	}

	all := s.cosineModes(weight, int(boxSize))
	total := 0.0
	for _, m := range all {
		total += m.weight
	}
	budget, expansions := s.options.EntryError/2, evaluationError(len(s.axes), total)
	if budget <= expansions {
		return fmt.Errorf("an error of %.2g of the entries of K is too small for a Fourier series in float64; %.2g "+
			"is possible", s.options.EntryError, 4*expansions)
	}
	s.entryError += expansions
	for budget -= expansions; len(all) > 1 && all[len(all)-1].weight <= budget; all = all[:len(all)-1] {
		budget -= all[len(all)-1].weight
		s.entryError += all[len(all)-1].weight
	}

	for a := range s.axes {
		s.axes[a].topFrequency = 0
	}
	for k := range all {
		m := &all[k]
		for a := range s.axes {
			s.axes[a].topFrequency = max(s.axes[a].topFrequency, m.index[a]/2)
		}
		m.root = math.Sqrt(m.weight)
		s.addModes(*m, 0)
	}
	if len(s.modes) > s.options.MaxModes {
		return tooMany(float64(len(s.modes)))
	}
	return nil
}

// cosineModes returns the modes of the box that are products of cosines, of which there are count, by decreasing
// weight.
func (s *Series) cosineModes(weight weightOf, count int) []mode {
	all := make([]mode, 0, count)
	var j [MaxDim]int
	var appendModes func(a int) // appends the modes with the frequencies j[0], …, j[a−1]
	appendModes = func(a int) {
		if a == len(s.axes) {
			m := mode{weight: weight(&j)}
			for b := range s.axes {
				m.index[b] = 2 * j[b]
			}
			all = append(all, m)
			return
		}
		for j[a] = 0; j[a] <= s.axes[a].topFrequency; j[a]++ {
			appendModes(a + 1)
		}
	}
	appendModes(0)
	slices.SortStableFunc(all, func(a, b mode) int { return cmp.Compare(b.weight, a.weight) })
	return all
}

// ballFraction is the volume of the ball in d dimensions relative to that of the cube around it. chooseModes uses the
// ratio to estimate how many of the frequencies of a box are modes, for the error about too many modes.
var ballFraction = [MaxDim + 1]float64{1, 1, math.Pi / 4, math.Pi / 6}

// addModes appends to s.modes the mode m and the modes in which some of its cosines along the axes a, a+1, … are
// replaced by sines.
func (s *Series) addModes(m mode, a int) {
	if a == len(s.axes) {
		s.modes = append(s.modes, m)
		return
	}
	s.addModes(m, a+1)
	if m.index[a] > 0 {
		m.index[a]++
		s.addModes(m, a+1)
	}
}

// Modes returns the number M of columns of Φ.
func (s *Series) Modes() int { return len(s.modes) }

// Direct reports whether ΦᵀΦ + λI is factored. Otherwise Factor.Solve uses conjugate gradients.
func (s *Series) Direct() bool { return len(s.modes) <= s.options.DirectModes }

// EntryError returns a bound of |K̃_ij − K_ij| for all points of the box; ‖K̃ − K‖₂ is at most n times as much.
func (s *Series) EntryError() float64 { return s.entryError }
