package stage

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/plots"
)

//go:embed explore.js
var exploreJS string

// Explore returns sliders that recompute κ and predicted iterations from data as explore.js takes them.
func Explore(data map[string]any, confidence, tau float64, more ...plots.Slider) *plots.Controls {
	data["confidence"] = confidence
	s := plots.Slider{Name: "τ", Min: math.Min(1e-8, tau), Max: 0.5, Value: tau, Log: true}
	if len(more) == 0 {
		more = []plots.Slider{s}
	} else {
		more = append([]plots.Slider{more[0], s}, more[1:]...)
	}
	return &plots.Controls{Name: "kappa", Script: exploreJS, Sliders: more, Data: data}
}

// Explored is a measured λ_p for explore.js.
func Explored(lambdaP float64, kappa, least, most estimate.Interval, residuals []float64,
	definite bool) map[string]any {
	ends := func(e estimate.Interval) []Number {
		return []Number{Number(e.Lo), Number(e.Hi)}
	}
	r := make([]float64, len(residuals))
	for i, v := range residuals {
		r[i], _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64) // short in the page
	}
	return map[string]any{"p": lambdaP, "k": append([]Number{Number(kappa.Value)}, ends(kappa)...),
		"least": ends(least), "most": ends(most), "r": r, "broken": !definite}
}
