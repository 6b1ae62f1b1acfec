package kernel

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Arithmetic is the method by which the inner products or distances of a tile are formed.
type Arithmetic int

const (
	Float32     Arithmetic = iota // inner products of points rounded to float32, by sgemm
	Float64                       // inner products by dgemm
	Differences                   // Σ(x_c−z_c)² in float64, without cancellation; Float64 unless k is a function of x−z
)

func (a Arithmetic) String() string {
	return enum.Name([]string{"float32", "float64", "float64 differences"}, a)
}

// Workspace is the scratch memory of one goroutine. The zero value is ready to use. It grows on demand and makes no
// further allocations for tiles of the same size. Goroutines that run at the same time must not share a Workspace.
type Workspace struct {
	pairs             points.Workspace // scratch memory for inner products and distances
	products          []float64        // inner products of a float32 tile that are formed in float64
	zeroNorms         []float64        // zeros: the norms that arguments64 returns with squared distances
	integerNormBuffer []float64        // squared norms of bytes as integers
	row               []float64        // one row of squared distances, for a float32 tile
	intProducts       []int32          // inner products of bytes, for a DistanceTable
	intNorms          []int32          // squared norms of bytes, for a DistanceTable
	x, z              []float64        // dense rows for kernels that are evaluated pair by pair
	columns           []int            // column numbers of a tile of a Precomputed
}

// Tile64 sets dst[a*ld+b] = k(x_a, z_b), a < len(x), b < len(z), in float64. The inner products or distances are formed
// as arith says; Float32 counts as Float64. For points.Bytes of the same scale, inner products are exact, and squared
// distances are exact except for the rounding of one product with the scale, for every arith. EntryError bounds the
// error. Entries of panels with Factors are multiplied by the factors. Tile64 panics if the dimensions of x and z
// differ or ld is less than the number of columns.
func Tile64(dst []float64, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	tile64(dst, ld, k, x, z, arith, w)
	applyFactors(dst, ld, x, z, func(v float64) float64 { return v })
}

// applyFactors multiplies a tile by the factors of its panels in float64 and converts the result with round.
func applyFactors[T realNumber](dst []T, ld int, x, z points.Panel, round func(v float64) T) {
	if x.Factors == nil && z.Factors == nil {
		return
	}
	for a := range x.Len() {
		xFactor := 1.0
		if x.Factors != nil {
			xFactor = x.Factors[a]
		}
		row := dst[a*ld : a*ld+z.Len()]
		for b, v := range row {
			factor := xFactor
			if z.Factors != nil {
				factor *= z.Factors[b]
			}
			row[b] = round(float64(v) * factor)
		}
	}
}

// tile64 is Tile64 without factors.
func tile64(dst []float64, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	if precomputed, ok := k.(*Precomputed); ok {
		precomputed.tile(x.X, z.X, w, func(a int, row []float64) { copy(dst[a*ld:], row) })
		return
	}
	if IsPairwise(k) {
		w.evaluatePairs(k, x.X, z.X, func(a, b int, v float64) { dst[a*ld+b] = v })
		return
	}
	profiled, nz := k.(profile), z.Len()
	tile, step := dst, ld
	if !BuiltIn(k) && ld != nz { // a user-defined Profile is called once, with all entries in one slice
		tile, step = buffer.Grow(&w.products, x.Len()*nz), nz
	}

	_, radial := k.(Radial)
	xNorms, zNorms := w.arguments64(tile, step, k, x, z, arith)
	for a, xNorm := range xNorms {
		row := tile[a*step : a*step+nz]
		if radial {
			simd.SquaredDistances(row, row, zNorms, xNorm)
		}
		if BuiltIn(k) {
			profiled.Profile(row, row)
		}
	}
	if BuiltIn(k) {
		return
	}

	tile = tile[:len(xNorms)*nz]
	profiled.Profile(tile, tile)
	if step != ld {
		for a := range xNorms {
			copy(dst[a*ld:a*ld+nz], tile[a*nz:])
		}
	}
}

// Tile32 sets dst[a*ld+b] = k(x_a, z_b) rounded to float32. The inner products or distances are formed as arith says.
// Values beyond the range of float32 become ±Inf. Values below 2⁻¹²⁶, the smallest normal number of float32, become 0,
// so that products never meet subnormal numbers. This causes an error of at most 2⁻¹²⁶ per entry, which the choice of
// the storage (package gram) takes into account. A kernel with only Eval is evaluated in float64 for every arith.
// Tile32 panics like Tile64.
func Tile32(dst []float32, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	tile32(dst, ld, k, x, z, arith, w)
	applyFactors(dst, ld, x, z, roundNormal32)
}

// roundNormal32 rounds v to float32 and replaces subnormal numbers by 0.
func roundNormal32(v float64) float32 {
	if math.Abs(v) < 0x1p-126 {
		return 0
	}
	return float32(v)
}

