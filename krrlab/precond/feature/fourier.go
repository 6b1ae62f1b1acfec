package feature

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
)

// Fourier is the distribution of random Fourier features (Rahimi and Recht 2007)
//
//	φ(x) = √(2/s)·cos(Wx+b),  W s×d, b ∈ R^s, b_j ∼ U(0, 2π),
//
// where the rows w of W are drawn from the spectral measure of the kernel, for which E[cos wᵀ(x−z)] = k(x, z). Then
// E[2 cos(wᵀx+b) cos(wᵀz+b)] = E[cos wᵀ(x−z)] = k(x, z). (The factor √2 is missing in section 2.2 of the paper.) With
// c = k(x, z) and δ = x−z, the variance of one feature's contribution is
//
//	Var[2 cos(wᵀx+b) cos(wᵀz+b)] = ½ + ½(1 + E cos 2wᵀδ) − c²,
//
// where E cos 2wᵀδ = k(2δ). The variance of φ(x)ᵀφ(z) is therefore (1 + ½k(2δ) − c²)/s.
//
// Kernel must be a kernel.Mixture or kernel.Spectral: Gaussian, Laplacian, Matern32, Matern52 or a user-defined kernel.
// If k(x, x) is not 1, the features are multiplied by √k(x, x).
type Fourier struct {
	Kernel kernel.Kernel
}

var _ Dist = Fourier{}

// String returns the name of the distribution with its kernel.
func (f Fourier) String() string {
	return fmt.Sprintf("Fourier features of %v", f.Kernel)
}

// mapBytes returns the memory of a map R^d → R^s in bytes.
func (Fourier) mapBytes(d, s int) int64 { return accel.SaturateInt64((4*float64(d) + 20) * float64(s)) }

// FourierMap is a draw of Fourier: φ(x) = √(2/s)·cos(Wx+b). It stores Wᵀ in float32, in 4·d·s bytes, and 20 bytes for
// each feature.
type FourierMap struct {
	d, s    int
	wt      []float32 // Wᵀ, d×s: row c holds coordinate c of all frequencies
	b       []float64 // phases, in (0, 2π)
	b32     []float32 // b in float32
	norms   []float64 // ‖w_j‖₂ of each row w_j of W
	maxNorm float64   // max_j ‖w_j‖₂
	scale   float64   // √(2k(x,x)/s)
}

var _ Map32 = (*FourierMap)(nil)

// Sample implements Dist. Row j of W and b_j are functions of (g, j) only: row j is drawn from g.Sub("frequencies", j),
// and b_j = 2π·g.Sub("phases").Float64(j).
//
// Sample returns an error if d < 1 or s < 1, the kernel has no Fourier features, W needs more memory than is available,
// or frequencies exceed the range of float32 (σ below about 1e-37).
func (f Fourier) Sample(d, s int, g rng.Stream) (Map, error) {
	if err := kernel.Validate(f.Kernel); err != nil {
		return nil, err
	}
	if !hasSpectralMeasure(f.Kernel) {
		return nil, noFeatures("Fourier", f.Kernel)
	}
	if err := checkSample(f, d, s); err != nil {
		return nil, err
	}
	if err := checkMemory(accel.AvailableMemory(0, 1), f, d, s); err != nil {
		return nil, err
	}
	m := &FourierMap{d: d, s: s, wt: make([]float32, d*s), b: make([]float64, s), b32: make([]float32, s),
		norms: make([]float64, s), scale: math.Sqrt(2 / float64(s))}
	origin := make([]float64, d)
	m.scale *= math.Sqrt(f.Kernel.Eval(origin, origin))
	g.Sub("phases").Float64s(m.b, 0)
	for j := range m.b {
		m.b[j] *= 2 * math.Pi
		m.b32[j] = float32(m.b[j])
	}
	m.draw(f.Kernel, g)
	for j, v := range m.norms {
		if !(v <= math.MaxFloat32) {
			return nil, fmt.Errorf("feature: frequency %d of %v has length %g, beyond float32: "+
				"scale the points and σ up", j, f, v)
		}
		m.maxNorm = max(m.maxNorm, v)
	}
	return m, nil
}

// drawBlock is the number of frequencies that are drawn and transposed together: 16 columns of Wᵀ fill a cache line.
const drawBlock = 16

// draw fills W with independent frequencies.
func (m *FourierMap) draw(k kernel.Kernel, g rng.Stream) {
	buffers := make([][]float64, accel.Threads())
	accel.Each((m.s+drawBlock-1)/drawBlock, func(worker, block int) {
		rows := buffer.Grow(&buffers[worker], drawBlock*m.d)
		j0, j1 := block*drawBlock, min((block+1)*drawBlock, m.s)
		for j := j0; j < j1; j++ {
			drawFrequency(rows[(j-j0)*m.d:(j-j0+1)*m.d], k, g, j)
		}
		m.store(rows, j0, j1)
	})
}

// store writes rows j0, …, j1-1 of W to columns of Wᵀ, and their norms to m.norms.
func (m *FourierMap) store(rows []float64, j0, j1 int) {
	for c := range m.d {
		dst := m.wt[c*m.s+j0 : c*m.s+j1]
		for j := range dst {
			dst[j] = float32(rows[j*m.d+c])
		}
	}
	for j := j0; j < j1; j++ {
		m.norms[j] = math.Sqrt(sumSq(rows[(j-j0)*m.d : (j-j0+1)*m.d]))
	}
}

// Dims implements Map.
func (m *FourierMap) Dims() (d, s int) { return m.d, m.s }

// Frequency writes row j of W to w, which must have length d, and returns b_j.
func (m *FourierMap) Frequency(w []float64, j int) (b float64) {
	if len(w) != m.d || j < 0 || j >= m.s {
		panic(fmt.Sprintf("feature: frequency %d of %d to a slice of length %d, want length %d", j, m.s, len(w), m.d))
	}
	for c := range w {
		w[c] = float64(m.wt[c*m.s+j])
	}
	return m.b[j]
}

// hasSpectralMeasure reports whether the kernel has a method that draws from its spectral measure p (Bochner's
// theorem): k(x, z) = k(x, x)·E_{w∼p} cos wᵀ(x−z).
func hasSpectralMeasure(k kernel.Kernel) bool {
	switch k.(type) {
	case kernel.Mixture, kernel.Spectral:
		return true
	}
	return false
}

// noFeatures returns an error which says that the kernel has no features of the given kind, and which kernels have
// features.
func noFeatures(kind string, k kernel.Kernel) error {
	return fmt.Errorf("feature: no %s features for the kernel %v: gaussian, laplacian, matern32, matern52 and "+
		"user-defined kernels with a method Spread or Frequency have Fourier features, polynomial has "+
		"TensorSketch", kind, k)
}

// drawFrequency sets dst to frequency w_j, which is a function of g and j only.
func drawFrequency(dst []float64, k kernel.Kernel, g rng.Stream, j int) {
	g = g.Sub("frequencies", uint64(j))
	switch k := k.(type) {
	case kernel.Mixture:
		g.Normals(dst, 0)
		scale := k.Spread(g.Sub("mix"))
		for c := range dst {
			dst[c] *= scale
		}
	case kernel.Spectral:
		k.Frequency(dst, g)
	}
}
