package kernel

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Arithmetic is how the inner products or distances of a tile are formed.
type Arithmetic int

const (
	Float32     Arithmetic = iota // points rounded to float32, products by sgemm
	Float64                       // products by dgemm
	Differences                   // Σ(x_c−z_c)² in float64 for kernels of x−z, which does not cancel; else as Float64
)

func (a Arithmetic) String() string {
	return enum.Name([]string{"float32", "float64", "float64 differences"}, a)
}

// Workspace is the scratch memory of one worker. The zero value is ready; it
// grows on demand and allocates no more once warm. It must not be shared by
// goroutines that run at the same time.
type Workspace struct {
	pairs points.Workspace
	inner []float64 // inner products of a float32 tile formed in float64
	zeros []float64 // norms beside distances
	whole []float64 // norms of bytes, in integers
	row   []float64 // one row of squared distances, for a float32 tile
	ints  []int32   // inner products of bytes, for Levels,
	sq    []int32   // and squared norms
	x, z  []float64 // dense rows for kernels by pairs
	to    []int     // rows of a Precomputed
}

// Tile64 sets dst[a*ld+b] = k(x_a, z_b), a < len(x), b < len(z), in float64, with the inner
// products or distances formed as arith says; Float32 counts as Float64. Of points.Bytes of one scale inner products
// are exact, and so are squared distances, but for the rounding of one product with the scale, whatever arith
// says. EntryError bounds the error. Entries of panels with Factors are multiplied by them. Tile64 panics if the
// dimensions of x and z differ or ld is less than the number of columns.
func Tile64(dst []float64, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	tile64(dst, ld, k, x, z, arith, w)
	weigh(dst, ld, x, z, func(v float64) float64 { return v })
}

// weigh multiplies a tile by the factors of its panels, in float64.
func weigh[T float](dst []T, ld int, x, z points.Panel, round func(v float64) T) {
	if x.Factors == nil && z.Factors == nil {
		return
	}
	for a := range x.Len() {
		f := 1.0
		if x.Factors != nil {
			f = x.Factors[a]
		}
		row := dst[a*ld : a*ld+z.Len()]
		for b, v := range row {
			g := f
			if z.Factors != nil {
				g *= z.Factors[b]
			}
			row[b] = round(float64(v) * g)
		}
	}
}

func tile64(dst []float64, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	if p, ok := k.(*Precomputed); ok {
		p.tile(x.X, z.X, w, func(a int, row []float64) { copy(dst[a*ld:], row) })
		return
	}
	if ByPairs(k) {
		w.each(k, x.X, z.X, func(a, b int, v float64) { dst[a*ld+b] = v })
		return
	}
	p, nz := k.(profile), z.Len()
	tile, step := dst, ld
	if !BuiltIn(k) && ld != nz {
		tile, step = buffer.Grow(&w.inner, x.Len()*nz), nz
	}
	_, radial := k.(Radial)
	xx, zz := w.scalars64(tile, step, k, x, z, arith)
	for a, v := range xx {
		row := tile[a*step : a*step+nz]
		if radial {
			simd.SquaredDistances(row, row, zz, v)
		}
		if BuiltIn(k) {
			p.Profile(row, row)
		}
	}
	if BuiltIn(k) {
		return
	}
	tile = tile[:len(xx)*nz]
	p.Profile(tile, tile)
	if step != ld {
		for a := range xx {
			copy(dst[a*ld:a*ld+nz], tile[a*nz:])
		}
	}
}

// Tile32 sets dst[a*ld+b] = k(x_a, z_b) rounded to float32, with the inner products or distances formed as arith says.
// Values beyond float32 become ±Inf, and those below 2⁻¹²⁶, float32's least normal number, 0, so that no product meets
// a subnormal number: an error of 2⁻¹²⁶ in an entry, which is one of those that the choice of the storage (package
// gram) counts. A kernel of which nothing but Eval is known is evaluated in float64 whatever arith says. Tile32 panics
// as Tile64 does.
func Tile32(dst []float32, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	tile32(dst, ld, k, x, z, arith, w)
	weigh(dst, ld, x, z, normal32)
}

// normal32 rounds to float32, and subnormal numbers to 0.
func normal32(v float64) float32 {
	if math.Abs(v) < 0x1p-126 {
		return 0
	}
	return float32(v)
}

