package pencil

import (
	_ "embed"
	"math"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

//go:embed explore.js
var exploreJS string

// Explore returns sliders that recompute κ and the predicted iterations. The format of data is described in explore.js.
func Explore(data map[string]any, confidence, tau float64, sliders ...plots.Slider) *plots.Controls {
	data["confidence"] = confidence
	tolSlider := plots.Slider{Name: "τ", Min: math.Min(1e-8, tau), Max: 0.5, Value: tau, Log: true}
	if len(sliders) == 0 {
		sliders = []plots.Slider{tolSlider}
	} else {
		sliders = append([]plots.Slider{sliders[0], tolSlider}, sliders[1:]...)
	}
	return &plots.Controls{Name: "kappa", Script: exploreJS, Sliders: sliders, Data: data}
}

// Explored returns the measurements at λ_p in the format of explore.js.
func (r *Row) Explored(lambdaP float64) map[string]any {
	bounds := func(e estimate.Interval) []stage.Number {
		return []stage.Number{stage.Number(e.Lo), stage.Number(e.Hi)}
	}
	residuals, _ := lanczos.Residuals(r.Alpha, r.Beta)
	for i, c := range residuals {
		residuals[i] = outward.Rounded(c, 7) // few digits, to keep the page small
	}
	return map[string]any{"p": lambdaP, "k": append([]stage.Number{stage.Number(r.Kappa.Value)}, bounds(r.Kappa)...),
		"least": bounds(r.Min), "most": bounds(r.Max), "r": residuals, "broken": r.Predicted == 0}
}
