package tune

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// defaultKernels are the kernels tried by default, ordered from the smoothest to the roughest.
var defaultKernels = []string{"gaussian", "matern52", "matern32", "laplacian"}

// Options configure a search. Zero values mean the defaults. The search does not vary a kernel
// parameter or λ that is set.
type Options struct {
	// Kernels are the kernels to try, with parameters if they are not to be searched, such as "polynomial degree=3"
	// (kernel.Variants). The default is defaultKernels.
	Kernels []string `flag:"kernels" not:"kernel"`
	Sigma   float64  `check:"positive"` // bandwidth σ; default: searched about the median distance of rows
	Lambda  float64  // ridge λ; default: searched

	// Distance is the distance of points that the kernel is a function of:
	//   - sigma: one length scale for all features (the default);
	//   - lengths: also one length scale for each feature (automatic relevance determination, ARD) is tried;
	//   - full: then also the distance ‖L(x−z)‖ with a matrix L is tried;
	//   - auto: like full, but if length scales cannot be searched, this is no error.
	//
	// Length scales and matrices become Point.Lengths or Point.Matrix if they reduce the error on rows that were not
	// used to fit them; the result then applies to data stretched by them (datasets.ChangeDistance).
	Distance string `default:"sigma" check:"one of auto sigma lengths full"`

	// Rows is the number of rows of the subsample. If the problem has at most 2·Rows rows, there is no subsample:
	// leave-one-out uses all rows.
	Rows int `flag:"rows" default:"2000" check:">=10"`
	// Metric is the quantity to optimize: a model.Metric, or auto for the share of wrong labels or the RMSE.
	Metric string `flag:"metric" default:"auto" check:"one of auto error auc logloss balanced-error f1 rmse"`
	// Points is the number of evaluated points after which the first level of the search ends. A point of the search is
	// a pair of a scale and λ, and a level is one number of rows (package comment). The coarse grid of each kernel is
	// evaluated even if all grids together have more points.
	Points int `flag:"points" default:"120" check:">=1" help:"points after which the first level ends, once the coarse grid of each kernel is evaluated"`
	// Gain is the smallest relative reduction of the error that is worth another point: a level ends when the expected
	// reduction is smaller. A smaller Gain evaluates more points.
	Gain float64 `flag:"gain" default:"0.002" check:"positive"`
	// Quick searches on a single subsample of 500 rows with one length scale, in about a second on one processor core.
	// Rows, Points, Gain and Distance are then ignored. krrlab fit sets Quick unless --tune or a parameter is set.
	Quick bool `flag:"quick"`
	// Valid has validation rows, by which points are judged instead of by leave-one-out. Its features are unscaled, or
	// scaled like those of the training rows.
	Valid *datasets.Dataset

	// DistanceFlag is the value of the flag --distance, which Prepare copies to Distance. The default is auto.
	DistanceFlag string `flag:"distance" default:"auto" check:"one of auto sigma lengths full"`
	// ValidFile is the file that the command reads Valid from.
	ValidFile string `flag:"valid" file:"read" help:"file of rows to judge by, of the same form as --train"`

	givenDistance []float64    // distance that the command stretched the points by; nil: none
	fitCommand    string       // beginning of the krrlab fit command of the report; "": not known
	memory        accel.Budget // memory budget of the search, in addition to the problem
	memoryNote    string       // report line if the memory budget reduced Rows; else ""
}

// Help returns the longer help texts of the flags.
func (Options) Help() map[string]string {
	return map[string]string{
		"quick": "a search of one level of 500 rows with one length scale, as krrlab fit makes without --tune",
		"distance": "distance of rows: sigma, one length scale for all features; lengths, one for each; full, " +
			"‖L(x−z)‖ with a matrix L; lengths and L are taken if they are seen to be worth it; auto is full where " +
			"it can be searched",
		"kernel":  "the kernel, if it is not to be searched: " + strings.Join(kernel.Names(), ", "),
		"sigma":   "bandwidth σ, if it is not to be searched",
		"lambda":  "ridge λ > 0, if it is not to be searched",
		"kernels": "kernels to try, separated by commas, such as 'gaussian,polynomial degree=3' (default: " + strings.Join(defaultKernels, ",") + ")",
		"metric": "what is made best: error, auc, logloss, balanced-error or f1 of classes, rmse (auto: error or " +
			"rmse); f1 is that of the rarer of two classes, and it and balanced-error are at their best threshold",
		"rows": "rows of the subsample; all rows are taken if there are at most twice as many",
		"gain": "end a level when the expected reduction of the error is less than this share of it",
	}
}

