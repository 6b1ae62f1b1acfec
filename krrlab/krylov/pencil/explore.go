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

// Explored is what was measured at λ_p, for explore.js.
func (r *Row) Explored(lambdaP float64) map[string]any {
	ends := func(e estimate.Interval) []stage.Number {
		return []stage.Number{stage.Number(e.Lo), stage.Number(e.Hi)}
	}
	course, _ := lanczos.Residuals(r.Alpha, r.Beta)
	for i, c := range course {
		course[i] = outward.Rounded(c, 7) // short in the page
	}
	return map[string]any{"p": lambdaP, "k": append([]stage.Number{stage.Number(r.Kappa.Value)}, ends(r.Kappa)...),
		"least": ends(r.Min), "most": ends(r.Max), "r": course, "broken": r.Predicted == 0}
}
