package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxSimilarRatio is the largest ratio of the spreads of two features that still count as similar. The ratio is 1.9 for
// the pixels of MNIST and USPS, and at least 4.8 for tables of measured quantities. A larger value scales fewer data
// sets.
const maxSimilarRatio = 3

// maxSparseFeatures is the largest number of features of sparse points for which AutoScaling compares spreads.
const maxSparseFeatures = 1 << 20

// AutoScaling returns the kind of scaling that Scale uses for "auto", and the reason if the spreads of the features
// differ. The kind is "none" for bytes, for features that were computed from coordinates (Space), for sparse points
// with mostly zero entries or very many features, and if the spreads of the features are similar, as those of scaled
// features and of indicators are. Otherwise it is "standard".
//
// Two features have similar spreads if their standard deviations or their ranges differ at most by a factor of 3.
// Pixels and indicators that are rarely nonzero have small standard deviations, but equal ranges, and are therefore not
// scaled. A tenth of the features at most is ignored: those that vary least, if nine of ten rows have their smallest
// value, or their largest one. Pixels at the edge do, and a feature in a smaller unit does not.
func (d *Dataset) AutoScaling() (kind, reason string) {
	c, isSparse := d.X.(*points.CSR)
	_, isBytes := d.X.(*points.Bytes)
	if d.Space != nil || isBytes || isSparse && c.D > maxSparseFeatures {
		return "none", ""
	}
	if reason = d.describeSpread(); reason == "" {
		return "none", ""
	}
	if isSparse && c.NNZ() <= c.N*c.D/2 {
		return "none", "most entries are zero; " + reason + ": try --scale unit, which keeps zeros"
	}
	return "standard", reason
}

// describeSpread describes how much the spreads of the features differ; "" if they are similar.
func (d *Dataset) describeSpread() string {
	lo, hi := FeatureRanges(d.X)
	mean, sd := featureMoments(d.X)
	width := floats.SubTo(make([]float64, len(sd)), hi, lo)
	var varies []int
	for j, s := range sd { // s is 0 also if its square underflows
		if width[j] > 0 && (s == 0 || s > roundingTolerance*math.Abs(mean[j])) {
			varies = append(varies, j)
		}
	}
	if len(varies) < 2 {
		return ""
	}
	rare := rarelyVaries(d.X, lo, hi)
	smallest, largest := extremes(varies, sd, rare)
	narrow, wide := extremes(varies, width, rare)
	ratio := sd[largest] / sd[smallest]
	if min(ratio, width[wide]/width[narrow]) <= maxSimilarRatio {
		return ""
	}
	format := "%.2g"
	if ratio >= 99.5 && ratio < 1e6 { // not 1.1e+02
		format = "%.0f"
	}
	return fmt.Sprintf("the spreads of the features differ by a factor of "+format+
		" (standard deviation %.3g of %s, %.3g of %s)",
		ratio, sd[largest], d.featureName(largest), sd[smallest], d.featureName(smallest))
}

// rarelyVaries reports for each feature, whose range is lo to hi, whether at least nine of ten rows have one of its
// ends.
func rarelyVaries(x points.Points, lo, hi []float64) []bool {
	n, d := x.Dims()
	lowest, highest, rare := make([]int, d), make([]int, d), make([]bool, d)
	visitRows(x, func(row []float64) {
		for j, v := range row {
			if v == lo[j] {
				lowest[j]++
			}
			if v == hi[j] {
				highest[j]++
			}
		}
	})
	for j := range rare {
		rare[j] = 10*max(lowest[j], highest[j]) >= 9*n
	}
	return rare
}

// extremes returns the features with the smallest and the largest v. It ignores the first features in the order of v,
// a tenth at most, as long as they are rare.
func extremes(features []int, v []float64, rare []bool) (smallest, largest int) {
	order := slices.Clone(features)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	ignored := 0
	for ignored < len(order)/10 && rare[order[ignored]] {
		ignored++
	}
	return order[ignored], order[len(order)-1]
}
