package gram

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Choice says how a matrix is kept and why. Errors are of the matrix: with E the
// error of K as used, Error predicts ‖E‖₂.
type Choice struct {
	N, Tile    int
	Storage    Storage
	Arithmetic kernel.Arithmetic // of the inner products or distances
	Centred    bool              // the points were moved to their mean first
	Whole      bool              // the points are bytes, whose products are exact in integers
	Shift      float64           // μ: the tiles hold K − μ11ᵀ; 0 unless all distances come from a table
	Bytes      int64             // see Matrix.Bytes
	Accuracy   float64           // asked of ‖E‖₂
	Error      float64           // bound of ‖E‖₂, see Certain
	// Error is proved, for entries in float64 that are recomputed or evaluated by pairs; else predicted, see Estimate
	Certain bool
	Reason  string     // why this storage
	Sparse  *Sparsity  // what is left out; nil of all tiles
	Tried   []Estimate // what was measured, in order; the last or best was taken
}

// Same reports whether K is stored and computed in the same way.
func (c Choice) Same(o Choice) bool {
	if (c.Sparse == nil) != (o.Sparse == nil) || c.Sparse != nil &&
		(c.Sparse.Far != o.Sparse.Far || c.Sparse.Least != o.Sparse.Least) {
		return false
	}
	return c.Storage == o.Storage && c.Arithmetic == o.Arithmetic && c.Centred == o.Centred && c.Shift == o.Shift
}

// String returns two lines, how K is kept, and how accurate it is, and between them what is left out.
func (c Choice) String() string {
	by := fmt.Sprintf("distances in %v", c.Arithmetic)
	switch {
	case c.Whole:
		by = "points in bytes, products exact in integers"
		if c.Shift != 0 {
			by += fmt.Sprintf(", entries less %.3g", c.Shift)
		}
	case c.Centred:
		by += ", points moved to their mean"
	}
	verdict := "within"
	if !(c.Error <= c.Accuracy) {
		verdict = "above"
	}
	how := "predicted"
	if c.Certain {
		how = "at most"
	}
	tiles := fmt.Sprintf("%v tiles of %d", c.Storage, c.Tile)
	if s := c.Sparse; s != nil {
		tiles = fmt.Sprintf("sparse %v tiles of %d leaves", c.Storage, s.Leaves)
		told := ""
		if s.Told {
			told = " if the kernel decreases as it says"
		}
		by += fmt.Sprintf("\n%s of the entries formed, %s kept; ‖·‖₂ of what is left out at most %.2g%s",
			outward.Percent(s.Formed, 2), outward.Percent(s.Kept, 2), s.Dropped, told)
	}
	return fmt.Sprintf("K %d×%d in %s, %s; %s (%s)\n‖E‖₂ ≲ %.2g %s, %s the %.2g asked",
		c.N, c.N, tiles, accel.Bytes(c.Bytes), by, c.Reason, c.Error, how, verdict, c.Accuracy)
}

// frame is where the points lie, as they are and for inner products in float64.
type frame struct {
	kernel.Placement
	mean   []float64 // nil unless the kernel depends on x−z only
	sparse bool
	maxSq  float64 // max‖x_i‖² of the points as they are
}

func newFrame(k kernel.Kernel, x points.Points) (frame, error) {
	f := frame{Placement: kernel.NewPlacement(k, x)}
	_, f.sparse = x.(*points.CSR)
	for i, v := range f.Original.Norms {
		if !(v <= math.MaxFloat64) && !kernel.ByPairs(k) {
			return f, fmt.Errorf("gram: point %d has ‖x‖² = %v", i, v)
		}
		f.maxSq = max(f.maxSq, v)
	}
	if kernel.ShiftInvariant(k) {
		f.mean = points.Mean(x)
	}
	return f, nil
}

// view returns the points, moved to their mean if asked.
func (m *Matrix) view(centered bool) points.Points {
	if centered {
		return points.Shift(m.x, m.frame.mean)
	}
	return m.x
}