func tile32(dst []float32, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	nx, nz := x.Len(), z.Len()
	if p, ok := k.(*Precomputed); ok {
		p.tile(x.X, z.X, w, func(a int, row []float64) { simd.Round(dst[a*ld:a*ld+nz], row) })
		return
	}
	if ByPairs(k) {
		w.each(k, x.X, z.X, func(a, b int, v float64) { dst[a*ld+b] = normal32(v) })
		return
	}
	p, step := k.(profile), 0
	u := buffer.Grow(&w.row, nz)
	unit, whole := wholeUnit(k, x.X, z.X)
	e, tiles := exponentialOf(k), byTile(k)
	if e != nil && whole {
		if inner := points.Int32View(dst); points.InnerInt(inner, ld, x.X, z.X, &w.pairs) {
			xx, zz := w.wholeNorms(x, z, unit)
			for a, v := range xx {
				simd.GaussianRow(dst[a*ld:a*ld+nz], inner[a*ld:a*ld+nz], zz, v, e.exponent(unit), flush32)
			}
			return
		}
	}
	if arith == Float32 && !whole {
		if ArgumentOf(k) == L1Distance {
			points.L1Dist32(dst, ld, x.X, z.X, &w.pairs)
		} else {
			points.Inner32(dst, ld, x.X, z.X, &w.pairs)
		}
		if tiles {
			u, step = buffer.Grow(&w.row, nx*nz), nz
		}
		for a := range nx {
			row := dst[a*ld : a*ld+nz]
			apply32(p, e, tiles, row, row, x.Norms[a], z.Norms, u[a*step:a*step+nz])
		}
	} else {
		inner := buffer.Grow(&w.inner, nx*nz)
		if tiles {
			u, step = inner, nz
		}
		xx, zz := w.scalars64(inner, nz, k, x, z, arith)
		for a, v := range xx {
			apply32(p, e, tiles, dst[a*ld:a*ld+nz], inner[a*nz:(a+1)*nz], v, zz, u[a*step:a*step+nz])
		}
	}
	if tiles {
		p.Profile(u, u)
		for a := range nx {
			simd.Round(dst[a*ld:a*ld+nz], u[a*nz:(a+1)*nz])
		}
	}
}

// byTile reports whether k is a user-defined kernel whose Profile is called once for all entries of a tile: a call may
// cost what thousands of entries do.
func byTile(k Kernel) bool {
	_, row := k.(profile32)
	return !row && !BuiltIn(k)
}

// scalars64 sets dst to the argument of k for all pairs, ‖x−z‖₁ or xᵀz, and returns the norms that go with it. A
// squared distance stands as the inner product −r²/2 of points of norm 0, from which r² comes back with the same bits.
func (w *Workspace) scalars64(dst []float64, ld int, k Kernel, x, z points.Panel, arith Arithmetic) (xx, zz []float64) {
	l1 := ArgumentOf(k) == L1Distance
	unit, whole := wholeUnit(k, x.X, z.X)
	switch {
	case whole:
		points.InnerWhole(dst, ld, x.X, z.X, &w.pairs)
		return w.inUnits(dst, ld, k, x, z, unit)
	case l1 && arith == Differences:
		points.SumDist64(dst, ld, x.X, z.X, &w.pairs)
	case l1:
		points.L1Dist64(dst, ld, x.X, z.X, &w.pairs)
	case arith == Differences && ShiftInvariant(k):
		points.SqDist64(dst, ld, x.X, z.X, &w.pairs)
		nx, nz := x.Len(), z.Len()
		for a := range nx {
			row := dst[a*ld : a*ld+nz]
			for b := range row {
				row[b] *= -0.5
			}
		}
		zeros := buffer.Grow(&w.zeros, max(nx, nz))
		return zeros[:nx], zeros[:nz]
	default:
		points.Inner64(dst, ld, x.X, z.X, &w.pairs)
	}
	return x.Norms, z.Norms
}

// wholeUnit returns the unit of inner products that are whole numbers, if k is a function of such.
func wholeUnit(k Kernel, x, z points.Points) (unit float64, ok bool) {
	if a := ArgumentOf(k); a != SquaredDistance && a != InnerProduct {
		return 0, false
	}
	return points.ExactProductUnit(x, z)
}

// Whole reports whether tiles of k of these points are formed from inner products that are exact: they are
// points.Bytes, and k is a function of ‖x−z‖₂² or xᵀz.
func HasExactProducts(k Kernel, x points.Points) bool {
	_, ok := wholeUnit(k, x, x)
	return ok
}

// wholeNorms returns the squared norms as whole numbers.
func (w *Workspace) wholeNorms(x, z points.Panel, unit float64) (xx, zz []float64) {
	nx := x.Len()
	both := buffer.Grow(&w.whole, nx+z.Len())
	points.WholeNorms(both[:nx], x.Norms, unit)
	points.WholeNorms(both[nx:], z.Norms, unit)
	return both[:nx], both[nx:]
}

