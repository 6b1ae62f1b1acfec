package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/plots"
)

const (
	maxPoints       = 2000 // largest number of points in a scatter plot; more would hide one another
	maxCurves       = 6    // largest number of classes or targets that are drawn; more would hide one another
	calibrationBins = 10   // more bins show finer steps, with fewer rows in each
)

// SpacedRows returns at most 2000 row numbers below n, at equal distances.
func SpacedRows(n int) (rows []int) {
	for i := 0; i < n; i += (n + maxPoints - 1) / maxPoints {
		rows = append(rows, i)
	}
	return rows
}

// Quality returns the figure of predictions p and the answers of d. probabilities are those of the labels for each row,
// as interval.Probabilities returns them. If they are nil, Platt's method is fitted to each half of the rows for the
// other half. fittedRows is the number of rows that the model was fitted to. If it is positive, there is no calibration
// panel, since the probabilities of these rows are too good.
func Quality(title string, p *model.Prediction, d *datasets.Dataset, probabilities *mat.Dense,
	fittedRows int) *plots.Figure {
	f := &plots.Figure{Title: title, Columns: 2}
	if p.Labels == nil {
		answers := d.TargetColumns()
		for j, answer := range answers[:min(len(answers), maxCurves)] {
			name := ""
			if p.Targets != nil {
				name = p.Targets[j]
			}
			f.Panels = append(f.Panels, residualPanels(name, mat.Col(nil, j, p.Decision), answer)...)
		}
		return f
	}
	if c := p.Score(d).Classes; c.Counts == nil {
		f.Panels = append(f.Panels, classErrorPanel(c))
	} else {
		f.Panels = append(f.Panels, confusionPanel(c))
	}
	f.Panels = append(f.Panels, curvePanels(p, d, f)...)
	switch {
	case fittedRows > 0:
		probabilities = nil
		f.Caption += " Calibration is not drawn, since that of rows of the fit is not that of new rows."
	case probabilities == nil:
		probabilities = crossFittedProbabilities(p, d)
	}
	if probabilities != nil {
		f.Panels = append(f.Panels, calibrationPanel(probabilities, p.Labels, d))
	}
	return f
}

// residualPanels draws the prediction of each row against its answer, and the residual against the prediction.
func residualPanels(target string, predictions, answers []float64) []plots.Figure {
	actual := plots.Series{Name: "rows", Style: plots.Points}
	residuals := actual
	for _, i := range SpacedRows(len(answers)) {
		actual.Add(answers[i], predictions[i])
		residuals.Add(predictions[i], answers[i]-predictions[i])
	}
	lo, hi := slices.Min(actual.X), slices.Max(actual.X)
	if lo == hi {
		lo, hi = lo-math.Max(1, math.Abs(lo)), hi+math.Max(1, math.Abs(hi))
	}
	return []plots.Figure{
		{Title: target, X: plots.Axis{Label: "answer"}, Y: plots.Axis{Label: "prediction"},
			// The line is drawn over the points.
			Series: []plots.Series{actual, diagonal("prediction = answer", lo, hi)}},
		{Title: target, X: plots.Axis{Label: "prediction"}, Y: plots.Axis{Label: "residual, answer − prediction"},
			Series: []plots.Series{residuals}, HLines: []plots.RefLine{{At: 0}}},
	}
}

// diagonal returns the reference line of equal x and y from lo to hi.
func diagonal(name string, lo, hi float64) plots.Series {
	return plots.Series{Name: name, X: []float64{lo, hi}, Y: []float64{lo, hi}, Neutral: true}
}

// confusionPanel draws the number of rows of each class by predicted class.
func confusionPanel(c *model.Classes) plots.Figure {
	x, y := plots.Axis{Label: "predicted class"}, plots.Axis{Label: "class"}
	heatMap := &plots.HeatMap{Color: plots.Axis{Label: "rows"}, Format: "%.0f"}
	for i, label := range c.Labels {
		x.Names, heatMap.X = append(x.Names, shortName(label)), append(heatMap.X, float64(i))
	}
	for i, row := range slices.Backward(c.Counts) { // the first class is on top, and y ascends
		y.Names, heatMap.Y = append(y.Names, x.Names[i]), append(heatMap.Y, float64(-i))
		heatMap.Z = append(heatMap.Z, row)
	}
	x.Ticks, y.Ticks = heatMap.X, heatMap.Y
	return plots.Figure{Title: "Confusion", X: x, Y: y, Map: heatMap}
}

// maxName is the largest number of characters of a name in a figure; longer ones leave less room for the data.
const maxName = 18

// shortName shortens a long name of a class or column.
func shortName(name string) string {
	if characters := []rune(name); len(characters) > maxName {
		return string(characters[:maxName-1]) + "…"
	}
	return name
}

// classErrorPanel draws, for each class, the share of its rows that are predicted as another class, against its number
// of rows.
func classErrorPanel(c *model.Classes) plots.Figure {
	series := plots.Series{Style: plots.Points}
	for _, e := range c.Errors {
		if e.Total > 0 {
			series.Add(e.Total, 100*e.Wrong/e.Total)
		}
	}
	return plots.Figure{Title: "Classes", X: plots.Axis{Label: "rows of the class"},
		Y: plots.Axis{Label: "predicted as another class (%)"}, Series: []plots.Series{series}}
}

