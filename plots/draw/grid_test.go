package draw

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// sampleGrid returns a grid of three panels in two columns.
func sampleGrid() *plots.Figure {
	first := plots.Convergence("first", 1e-3, plots.Series{Name: "pcg", Y: []float64{1, 0.1, 1e-4}},
		plots.Series{Name: "cg", Y: []float64{1, 0.8, 0.5}})
	second := plots.Convergence("second", 1e-3, plots.Series{Name: "cg", Y: []float64{1, 0.8, 0.5, 0.2, 0.1}})
	third := plots.Convergence("third", 1e-3, plots.Series{Name: "cg", Y: []float64{1, 0.9}},
		plots.Series{Name: "direct", Y: []float64{1e-9}, Style: plots.Points})
	return plots.Grid("grid", 2, first, second, third)
}

// layOutPanels returns the drawings of the panels, laid out on 468×400 points.
func layOutPanels(f *plots.Figure) []*drawing {
	drawings := panelsOf(f, pen{Canvas: new(recorder.Canvas)})
	alignPanels(f, drawings, 468, 400)
	return drawings
}

// isNear reports whether two lengths differ by less than half a point.
func isNear(a, b vg.Length) bool { return a-b < 0.5 && b-a < 0.5 }

// TestGridLayout checks that plots have the same size and are aligned, and that ShareX gives them the same axis.
func TestGridLayout(t *testing.T) {
	f := sampleGrid()
	drawings := layOutPanels(f)
	if drawings[0].x.max == drawings[1].x.max || drawings[0].y.min == drawings[2].y.min {
		t.Error("without ShareX, two panels have the same axis")
	}
	if !isNear(drawings[0].box.Min.X, drawings[2].box.Min.X) || !isNear(drawings[0].box.Min.Y, drawings[1].box.Min.Y) ||
		!isNear(drawings[0].box.Max.Y, drawings[1].box.Max.Y) {
		t.Errorf("plots are not in line: %v %v %v", drawings[0].box, drawings[1].box, drawings[2].box)
	}
	f.ShareX = true
	drawings = layOutPanels(f)
	for i, d := range drawings {
		if d.x.min != drawings[0].x.min || d.x.max != drawings[0].x.max ||
			!reflect.DeepEqual(labels(d.x.ticks), labels(drawings[0].x.ticks)) {
			t.Errorf("panel %d does not share its axis", i)
		}
		if size := d.box.Size(); !isNear(size.X, drawings[0].box.Size().X) ||
			!isNear(size.Y, drawings[0].box.Size().Y) {
			t.Errorf("panel %d is %v, the first %v", i, size, drawings[0].box.Size())
		}
	}
	if drawings[0].x.max < 4 {
		t.Errorf("the shared axis does not show all panels: %v", drawings[0].x)
	}
	if !drawings[0].hideX || drawings[1].hideX || drawings[2].hideX {
		t.Error("labels of x hidden: want those of the first panel, which has one below")
	}
}

// TestGridLegend checks that a name has the same appearance in all panels and is listed once in the legend.
func TestGridLegend(t *testing.T) {
	drawings := layOutPanels(sampleGrid())
	var names []string
	for _, entry := range entries(drawings...) {
		names = append(names, entry.name)
	}
	if !reflect.DeepEqual(names, []string{"pcg", "cg", "direct"}) {
		t.Errorf("legend %v", names)
	}
	if cg := drawings[0].appearanceOf(1); !reflect.DeepEqual(drawings[1].appearanceOf(0), cg) ||
		!reflect.DeepEqual(drawings[2].appearanceOf(0), cg) {
		t.Error("cg looks different in different panels")
	}
	svg := sampleGrid().SVG()
	for _, want := range []string{">first<", ">second<", ">third<", ">pcg<"} {
		if strings.Count(svg, want) != 1 {
			t.Errorf("%d times %q in the SVG", strings.Count(svg, want), want)
		}
	}
}

// TestGridColumns checks the numbers of columns and rows.
func TestGridColumns(t *testing.T) {
	for n, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 3: {2, 2}, 4: {2, 2}, 5: {3, 2}, 9: {3, 3}, 10: {3, 4}} {
		f := &plots.Figure{Panels: make([]plots.Figure, n)}
		if got := [2]int{columnsOf(f), rowsOf(f)}; got != want {
			t.Errorf("%d panels in %v, want %v", n, got, want)
		}
	}
	if f := (&plots.Figure{Panels: make([]plots.Figure, 2), Columns: 5}); columnsOf(f) != 2 {
		t.Errorf("%d columns for two panels", columnsOf(f))
	}
}

