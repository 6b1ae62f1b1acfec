package tune

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
)

// usual are the kernels tried by default, the smoothest first.
var usual = []string{"gaussian", "matern52", "matern32", "laplacian"}

// Options of a search. Zero values mean the defaults; what is set is held.
type Options struct {
	Kernels []string `flag:"kernels" not:"kernel"` // by name; default: gaussian, matern52, matern32, laplacian
	Sigma   float64  // default: searched about the median distance of rows
	Gamma   float64  // of the polynomial (γxᵀz+c)^q; default: searched about 1/median ‖x‖²
	Coef0   *float64 // default: 1
	Degree  int      // default: 2, 3 and 4 are tried
	Lambda  float64  // default: searched

	// ARD lets the search look for a length scale of each feature (automatic relevance determination), which
	// Point.Lengths are then if rows that took no part in it say so. The result is that of data divided by them
	// (datasets.Stretch).
	ARD bool

	// Rows are the rows of the subsample. Up to twice as many there is none: leave-one-out takes all.
	Rows int `flag:"rows" default:"2000" check:">=10"`
	// Metric is what the search makes best: model.Metric, or auto for the share of wrong labels or the RMSE.
	Metric string `flag:"metric" default:"auto" check:"one of auto error auc logloss balanced-error f1 rmse"`
	// Points are the most points on the first level.
	Points int `flag:"points" default:"120" check:">=1" help:"maximum number of points of the first level"`
	// Gain ends a level where less than this part of the error is expected to be gained.
	Gain float64 `flag:"gain" default:"0.002" check:"positive"`
	// Valid are rows to judge by, raw or scaled as those of the fit, instead of each row left out.
	Valid *datasets.Dataset

	// What the command has of ARD and Valid, and what Prepare knows of it.
	Lengths   string `flag:"ard" default:"auto" check:"one of auto no"`
	ValidFile string `flag:"valid" file:"read" help:"file of rows to judge by, of the same form as --train"`
	lengths   []float64
	fit       string

	memory  int64  // bytes that the search may take besides the problem; 0: no limit
	limited string // says that memory limits Rows; "": it does not
}

// Help has the longer texts of the options as flags.
func (Options) Help() map[string]string {
	return map[string]string{
		"ard":     "length scales for each feature: auto, where they are seen to be worth it, or no",
		"kernel":  "the kernel, if it is not to be searched: " + strings.Join(kernel.Names(), ", "),
		"sigma":   "bandwidth σ, if it is not to be searched",
		"lambda":  "ridge λ > 0, if it is not to be searched",
		"kernels": "kernels to try, separated by commas (default: " + strings.Join(usual, ",") + ")",
		"metric": "what is made best: error, auc, logloss, balanced-error or f1 of classes, rmse (auto: error or " +
			"rmse); f1 is that of the rarer of two classes, and it and balanced-error are at their best threshold",
		"rows": "rows of the subsample; all rows are taken if there are at most twice as many",
		"gain": "end a level when the expected reduction of the error is less than this share of it",
	}
}

// problem has the rows to tune for.
type problem struct {
	train  *datasets.Dataset
	y      *mat.Dense        // n×t, as coded for the fit, in units (inUnits)
	valid  *datasets.Dataset // rows to judge by; nil without any
	validY *mat.Dense        // of these
	mean   bool              // a fit takes the mean of its targets off them
	judged judgment          // without weights
	seed   uint64
}

// check returns an error for options that nothing can be made of.
func (o *Options) check() error {
	if err := schema.Settle(new(*o)); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	for name, v := range map[string]float64{"σ": o.Sigma, "γ": o.Gamma, "λ": o.Lambda} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("tune: %s = %g: want a positive number, or 0 for the default", name, v)
		}
	}
	if o.Gamma > 0 && math.IsInf(1/o.Gamma, 1) {
		return fmt.Errorf("tune: γ = %g: want a number whose inverse float64 holds", o.Gamma)
	}
	settled := o.settled()
	_, err := settled.families()
	return err
}

// settled returns the options with their defaults.
func (o Options) settled() Options {
	if err := schema.Settle(&o); err != nil {
		panic(err) // Options.check
	}
	if len(o.Kernels) == 0 {
		o.Kernels = usual
	}
	return o
}

// family is a kernel of which the search varies the scale (kernel.Scaled): σ, or 1/γ of a polynomial.
type family struct {
	name  string
	base  kernel.Scaled // with the parameters that are held
	index int
	held  [2]float64   // scale and λ that are held; else 0
	grid  [2][]float64 // of log scale and log λ
	first [2][]float64 // where the search begins
	born  int          // level on which it joined
	shape []float64    // that the features are divided by; nil: they are not
}

