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

// maxPoints is the largest number of points in a scatter plot. More would cover one another.
const maxPoints = 2000

// predictionPlot is the picture that fit --plot writes, and a word on what it shows.
type predictionPlot struct {
	figure *plots.Figure
	what   string
}

// plotPredictions draws predictions against answers: of the test data, or, without any, of at most maxPoints of the
// training data. It returns an error for a figure that cannot be drawn.
func (r *fitted) plotPredictions(ctx context.Context) (out predictionPlot, err error) {
	of, points, p := "test", r.data.test, r.test
	if p == nil {
		of, points = "training", r.data.train.Subset(evenly(r.data.train.Len()))
		if p, err = r.sol.Model.Predict(ctx, points, r.sol.PredictOptions()); err != nil {
			return out, err
		}
	}
	score := p.Score(points)
	quality := fmt.Sprintf("RMSE %s, R² %.3f", outward.Plain(score.RMSE, 4), score.R2)
	if p.Labels != nil {
		quality = fmt.Sprintf("error %.2f %%", 100*score.ErrorRate)
	}
	title := fmt.Sprintf("%s: %s on %d %s points", r.sol.Dataset, quality, score.N, of)
	out.what = fmt.Sprintf("predictions against answers of the %s data", of)
	switch c := score.Classes; {
	case c == nil:
		out.figure = agreement(title, p, points)
	case c.Counts == nil:
		out.figure = classErrors(title, c)
	default:
		out.figure = confusion(title, c)
	}
	return out, out.figure.Validate()
}

// evenly returns at most maxPoints of n rows, at equal distances.
func evenly(n int) (rows []int) {
	for i := 0; i < n; i += (n + maxPoints - 1) / maxPoints {
		rows = append(rows, i)
	}
	return rows
}

// agreement draws the prediction of each point against its answer.
func agreement(title string, p *model.Prediction, d *datasets.Dataset) *plots.Figure {
	s := plots.Series{Name: "points", Style: plots.Points}
	for _, i := range evenly(d.Len()) {
		s.Add(d.Target[i], p.Value[i])
	}
	lo, hi := slices.Min(s.X), slices.Max(s.X)
	if lo == hi {
		lo, hi = lo-math.Max(1, math.Abs(lo)), hi+math.Max(1, math.Abs(hi))
	}
	return &plots.Figure{
		Title: title, X: plots.Axis{Label: "answer"}, Y: plots.Axis{Label: "prediction"},
		// the line over the points
		Series: []plots.Series{s, {Name: "prediction = answer", X: []float64{lo, hi}, Y: []float64{lo, hi}}},
	}
}

// confusion draws how often each class is taken for which.
func confusion(title string, c *model.Classes) *plots.Figure {
	at, names := classAxis(c.Labels)
	z := make([][]float64, len(c.Labels))
	for i := range z {
		for j := range z {
			z[i] = append(z[i], c.Counts[i][j])
		}
	}
	return &plots.Figure{
		Title: title, X: plots.Axis{Label: "predicted class" + names, Ticks: at},
		Y:   plots.Axis{Label: "class", Ticks: at},
		Map: &plots.HeatMap{X: at, Y: at, Z: z, Color: plots.Axis{Label: "points"}, Format: "%.0f"},
	}
}

// classErrors draws the share of each class that is taken for another against its number of points.
func classErrors(title string, c *model.Classes) *plots.Figure {
	s := plots.Series{Name: "classes", Style: plots.Points}
	for _, e := range c.Errors {
		if e.Of > 0 {
			s.Add(float64(e.Of), 100*float64(e.Wrong)/float64(e.Of))
		}
	}
	return &plots.Figure{Title: title, X: plots.Axis{Label: "points of the class"},
		Y: plots.Axis{Label: "predicted as another class (%)"}, Series: []plots.Series{s}}
}

// classAxis places the classes on an axis: at their labels if these are whole numbers that rise, else
// at 1, 2, 3, … with names that say which is which, as far as there is room.
func classAxis(labels []string) (at []float64, names string) {
	whole := true
	for i, label := range labels {
		v, err := strconv.Atoi(label)
		whole = whole && err == nil && (i == 0 || float64(v) > at[i-1])
		at = append(at, float64(v))
	}
	if whole {
		return at, ""
	}
	for i, label := range labels {
		at[i] = float64(i + 1)
		part := fmt.Sprintf("%d %s", i+1, label)
		if len(names)+len(part) > 60 {
			names += ", …"
			break
		}
		names += ", " + part
	}
	return at, " (" + strings.TrimPrefix(names, ", ") + ")"
}
