package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/plots"
)

// drawn is how many points a scatter plot has at most: the eye takes in no more.
const drawn = 2000

// picture is what fit --plot draws, and a word on it where it is not the convergence.
type picture struct {
	figure *plots.Figure
	what   string
}

// draw makes the picture of a fit: its convergence; of a direct solve, which has no iterations, the
// predictions against the answers, of the test data, or without any of the training data. A figure
// that could not be drawn is an error.
func (r *fitted) draw(ctx context.Context) (picture, error) {
	p, err := r.pictureOf(ctx)
	if err == nil {
		err = p.figure.Validate()
	}
	return p, err
}

func (r *fitted) pictureOf(ctx context.Context) (out picture, err error) {
	if r.sol.Solver != krrlab.Direct {
		return picture{figure: r.sol.Plot()}, nil
	}
	of, points, p := "test", r.data.test, r.test
	if p == nil {
		of, points = "training", r.data.train
		if p, err = r.sol.Model.Predict(ctx, points, r.sol.PredictOptions()); err != nil {
			return out, err
		}
	}
	score := p.Score(points)
	if c := score.Classes; c != nil && c.Counts == nil { // too many
		return picture{figure: r.sol.Plot()}, nil
	}
	judged := fmt.Sprintf("RMSE %s, R² %.3f", outward.Plain(score.RMSE, 4), score.R2)
	if p.Labels != nil {
		judged = fmt.Sprintf("error %.2f %%", 100*score.ErrorRate)
	}
	title := fmt.Sprintf("%s: %s on %d %s points", r.sol.Dataset, judged, score.N, of)
	out = picture{what: fmt.Sprintf("predictions against answers of the %s data, as a direct solve has no "+
		"iterations to draw", of)}
	if p.Labels != nil {
		out.figure = confusion(title, score.Classes)
	} else {
		out.figure = agreement(title, p, points)
	}
	return out, nil
}

// agreement draws the prediction of each point against its answer.
func agreement(title string, p *model.Prediction, d *datasets.Dataset) *plots.Figure {
	s := plots.Series{Name: "points", Style: plots.Points}
	step := (d.Len() + drawn - 1) / drawn
	for i := 0; i < d.Len(); i += step {
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
			z[i] = append(z[i], float64(c.Counts[i][j]))
		}
	}
	return &plots.Figure{
		Title: title, X: plots.Axis{Label: "predicted class" + names, Ticks: at},
		Y:   plots.Axis{Label: "class", Ticks: at},
		Map: &plots.HeatMap{X: at, Y: at, Z: z, Color: plots.Axis{Label: "points"}, Format: "%.0f"},
	}
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