// curvePanels draws the ROC and precision-recall curves of each class against the rest, or of the rarer of two
// classes. If there are many classes, it draws those with the smallest areas under the ROC curve, and says so in the
// caption of f.
func curvePanels(p *model.Prediction, d *datasets.Dataset, f *plots.Figure) []plots.Figure {
	curves := p.Curves(d)
	if len(curves) == 0 {
		return nil
	}
	if len(p.Labels) == 2 && len(curves) == 2 {
		rarer := p.Labels[rarerOfTwo(p.Labels, d)]
		curves = slices.DeleteFunc(curves, func(c model.Curve) bool { return c.Class != rarer })
	}
	if len(curves) > maxCurves {
		slices.SortStableFunc(curves, func(a, b model.Curve) int { return cmp.Compare(a.AUC, b.AUC) })
		f.Caption = fmt.Sprintf("The curves are those of the %d of %d classes with the smallest AUC.", maxCurves,
			len(curves))
		curves = curves[:maxCurves]
	}
	shareAxis := func(label string) plots.Axis { return plots.Axis{Label: label, Max: 1} }
	roc := plots.Figure{Title: "ROC", X: shareAxis("false positive rate"), Y: shareAxis("true positive rate")}
	precisionRecall := plots.Figure{Title: "Precision-recall", X: shareAxis("recall"), Y: shareAxis("precision")}
	for _, c := range curves {
		name := fmt.Sprintf("%s (AUC %.3f, AP %.3f)", shortName(c.Class), c.AUC, c.AveragePrecision)
		roc.Series = append(roc.Series, plots.Series{Name: name, X: c.FalsePositive, Y: c.TruePositive})
		steps := plots.Series{Name: name} // precision k holds between recalls k−1 and k
		for k := 1; k < len(c.Precision); k++ {
			steps.Add(c.TruePositive[k-1], c.Precision[k])
			steps.Add(c.TruePositive[k], c.Precision[k])
		}
		precisionRecall.Series = append(precisionRecall.Series, steps)
	}
	roc.Series = append(roc.Series, diagonal("chance", 0, 1))
	return []plots.Figure{roc, precisionRecall}
}

// crossFittedProbabilities returns probabilities by Platt's method, fitted to the rows of even number for those of odd
// number, and the reverse. They are nil for fewer than four rows, and if one of the fits fails.
func crossFittedProbabilities(p *model.Prediction, d *datasets.Dataset) *mat.Dense {
	var halves [2][]int
	for i := range d.Len() {
		halves[i%2] = append(halves[i%2], i)
	}
	if d.Len() < 4 {
		return nil
	}
	crossFitted := mat.NewDense(d.Len(), len(p.Labels), nil)
	for half, rows := range halves {
		calibration, err := interval.CalibrateSplit(nil, p.Subset(rows), d.Subset(rows))
		if err != nil {
			return nil
		}
		probabilities, err := interval.Probabilities(calibration, p.Subset(halves[1-half]))
		if err != nil {
			return nil
		}
		for i, row := range halves[1-half] {
			crossFitted.SetRow(row, probabilities.RawRowView(i))
		}
	}
	return crossFitted
}

// calibrationPanel draws the share of rows of the rarer of two classes against the mean probability of this class, in
// ten bins of the probability. For more classes, it draws how often the most likely class is right against its mean
// probability. The intervals of 95 % are those of Wilson.
func calibrationPanel(probabilities *mat.Dense, labels []string, d *datasets.Dataset) plots.Figure {
	var count, sum, right [calibrationBins]float64
	classIndex := d.ClassIn(labels)
	rarer := rarerOfTwo(labels, d)
	for i, answer := range d.Class {
		class := rarer
		if len(labels) > 2 {
			class = slices.Index(probabilities.RawRowView(i), slices.Max(probabilities.RawRowView(i)))
		}
		v := probabilities.At(i, class)
		bin := min(int(calibrationBins*v), calibrationBins-1)
		if count[bin], sum[bin] = count[bin]+1, sum[bin]+v; classIndex[answer] == class {
			right[bin]++
		}
	}
	series := plots.Series{Name: "bin of probabilities, 95 % interval", Style: plots.Points, Neutral: true}
	for bin, rows := range count {
		if rows > 0 {
			lo, hi := wilson(right[bin], rows)
			series.AddBand(sum[bin]/rows, right[bin]/rows, lo, hi)
		}
	}
	label := "share of " + shortName(labels[rarer])
	if len(labels) > 2 {
		label = "share that is right"
	}
	return plots.Figure{Title: "Calibration", X: plots.Axis{Label: "probability", Max: 1},
		Y:      plots.Axis{Label: label, Max: 1},
		Series: []plots.Series{series, diagonal("calibrated", 0, 1)}}
}

// classCounts returns the number of rows of each label.
func classCounts(labels []string, d *datasets.Dataset) []int {
	counts, classIndex := make([]int, len(labels)), d.ClassIn(labels)
	for _, answer := range d.Class {
		if k := classIndex[answer]; k >= 0 {
			counts[k]++
		}
	}
	return counts
}

// rarerOfTwo returns the index of the rarer of two labels, which is usually the one of interest. Rows count by their
// weights, and in a tie the second label is returned, as by datasets.Dataset.MinorityClass.
func rarerOfTwo(labels []string, d *datasets.Dataset) int {
	total, classIndex := make([]float64, len(labels)), d.ClassIn(labels)
	for i, answer := range d.Class {
		if k := classIndex[answer]; k >= 0 {
			total[k] += d.Weight(i)
		}
	}
	if total[0] < total[1] {
		return 0
	}
	return 1
}

// wilson returns Wilson's 95 % interval for a probability after k successes in n trials (Wilson, J. Amer. Statist.
// Assoc. 22, 1927, doi:10.1080/01621459.1927.10502953).
func wilson(k, n float64) (lo, hi float64) {
	const z = 1.96 // 97.5 % quantile of the normal distribution
	center, width := (k+z*z/2)/(n+z*z), z*math.Sqrt(k*(n-k)/n+z*z/4)/(n+z*z)
	return max(0, center-width), min(1, center+width)
}
