package plots

import (
	"math"
	"reflect"
	"regexp"
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
	if !f.X.Log || !f.Y.Log || f.Series[0].X[0] != 1 || f.Series[0].X[59] != 60 || f.Series[1].X[1] != 60 || f.HLines[0].At != 0.1 {
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
	if !reflect.DeepEqual(f.X.Ticks, []float64{500, 1000, 2000}) || f.Series[0].Style != Points || f.Series[1].Style != Steps {
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
	d := &drawing{f: f, w: 468, h: 288}
	d.layout(0)
	if got := labels(d.x.ticks); !reflect.DeepEqual(got, []string{"500", "1000", "2000"}) {
		t.Errorf("ticks %v", got)
	}
}

func TestSweepAndErrorTime(t *testing.T) {
	f := Sweep("t", "λ_p", "κ", []RefLine{{1, "λ"}}, Series{X: []float64{1, 2}, Y: []float64{3, 4}})
	if !f.X.Log || !f.Y.Log || f.X.Label != "λ_p" || len(f.VLines) != 1 {
		t.Errorf("%+v", f)
	}
	for _, c := range []struct {
		x, y []float64
		want [2]bool
	}{
		{[]float64{1, 20}, []float64{5, 6}, [2]bool{true, false}},
		{[]float64{1, 9}, []float64{0.1, 2}, [2]bool{false, true}},
		{[]float64{0, 90}, []float64{math.NaN(), math.Inf(1)}, [2]bool{false, false}},
	} {
		if f := ErrorTime("t", "e", Series{X: c.x, Y: c.y}); [2]bool{f.X.Log, f.Y.Log} != c.want {
			t.Errorf("%v, %v: log %v %v", c.x, c.y, f.X.Log, f.Y.Log)
		}
	}
}

// TestTable checks the numbers of a figure of every kind.
func TestFigureTable(t *testing.T) {
	g := Grid("all", 0, sampleMap(), Ladder("ladder", "κ", 30, 0, Series{Name: "κ", X: []float64{500}, Y: []float64{20}, Lo: []float64{19}, Hi: []float64{21}}))
	want := "panel,series,x,y,lower,upper,κ(M⁻¹A)\n" +
		"κ,,500,1e-06,,,100\nκ,,1000,1e-06,,,40\nκ,,2000,1e-06,,,10\nκ,,500,0.0001,,,7\nκ,,1000,0.0001,,,NaN\nκ,,2000,0.0001,,,+Inf\n" +
		"ladder,κ,500,20,19,21,\n"
	if got := g.Table().CSV(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	bad := &Figure{Series: []Series{{X: []float64{1}, Y: []float64{1, 2}, Lo: []float64{}}}}
	if got := bad.Table().CSV(); !strings.HasSuffix(got, "\n1,1,,\n,2,,\n") {
		t.Errorf("%q", got)
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
	d := &drawing{f: f, w: 468, h: 288}
	d.layout(0)
	d.collect()
	ls := d.placeLabels()
	if len(ls) != 1 || ls[0].veil != nil || ls[0].mark == nil {
		t.Errorf("%+v", ls)
	}
}

// TestSVGFlows makes sure that a line of text is one element, which knows its end and its length: its
// raised and lowered runs then follow each other in any font.
func TestSVGFlows(t *testing.T) {
	svg := (&Figure{Title: "κ of M⁻¹A <λ_p>", X: Axis{Label: "10⁻³ s"}, Series: []Series{{Y: []float64{1, 2}}}}).SVG()
	title := regexp.MustCompile(`<text ([^>]*)>κ of M<tspan dy="([-0-9.]+)" font-size="8.64px">−1</tspan><tspan dy="([-0-9.]+)">A &lt;λ</tspan><tspan dy="[0-9.]+" font-size="8.64px">p</tspan><tspan dy="-[0-9.]+">&gt;</tspan></text>`).FindStringSubmatch(svg)
	if title == nil || title[2] != "-"+title[3] || !strings.Contains(title[1], `text-anchor="start" textLength="`) {
		t.Errorf("%q", title)
	}
	if !regexp.MustCompile(`<text [^>]*text-anchor="middle"[^>]*>10<tspan `).MatchString(svg) {
		t.Error("the axis is not labeled in its middle")
	}
	if i := strings.IndexFunc(svg, isMark); i >= 0 {
		t.Errorf("a mark is left: %.80q", svg[i:])
	}
	if svg := (&Figure{Title: "a\ue001\ue005b", Series: []Series{{Y: []float64{1, 2}}}}).SVG(); !strings.Contains(svg, ">a  b</text>") {
		t.Error("private characters in a label")
	}
}
