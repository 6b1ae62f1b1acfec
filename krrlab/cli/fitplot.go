package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/plots"
)

// maxPoints is the largest number of points in a scatter plot. More points would hide one another.
const maxPoints = 2000

// predictionPlot is the picture of fit --plot and a short description of it.
type predictionPlot struct {
	figure      *plots.Figure
	description string
}

// plotPredictions draws predictions against answers for the test data, or for at most maxPoints of the training points
// if there are no test data. For classes it draws a confusion matrix, or the error of each class if there are too many.
// It returns an error if the figure cannot be drawn.
func (r *fitted) plotPredictions(ctx context.Context) (out predictionPlot, err error) {
	subset, points, p := "test", r.data.test, r.test
	if p == nil {
		subset, points = "training", r.data.train.Subset(evenRows(r.data.train.Len()))
		if p, err = r.sol.Model.Predict(ctx, points, r.sol.PredictOptions()); err != nil {
			return out, err
		}
	}
	score := p.Score(points)
	quality := fmt.Sprintf("RMSE %s, R² %.3f", outward.Plain(score.RMSE, 4), score.R2)
	if p.Labels != nil {
		quality = fmt.Sprintf("error %.2f %%", 100*score.ErrorRate)
	}
	title := fmt.Sprintf("%s: %s on %d %s points", r.sol.Dataset, quality, score.N, subset)
	out.description = fmt.Sprintf("predictions against answers of the %s data", subset)
	switch c := score.Classes; {
	case c == nil:
		out.figure = agreementPlot(title, p, points)
	case c.Counts == nil:
		out.figure = classErrorPlot(title, c)
	default:
		out.figure = confusionPlot(title, c)
	}
	return out, out.figure.Validate()
}

// evenRows returns at most maxPoints row numbers below n, at equal distances.
func evenRows(n int) (rows []int) {
	for i := 0; i < n; i += (n + maxPoints - 1) / maxPoints {
		rows = append(rows, i)
	}
	return rows
}

// agreementPlot draws the prediction of each point against its answer.
func agreementPlot(title string, p *model.Prediction, d *datasets.Dataset) *plots.Figure {
	s := plots.Series{Name: "points", Style: plots.Points}
	for _, i := range evenRows(d.Len()) {
		s.Add(d.Target[i], p.Value[i])
	}
	lo, hi := slices.Min(s.X), slices.Max(s.X)
	if lo == hi {
		lo, hi = lo-math.Max(1, math.Abs(lo)), hi+math.Max(1, math.Abs(hi))
	}
	return &plots.Figure{
		Title: title, X: plots.Axis{Label: "answer"}, Y: plots.Axis{Label: "prediction"},
		// The line is drawn over the points.
		Series: []plots.Series{s, {Name: "prediction = answer", X: []float64{lo, hi}, Y: []float64{lo, hi}}},
	}
}

// confusionPlot draws the confusion matrix: the number of points of each class by predicted class.
func confusionPlot(title string, c *model.Classes) *plots.Figure {
	positions, names := classAxis(c.Labels)
	z := make([][]float64, len(c.Labels))
	for i := range z {
		for j := range z {
			z[i] = append(z[i], c.Counts[i][j])
		}
	}
	return &plots.Figure{
		Title: title, X: plots.Axis{Label: "predicted class" + names, Ticks: positions},
		Y:   plots.Axis{Label: "class", Ticks: positions},
		Map: &plots.HeatMap{X: positions, Y: positions, Z: z, Color: plots.Axis{Label: "points"}, Format: "%.0f"},
	}
}

// classErrorPlot draws, for each class, the share of its points that are predicted as another class, against its number
// of points.
func classErrorPlot(title string, c *model.Classes) *plots.Figure {
	s := plots.Series{Name: "classes", Style: plots.Points}
	for _, e := range c.Errors {
		if e.Of > 0 {
			s.Add(float64(e.Of), 100*float64(e.Wrong)/float64(e.Of))
		}
	}
	return &plots.Figure{Title: title, X: plots.Axis{Label: "points of the class"},
		Y: plots.Axis{Label: "predicted as another class (%)"}, Series: []plots.Series{s}}
}

// classAxis returns the positions of the classes on an axis. They are the labels if these are increasing integers, and
// names is then "". Otherwise they are 1, 2, 3, …, and names lists the labels by number, at most about 60 characters.
func classAxis(labels []string) (positions []float64, names string) {
	areIncreasingIntegers := true
	for i, label := range labels {
		v, err := strconv.Atoi(label)
		areIncreasingIntegers = areIncreasingIntegers && err == nil && (i == 0 || float64(v) > positions[i-1])
		positions = append(positions, float64(v))
	}
	if areIncreasingIntegers {
		return positions, ""
	}
	for i, label := range labels {
		positions[i] = float64(i + 1)
		entry := fmt.Sprintf("%d %s", i+1, label)
		if len(names)+len(entry) > 60 {
			names += ", …"
			break
		}
		names += ", " + entry
	}
	return positions, " (" + strings.TrimPrefix(names, ", ") + ")"
}
