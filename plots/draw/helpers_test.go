package draw

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/plots"
	"github.com/krrlab/lab/plots/internal/text"
)

// TestMarkLabel checks that the label of a mark inside a crowd of points is placed outside of it.
func TestMarkLabel(t *testing.T) {
	var x, y []float64
	for i := range 41 {
		for j := range 41 {
			x, y = append(x, 40+float64(i)/2), append(y, 40+float64(j)/2)
		}
	}
	f := &plots.Figure{X: plots.Axis{Min: 0, Max: 100}, Y: plots.Axis{Min: 0, Max: 100},
		Series: []plots.Series{{X: x, Y: y, Style: plots.Points}}, Marks: []plots.Mark{{X: 50, Y: 50, Label: "the one chosen"}}}
	d := layOut(f)
	d.placeLabels()
	labels := d.labels
	if len(labels) != 1 || labels[0].veiled != nil || labels[0].mark == nil {
		t.Errorf("want one label, of the mark and without a box behind it, got %+v", labels)
	}
}

// TestSVGText checks that each piece of a line has its length, so that superscripts and subscripts have the right
// position in any font.
func TestSVGText(t *testing.T) {
	svg := (&plots.Figure{Title: "κ of M⁻¹A <λ_p>", X: plots.Axis{Label: "10⁻³ s"}, Series: unnamedSeries(1, 2)}).SVG()
	var end float64
	for _, want := range []string{"κ of M", "−1", "A &lt;λ", "p", "&gt;"} {
		match := regexp.MustCompile(`<text x="([0-9.]+)"[^>]* textLength="([0-9.]+)"[^>]*>` + want +
			`</text>`).FindStringSubmatch(svg)
		if match == nil {
			t.Fatalf("no %q", want)
		}
		x, _ := strconv.ParseFloat(match[1], 64)
		if end > 0 && math.Abs(x-end) > 0.02 {
			t.Errorf("%q starts at %g, the run before ends at %g", want, x, end)
		}
		length, _ := strconv.ParseFloat(match[2], 64)
		end = x + length
	}
	if i := strings.IndexFunc(svg, text.IsMark); i >= 0 {
		t.Errorf("a mark is left: %.80q", svg[i:])
	}
	if svg := (&plots.Figure{Title: "a\ue001\ue000b", Series: unnamedSeries(1, 2)}).SVG(); !strings.Contains(svg,
		">a  b</text>") {
		t.Error("private characters in a label")
	}
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// unnamedSeries returns one series without a name.
func unnamedSeries(y ...float64) []plots.Series { return []plots.Series{{Y: y}} }

// checkContains reports an error for each of the parts that the text does not contain.
func checkContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
