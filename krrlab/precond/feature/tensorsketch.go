package feature

import (
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TensorSketch is the distribution of sketches for the polynomial kernel (Pham and Pagh 2013): φ(x) = S·v_q(x̂) for
//
//	k(x, z) = (γxᵀz + c)^q = (x̂ᵀẑ)^q = v_q(x̂)ᵀv_q(ẑ),  x̂ = (√γ·x, √c) ∈ R^(d+1),
//
// where v_q(x̂) = x̂⊗…⊗x̂ has all (d+1)^q ordered products. S is a CountSketch with hash and sign
//
//	H(i₁, …, i_q) = h₁(i₁) + … + h_q(i_q) mod s,
//	G(i₁, …, i_q) = g₁(i₁)·g₂(i₂)·…·g_q(i_q)
//
// for 3-wise independent h_t: [d+1] → [s] and 4-wise independent g_t: [d+1] → {±1}. (Section 2.2 of the paper prints
// g₂(i₁).) Then E[φ(x)ᵀφ(z)] = k(x, z) and (Avron, Nguyễn and Woodruff 2014)
//
//	Var[φ(x)ᵀφ(z)] ≤ (2+3^q)/s · k(x, x)·k(z, z).
//
// The sketch of a tensor product is the circular convolution of the q CountSketches of x̂, which is computed by FFT:
//
//	φ(x) = F⁻¹(F(C₁x̂)∘…∘F(C_qx̂)),  (C_t x̂)_j = Σ_{i: h_t(i)=j} g_t(i)·x̂_i,
//
// in O(q(nnz(x) + s·log s)). The FFT is fastest for s = 2^a·3^b·5^c. For an s with large prime factors, a linear
// convolution is computed by an FFT of the smallest such length above q(s−1), and wrapped modulo s afterwards. That
// costs about q times as much and gives the same φ.
type TensorSketch struct{ Kernel kernel.Polynomial }

var _ Dist = TensorSketch{}

// String returns the name of the distribution with its kernel.
func (f TensorSketch) String() string { return fmt.Sprintf("TensorSketch of %v", f.Kernel) }

// mapBytes returns the memory of a map in bytes.
func (f TensorSketch) mapBytes(d, _ int) int64 {
	return accel.SaturateInt64(4 * float64(f.Kernel.Degree) * (float64(d) + 1))
}

// TensorSketchMap is a draw of TensorSketch. It takes 4·q·(d+1) bytes.
type TensorSketchMap struct {
	kernel kernel.Polynomial
	d, s   int
	fftLen int        // length of the FFT: s, or a length ≥ q(s−1)+1
	table  [][]uint32 // table[t][i] = 2·h_t(i) + [g_t(i) = −1], where the bracket is 1 if true and 0 otherwise
}

var _ Map32 = (*TensorSketchMap)(nil)

// Sample implements Dist. Hash functions are polynomials over the field with 2⁶¹−1 elements. h_t is the value, mod s,
// of a polynomial of degree 2 with coefficients from g.Sub("tensorsketch hash", t). g_t is the parity of the value of a
// polynomial of degree 3 with coefficients from g.Sub("tensorsketch sign", t), t = 0, …, q−1. Sample returns an error
// if d < 1, s < 1, s is above 2³¹−1, or the kernel is invalid.
func (f TensorSketch) Sample(d, s int, g rng.Stream) (Map, error) {
	if err := kernel.Validate(f.Kernel); err != nil {
		return nil, err
	}
	if err := checkSample(f, d, s); err != nil {
		return nil, err
	}
	if s > math.MaxInt32 {
		return nil, fmt.Errorf("feature: %v with %d features: want at most %d", f, s, math.MaxInt32)
	}
	q := f.Kernel.Degree
	m := &TensorSketchMap{kernel: f.Kernel, d: d, s: s, fftLen: fftLen(q, s), table: make([][]uint32, q)}
	accel.Each(q, func(_, t int) {
		hash := newPolyHash(3, g.Sub("tensorsketch hash", uint64(t)))
		sign := newPolyHash(4, g.Sub("tensorsketch sign", uint64(t)))
		m.table[t] = make([]uint32, d+1)
		for i := range m.table[t] {
			m.table[t][i] = uint32(hash.value(uint64(i))%uint64(s))<<1 | uint32(sign.value(uint64(i))&1)
		}
	})
	return m, nil
}

// Dims implements Map.
func (m *TensorSketchMap) Dims() (d, s int) { return m.d, m.s }

// Hash returns the bucket h_t(i) and the sign g_t(i) for factor t in [0, q) and coordinate i in [0, d]. Coordinate d is
// the constant √c.
func (m *TensorSketchMap) Hash(t, i int) (bucket int, sign float64) {
	v := m.table[t][i]
	return int(v >> 1), 1 - 2*float64(v&1)
}

// MapTo implements Map.
func (m *TensorSketchMap) MapTo(z []float64, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	m.prepare(w)
	for i := range n {
		copy(z[i*ld:i*ld+m.s], m.row(x, i, w))
	}
}

// MapTo32 implements Map32. Features are computed in float64 and rounded.
func (m *TensorSketchMap) MapTo32(z []float32, ld int, x points.Points, w *Workspace) {
	n := checkMap(m, len(z), ld, x)
	m.prepare(w)
	for i := range n {
		row := z[i*ld : i*ld+m.s]
		for j, v := range m.row(x, i, w) {
			row[j] = float32(v)
		}
	}
}

// prepare allocates the scratch memory of w for m.
func (m *TensorSketchMap) prepare(w *Workspace) {
	buffer.Grow(&w.sequence, m.fftLen)
	buffer.Grow(&w.x64, m.d)
	if m.kernel.Degree == 1 {
		return
	}
	buffer.Grow(&w.prod, m.fftLen/2+1)
	buffer.Grow(&w.factor, m.fftLen/2+1)
	if w.fft == nil {
		w.fft = fourier.NewFFT(m.fftLen)
	} else if w.fft.Len() != m.fftLen {
		w.fft.Reset(m.fftLen)
	}
}

// row returns φ(x_i). The result is a part of w, and valid until the next call.
func (m *TensorSketchMap) row(x points.Points, i int, w *Workspace) []float64 {
	if m.kernel.Degree == 1 {
		m.countSketch(w.sequence, 0, x, i, w) // φ = C₁x̂
		return w.sequence
	}
	for t := range m.kernel.Degree {
		m.countSketch(w.sequence, t, x, i, w) // C_t x̂
		if t == 0 {
			w.fft.Coefficients(w.prod, w.sequence) // F(C₁x̂)
			continue
		}
		w.fft.Coefficients(w.factor, w.sequence)
		for j, v := range w.factor {
			w.prod[j] *= v // elementwise product with F(C_t x̂)
		}
	}
	w.fft.Sequence(w.sequence, w.prod) // F⁻¹, times the length of the FFT
	scale := 1 / float64(m.fftLen)
	for j := range m.s {
		w.sequence[j] *= scale
	}
	for j, v := range w.sequence[m.s:] { // sums of hashes are wrapped modulo s
		w.sequence[j%m.s] += scale * v
	}
	return w.sequence[:m.s]
}

// countSketch sets y to C_t x̂_i, padded with zeros:
//
//	y_{h_t(j)} += g_t(j)·√γ·x_ij for j < d,  y_{h_t(d)} += g_t(d)·√c.
//
// For dense points, the call with t = 0 reads point i into w.x64, and the calls with t > 0 reuse it.
func (m *TensorSketchMap) countSketch(y []float64, t int, x points.Points, i int, w *Workspace) {
	clear(y)
	root, table := math.Sqrt(m.kernel.Gamma), m.table[t]
	if csr, ok := x.(*points.CSR); ok {
		columns, values := csr.Row(i)
		for nonzero, c := range columns {
			addToBucket(y, table[c], root*values[nonzero])
		}
	} else {
		if t == 0 {
			x.RowTo(w.x64, i)
		}
		for c, v := range w.x64 {
			if v != 0 {
				addToBucket(y, table[c], root*v)
			}
		}
	}
	addToBucket(y, table[m.d], math.Sqrt(m.kernel.Coef0))
}

// addToBucket adds v to the bucket of a table entry, with the sign of the entry.
func addToBucket(y []float64, entry uint32, v float64) {
	y[entry>>1] += math.Float64frombits(math.Float64bits(v) ^ uint64(entry)<<63)
}

// fftLen returns the length of the FFT for a convolution of q sequences of length s modulo s. The length is s, or the
// smallest 2^a·3^b·5^c above q(s−1) if that is cheaper. A transform of length n = Πp with primes p costs about n·Σp.
func fftLen(q, s int) int {
	if q == 1 {
		return s
	}
	m := q*(s-1) + 1
	for withoutSmallPrimes(m) != 1 {
		m++
	}
	if float64(m)*primeSum(m) < float64(s)*primeSum(s) {
		return m
	}
	return s
}

// withoutSmallPrimes returns n divided by all its factors 2, 3 and 5.
func withoutSmallPrimes(n int) int {
	for _, p := range [...]int{2, 3, 5} {
		for n%p == 0 {
			n /= p
		}
	}
	return n
}

// primeSum returns the sum of the prime factors of n, with multiplicity.
func primeSum(n int) (sum float64) {
	for p := 2; p*p <= n; p++ {
		for n%p == 0 {
			sum += float64(p)
			n /= p
		}
	}
	if n > 1 {
		sum += float64(n)
	}
	return sum
}

// prime is the Mersenne prime 2⁶¹ − 1, the order of the field in which hashes are computed.
const prime = 1<<61 - 1

// polyHash is a hash function i ↦ a₀ + a₁i + … + a_{k−1}i^{k−1} mod 2⁶¹−1. If the a_j are independent and uniform, the
// values at any k distinct points below 2⁶¹−1 are independent and uniform: the family is k-wise independent (Wegman and
// Carter 1981).
type polyHash []uint64

// newPolyHash draws a hash function of the k-wise independent family. Coefficient j consists of 61 bits of word 0 of
// g.Sub("coefficient", j). If these bits are equal to the prime, the next word is used.
func newPolyHash(k int, g rng.Stream) polyHash {
	h := make(polyHash, k)
	for j := range h {
		c := g.Sub("coefficient", uint64(j))
		h[j] = prime
		for i := uint64(0); h[j] == prime; i++ {
			h[j] = c.Uint64(i) >> 3
		}
	}
	return h
}

// value returns the hash of i, in [0, 2⁶¹−1), by Horner's rule.
func (h polyHash) value(i uint64) uint64 {
	var v uint64
	for j := len(h) - 1; j >= 0; j-- {
		v = mulMod(v, i) + h[j] // below 2⁶²
		if v >= prime {
			v -= prime
		}
	}
	return v
}

// mulMod returns a·b mod 2⁶¹−1 for a, b < 2⁶¹: with ab = 2⁶¹u + v, ab ≡ u + v.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	v := lo&prime + (hi<<3 | lo>>61)
	if v >= prime {
		v -= prime
	}
	return v
}