// accurate returns the cheapest way to compute entries in float64 for which ‖E‖₂ is certain to be at
// most the given accuracy, or differences if none is, and the bound: with entries wrong by at most
// δ·√(s_i·s_j), s the kernel.Sizes times the weights, ‖E‖₂ ≤ ‖E‖_F ≤ δ·Σ_i s_i.
func (m *Matrix) accurate(accuracy float64) (method, float64) {
	size := total(m.weighted(m.sizes))
	a, e := kernel.Accurate(m.k, m.frame.Summary, accuracy/size)
	return method{wide: true, arith: a, centered: a == kernel.Float64 && m.frame.Shift != nil},
		size * (e + m.scaleError())
}

// method is a way to compute the entries of K.
type method struct {
	wide     bool // entries are float64
	arith    kernel.Arithmetic
	centered bool
	fixed    bool // entries are rounded to 16 bits
}

// largest32 bounds what float32 tiles may hold, and ‖x‖² for float32 products, so
// that sums of products do not overflow.
const largest32 = 0x1p100

// methods lists the ways to compute entries of the given width, the cheap ones
// first. Moving the points makes sparse ones dense and is then left to those
// that lie far from the origin. Of products that are exact there is but one way.
func (m *Matrix) methods(wide bool) []method {
	f := &m.frame
	if kernel.HasExactProducts(m.k, m.x) {
		if wide {
			return []method{{wide: true, arith: kernel.Float64}}
		}
		return []method{{arith: kernel.Float32}}
	}
	invariant := f.mean != nil
	var list []method
	if !wide && !kernel.ByPairs(m.k) && f.maxSq < largest32 {
		list = append(list, method{arith: kernel.Float32})
		if invariant && (!f.sparse || f.Shift != nil) {
			list = append(list, method{arith: kernel.Float32, centered: true})
		}
	}
	list = append(list, method{wide: wide, arith: kernel.Float64})
	if f.Shift != nil {
		list = append(list, method{wide: wide, arith: kernel.Float64, centered: true})
	}
	if invariant {
		list = append(list, method{wide: wide, arith: kernel.Differences})
	}
	return list
}

