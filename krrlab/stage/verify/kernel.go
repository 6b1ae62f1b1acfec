package verify

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
)

// unit is u, the rounding of float64.
const unit = 0x1p-53

// function is a kernel by its formula: k(x, z) = finish(s), s = ‖x−z‖₂², ‖x−z‖₁ or xᵀz, or, if it is
// user-defined, what its Eval returns.
type function struct {
	signed  bool                      // k may be negative
	squares bool                      // s is ‖x−z‖₂²
	sum     func(dst, x, z []float64) // dst_j = s of x and row j of z
	finish  func(s float64) float64
	own     func(x []float64) float64 // k(x, x)
	steep   float64                   // |dk/ds| ≤ steep, for kernels of ‖x−z‖₂²
	degree  int                       // of the polynomial
	byEval  bool                      // user-defined
}

func newFunction(k kernel.Spec) (*function, error) {
	f := &function{sum: squares, squares: true, own: func([]float64) float64 { return 1 }}
	switch k.Name {
	case "gaussian": // exp(−‖x−z‖²/(2σ²))
		f.finish = func(s float64) float64 { return math.Exp(-s / (2 * k.Sigma * k.Sigma)) }
		f.steep = 0.5 / (k.Sigma * k.Sigma)
	case "laplacian": // exp(−‖x−z‖₁/σ)
		f.sum, f.squares = absolutes, false
		f.finish = func(s float64) float64 { return math.Exp(-s / k.Sigma) }
	case "matern32": // (1+a)e^(−a), a = √3·‖x−z‖/σ; dk/ds = −3e^(−a)/(2σ²)
		f.finish = func(s float64) float64 {
			a := math.Sqrt(3) * math.Sqrt(s) / k.Sigma
			return math.Exp(-a) + a*math.Exp(-a)
		}
		f.steep = 1.5 / (k.Sigma * k.Sigma)
	case "matern52": // (1+a+a²/3)e^(−a), a = √5·‖x−z‖/σ; dk/ds = −5(1+a)e^(−a)/(6σ²)
		f.finish = func(s float64) float64 {
			a := math.Sqrt(5) * math.Sqrt(s) / k.Sigma
			return (1 + a + a*a/3) * math.Exp(-a)
		}
		f.steep = 5.0 / 6 / (k.Sigma * k.Sigma)
	case "polynomial": // (γxᵀz+c)^q
		f.sum, f.squares, f.signed, f.degree = products, false, true, k.Degree
		f.finish = func(s float64) float64 { return math.Pow(k.Gamma*s+k.Coef0, float64(k.Degree)) }
		f.own = func(x []float64) float64 {
			var s [1]float64
			products(s[:], x, x)
			return f.finish(s[0])
		}
	default:
		own, err := kernel.FromSpec(k)
		if err != nil {
			return nil, fmt.Errorf("verify: no formula for kernel %q: %w", k.Name, err)
		}
		f.squares, f.signed, f.byEval = false, true, true
		f.finish = func(s float64) float64 { return s }
		f.own = func(x []float64) float64 { return own.Eval(x, x) }
		f.sum = func(dst, x, z []float64) {
			d := len(x)
			for j := range dst {
				dst[j] = own.Eval(x, z[j*d:][:d:d])
			}
		}
	}
	return f, nil
}

// entry bounds the error of one value in d dimensions, largest being max k(x, x). A sum of d
// positive terms is right to (d+3)u relative, and where k is a function of it |s·dk/ds| ≤ 1;
// finish rounds at most a dozen times. With norms, s is wrong by (d+6)u·(‖x‖+‖z‖)², which is
// at most 4·norm·(d+6)u. For the polynomial |xᵀz| ≤ ‖x‖‖z‖, so that the base is wrong by (d+4)u
// of at most the largest base, whose q-th power is the largest k(x, x). A user-defined kernel is what
// its Eval returns: 0.
func (f *function) entry(d int, largest float64, norms bool, norm float64) float64 {
	switch {
	case f.byEval:
		return 0
	case f.degree > 0:
		return float64(f.degree*(d+4)+8) * unit * largest
	case norms && f.squares:
		return 4*norm*float64(d+6)*unit*f.steep + 16*unit
	}
	return float64(d+16) * unit
}

// byFour sets dst_j to a sum of row j of z, d numbers each, four rows at a time. The last row repeats at the end.
func byFour(dst, z []float64, d int, sums func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64)) {
	row := func(j int) []float64 { return z[min(j, len(dst)-1)*d:][:d] }
	for j := 0; j < len(dst); j += 4 {
		s0, s1, s2, s3 := sums(row(j), row(j+1), row(j+2), row(j+3))
		copy(dst[j:], []float64{s0, s1, s2, s3})
	}
}

// squares sets dst_j = Σ_c (x_c−z_jc)².
func squares(dst, x, z []float64) {
	byFour(dst, z, len(x), func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64) {
		z0, z1, z2, z3 = z0[:len(x)], z1[:len(x)], z2[:len(x)], z3[:len(x)] // no checks of bounds below
		for c, v := range x {
			e0, e1, e2, e3 := v-z0[c], v-z1[c], v-z2[c], v-z3[c]
			s0 += e0 * e0
			s1 += e1 * e1
			s2 += e2 * e2
			s3 += e3 * e3
		}
		return s0, s1, s2, s3
	})
}

// absolutes sets dst_j = Σ_c |x_c−z_jc|.
func absolutes(dst, x, z []float64) {
	d := len(x)
	for j := range dst {
		row := z[j*d:][:d]
		var s float64
		for c, v := range x {
			s += math.Abs(v - row[c])
		}
		dst[j] = s
	}
}

// products sets dst_j = Σ_c x_c·z_jc.
func products(dst, x, z []float64) {
	d := len(x)
	for j := range dst {
		row := z[j*d:][:d]
		var s float64
		for c, v := range x {
			s += v * row[c]
		}
		dst[j] = s
	}
}

// gather is a row without its zeros.
type gather struct {
	at  []int
	val []float64
	sq  float64 // ‖x‖²
}

func newGather(x []float64) gather {
	var g gather
	for c, v := range x {
		if v != 0 {
			g.at, g.val = append(g.at, c), append(g.val, v)
			g.sq += v * v
		}
	}
	return g
}

// sparseProducts sets dst_j = xᵀz_j for rows z of length d.
func sparseProducts(dst []float64, x gather, z []float64, d int) {
	byFour(dst, z, d, func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64) {
		for k, c := range x.at {
			v := x.val[k]
			s0 += v * z0[c]
			s1 += v * z1[c]
			s2 += v * z2[c]
			s3 += v * z3[c]
		}
		return s0, s1, s2, s3
	})
}
