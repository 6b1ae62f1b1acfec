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

// Choice describes how a matrix is stored and computed, and the measurements that led to it. E is the storage error
// K̃ − K of the matrix in use; with weights it is scaled like the matrix. Checkpoints store a Choice by field names, so
// that a renamed field would be lost.
type Choice struct {
	N             int               // number of points
	Tile          int               // number of points of a block, with sparse tiles the largest
	Storage       Storage           // format of the tiles, never Auto
	Arithmetic    kernel.Arithmetic // precision of the inner products or distances
	Centered      bool              // the points are shifted by their mean before inner products are formed
	ExactProducts bool              // the points are bytes, whose inner products are exact integers
	Shift         float64           // μ if the tiles store K − μ11ᵀ; 0 unless entries are from a kernel.DistanceTable
	Bytes         int64             // memory of the matrix, see Matrix.Bytes
	Accuracy      float64           // required bound of ‖E‖₂
	Error         float64           // bound of ‖E‖₂, proved if Certain, otherwise predicted
	Certain       bool              // Error is proved: entries are recomputed in float64 or evaluated pair by pair
	Reason        string            // why this storage was chosen
	Sparse        *Sparsity         // omitted entries; nil if all tiles are formed
	Tried         []Estimate        // measured methods in order; the last or the most accurate one is used
}

// SameStorage reports whether c and other store and compute K in the same way.
func (c Choice) SameStorage(other Choice) bool {
	if (c.Sparse == nil) != (other.Sparse == nil) || c.Sparse != nil &&
		(c.Sparse.TileCutoff != other.Sparse.TileCutoff || c.Sparse.EntryCutoff != other.Sparse.EntryCutoff) {
		return false
	}
	return c.Storage == other.Storage && c.Arithmetic == other.Arithmetic && c.Centered == other.Centered &&
		c.Shift == other.Shift
}

// String returns two lines, how K is stored and how accurate it is. With sparse tiles a line about the omitted entries
// comes between them.
func (c Choice) String() string {
	arithmetic := fmt.Sprintf("distances in %v", c.Arithmetic)
	switch {
	case c.ExactProducts:
		arithmetic = "points in bytes, products exact in integers"
		if c.Shift != 0 {
			arithmetic += fmt.Sprintf(", entries less %.3g", c.Shift)
		}
	case c.Centered:
		arithmetic += ", points moved to their mean"
	}
	verdict := "within"
	if !(c.Error <= c.Accuracy) {
		verdict = "above"
	}
	strength := "predicted"
	if c.Certain {
		strength = "at most"
	}
	tiles := fmt.Sprintf("%v tiles of %d", c.Storage, c.Tile)
	if s := c.Sparse; s != nil {
		tiles = fmt.Sprintf("sparse %v tiles of %d leaves", c.Storage, s.LeafCount)
		condition := ""
		if s.AssumesDecreasing {
			condition = " if the kernel decreases as it says"
		}
		arithmetic += fmt.Sprintf("\n%s of the entries formed, %s kept; ‖·‖₂ of what is left out at most %.2g%s",
			outward.Percent(s.FormedShare, 2), outward.Percent(s.StoredShare, 2), s.DroppedNorm, condition)
	}
	return fmt.Sprintf("K %d×%d in %s, %s; %s (%s)\n‖E‖₂ ≲ %.2g %s, %s the %.2g asked",
		c.N, c.N, tiles, accel.FormatBytes(c.Bytes), arithmetic, c.Reason, c.Error, strength, verdict, c.Accuracy)
}

// computedPoints returns the points from which the tiles are computed: shifted by their mean if the choice says so.
func (m *Matrix) computedPoints() points.Points {
	if m.choice.Centered {
		return points.Shift(m.x, m.tileShift)
	}
	return m.x
}

// certainMethod returns the cheapest method for entries in float64 with a proved bound ‖E‖₂ ≤ accuracy, or differences
// if there is none, and the proved bound. If every entry has an error of at most δ·√(s_i·s_j), where s are the diagonal
// bounds (kernel.Placement) times the weights, then ‖E‖₂ ≤ ‖E‖_F ≤ δ·Σ_i s_i.
func (m *Matrix) certainMethod(accuracy float64) (method, float64) {
	trace := sum(m.weighted(m.diagonalBounds))
	arithmetic, entryError := kernel.ChooseArithmetic(m.k, m.placement.Summary, accuracy/trace)
	centered := arithmetic == kernel.Float64 && m.placement.Shift != nil
	return method{inFloat64: true, arithmetic: arithmetic, centered: centered},
		trace * (entryError + m.scaleError())
}