// problem is the data to tune for.
type problem struct {
	train          *datasets.Dataset
	y              *mat.Dense        // coded targets of train, n×t, in the units of judgment.inTargetUnits
	validation     *datasets.Dataset // rows to judge by; nil: leave-one-out
	validationY    *mat.Dense        // coded targets of validation, in the same units as y
	centersTargets bool              // every fit subtracts the mean of its targets
	judgment       scoring           // metric and positive class, without the weights of the rows
	seed           uint64
}

// check returns an error if an option is invalid or a kernel cannot be tuned.
func (o *Options) check() error {
	if err := schema.Complete(new(*o)); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	if o.Lambda != 0 {
		if err := stage.CheckSize("λ", o.Lambda); err != nil {
			return fmt.Errorf("tune: %w, or 0 for the default", err)
		}
	}
	if o.requiresDistance() && o.Sigma > 0 {
		return fmt.Errorf("tune: the distance %s is not searched for a given σ = %g", o.Distance, o.Sigma)
	}
	withDefaults := o.withDefaults()
	families, err := withDefaults.families()
	for _, family := range families {
		if reason := family.distanceObstacle(); reason != "" && o.requiresDistance() {
			return fmt.Errorf("tune: no distance %s: %s", o.Distance, reason)
		}
	}
	return err
}

// requiresDistance reports whether the options require a search for length scales or a matrix, so that check returns
// an error if no such search is possible.
func (o *Options) requiresDistance() bool {
	return o.Distance == lengthsDistance || o.Distance == fullDistance
}

// withDefaults returns the options with defaults for the zero values. The options must have passed check.
func (o Options) withDefaults() Options {
	if err := schema.Complete(&o); err != nil {
		panic(err) // excluded by Options.check
	}
	if len(o.Kernels) == 0 {
		o.Kernels = defaultKernels
	}
	return o
}

// setQuick sets the options that Quick stands for.
func (o *Options) setQuick() {
	if o.Quick {
		o.Rows, o.Points, o.Gain, o.Distance = 500, 60, 0.01, sigmaDistance
	}
}

// family is a kernel whose scale (kernel.Scaled) the search varies: σ, or 1/γ of a polynomial. The first element of an
// array of two is for the scale, the second for λ.
type family struct {
	name       string
	base       kernel.Scaled // the kernel with its fixed parameters
	index      int           // position in search.families
	fixed      [2]float64    // scale and λ if the options set them; 0: searched
	grid       [2][]float64  // grids of log scale and log λ
	start      [2][]float64  // log scales and log λ on the grids at which the first level begins
	firstLevel int           // level on which the family joined the search
	shape      []float64     // DistanceFit.Shape; nil: one length scale for all features
}

// spec returns the specification of the kernel with the given scale.
func (f *family) spec(scale float64) kernel.Spec {
	spec, err := kernel.ToSpec(f.kernel(scale))
	if err != nil {
		panic(err) // excluded by Options.families
	}
	return spec
}

// kernel returns the kernel with the given scale, or with the fixed scale if the options set one.
func (f *family) kernel(scale float64) kernel.Kernel {
	if f.fixed[0] > 0 {
		return f.base
	}
	return f.base.WithScale(scale)
}

// coordinate returns the scale (index 0) or λ (index 1) of a point, to three digits unless the options set it.
func (f *family) coordinate(index int, x gridPoint) float64 {
	if f.fixed[index] > 0 {
		return f.fixed[index]
	}
	return roundToThreeDigits(math.Exp(x[index]))
}

