package plots

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestSpectrum(t *testing.T) {
	y := make([]float64, 60)
	for i := range y {
		y[i] = 1 / float64(i+1)
	}
	in := []Series{{Name: "K", Y: y}, {Name: "Ritz", X: []float64{1, 60}, Y: []float64{1, 0.02}, Style: Points}}
	f := Spectrum("t", 0.1, in...)
	if !f.X.Log || !f.Y.Log || f.Series[0].X[0] != 1 || f.Series[0].X[59] != 60 || f.Series[1].X[1] != 60 ||
		f.HLines[0].At != 0.1 {
		t.Errorf("%+v", f)
	}
	if in[0].X != nil {
		t.Error("the caller's series was changed")
	}
	if f := Spectrum("t", math.NaN(), Series{Y: y[:5]}); f.X.Log || len(f.HLines) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestLadder(t *testing.T) {
	a := Series{Name: "a", X: []float64{1000, 2000}, Y: []float64{60, 20}}
	b := Series{Name: "b", X: []float64{500, 1000}, Y: []float64{90, 30}, Style: Steps}
	f := Ladder("t", "κ", 30, 1, a, b)
	if !reflect.DeepEqual(f.X.Ticks, []float64{500, 1000, 2000}) || f.Series[0].Style != Points ||
		f.Series[1].Style != Steps {
		t.Errorf("%+v", f)
	}
	if len(f.Marks) != 1 || f.Marks[0] != (Mark{2000, 20, "s = 2000"}) || f.HLines[0] != (RefLine{30, "target 30"}) {
		t.Errorf("%+v %+v", f.Marks, f.HLines)
	}
	for _, chosen := range []int{-1, 2} {
		if f := Ladder("t", "κ", 0, chosen, a); len(f.Marks)+len(f.HLines) != 0 {
			t.Errorf("rung %d: %+v", chosen, f)
		}
	}
	d := laidOut(f)
	if got := labels(d.x.ticks); !reflect.DeepEqual(got, []string{"500", "1000", "2000"}) {
		t.Errorf("ticks %v", got)
	}
}

func TestSweep(t *testing.T) {
	f := Sweep("t", "λ_p", "κ", []RefLine{{1, "λ"}}, Series{X: []float64{1, 2}, Y: []float64{3, 4}})
	if !f.X.Log || !f.Y.Log || f.X.Label != "λ_p" || len(f.VLines) != 1 {
		t.Errorf("%+v", f)
	}
}

// TestMarkLabel checks that the label of a mark in a crowd stands clear of it.
func TestMarkLabel(t *testing.T) {
	var x, y []float64
	for i := range 41 {
		for j := range 41 {
			x, y = append(x, 40+float64(i)/2), append(y, 40+float64(j)/2)
		}
	}
	f := &Figure{X: Axis{Min: 0, Max: 100}, Y: Axis{Min: 0, Max: 100},
		Series: []Series{{X: x, Y: y, Style: Points}}, Marks: []Mark{{50, 50, "the one chosen"}}}
	d := laidOut(f)
	d.placeLabels()
	ls := d.labels
	if len(ls) != 1 || ls[0].veil != nil || ls[0].mark == nil {
		t.Errorf("%+v", ls)
	}
}

// TestSVGText makes sure that each run of a line says how long it is, so that raised and
// lowered ones stand where they should in any font.
func TestSVGText(t *testing.T) {
	svg := (&Figure{Title: "κ of M⁻¹A <λ_p>", X: Axis{Label: "10⁻³ s"}, Series: []Series{{Y: []float64{1, 2}}}}).SVG()
	var end float64
	for _, want := range []string{"κ of M", "−1", "A &lt;λ", "p", "&gt;"} {
		m := regexp.MustCompile(`<text x="([0-9.]+)"[^>]* textLength="([0-9.]+)"[^>]*>` + want +
			`</text>`).FindStringSubmatch(svg)
		if m == nil {
			t.Fatalf("no %q", want)
		}
		x, _ := strconv.ParseFloat(m[1], 64)
		if end > 0 && math.Abs(x-end) > 0.02 {
			t.Errorf("%q starts at %g, the run before ends at %g", want, x, end)
		}
		length, _ := strconv.ParseFloat(m[2], 64)
		end = x + length
	}
	if i := strings.IndexFunc(svg, isMark); i >= 0 {
		t.Errorf("a mark is left: %.80q", svg[i:])
	}
	if svg := (&Figure{Title: "a\ue001\ue000b", Series: []Series{{Y: []float64{1, 2}}}}).SVG(); !strings.Contains(svg,
		">a  b</text>") {
		t.Error("private characters in a label")
	}
}
