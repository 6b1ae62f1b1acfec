package results

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/lambdap"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

//go:embed explore.js
var exploreJS string

// explore returns sliders that recompute κ and predicted iterations from data as explore.js takes them.
func explore(data map[string]any, confidence, tau float64, more ...plots.Slider) *plots.Controls {
	data["confidence"] = confidence
	s := plots.Slider{Name: "τ", Min: math.Min(1e-8, tau), Max: 0.5, Value: tau, Log: true}
	if len(more) == 0 {
		more = []plots.Slider{s}
	} else {
		more = append([]plots.Slider{more[0], s}, more[1:]...)
	}
	return &plots.Controls{Name: "kappa", Script: exploreJS, Sliders: more, Data: data}
}

// explored is a measured λ_p for explore.js.
func explored(lambdaP float64, kappa, least, most estimate.Interval, residuals []float64, definite bool) map[string]any {
	ends := func(e estimate.Interval) []stage.Number {
		return []stage.Number{stage.Number(e.Lo), stage.Number(e.Hi)}
	}
	r := make([]float64, len(residuals))
	for i, v := range residuals {
		r[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64) // short in the page
	}
	return map[string]any{"p": lambdaP, "k": append([]stage.Number{stage.Number(kappa.Value)}, ends(kappa)...), "least": ends(least), "most": ends(most), "r": r, "broken": !definite}
}

// fine is how many steps of the slider lead from one measured λ_p to the next.
const fine = 8

// controls returns sliders over λ_p, τ and, of several sweeps, s; nil where nothing was measured.
func (s *LambdaP) controls() *plots.Controls {
	var sweeps [][]map[string]any
	var sizes []float64
	for _, r := range s.Sweeps {
		var points []map[string]any
		for i := range r.Points {
			p := &r.Points[i]
			points = append(points, explored(p.LambdaP, p.Kappa, p.Min, p.Max, p.Residuals, p.Predicted > 0))
		}
		sweeps, sizes = append(sweeps, points), append(sizes, float64(r.S))
	}
	first := s.Sweeps[0]
	if len(first.Points) < 2 || len(first.Points[0].Residuals) == 0 {
		return nil
	}
	at := plots.Slider{Name: "λ_p", Value: first.Points[0].LambdaP}
	if p := first.At(s.Lambda); p != nil {
		at.Value = s.Lambda
	}
	for i := range first.Points {
		l := first.Points[i].LambdaP
		at.Values = append(at.Values, l)
		if i+1 < len(first.Points) {
			for k := 1; k < fine; k++ {
				at.Values = append(at.Values, l*math.Pow(first.Points[i+1].LambdaP/l, float64(k)/fine))
			}
		}
	}
	sliders := []plots.Slider{at}
	data := map[string]any{"sweeps": sweeps}
	if len(s.Sweeps) > 1 {
		data["sizes"] = sizes
		value := sizes[0]
		if s.BestS > 0 {
			value = float64(s.BestS)
		}
		sliders = append(sliders, plots.Slider{Name: "s", Value: value, Values: sizes})
	}
	return explore(data, first.Points[0].Kappa.Confidence, s.Tol, sliders...)
}

// controls returns a slider over τ; nil of an M of which only the inverse is known.
func (q *Quality) controls() *plots.Controls {
	res, definite := lambdap.Residuals(q.Alpha, q.Beta)
	if len(res) == 0 || q.Indefinite {
		return nil
	}
	point := explored(1, q.Kappa, q.Min, q.Max, res, definite)
	if q.LambdaP > 0 {
		point["p"] = q.LambdaP
	}
	return explore(map[string]any{"p": point["p"], "sweeps": [][]map[string]any{{point}}}, q.Kappa.Confidence, q.Tol)
}