// method is a way to compute the entries of K.
type method struct {
	inFloat64  bool              // entries are float64 instead of float32
	arithmetic kernel.Arithmetic // precision of the inner products or distances
	centered   bool              // the points are shifted by their mean first
	inFixed16  bool              // entries are rounded to 16 bits
}

// float32Limit is the largest magnitude of entries in float32 tiles, and of ‖x‖² for inner products in float32. Below
// it sums of products cannot overflow.
const float32Limit = 0x1p100

// methods lists the ways to compute entries in the given format, Float32 or Float64, the cheapest first. Shifting
// sparse points makes them dense, so it is tried only if they lie far from the origin. If inner products are exact,
// there is only one method.
func (m *Matrix) methods(entries Storage) []method {
	inFloat64 := entries == Float64
	if kernel.HasExactProducts(m.k, m.placement.Summary) {
		if inFloat64 {
			return []method{{inFloat64: true, arithmetic: kernel.Float64}}
		}
		return []method{{arithmetic: kernel.Float32}}
	}
	shiftInvariant, original := m.mean != nil, kernel.SummaryOf(m.placement.Original)
	var list []method
	if !inFloat64 && !kernel.IsPairwise(m.k) && original.MaxSq < float32Limit {
		list = append(list, method{arithmetic: kernel.Float32})
		if shiftInvariant && (!original.Sparse || m.placement.Shift != nil) {
			list = append(list, method{arithmetic: kernel.Float32, centered: true})
		}
	}
	list = append(list, method{inFloat64: inFloat64, arithmetic: kernel.Float64})
	if m.placement.Shift != nil {
		list = append(list, method{inFloat64: inFloat64, arithmetic: kernel.Float64, centered: true})
	}
	if shiftInvariant {
		list = append(list, method{inFloat64: inFloat64, arithmetic: kernel.Differences})
	}
	return list
}

// choose selects storage, tiles and arithmetic, in general from a sample of the rows of K.
func (m *Matrix) choose(ctx context.Context, o *Options) (Choice, error) {
	c := Choice{N: m.tiling.n, Tile: m.tiling.size, Storage: o.Storage, Accuracy: o.Accuracy, Reason: "asked for",
		ExactProducts: kernel.HasExactProducts(m.k, m.placement.Summary)}
	var largest float64 // |k(x, z)| ≤ max k(x, x)
	for _, v := range m.diagonalBounds {
		largest = max(largest, math.Abs(v))
	}
	if o.Storage == Float32 && largest >= float32Limit {
		return c, fmt.Errorf("gram: %v reaches %.3g, too large for float32; use float64", m.k, largest)
	}
	if o.Storage == Fixed16 && !m.allowsFixed16() {
		return c, fmt.Errorf("gram: fixed16 is for kernels with values in [0, 1] and k(x, x) = 1, %v is not known to "+
			"be one: take float32", m.k)
	}

	// Rounding to float32 has relative errors of up to 2⁻²⁴. An accuracy of an eighth of that certainly needs float64.
	exceedsFloat32 := o.PreferredAccuracy < 0x1p-27*largest*m.maxWeight()
	wantsFloat64 := o.Storage == Float64 || o.Storage == Auto && exceedsFloat32 && m.fitsMemory(Float64, o.Memory)
	wantsFloat64 = wantsFloat64 && (o.SameAs == nil || o.SameAs.Storage == Float64)
	// An expensive kernel is evaluated once per entry, without a sample.
	if method, bound := m.certainMethod(0); kernel.IsExpensive(m.k) && wantsFloat64 {
		c.Storage, c.Reason = Float64, "evaluated once"
		c.Arithmetic, c.Centered, c.Error, c.Certain = method.arithmetic, method.centered, bound, true
		return c, m.checkMemory(Float64, o.Memory)
	}
	return m.chooseFromSample(ctx, c, o, largest)
}

