package pcg

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/krrlab/lab/krrlab/accel"
)

const (
	slabBlocks = 64 // iterations whose Π and S are allocated together
	ritzSteps  = 80
	// roomForCond is how many numbers a solve keeps of its steps for Cond, or nt if that is more.
	roomForCond = 1 << 18
)

// lanczos holds the Π_k, m_k×m_k, and S_k, m_k×m_{k-1}, of the iterations of a block
// solve from its first block on, as many as fit in room numbers. They are the block
// Lanczos tridiagonal T of M^(-1/2)·A·M^(-1/2) in another form: with Z_k = P_k − P_{k-1}S_kᵀ,
// which are M-orthonormal, and the P_k, which are A-orthogonal,
//
//	T_kk = Z_kᵀAZ_k = Π_k + S_kΠ_{k-1}S_kᵀ,  T_k,k+1 = Z_kᵀAZ_{k+1} = −Π_kS_{k+1}ᵀ.
type lanczos struct {
	room  int
	slab  []float64
	width []int // m_k
	pi, s [][]float64
}

func newLanczos(room, iterations int) lanczos {
	return lanczos{
		room: room, width: make([]int, 0, iterations),
		pi: make([][]float64, 0, iterations), s: make([][]float64, 0, iterations),
	}
}

// add keeps Π, m×m, and S of an iteration; S of the first one has no meaning.
func (l *lanczos) add(pi, s []float64, m int) {
	before := 0
	if len(l.width) > 0 {
		before = l.width[len(l.width)-1]
	}
	need := m * (m + before)
	if need > l.room {
		l.room = 0
		return
	}
	l.room -= need
	if len(l.slab) < need {
		l.slab = make([]float64, min(slabBlocks*2*m*m, need+l.room))
	}
	keep := func(v []float64) []float64 {
		dst := l.slab[:len(v):len(v)]
		l.slab = l.slab[len(v):]
		copy(dst, v)
		return dst
	}
	l.pi = append(l.pi, keep(pi[:m*m]))
	l.s = append(l.s, keep(s[:m*before]))
	l.width = append(l.width, m)
}

// band returns T as a symmetric band matrix, upper triangle.
func (l *lanczos) band() blas64.SymmetricBand {
	n, wide := 0, 0
	for _, m := range l.width {
		n, wide = n+m, max(wide, m)
	}
	kd := 2*wide - 1
	t := blas64.SymmetricBand{N: n, K: kd, Stride: kd + 1, Uplo: blas.Upper, Data: make([]float64, n*(kd+1))}
	at := 0
	for k, m := range l.width {
		pi := l.pi[k]
		for i := range m {
			for j := i; j < m; j++ {
				t.Data[(at+i)*t.Stride+j-i] += (pi[i*m+j] + pi[j*m+i]) / 2 // T_kk = Π_k + …
			}
		}
		if k+1 == len(l.width) {
			break
		}
		next, s := l.width[k+1], l.s[k+1]
		ps := make([]float64, m*next) // Π_kS_{k+1}ᵀ
		for i := range m {
			for j := range next {
				for a := range m {
					ps[i*next+j] += (pi[i*m+a] + pi[a*m+i]) / 2 * s[j*m+a]
				}
				t.Data[(at+i)*t.Stride+m+j-i] = -ps[i*next+j] // T_k,k+1 = −Π_kS_{k+1}ᵀ
			}
		}
		for i := range next {
			for j := i; j < next; j++ {
				for a := range m {
					t.Data[(at+m+i)*t.Stride+j-i] += s[i*m+a] * ps[a*next+j] // … + S_{k+1}Π_kS_{k+1}ᵀ
				}
			}
		}
		at += m
	}
	return t
}

// cond returns λ_max/λ_min of T, NaN if there is no T or it is not positive definite.
// The two are the largest eigenvalues that ritzSteps steps of Lanczos find for T and
// T⁻¹, which err to the side of a smaller κ, if at all. Work: for T of order N and
// blocks of b columns, 4Nb² for the factor of T and some 10³·Nb for the steps.
func (l *lanczos) cond() float64 {
	if len(l.width) == 0 {
		return math.NaN()
	}
	t := l.band()
	c := t
	c.Data = slices.Clone(t.Data)
	chol, ok := lapack64.Pbtrf(c)
	if !ok {
		return math.NaN()
	}
	hi := top(t.N, func(dst, x []float64) {
		blas64.Sbmv(1, t, blas64.Vector{N: t.N, Inc: 1, Data: x}, 0, blas64.Vector{N: t.N, Inc: 1, Data: dst})
	})
	inv := top(t.N, func(dst, x []float64) {
		copy(dst, x)
		lapack64.Pbtrs(chol, blas64.General{Rows: t.N, Cols: 1, Stride: 1, Data: dst})
	})
	if k := hi * inv; finite(k) { // T is positive definite
		return max(k, 1)
	}
	return math.NaN()
}

// top returns the largest Ritz value of a symmetric matrix of order n after
// min(n, ritzSteps) steps of Lanczos from a fixed random vector, reorthogonalized.
func top(n int, apply func(dst, x []float64)) float64 {
	rnd := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, n)
	for i := range w {
		w[i] = rnd.NormFloat64()
	}
	var v [][]float64
	var diag, off []float64
	var size float64
	for len(v) < min(n, ritzSteps) {
		beta := blas64.Nrm2(blas64.Vector{N: n, Inc: 1, Data: w})
		if len(v) > 0 {
			if !(beta > 1e-14*size) { // the space is invariant
				break
			}
			off = append(off, beta)
		}
		next := make([]float64, n)
		axpy(next, 1/beta, w)
		v = append(v, next)
		apply(w, next)
		diag = append(diag, dot(w, next))
		size = max(size, math.Abs(diag[len(diag)-1])) // of T, about
		for range 2 {
			for _, u := range v {
				axpy(w, -dot(w, u), u)
			}
		}
	}
	if !accel.Dsterf(diag, off) {
		return math.NaN()
	}
	return diag[len(diag)-1]
}

// dot returns xᵀy.
func dot(x, y []float64) float64 {
	return blas64.Dot(blas64.Vector{N: len(x), Inc: 1, Data: x}, blas64.Vector{N: len(y), Inc: 1, Data: y})
}
