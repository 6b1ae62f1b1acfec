package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/krrlab/lab/krrlab/points"
)

// hintRatio is the ratio of two features' spreads from which on the smaller is as good as not
// there: its part of a squared distance is below a hundredth.
const hintRatio = 10

// hintWidth is the most features of sparse points that ScalingHint looks at.
const hintWidth = 1 << 20

// ScalingHint says in one line that the features' spreads differ so much that --scale standard
// is worth a try; "" if they do not. The spread is the standard deviation; the ranges must differ as
// well, so that features on one scale of which some are rarely set (pixels, indicators) are let
// be, as is the tenth of the features that varies least.
func (d *Dataset) ScalingHint() string {
	x := d.X
	if c, ok := x.(*points.CSR); ok && c.D > hintWidth {
		return ""
	}
	lo, hi := ranges(x)
	mean, sd := moments(x, lo, hi)
	var varies []int
	for j, s := range sd {
		if s > roundedMean*math.Abs(mean[j]) {
			varies = append(varies, j)
		}
	}
	if len(varies) < 2 {
		return ""
	}
	width := make([]float64, len(sd))
	for j := range width {
		width[j] = hi[j]/2 - lo[j]/2
	}
	least, most := extremes(varies, sd)
	narrow, wide := extremes(varies, width)
	ratio := sd[most] / sd[least]
	if min(ratio, width[wide]/width[narrow]) < hintRatio {
		return ""
	}
	return fmt.Sprintf("the spreads of the features differ by a factor of %.2g (standard deviation %.3g of %s, %.3g of %s): try --scale standard",
		ratio, sd[most], d.feature(most), sd[least], d.feature(least))
}

// extremes returns the features whose v is the least, a tenth of them set aside, and the largest.
func extremes(features []int, v []float64) (least, most int) {
	order := slices.Clone(features)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	return order[len(order)/10], order[len(order)-1]
}

// feature names feature j for a reader.
func (d *Dataset) feature(j int) string {
	if d.Columns != nil {
		return quote(d.Columns[j])
	}
	return "feature " + strconv.Itoa(j)
}

// IDHint says in one line that a feature merely counts the rows, as an index does that a program
// wrote beside the data; "" if none does.
func (d *Dataset) IDHint() string {
	x, ok := d.X.(*points.Dense)
	if !ok || x.N < 10 {
		return ""
	}
	for j := range x.D {
		counts := true
		for i := 0; i < x.N && counts; i++ {
			counts = x.Row(i)[j] == x.Row(0)[j]+float64(i)
		}
		if counts {
			return fmt.Sprintf("%s counts the rows: if it is an index and no feature, leave it out by --drop", d.feature(j))
		}
	}
	return ""
}