// chooseFromSample completes the choice c by measurements on a sample of the rows of K, whose entries are at most
// largest.
func (m *Matrix) chooseFromSample(ctx context.Context, c Choice, o *Options, largest float64) (Choice, error) {
	s, err := m.newSample(ctx, o.PreferredAccuracy, o.Seed)
	if err != nil {
		return c, err
	}
	if c.Sparse, err = m.chooseSparsity(ctx, s, o); err != nil {
		return c, err
	}
	m.choice.Sparse = c.Sparse // requiredBytes uses this field
	if o.Storage != Auto {
		if err := m.checkMemory(o.Storage, o.Memory); err != nil {
			return c, err
		}
	}
	if c.Sparse != nil {
		reduced := *o
		reduced.PreferredAccuracy, reduced.Accuracy = o.PreferredAccuracy-c.dropped(), o.Accuracy-c.dropped()
		o = &reduced
	}
	if m.table != nil {
		shift := s.meanEntry()
		if c.Sparse != nil {
			shift = 0
		}
		if o.SameAs != nil {
			shift = o.SameAs.Shift
		}
		s.table = m.table.WithShift(shift)
	}

	list := methodLists{m.methods(Float32), m.methods(Float64)}
	if largest >= float32Limit {
		list.inFloat32 = nil
	}
	if o.SameAs != nil {
		list = methodLists{matchingMethods(list.inFloat32, o.SameAs), matchingMethods(list.inFloat64, o.SameAs)}
		c.Reason = "as before"
	}
	best, err := m.chooseMethod(ctx, s, &c, list, o)
	if err == nil && len(c.Tried) == 0 {
		err = fmt.Errorf("gram: K was stored as %v with distances in %v, which these points and %v do not allow",
			o.SameAs.Storage, o.SameAs.Arithmetic, m.k)
	}
	if err != nil {
		return c, err
	}
	c.Arithmetic, c.Centered, c.Error = best.Arithmetic, best.Centered, best.Bound+c.dropped()
	c.Bytes = m.requiredBytes(c.Storage)
	if s.table != nil && c.Arithmetic == kernel.Float32 && c.Storage != Fixed16 {
		c.Shift = s.table.Shift()
	}
	return c, nil
}

// chooseMethod returns the estimate of the method to use with o.Storage. With Auto it also selects the storage.
func (m *Matrix) chooseMethod(ctx context.Context, s *sample, c *Choice, list methodLists, o *Options) (Estimate,
	error) {
	switch o.Storage {
	case Float32:
		return s.bestEstimate(ctx, c, list.inFloat32, o.PreferredAccuracy)
	case Float64:
		return s.bestEstimate(ctx, c, list.inFloat64, o.PreferredAccuracy)
	case Fixed16:
		return m.estimateFixed16(ctx, s, c, list.inFloat32)
	case Recompute:
		return s.bestEstimate(ctx, c, list.forRecompute(), o.Accuracy)
	}
	return m.chooseStorage(ctx, s, c, list, o)
}

// methodLists holds the candidate methods for entries in float32 and in float64, the cheapest first.
type methodLists struct{ inFloat32, inFloat64 []method }

// chooseStorage selects the storage and sets c.Storage and c.Reason. The rules, in this order, are: recompute a
// precomputed K, which needs no copy; float32 if it reaches the preferred accuracy; float64 if it fits; float32 if it
// reaches the required accuracy; 16 bits if residuals are refined; otherwise recompute with the cheapest method that is
// accurate enough.
func (m *Matrix) chooseStorage(ctx context.Context, s *sample, c *Choice, list methodLists, o *Options) (best Estimate,
	err error) {
	if kernel.AsPrecomputed(m.k) != nil && m.fitsMemory(Recompute, o.Memory) {
		c.Storage, c.Reason = Recompute, "given, and read where it is"
		return s.bestEstimate(ctx, c, list.inFloat64, o.Accuracy)
	}
	best.Bound = math.Inf(1)
	if len(list.inFloat32) > 0 && m.fitsMemory(Float32, o.Memory) {
		best, err = s.bestEstimate(ctx, c, list.inFloat32, o.PreferredAccuracy)
		if err != nil || best.Bound <= o.PreferredAccuracy {
			c.Storage, c.Reason = Float32, "accurate enough"
			return best, err
		}
	}
	if m.fitsMemory(Float64, o.Memory) {
		c.Storage, c.Reason = Float64, "float32 is not accurate enough"
		if best.Bound <= o.Accuracy {
			c.Reason = fmt.Sprintf("in float32 ‖E‖₂ would be %.2g", best.Bound)
		}
		return s.bestEstimate(ctx, c, list.inFloat64, o.PreferredAccuracy)
	}
	if best.Bound <= o.Accuracy {
		c.Storage, c.Reason = Float32, "accurate enough"
		return best, nil
	}
	if o.ExactResiduals && m.allowsFixed16() && !m.fitsMemory(Float32, o.Memory) && m.fitsMemory(Fixed16, o.Memory) {
		fixed16, err := m.estimateFixed16(ctx, s, c, slices.Clone(list.inFloat32))
		if err == nil || ctx.Err() != nil {
			c.Storage, c.Reason = Fixed16, "float32 does not fit "+accel.FormatBytes(o.Memory.Free())
			return fixed16, err
		}
	}
	if err := m.checkMemory(Recompute, o.Memory); err != nil {
		return best, err
	}
	c.Storage, c.Reason = Recompute, fmt.Sprintf("nothing accurate enough fits %s", accel.FormatBytes(o.Memory.Free()))
	return s.bestEstimate(ctx, c, list.forRecompute(), o.Accuracy)
}

