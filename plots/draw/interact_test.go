package draw

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/krrlab/lab/plots"
)

// TestInteractive checks what an interactive figure contains for its script: the data as drawn, and groups for the
// plot and for each name of the legend, in well-formed SVG. Nothing in the data may end the script element.
func TestInteractive(t *testing.T) {
	f := sampleFigure()
	f.Series[0].Name = `one</script>"<`
	f.Controls = &plots.Controls{Name: "c", Sliders: []plots.Slider{{Name: "λ", Min: 1, Max: 2, Value: 1}},
		Script: "// what\n  // why\n  () => 1\n", Data: []float64{3}}
	htmlText := f.HTML()
	if n := strings.Count(htmlText, "</script>"); n != 3 || strings.Count(htmlText, "<script") != 3 {
		t.Errorf("%d scripts end, want 3", n)
	}
	if !strings.Contains(htmlText, `["c"] = () => 1;</script>`) {
		t.Error("no script of the controls")
	}
	dataText := regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`).FindStringSubmatch(htmlText)[1]
	dataText = strings.ReplaceAll(dataText, "1e999", "1e300")
	var d struct {
		Panels []struct {
			Box  []float64
			X, Y struct {
				Log      bool
				Min, Max float64
			}
			Series []struct {
				N, S, C, D, M string
				X, Y, Lo, Hi  []*float64
			}
			H, V, Marks [][]any
			Fixed       bool
		}
		Controls struct{ Sliders []plots.Slider }
	}
	if err := json.Unmarshal([]byte(dataText), &d); err != nil || len(d.Panels) != 1 {
		t.Fatalf("%v\n%s", err, dataText)
	}
	panel := d.Panels[0]
	if !panel.X.Log || !panel.Y.Log || panel.Y.Min != 1e-3 || !(panel.Y.Max > 5) || len(panel.Series) != 3 ||
		len(panel.H) != 1 ||
		len(panel.V) != 2 || len(panel.Marks) != 1 || panel.Fixed {
		t.Errorf("panel %+v", panel)
	}
	if s := panel.Series[1]; s.N != "two" || s.S != "steps" || *s.Y[0] != 2 || *s.Y[1] != 1e300 || *s.Hi[2] != 1e300 ||
		s.Hi[3] != nil || s.C != "#D55E00" || s.D != "6 2.5" {
		t.Errorf("series %+v", s)
	}
	if panel.Series[0].Y[1] != nil || len(d.Controls.Sliders) != 1 {
		t.Error("NaN is a value, or the slider is lost")
	}
	svg, _ := (drawer{}).Interactive(f)
	checkContains(t, svg, `<g class="krr-axes" data-name="">`, `<g class="krr-data" data-name="">`,
		`<g class="krr-entry" data-name="one&lt;/script&gt;`, `data-name="two">`)
	if strings.ContainsAny(svg, "\ue000\ue001\ue002\ue003\ue004") ||
		strings.Count(svg, "<g") != strings.Count(svg, "</g>") || strings.Contains(f.SVG(), "krr-") {
		t.Error("marks of groups are left")
	}
	if page := plots.KeepLastScript(htmlText + htmlText); page != strings.Replace(htmlText,
		htmlText[strings.LastIndex(htmlText, "<script>"):],
		"</figure>\n", 1)+htmlText {
		t.Error("a page of two figures has not one script at its end")
	}
	long := &plots.Figure{Series: []plots.Series{{Y: make([]float64, 3*thinningThreshold)}}}
	long.Series[0].Y[7] = math.NaN()
	if n := strings.Count(long.HTML(), "0,0,0,0"); n > thinningThreshold {
		t.Errorf("%d samples of a long series are passed to the script, want at most %d", n, thinningThreshold)
	}
	if g := plots.Grid("g", 0, sampleFigure(), plots.Map("m", "x", "y", "z", []float64{1}, []float64{1},
		[][]float64{{2}})); !strings.Contains(g.HTML(), `"z":[[2]]}`) || !strings.Contains(g.HTML(), `"fixed":true`) {
		t.Error("no map for the script")
	}
}
