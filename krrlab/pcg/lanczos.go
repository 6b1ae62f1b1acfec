package pcg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// slabBlocks is the number of iterations whose Π and S are allocated together.
const slabBlocks = 64

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
// Both ends are found by bisection on whether T − μI or μI − T has a Cholesky
// factorisation. Work: some 10² times 4bN·b for blocks of b columns and T of order N.
func (l *lanczos) cond() float64 {
	if len(l.width) == 0 {
		return math.NaN()
	}
	t := l.band()
	scratch := t
	scratch.Data = make([]float64, len(t.Data))
	definite := func(sign, mu float64) bool { // sign·(T − μI) > 0
		for i := range t.N {
			for j := range t.Stride {
				scratch.Data[i*t.Stride+j] = sign * t.Data[i*t.Stride+j]
			}
			scratch.Data[i*t.Stride] -= sign * mu
		}
		_, ok := lapack64.Pbtrf(scratch)
		return ok
	}
	var top float64 // λ_max ≤ the largest row sum; λ_max ≥ T_ii ≥ λ_min
	low := math.Inf(1)
	rows := make([]float64, t.N)
	for i := range t.N {
		rows[i] += t.Data[i*t.Stride]
		low = min(low, t.Data[i*t.Stride])
		for j := 1; j < t.Stride && i+j < t.N; j++ {
			v := math.Abs(t.Data[i*t.Stride+j])
			rows[i] += v
			rows[i+j] += v
		}
	}
	for _, v := range rows {
		top = max(top, v)
	}
	if !(low > 0) || !finite(top) || !definite(1, 0) {
		return math.NaN()
	}
	hi := bisect(low, top*(1+1e-9), func(mu float64) bool { return definite(-1, mu) })
	lo := bisect(top*unit/16, low*(1+1e-9), func(mu float64) bool { return !definite(1, mu) })
	return max(hi/lo, 1)
}

// bisect returns, to a relative error of 1e-7, where in [lo, hi] ok becomes true, lo > 0.
func bisect(lo, hi float64, ok func(float64) bool) float64 {
	for hi > lo*(1+1e-7) {
		mid := math.Sqrt(lo) * math.Sqrt(hi)
		if ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return math.Sqrt(lo) * math.Sqrt(hi)
}