// TestGridValidate checks the errors of grids that cannot be drawn.
func TestGridValidate(t *testing.T) {
	for want, change := range map[string]func(f *plots.Figure){
		"has both panels and data":               func(f *plots.Figure) { f.HLines = []plots.RefLine{{At: 1}} },
		`panel 2 ("second") has no series`:       func(f *plots.Figure) { f.Panels[1].Series = nil },
		`panel 1 ("first") has panels`:           func(f *plots.Figure) { f.Panels[0] = *sampleGrid(); f.Panels[0].Title = "first" },
		"panels 1 and 3 cannot share":            func(f *plots.Figure) { f.ShareX = true; f.Panels[2].X.Log = true },
		"-1 columns":                             func(f *plots.Figure) { f.Columns = -1 },
		"is 60 by":                               func(f *plots.Figure) { f.Width = 60 },
		`panel 3 ("third"): series "cg" has 1 v`: func(f *plots.Figure) { f.Panels[2].Series[0].X = []float64{1} },
	} {
		f := sampleGrid()
		change(f)
		checkRefused(t, f, want)
	}
}

// TestPanelTitles checks that the titles of panels are aligned. They begin at the plots, or at the edges of the panels
// if one of them is wider than its plot.
func TestPanelTitles(t *testing.T) {
	titlePositions := func(second string) (x []float64) {
		a := &plots.Figure{Title: "short", Series: unnamedSeries(1, 2)}
		b := &plots.Figure{Title: second, Series: unnamedSeries(1, 2)}
		for _, match := range regexp.MustCompile(`(?s)<text x="([0-9.]+)"[^>]*font-weight:bold`).FindAllStringSubmatch(plots.Grid("", 1, a, b).SVG(), -1) {
			v := must(strconv.ParseFloat(match[1], 64))
			x = append(x, v)
		}
		return x
	}
	plain, long := titlePositions("as short"), titlePositions(strings.Repeat("a long title ", 9))
	if len(plain) != 2 || len(long) != 2 || plain[0] != plain[1] || long[0] != long[1] || long[0] >= plain[0] {
		t.Errorf("titles begin at %v, with a long one at %v", plain, long)
	}
}

// TestGroupAlike checks that all numbers of four digits on an axis have a comma if a longer number has one.
func TestGroupAlike(t *testing.T) {
	for want, ticks := range map[string][]float64{"625 2,500 10,000": {625, 2500, 10000},
		"625 2500 5000": {625, 2500, 5000}} {
		a := plots.Axis{Ticks: ticks, Log: true}
		s := fitScale(&a, limits{600, 11000}, nil, 5, func(*scale) bool { return false })
		if got := strings.Join(labels(s.ticks), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for number, want := range map[string]string{"5000": "5,000", "−5000.5": "−5,000.5", "5×10³": "5×10³", "500": "500",
		"20,000": "20,000"} {
		if got := text.GroupFrom(number, 4); got != want {
			t.Errorf("%s: %s, want %s", number, got, want)
		}
	}
}

// TestLabelsFit checks that the label of an axis, or of the colors of a map, is not longer than the axis.
func TestLabelsFit(t *testing.T) {
	long := plots.Axis{Label: strings.Repeat("a long label ", 9)}
	plain := &plots.Figure{X: long, Y: long, Series: unnamedSeries(1, 2)}
	colors := &plots.Figure{X: long, Y: long, Map: &plots.HeatMap{X: []float64{1, 2}, Y: []float64{1}, Z: [][]float64{{1, 2}},
		Color: long}}
	for _, f := range []*plots.Figure{plain, colors, plots.Grid("", 2, plain, colors)} {
		canvas := new(recorder.Canvas)
		width, height := sizeOf(f)
		longest := 0.0
		for _, d := range drawTo(f, pen{Canvas: canvas}, vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch) {
			longest = max(longest, d.box.Size().X.Points())
		}
		count := 0
		for _, match := range regexp.MustCompile(`textLength="([0-9.]+)"[^>]*>a long`).FindAllStringSubmatch(f.SVG(),
			-1) {
			count++
			if length, _ := strconv.ParseFloat(match[1], 64); length > longest+0.1 {
				t.Errorf("a label of %g points, the longest axis has %g", length, longest)
			}
		}
		if count < 2 {
			t.Errorf("%d labels", count)
		}
	}
}