// inUnits turns whole inner products into what scalars64 returns.
func (w *Workspace) inUnits(dst []float64, ld int, k Kernel, x, z points.Panel, unit float64) (xx, zz []float64) {
	xx, zz = w.wholeNorms(x, z, unit)
	radial := ArgumentOf(k) == SquaredDistance
	for a, v := range xx {
		row := dst[a*ld : a*ld+len(zz)]
		for b, p := range row {
			if radial {
				p = -0.5 * (v + zz[b] - 2*p) // −r²/2, a multiple of ½
			}
			row[b] = p * unit
		}
	}
	if !radial {
		return x.Norms, z.Norms
	}
	clear(w.whole)
	return xx, zz
}

// eachEntries bounds the dense rows that each holds at once.
const eachEntries = 1 << 18

// tiler is a kernel that is evaluated for many pairs at once.
type tiler interface {
	EvalTile(dst, x, z []float64, nx, nz int)
}

// each calls set with k(x_a, z_b) for all pairs, evaluated on dense rows.
func (w *Workspace) each(k Kernel, x, z points.Points, set func(a, b int, v float64)) {
	nx, d := x.Dims()
	nz, dz := z.Dims()
	if d != dz {
		panic(fmt.Sprintf("kernel: dimensions %d and %d differ", d, dz))
	}
	step := max(1, eachEntries/max(d, 1))
	if t, ok := k.(tiler); ok {
		for a0 := 0; a0 < nx; a0 += step {
			na := min(step, nx-a0)
			points.Panel64To(x.Slice(a0, a0+na), buffer.Grow(&w.x, na*d), d)
			for b0 := 0; b0 < nz; b0 += step {
				nb := min(step, nz-b0)
				points.Panel64To(z.Slice(b0, b0+nb), buffer.Grow(&w.z, nb*d), d)
				values := buffer.Grow(&w.inner, na*nb)
				t.EvalTile(values, w.x, w.z, na, nb)
				for p, v := range values {
					set(a0+p/nb, b0+p%nb, v)
				}
			}
		}
		return
	}
	xa := buffer.Grow(&w.x, d)
	for b0 := 0; b0 < nz; b0 += step {
		b1 := min(b0+step, nz)
		zb := buffer.Grow(&w.z, (b1-b0)*d)
		points.Panel64To(z.Slice(b0, b1), zb, d)
		for a := range nx {
			x.RowTo(xa, a)
			for b := b0; b < b1; b++ {
				p := (b - b0) * d
				set(a, b, k.Eval(xa, zb[p:p+d:p+d]))
			}
		}
	}
}

// Arguments of the exponential below these give 0: e^flush32 = 2^-100 and
// e^flush64 = 2^-200.
const (
	flush32 = -100 * math.Ln2
	flush64 = -200 * math.Ln2
	zero32  = -1000 // an argument whose exponential is 0 in float32
)

// exponential is a kernel exp(a·r²), which has loops of its own in float32. exponent returns a for distances in the
// given unit.
type exponential interface {
	profile
	exponent(unit float64) float64
}

// exponentialOf returns k if it is an exponential of this package, nil otherwise.
func exponentialOf(k Kernel) exponential {
	if e, ok := k.(exponential); ok && BuiltIn(k) {
		return e
	}
	return nil
}

// float is the type of an inner product.
type float interface{ float32 | float64 }

// apply32 sets dst to the kernel values of a row of what k is a function of, or, for a Radial, of inner
// products. dst and row may be the same. u is scratch of len(dst); for a kernel by tiles it takes r², and dst is not
// set. e is exponentialOf(k), and tiles is byTile(k).
func apply32[T float](k profile, e exponential, tiles bool, dst []float32, row []T, xx float64, zz []float64,
	u []float64) {
	_, radial := k.(Radial)
	if e != nil {
		simd.GaussianRow(dst, row, zz, xx, e.exponent(1), flush32)
		return
	}
	if radial {
		simd.SquaredDistances(u, row, zz, xx)
	} else {
		for b, v := range row {
			u[b] = float64(v)
		}
	}
	if k, ok := k.(profile32); ok {
		k.Profile32(dst, u)
		return
	}
	if !tiles {
		k.Profile(u, u)
		simd.Round(dst, u)
	}
}

// arg32 rounds an argument of the exponential to float32 and flushes.
func arg32(v float64) float32 {
	if v < flush32 {
		return zero32
	}
	return float32(v)
}