// estimateFixed16 returns the best estimate for entries rounded to 16 bits. It returns an error if ‖E‖₂ > λ/2. Below
// that limit refinement converges: a step multiplies the error by at most ‖E‖₂/(λ−‖E‖₂) < 1.
func (m *Matrix) estimateFixed16(ctx context.Context, s *sample, c *Choice, list []method) (best Estimate, err error) {
	for i := range list {
		list[i].inFixed16 = true
	}
	best, err = s.bestEstimate(ctx, c, list, c.Accuracy)
	if err == nil && !(best.Bound <= m.lambda/2) {
		err = fmt.Errorf("gram: in fixed16 ‖E‖₂ would be about %.2g, more than λ/2 = %.2g, and refinement would not "+
			"converge: take float32", best.Bound, m.lambda/2)
	}
	return best, err
}

// allowsFixed16 reports whether K may be stored in 16 bits. Built-in kernels must have values in [0, 1] and k(x, x) =
// 1; a user-defined Radial must have k(x, x) = 1, and its values are checked when they are stored.
func (m *Matrix) allowsFixed16() bool {
	_, radial := m.k.(kernel.Radial)
	return kernel.Bounded01(m.k) || radial && m.diag[0] == 1
}

// matchingMethods returns the methods that compute entries as the earlier choice c does.
func matchingMethods(list []method, c *Choice) []method {
	return slices.DeleteFunc(list, func(candidate method) bool {
		return candidate.arithmetic != c.Arithmetic || candidate.centered != c.Centered
	})
}

// forRecompute returns the methods for entries that are not stored: all arithmetic in float32, or entries in float64.
func (l methodLists) forRecompute() []method {
	list := slices.DeleteFunc(slices.Clone(l.inFloat32), func(candidate method) bool {
		return candidate.arithmetic != kernel.Float32
	})
	return append(list, l.inFloat64...)
}

// requiredBytes returns the memory that a storage needs, in bytes: tiles, tables and the scratch memory of the workers.
func (m *Matrix) requiredBytes(storage Storage) int64 {
	_, d := m.x.Dims()
	tileSize := int64(m.tiling.size)
	panel := 2 * 8 * min(tileSize*int64(d), 1<<20) // two converted blocks of points, see points.Workspace
	scratch := int64(accel.Threads()) * (8*tileSize*tileSize + panel)
	bytes := tableBytes(m.tiling) + scratch
	entries := storage.entryBytes() * m.tiling.entryCount()
	if sparse := m.choice.Sparse; sparse != nil && sparse.EntryCutoff > 0 && storage != Fixed16 {
		// Count the stored entries, 5 % more than predicted from a sample, and one bit for each entry that is formed.
		stored := int64(float64(entries) * sparse.StoredShare / sparse.FormedShare * 1.05)
		entries = min(entries, stored+m.tiling.entryCount()/8)
	}
	return bytes + entries
}

// checkMemory returns an *accel.MemoryError, with the storages that would fit, if the given storage does not fit the
// memory budget.
func (m *Matrix) checkMemory(storage Storage, memory accel.Budget) error {
	if m.fitsMemory(storage, memory) {
		return nil
	}
	advice := "allow more by --memory"
	for _, other := range []Storage{Recompute, Fixed16, Float32, Float64} {
		if m.fitsMemory(other, memory) && (other != Fixed16 || m.allowsFixed16()) {
			advice = fmt.Sprintf("%v (%s) fits, or %s", other, accel.FormatBytes(m.requiredBytes(other)), advice)
		}
	}
	what := fmt.Sprintf("gram: K of %d points as %v", m.tiling.n, storage)
	return memory.Check(m.requiredBytes(storage), what, advice)
}

// fitsMemory reports whether a storage fits the memory budget.
func (m *Matrix) fitsMemory(storage Storage, memory accel.Budget) bool {
	return memory.Fits(m.requiredBytes(storage))
}
