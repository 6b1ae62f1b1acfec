package explain

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
)

// column returns feature j of the rows, without missing values, in ascending order.
func (x *explainer) column(j int) (v []float64) {
	for i := range x.d.Len() {
		if cell := x.features[i*x.dim+j]; !math.IsNaN(cell) {
			v = append(v, cell)
		}
	}
	slices.Sort(v)
	return v
}

// grid returns the different numbers of sorted, if there are at most gridSize. Otherwise it returns gridSize numbers at
// equal distances between the 5th and the 95th percentile, or, if these are equal, between the least and the largest.
func grid(sorted []float64) []float64 {
	distinct := slices.Compact(slices.Clone(sorted))
	if len(distinct) <= gridSize {
		return distinct
	}
	lo, hi := stat.Quantile(0.05, stat.Empirical, sorted, nil), stat.Quantile(0.95, stat.Empirical, sorted, nil)
	if lo == hi {
		lo, hi = sorted[0], sorted[len(sorted)-1]
	}
	return floats.Span(make([]float64, gridSize), lo, hi)
}

// mostFrequent returns the indices of the at most k largest positive counts, in ascending order.
func mostFrequent(counts []int, k int) []int {
	var order []int
	for i, n := range counts {
		if n > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// frequentWords returns the indices of the words of a column that most rows have.
func (x *explainer) frequentWords(c datasets.SourceColumn) []int {
	counts := make([]int, c.FeatureCount)
	for i := range x.d.Len() {
		for k, v := range x.features[i*x.dim+c.FirstFeature:][:c.FeatureCount] {
			if v == 1 {
				counts[k]++
			}
		}
	}
	return mostFrequent(counts, gridSize)
}

// time returns the time of row i in a column of dates: the number of days, or the hour of a time without a date.
func (x *explainer) time(c datasets.SourceColumn, i int) float64 {
	v := x.features[i*x.dim+c.FirstFeature:]
	if c.Coding.Dates.Form != "time" {
		return v[0]
	}
	return math.Mod(24+math.Atan2(v[0], v[1])*12/math.Pi, 24) // a time is coded by the sine and cosine of its angle
}

// spacedDates returns rows whose times are nearest to those of a grid, in the order of time.
func (x *explainer) spacedDates(c datasets.SourceColumn) (rows []int) {
	var dated []int
	var times []float64
	for i := range x.d.Len() {
		if t := x.time(c, i); !math.IsNaN(t) {
			dated, times = append(dated, i), append(times, t)
		}
	}
	sorted := slices.Sorted(slices.Values(times))
	for _, want := range grid(sorted) {
		closest := 0
		for k, t := range times {
			if math.Abs(t-want) < math.Abs(times[closest]-want) {
				closest = k
			}
		}
		rows = append(rows, dated[closest])
	}
	return slices.Compact(rows)
}