// choose decides storage and arithmetic, by a sample of the rows.
func (m *Matrix) choose(ctx context.Context, o *Options, d int) (Choice, error) {
	c := Choice{N: m.tiling.n, Tile: m.tiling.size, Storage: o.Storage, Accuracy: o.Accuracy, Reason: "asked for",
		Whole: kernel.HasExactProducts(m.k, m.x)}
	var largest float64 // |k(x, z)| ≤ max k(x, x)
	for _, v := range m.sizes {
		largest = max(largest, math.Abs(v))
	}
	if o.Storage == Float32 && largest >= largest32 {
		return c, fmt.Errorf("gram: %v reaches %.3g, too large for float32; use float64", m.k, largest)
	}
	if o.Storage == Fixed16 && !m.fixable() {
		return c, fmt.Errorf("gram: fixed16 is for kernels with values in [0, 1] and k(x, x) = 1, %v is not known to "+
			"be one: take float32", m.k)
	}
	// float32 rounds more
	wanted := o.Storage == Float64 || o.Storage == Auto && o.PreferredAccuracy < 0x1p-27*largest*m.heaviest() && m.fits(Float64, o.Memory, d)
	// nothing to look at
	if by, bound := m.accurate(0); kernel.Costly(m.k) && wanted && (o.SameAs == nil || o.SameAs.Storage == Float64) {
		c.Storage, c.Reason = Float64, "evaluated once"
		c.Arithmetic, c.Centred, c.Error, c.Certain = by.arith, by.centered, bound, true
		return c, m.checkMemory(&c, o, d)
	}
	s, err := m.newSample(ctx, o.PreferredAccuracy, o.Seed)
	if err != nil {
		return c, err
	}
	if c.Sparse, err = m.leave(ctx, s, o); err != nil {
		return c, err
	}
	m.choice.Sparse = c.Sparse // for need
	if err := m.checkMemory(&c, o, d); err != nil {
		return c, err
	}
	if c.Sparse != nil {
		rest := *o
		rest.PreferredAccuracy, rest.Accuracy = o.PreferredAccuracy-c.dropped(), o.Accuracy-c.dropped()
		o = &rest
	}
	if m.levels != nil {
		shift := s.mean()
		if c.Sparse != nil {
			shift = 0
		}
		if o.SameAs != nil {
			shift = o.SameAs.Shift
		}
		s.less = m.levels.Minus(shift)
	}
	narrow, wide := m.methods(false), m.methods(true)
	if largest >= largest32 {
		narrow = nil
	}
	if o.SameAs != nil {
		narrow, wide, c.Reason = like(narrow, o.SameAs), like(wide, o.SameAs), "as before"
	}
	var best Estimate
	switch o.Storage {
	case Float32:
		best, err = s.best(ctx, &c, narrow, o.PreferredAccuracy)
	case Float64:
		best, err = s.best(ctx, &c, wide, o.PreferredAccuracy)
	case Fixed16:
		best, err = m.fixed(ctx, s, &c, narrow)
	case Recompute:
		best, err = s.best(ctx, &c, recomputed(narrow, wide), o.Accuracy)
	case Auto:
		best, err = m.auto(ctx, s, &c, narrow, wide, o, d)
	}
	if err == nil && len(c.Tried) == 0 {
		err = fmt.Errorf("gram: K was stored as %v with distances in %v, which these points and %v do not allow",
			o.SameAs.Storage, o.SameAs.Arithmetic, m.k)
	}
	if err != nil {
		return c, err
	}
	c.Arithmetic, c.Centred, c.Error = best.Arithmetic, best.Centred, best.Bound+c.dropped()
	c.Bytes = m.need(c.Storage, d)
	if s.less != nil && c.Arithmetic == kernel.Float32 && c.Storage != Fixed16 {
		c.Shift = s.less.Shift()
	}
	return c, nil
}

// auto takes float32 if it is as accurate as preferred, else float64 where that fits, else float32 if it is accurate
// enough; what does not fit it keeps in 16 bits, if refined, or recomputes in the cheapest arithmetic that is accurate
// enough. K that is given is not copied.
func (m *Matrix) auto(ctx context.Context, s *sample, c *Choice, narrow, wide []method, o *Options,
	d int) (best Estimate, err error) {
	if kernel.AsPrecomputed(m.k) != nil && m.fits(Recompute, o.Memory, d) {
		c.Storage, c.Reason = Recompute, "given, and read where it is"
		return s.best(ctx, c, wide, o.Accuracy)
	}
	best.Bound = math.Inf(1)
	if len(narrow) > 0 && m.fits(Float32, o.Memory, d) {
		best, err = s.best(ctx, c, narrow, o.PreferredAccuracy)
		if err != nil || best.Bound <= o.PreferredAccuracy {
			c.Storage, c.Reason = Float32, "accurate enough"
			return best, err
		}
	}
	if m.fits(Float64, o.Memory, d) {
		c.Storage, c.Reason = Float64, "float32 is not accurate enough"
		if best.Bound <= o.Accuracy {
			c.Reason = fmt.Sprintf("in float32 ‖E‖₂ would be %.2g", best.Bound)
		}
		return s.best(ctx, c, wide, o.PreferredAccuracy)
	}
	if best.Bound <= o.Accuracy {
		c.Storage, c.Reason = Float32, "accurate enough"
		return best, nil
	}
	if o.Refined && m.fixable() && !m.fits(Float32, o.Memory, d) && m.fits(Fixed16, o.Memory, d) {
		half, err := m.fixed(ctx, s, c, slices.Clone(narrow))
		if err == nil || ctx.Err() != nil {
			c.Storage, c.Reason = Fixed16, "float32 does not fit "+accel.Bytes(o.Memory)
			return half, err
		}
	}
	if !m.fits(Recompute, o.Memory, d) {
		return best, m.memoryError(Auto, o.Memory, d)
	}
	c.Storage, c.Reason = Recompute, fmt.Sprintf("nothing accurate enough fits %s", accel.Bytes(o.Memory))
	return s.best(ctx, c, recomputed(narrow, wide), o.Accuracy)
}

