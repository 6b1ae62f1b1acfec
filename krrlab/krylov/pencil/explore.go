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

// exploreJS is the script of ExploreControls.
//
//go:embed explore.js
var exploreJS string

// ExploreControls returns sliders of a web page that recompute κ and the predicted iterations. confidence is the
// probability that the interval of κ at a measured λ_p contains κ, and tau the initial tolerance. The slider of the
// tolerance becomes the second one after the first of the given sliders, or the only one if there are none.
//
// The format of data is described in explore.js. ExploreControls adds the confidence to data.
func ExploreControls(data map[string]any, confidence, tau float64, sliders ...plots.Slider) *plots.Controls {
	data["confidence"] = confidence
	tolSlider := plots.Slider{Name: "τ", Min: math.Min(1e-8, tau), Max: math.Max(0.5, tau), Value: tau, Log: true}
	if len(sliders) == 0 {
		sliders = []plots.Slider{tolSlider}
	} else {
		sliders = append([]plots.Slider{sliders[0], tolSlider}, sliders[1:]...)
	}
	return &plots.Controls{Name: "kappa", Script: exploreJS, Sliders: sliders, Data: data}
}

// ExploreData returns the measurements at λ_p in the format of explore.js:
//
//	p       λ_p
//	k       κ, and the lower and the upper end of its interval
//	least   lower and upper end of the interval of λ_min(M⁻¹A)
//	most    lower and upper end of the interval of λ_max(M⁻¹A)
//	r       predicted relative residuals after 1, 2, … iterations
//	broken  whether the iterations cannot be predicted
func (r *Row) ExploreData(lambdaP float64) map[string]any {
	ends := func(interval estimate.Interval) []stage.Number {
		return []stage.Number{stage.Number(interval.Lo), stage.Number(interval.Hi)}
	}
	residuals, _ := lanczos.Residuals(r.Alpha, r.Beta)
	for i, residual := range residuals {
		residuals[i] = outward.Rounded(residual, 7) // few digits, to keep the page small
	}
	return map[string]any{"p": lambdaP, "k": append([]stage.Number{stage.Number(r.Kappa.Value)}, ends(r.Kappa)...),
		"least": ends(r.Min), "most": ends(r.Max), "r": residuals, "broken": r.Predicted == 0}
}