// tile32 is Tile32 without factors.
func tile32(dst []float32, ld int, k Kernel, x, z points.Panel, arith Arithmetic, w *Workspace) {
	nx, nz := x.Len(), z.Len()
	if precomputed, ok := k.(*Precomputed); ok {
		precomputed.tile(x.X, z.X, w, func(a int, row []float64) { simd.RoundToFloat32(dst[a*ld:a*ld+nz], row) })
		return
	}
	if IsPairwise(k) {
		w.evaluatePairs(k, x.X, z.X, func(a, b int, v float64) { dst[a*ld+b] = roundNormal32(v) })
		return
	}

	profiled := k.(profile)
	unit, exact := exactUnit(k, x.X, z.X)
	exp, tileProfile := exponentialOf(k), profiledByTile(k)
	if exp != nil && exact { // a Gaussian of bytes needs only the integer inner products, formed in the memory of dst
		if inner := points.Int32View(dst); points.IntegerInner32(inner, ld, x.X, z.X, &w.pairs) {
			xNorms, zNorms := w.integerNorms(x, z, unit)
			for a, xNorm := range xNorms {
				simd.GaussianRow(dst[a*ld:a*ld+nz], inner[a*ld:a*ld+nz], zNorms, xNorm, exp.exponent(unit), flush32)
			}
			return
		}
	}

	// args holds the arguments of one row in float64, or those of the whole tile if tileProfile is set; row a of them
	// starts at a*step.
	args, step := buffer.Grow(&w.row, nz), 0
	if arith == Float32 && !exact {
		if ArgumentOf(k) == L1Distance {
			points.L1Dist32(dst, ld, x.X, z.X, &w.pairs)
		} else {
			points.Inner32(dst, ld, x.X, z.X, &w.pairs)
		}
		if tileProfile {
			args, step = buffer.Grow(&w.row, nx*nz), nz
		}
		for a := range nx {
			row := dst[a*ld : a*ld+nz]
			applyRow32(profiled, exp, tileProfile, row, row, x.Norms[a], z.Norms, args[a*step:a*step+nz])
		}
	} else {
		inner := buffer.Grow(&w.products, nx*nz)
		if tileProfile {
			args, step = inner, nz
		}
		xNorms, zNorms := w.arguments64(inner, nz, k, x, z, arith)
		for a, xNorm := range xNorms {
			row := inner[a*nz : (a+1)*nz]
			applyRow32(profiled, exp, tileProfile, dst[a*ld:a*ld+nz], row, xNorm, zNorms, args[a*step:a*step+nz])
		}
	}

	if tileProfile {
		profiled.Profile(args, args)
		for a := range nx {
			simd.RoundToFloat32(dst[a*ld:a*ld+nz], args[a*nz:(a+1)*nz])
		}
	}
}

// profiledByTile reports whether k is a user-defined kernel whose Profile is called once for all entries of a tile,
// because a call may cost as much as thousands of entries.
func profiledByTile(k Kernel) bool {
	_, byRow := k.(profile32)
	return !byRow && !BuiltIn(k)
}

// arguments64 sets dst[a*ld+b] to ‖x_a−z_b‖₁ if that is the argument of k, and otherwise to x_aᵀz_b. xNorms and zNorms
// are the squared norms with which the caller computes r² = ‖x‖²+‖z‖²−2xᵀz for a kernel of r². If arguments64 computes
// r² itself, it sets dst to −r²/2 and returns norms of 0, so that the caller obtains r² with the same bits.
func (w *Workspace) arguments64(dst []float64, ld int, k Kernel, x, z points.Panel,
	arith Arithmetic) (xNorms, zNorms []float64) {
	l1 := ArgumentOf(k) == L1Distance
	unit, exact := exactUnit(k, x.X, z.X)
	switch {
	case exact:
		points.IntegerInner64(dst, ld, x.X, z.X, &w.pairs)
		return w.scaleIntegers(dst, ld, k, x, z, unit)
	case l1 && arith == Differences:
		points.AccurateL1Dist64(dst, ld, x.X, z.X, &w.pairs)
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
		zeros := buffer.Grow(&w.zeroNorms, max(nx, nz))
		return zeros[:nx], zeros[:nz]
	default:
		points.Inner64(dst, ld, x.X, z.X, &w.pairs)
	}
	return x.Norms, z.Norms
}

// exactUnit returns the unit in which inner products are integers, if k is a function of inner products or squared
// distances and the points are bytes of the same scale.
func exactUnit(k Kernel, x, z points.Points) (unit float64, ok bool) {
	if !usesInnerProducts(k) {
		return 0, false
	}
	return points.ExactProductUnit(x, z)
}

// usesInnerProducts reports whether k is a function of inner products or squared distances.
func usesInnerProducts(k Kernel) bool {
	a := ArgumentOf(k)
	return a == SquaredDistance || a == InnerProduct
}

// integerNorms returns the squared norms as integers in the given unit.
func (w *Workspace) integerNorms(x, z points.Panel, unit float64) (xNorms, zNorms []float64) {
	nx := x.Len()
	norms := buffer.Grow(&w.integerNormBuffer, nx+z.Len())
	points.IntegerNorms(norms[:nx], x.Norms, unit)
	points.IntegerNorms(norms[nx:], z.Norms, unit)
	return norms[:nx], norms[nx:]
}