// fixed takes 16-bit entries if ‖E‖₂ ≤ λ/2, so that refinement contracts, by ‖E‖₂/(λ−‖E‖₂) at least.
func (m *Matrix) fixed(ctx context.Context, s *sample, c *Choice, narrow []method) (best Estimate, err error) {
	for i := range narrow {
		narrow[i].fixed = true
	}
	best, err = s.best(ctx, c, narrow, c.Accuracy)
	if err == nil && !(best.Bound <= m.lambda/2) {
		err = fmt.Errorf("gram: in fixed16 ‖E‖₂ would be about %.2g, more than λ/2 = %.2g, and refinement would not "+
			"converge: take float32", best.Bound, m.lambda/2)
	}
	return best, err
}

// fixable reports whether K may fit 16 bits: values in [0, 1] and k(x, x) = 1 are known of built-in kernels,
// and the values of a user-defined Radial are looked at when they are stored.
func (m *Matrix) fixable() bool {
	_, radial := m.k.(kernel.Radial)
	return kernel.Bounded01(m.k) || radial && m.diag[0] == 1
}

// like returns the methods that compute as an earlier choice does.
func like(list []method, c *Choice) []method {
	return slices.DeleteFunc(list, func(v method) bool { return v.arith != c.Arithmetic || v.centered != c.Centred })
}

// recomputed returns the methods for entries that are not kept: those that are all float32, and the wide ones.
func recomputed(narrow, wide []method) []method {
	narrow = slices.DeleteFunc(slices.Clone(narrow), func(v method) bool { return v.arith != kernel.Float32 })
	return append(narrow, wide...)
}

// need returns the bytes of a storage: tiles, tables and the scratch of the workers.
func (m *Matrix) need(s Storage, d int) int64 {
	t := int64(m.tiling.size)
	panel := 2 * 8 * min(t*int64(d), 1<<20) // two converted blocks
	scratch := int64(accel.Threads()) * (8*t*t + panel)
	bytes := tableBytes(m.tiling) + scratch
	width := map[Storage]int64{Float64: 8, Float32: 4, Fixed16: 2}[s]
	entries := width * m.tiling.entries()
	if p := m.choice.Sparse; p != nil && p.Least > 0 && s != Fixed16 {
		entries = min(entries, int64(float64(entries)*p.Kept/p.Formed*1.05)+m.tiling.entries()/8)
	}
	return bytes + entries
}

// checkMemory returns an error where a storage that was asked for does not fit.
func (m *Matrix) checkMemory(c *Choice, o *Options, d int) error {
	if o.Storage == Auto || m.fits(o.Storage, o.Memory, d) {
		return nil
	}
	return m.memoryError(o.Storage, o.Memory, d)
}

func (m *Matrix) fits(s Storage, memory int64, d int) bool {
	return memory == 0 || m.need(s, d) <= memory
}

func (m *Matrix) memoryError(s Storage, memory int64, d int) error {
	e := &MemoryError{N: m.tiling.n, Storage: s, Have: memory, Need: m.need(s, d)}
	for _, other := range []Storage{Float64, Float32, Fixed16, Recompute} {
		if other == Fixed16 && !m.fixable() {
			continue
		}
		if m.fits(other, memory, d) {
			e.Fits, e.Bytes = append(e.Fits, other), append(e.Bytes, m.need(other, d))
		}
	}
	return e
}
