package explain

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
)

// sortedFeature returns feature j of the rows, without missing values, in ascending order.
func (e *explainer) sortedFeature(j int) (values []float64) {
	for i := range e.d.Len() {
		if cell := e.features[i*e.dim+j]; !math.IsNaN(cell) {
			values = append(values, cell)
		}
	}
	slices.Sort(values)
	return values
}

// gridValues returns the different numbers of sorted, if there are at most gridSize. Otherwise it returns gridSize
// numbers at equal distances between the 5th and the 95th percentile, or, if these are equal, between the smallest and
// the largest.
func gridValues(sorted []float64) []float64 {
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

// mostFrequent returns the indices of the at most limit largest positive counts, in ascending order.
func mostFrequent(counts []int, limit int) []int {
	var order []int
	for i, count := range counts {
		if count > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	order = order[:min(limit, len(order))]
	slices.Sort(order)
	return order
}

// frequentWords returns the indices of the at most gridSize words of a column that most rows have.
func (e *explainer) frequentWords(column datasets.SourceColumn) []int {
	counts := make([]int, column.FeatureCount)
	for i := range e.d.Len() {
		for word, v := range e.features[i*e.dim+column.FirstFeature:][:column.FeatureCount] {
			if v == 1 {
				counts[word]++
			}
		}
	}
	return mostFrequent(counts, gridSize)
}

// rowTime returns the time of row i in a column of dates: the number of days since the first day, or the hour if the
// column has times without dates.
func (e *explainer) rowTime(column datasets.SourceColumn, i int) float64 {
	features := e.features[i*e.dim+column.FirstFeature:]
	if column.Coding.Dates.Form != "time" {
		return features[0]
	}
	// A time is coded by the sine and the cosine of its angle on a dial of 24 hours.
	return math.Mod(24+math.Atan2(features[0], features[1])*12/math.Pi, 24)
}

// rowsAtSpacedTimes returns the numbers of rows whose times are nearest to those of a grid, in the order of time.
func (e *explainer) rowsAtSpacedTimes(column datasets.SourceColumn) (rows []int) {
	var dated []int
	var times []float64
	for i := range e.d.Len() {
		if time := e.rowTime(column, i); !math.IsNaN(time) {
			dated, times = append(dated, i), append(times, time)
		}
	}
	sorted := slices.Sorted(slices.Values(times))
	for _, target := range gridValues(sorted) {
		closest := 0
		for k, time := range times {
			if math.Abs(time-target) < math.Abs(times[closest]-target) {
				closest = k
			}
		}
		rows = append(rows, dated[closest])
	}
	return slices.Compact(rows)
}
