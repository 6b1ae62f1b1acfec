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

// maxSparseFeatures is the largest number of features of sparse points for which AutoScaling compares spreads. It
// bounds the memory of the comparison, which needs some numbers for each feature.
const maxSparseFeatures = 1 << 20

// AutoScaling returns the kind of scaling that Scale uses for "auto", and the reason if the spreads of the features
// differ. The kind is "none" for bytes, for features that were computed from coordinates (Space), for sparse points
// with mostly zero entries or very many features, and if the spreads of the features are similar, as those of scaled
// features and of indicators are. Otherwise it is "standard".
//
// Two features have similar spreads if their standard deviations or their ranges differ at most by a factor of 3.
// Pixels and indicators that are rarely nonzero have small standard deviations, but equal ranges, and are therefore not
// scaled. At most a tenth of the features is ignored: the features that vary least, if nine of ten rows have the
// smallest or the largest value of the feature. Pixels at the edge of an image are such features; a feature that is
// given in a smaller unit is not.
func (d *Dataset) AutoScaling() (kind, reason string) {
	sparse, isSparse := d.X.(*points.CSR)
	_, isBytes := d.X.(*points.Bytes)
	if d.Space != nil || isBytes || isSparse && sparse.D > maxSparseFeatures {
		return "none", ""
	}
	if reason = d.describeSpread(); reason == "" {
		return "none", ""
	}
	if isSparse && sparse.NNZ() <= sparse.N*sparse.D/2 {
		return "none", "most entries are zero; " + reason + ": try --scale unit, which keeps zeros"
	}
	return "standard", reason
}

// describeSpread describes how much the spreads of the features differ; "" if they are similar.
func (d *Dataset) describeSpread() string {
	lo, hi := FeatureRanges(d.X)
	mean, sd := featureMoments(d.X)
	width := floats.SubTo(make([]float64, len(sd)), hi, lo)
	var varyingFeatures []int
	for j, s := range sd { // s is 0 also if its square underflows
		if width[j] > 0 && (s == 0 || s > roundingTolerance*math.Abs(mean[j])) {
			varyingFeatures = append(varyingFeatures, j)
		}
	}
	if len(varyingFeatures) < 2 {
		return ""
	}
	isRarelyVarying := rarelyVaries(d.X, lo, hi)
	smallest, largest := extremes(varyingFeatures, sd, isRarelyVarying)
	narrowest, widest := extremes(varyingFeatures, width, isRarelyVarying)
	ratio := sd[largest] / sd[smallest]
	if min(ratio, width[widest]/width[narrowest]) <= maxSimilarRatio {
		return ""
	}
	format := "%.2g"
	if ratio >= 99.5 && ratio < 1e6 { // %.2g would write 110 as 1.1e+02
		format = "%.0f"
	}
	return fmt.Sprintf("the spreads of the features differ by a factor of "+format+
		" (standard deviation %.3g of %s, %.3g of %s)",
		ratio, sd[largest], d.featureName(largest), sd[smallest], d.featureName(smallest))
}

// rarelyVaries reports for each feature, whose range is lo to hi, whether at least nine of ten rows have the value lo
// or at least nine of ten rows have the value hi.
func rarelyVaries(x points.Points, lo, hi []float64) []bool {
	n, d := x.Dims()
	lowestCount, highestCount, isRarelyVarying := make([]int, d), make([]int, d), make([]bool, d)
	visitRows(x, func(row []float64) {
		for j, v := range row {
			if v == lo[j] {
				lowestCount[j]++
			}
			if v == hi[j] {
				highestCount[j]++
			}
		}
	})
	for j := range isRarelyVarying {
		isRarelyVarying[j] = 10*max(lowestCount[j], highestCount[j]) >= 9*n
	}
	return isRarelyVarying
}

// extremes returns the features with the smallest and the largest entry of v. In the ascending order of v it ignores
// the first features that rarely vary, at most a tenth of all.
func extremes(features []int, v []float64, isRarelyVarying []bool) (smallest, largest int) {
	order := slices.Clone(features)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	ignored := 0
	for ignored < len(order)/10 && isRarelyVarying[order[ignored]] {
		ignored++
	}
	return order[ignored], order[len(order)-1]
}