// families returns the kernels to try, without their grids. It returns an error for a kernel that is not registered or
// lacks a method that the search needs.
func (o *Options) families() (families []*family, err error) {
	for _, name := range o.Kernels {
		variants, fixedScale, err := kernel.Variants(name)
		if err != nil {
			return nil, fmt.Errorf("tune: %w", err)
		}
		for _, variant := range variants {
			candidate, err := o.family(name, variant)
			if err != nil {
				return nil, fmt.Errorf("tune: %w", err)
			}
			if fixedScale {
				candidate.fixed[0] = candidate.base.Scale()
				if !(candidate.fixed[0] > 0) || math.IsInf(candidate.fixed[0], 1) {
					return nil, fmt.Errorf("tune: the kernel %v has the length scale %g: want a positive number",
						variant, candidate.fixed[0])
				}
			}
			if !slices.ContainsFunc(families, func(member *family) bool {
				return reflect.DeepEqual(member.base, candidate.base)
			}) {
				candidate.index = len(families)
				families = append(families, candidate)
			}
		}
	}
	return families, nil
}

// family returns the family of k, with the parameters that the options set.
func (o *Options) family(name string, k kernel.Kernel) (*family, error) {
	if kernel.IsPairwise(k) {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: it has no method Profile (kernel.Radial)", name)
	}
	if _, err := kernel.ToSpec(k); err != nil {
		return nil, err
	}
	base, ok := k.(kernel.Scaled)
	if !ok {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: it has no methods Scale and WithScale (kernel.Scaled)",
			name)
	}
	if scaled := base.WithScale(1); reflect.TypeOf(scaled) != reflect.TypeOf(k) {
		return nil, fmt.Errorf("the kernel %s cannot be tuned: its method WithScale returns a %T, want a %T", name,
			scaled, k)
	}
	result := &family{name: name, base: base, fixed: [2]float64{0, o.Lambda}}
	if kernel.ArgumentOf(k) != kernel.InnerProduct && o.Sigma > 0 {
		result.fixed[0] = o.Sigma
		result.base = base.WithScale(o.Sigma).(kernel.Scaled)
	}
	return result, kernel.Validate(result.base)
}

// gridProduct yields all points whose coordinates are in the two lists.
func gridProduct(axes [2][]float64) iter.Seq[gridPoint] {
	return func(yield func(gridPoint) bool) {
		for _, logScale := range axes[0] {
			for _, logLambda := range axes[1] {
				if !yield(gridPoint{logScale, logLambda}) {
					return
				}
			}
		}
	}
}

// axis describes a geometric grid from lo to hi with the given ratio of successive values, in multiples of a unit.
type axis struct {
	lo, hi, ratio float64
	start         []float64 // values at which the search begins
}

// scaleAxis and lambdaAxis are the grids of the scale, in multiples of the typical scale of the rows, and of λ, in
// multiples of the mean of K's diagonal. Their limits and ratios were chosen by judgment.
var (
	scaleAxis  = axis{1.0 / 16, 16, math.Pow(2, 0.25), []float64{0.2, 0.6, 1.8}}
	lambdaAxis = axis{1e-7, 1e3, math.Pow(10, 0.25), []float64{1e-5, 1e-3, 0.1, 3}}
)

// grid returns the logarithms of the grid values and of the start values, for which the nearest grid values are taken.
// If fixed is positive, log fixed is the only value of both.
func (a axis) grid(fixed, unit float64) (grid, start []float64) {
	if fixed > 0 {
		return []float64{math.Log(fixed)}, []float64{math.Log(fixed)}
	}
	// The factor √ratio includes hi despite rounding.
	for multiple := a.lo; multiple < a.hi*math.Sqrt(a.ratio); multiple *= a.ratio {
		grid = append(grid, math.Log(roundToThreeDigits(unit*multiple)))
	}
	for _, multiple := range a.start {
		start = append(start, grid[nearestIndex(grid, math.Log(unit*multiple))])
	}
	return grid, start
}

// nearestIndex returns the index of the grid value that is closest to value.
func nearestIndex(grid []float64, value float64) (best int) {
	for i, gridValue := range grid {
		if math.Abs(gridValue-value) < math.Abs(grid[best]-value) {
			best = i
		}
	}
	return best
}

// roundToThreeDigits rounds v to three significant digits, so that a report shows the value exactly.
func roundToThreeDigits(v float64) float64 { return outward.Rounded(v, 3) }