// spec returns the one of a scale as data.
func (f *family) spec(scale float64) kernel.Spec {
	s, err := kernel.ToSpec(f.kernel(scale))
	if err != nil {
		panic(err) // families
	}
	return s
}

// kernel returns the one of a scale.
func (f *family) kernel(scale float64) kernel.Kernel {
	if f.held[0] > 0 {
		return f.base
	}
	return f.base.WithScale(scale)
}

// number returns the scale or the λ of a point, what is held to the last digit.
func (f *family) number(k int, x at) float64 {
	if f.held[k] > 0 {
		return f.held[k]
	}
	return digits(math.Exp(x[k]))
}

// families returns the kernels to try, without their grids. It returns an error for a kernel that is not registered or
// lacks a method that the search needs.
func (o *Options) families() (all []*family, err error) {
	for _, name := range o.Kernels {
		variants, scaled, err := kernel.Variants(name)
		if err != nil {
			return nil, fmt.Errorf("tune: %w", err)
		}
		for _, k := range variants {
			f, err := o.family(name, k)
			if err != nil {
				return nil, fmt.Errorf("tune: %w", err)
			}
			if scaled {
				f.held[0] = f.base.Scale()
			}
			if !slices.ContainsFunc(all, func(g *family) bool { return reflect.DeepEqual(g.base, f.base) }) {
				f.index = len(all)
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// family returns the kernels like k with the parameters that are held.
func (o *Options) family(name string, k kernel.Kernel) (*family, error) {
	if kernel.ByPairs(k) {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: it has no method Profile (kernel.Radial)", name)
	}
	spec, err := kernel.ToSpec(k)
	if err != nil {
		return nil, err
	}
	if spec.Degree > 0 { // a polynomial
		spec.Gamma, spec.Degree = cmp.Or(o.Gamma, spec.Gamma), cmp.Or(o.Degree, spec.Degree)
		if o.Coef0 != nil {
			spec.Coef0 = *o.Coef0
		}
		if k, err = kernel.FromSpec(spec); err != nil {
			return nil, err
		}
	}
	base, ok := k.(kernel.Scaled)
	if !ok {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: it has no methods Scale and WithScale (kernel.Scaled)",
			name)
	}
	if got := base.WithScale(1); reflect.TypeOf(got) != reflect.TypeOf(k) {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: its method WithScale returns a %T, want a %T", name, got,
			k)
	}
	f := &family{name: name, base: base, held: [2]float64{0, o.Lambda}}
	switch products := kernel.ArgumentOf(k) == kernel.InnerProduct; {
	case products && o.Gamma > 0:
		f.held[0] = base.Scale()
	case !products && o.Sigma > 0:
		f.held[0] = o.Sigma
		f.base = base.WithScale(o.Sigma).(kernel.Scaled)
	}
	return f, kernel.Validate(f.base)
}

// place sets the grids about a scale, and about λ in units of K's diagonal.
func (f *family) place(o *Options, scale, diagonal float64) {
	f.grid[0], f.first[0] = axis(f.held[0], scale, 1.0/16, 16, math.Pow(2, 0.25), 0.2, 0.6, 1.8)
	f.grid[1], f.first[1] = axis(o.Lambda, diagonal, 1e-7, 1e3, math.Pow(10, 0.25), 1e-5, 1e-3, 0.1, 3)
}

// places yields the points of the grid.
func (f *family) places() iter.Seq[at] {
	return func(yield func(at) bool) {
		for _, u := range f.grid[0] {
			for _, v := range f.grid[1] {
				if !yield(at{u, v}) {
					return
				}
			}
		}
	}
}

// axis returns the logarithms of a grid, in geometric steps from lo to hi times unit, and where to begin; both are
// the fixed value if there is one.
func axis(fixed, unit, lo, hi, step float64, begin ...float64) (grid, first []float64) {
	if fixed > 0 {
		return []float64{math.Log(fixed)}, []float64{math.Log(fixed)}
	}
	for v := lo; v < hi*math.Sqrt(step); v *= step {
		grid = append(grid, math.Log(digits(unit*v)))
	}
	for _, b := range begin {
		first = append(first, grid[nearest(grid, math.Log(unit*b))])
	}
	return grid, first
}

// nearest returns the index of the value of a grid that is closest to v.
func nearest(grid []float64, v float64) (best int) {
	for i, g := range grid {
		if math.Abs(g-v) < math.Abs(grid[best]-v) {
			best = i
		}
	}
	return best
}

// digits returns v to three significant digits, which is copied from a report without loss.
func digits(v float64) float64 { return outward.Rounded(v, 3) }