// scaleIntegers converts the integer inner products in dst into the results of arguments64.
func (w *Workspace) scaleIntegers(dst []float64, ld int, k Kernel, x, z points.Panel,
	unit float64) (xNorms, zNorms []float64) {
	xNorms, zNorms = w.integerNorms(x, z, unit)
	radial := ArgumentOf(k) == SquaredDistance
	for a, xNorm := range xNorms {
		row := dst[a*ld : a*ld+len(zNorms)]
		for b, v := range row {
			if radial {
				v = -0.5 * (xNorm + zNorms[b] - 2*v) // −r²/2, a multiple of ½
			}
			row[b] = v * unit
		}
	}
	if !radial {
		return x.Norms, z.Norms
	}
	clear(w.integerNormBuffer) // xNorms and zNorms: dst has −r²/2
	return xNorms, zNorms
}

// maxPairEntries bounds the number of entries of the dense rows that evaluatePairs converts at once.
const maxPairEntries = 1 << 18

// tiler is a kernel that evaluates many pairs in one call.
type tiler interface {
	EvalTile(dst, x, z []float64, nx, nz int)
}

// evaluatePairs calls set with k(x_a, z_b) for all pairs, evaluated on dense rows.
func (w *Workspace) evaluatePairs(k Kernel, x, z points.Points, set func(a, b int, v float64)) {
	nx, d := x.Dims()
	nz, dz := z.Dims()
	if d != dz {
		panic(fmt.Sprintf("kernel: dimensions %d and %d differ", d, dz))
	}
	perBlock := max(1, maxPairEntries/max(d, 1))
	if t, ok := k.(tiler); ok {
		for a0 := 0; a0 < nx; a0 += perBlock {
			na := min(perBlock, nx-a0)
			points.RowsTo(x.Slice(a0, a0+na), buffer.Grow(&w.x, na*d), d)
			for b0 := 0; b0 < nz; b0 += perBlock {
				nb := min(perBlock, nz-b0)
				points.RowsTo(z.Slice(b0, b0+nb), buffer.Grow(&w.z, nb*d), d)
				values := buffer.Grow(&w.products, na*nb)
				t.EvalTile(values, w.x, w.z, na, nb)
				for i, v := range values {
					set(a0+i/nb, b0+i%nb, v)
				}
			}
		}
		return
	}
	xRow := buffer.Grow(&w.x, d)
	for b0 := 0; b0 < nz; b0 += perBlock {
		b1 := min(b0+perBlock, nz)
		zRows := buffer.Grow(&w.z, (b1-b0)*d)
		points.RowsTo(z.Slice(b0, b1), zRows, d)
		for a := range nx {
			x.RowTo(xRow, a)
			for b := b0; b < b1; b++ {
				start := (b - b0) * d
				set(a, b, k.Eval(xRow, zRows[start:start+d:start+d]))
			}
		}
	}
}

// An argument of the exponential below flush32 or flush64 gives 0: e^flush32 = 2^-100 and e^flush64 = 2^-200. Products
// with K therefore meet no subnormal numbers, which are slow.
const (
	flush32     = -100 * math.Ln2 // for tiles in float32
	flush64     = -200 * math.Ln2 // for tiles in float64
	underflow32 = -1000           // an argument whose exponential is 0 in float32
)

// exponential is a kernel exp(a·r²), for which there are special loops in float32. exponent returns a for squared
// distances in the given unit.
type exponential interface {
	profile
	exponent(unit float64) float64
}

// exponentialOf returns k if it is an exponential of this package, otherwise nil.
func exponentialOf(k Kernel) exponential {
	if e, ok := k.(exponential); ok && BuiltIn(k) {
		return e
	}
	return nil
}

// realNumber is the type of an entry of a tile.
type realNumber interface{ float32 | float64 }

// applyRow32 sets dst to the kernel values for a row of a tile: of the arguments of p, or of inner products with a
// point of squared norm xNorm if p is a Radial; zNorms are the squared norms of the columns. dst and row may share
// memory. args is scratch memory of the length of dst. If tileProfile is set, applyRow32 only stores the arguments in
// args and does not set dst. exp is exponentialOf(p), and tileProfile is profiledByTile(p).
func applyRow32[T realNumber](p profile, exp exponential, tileProfile bool, dst []float32, row []T, xNorm float64,
	zNorms, args []float64) {
	_, radial := p.(Radial)
	if exp != nil {
		simd.GaussianRow(dst, row, zNorms, xNorm, exp.exponent(1), flush32)
		return
	}
	if radial {
		simd.SquaredDistances(args, row, zNorms, xNorm)
	} else {
		for b, v := range row {
			args[b] = float64(v)
		}
	}
	if fast, ok := p.(profile32); ok {
		fast.Profile32(dst, args)
		return
	}
	if !tileProfile {
		p.Profile(args, args)
		simd.RoundToFloat32(dst, args)
	}
}

// exponent32 rounds an argument of the exponential to float32. Below flush32 it returns an argument whose exponential
// is 0.
func exponent32(v float64) float32 {
	if v < flush32 {
		return underflow32
	}
	return float32(v)
}
