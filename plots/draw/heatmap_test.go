package draw

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/plots"
)

// sampleMap returns a map with values that cannot be shown.
func sampleMap() *plots.Figure {
	f := plots.Map("κ", "s", "λ_p", "κ(M⁻¹A)", []float64{500, 1000, 2000}, []float64{1e-6, 1e-4},
		[][]float64{{100, 40, 10}, {7, math.NaN(), math.Inf(1)}})
	f.Marks = []plots.Mark{{X: 500, Y: 1e-4, Label: "chosen"}, {X: 1e9, Y: 1, Label: "nowhere"}}
	f.VLines = []plots.RefLine{{At: 800, Label: "dimension"}}
	return f
}

// TestMapCells checks the rectangles of the cells, and which cell contains a point.
func TestMapCells(t *testing.T) {
	f := sampleMap()
	d := layOut(f)
	if first, last := d.cell(0, 0), d.cell(1, 2); distance(first.Min, d.box.Min) > 1e-6 ||
		distance(last.Max, d.box.Max) > 1e-6 {
		t.Errorf("cells from %v to %v do not fill %v", first.Min, last.Max, d.box)
	}
	if math.Abs(float64(d.cell(0, 1).Size().X-d.box.Size().X/3)) > 1e-6 {
		t.Error("cells of doubled sizes are not equally wide on a log axis")
	}
	for _, c := range []struct {
		x, y float64
		i, j int  // row and column of the cell that contains (x, y)
		ok   bool // a cell contains (x, y)
	}{{500, 1e-6, 0, 0, true}, {720, 1e-4, 1, 1, true}, {700, 1e-4, 1, 0, true}, {3000, 1e-6, 0, 0, false}, {0, 1, 0,
		0, false}} {
		if i, j, ok := cellAt(f, c.x, c.y); ok != c.ok || ok && (i != c.i || j != c.j) {
			t.Errorf("cellAt(%g, %g) = %d, %d, %v", c.x, c.y, i, j, ok)
		}
	}
	if d.colorBar.Min.X < d.box.Max.X || d.colorBar.Max.X+d.colorBarLabelWidth() > d.width {
		t.Errorf("bar %v beside the plot %v on %v points", d.colorBar, d.box, d.width)
	}
	if got := labels(d.x.ticks); !reflect.DeepEqual(got, []string{"500", "1000", "2000"}) {
		t.Errorf("ticks %v", got)
	}
}

// TestMapImage checks that a map with many cells is an image. Each pixel must have the color of its cell, and pixels
// outside the cells must be white.
func TestMapImage(t *testing.T) {
	const nx, ny = 60, 50
	z, x, y := make([][]float64, ny), make([]float64, nx), make([]float64, ny)
	for i := range y {
		y[i], z[i] = float64(i), make([]float64, nx)
		for j := range x {
			x[j], z[i][j] = float64(j), float64(i*nx+j)
		}
	}
	z[3][5] = math.NaN()
	f := &plots.Figure{Map: &plots.HeatMap{X: x, Y: y, Z: z, Bare: true}, X: plots.Axis{Min: -10, Max: nx}}
	d := layOut(f)
	svg := f.SVG()
	if !strings.Contains(svg, "<image") || len(svg) > 50*nx*ny {
		t.Errorf("%d bytes", len(svg))
	}
	img := must(png.Decode(bytes.NewReader(f.PNG())))
	// colorOf returns the color of the picture at the data coordinates x and y.
	colorOf := func(x, y float64) color.NRGBA {
		scale := float64(img.Bounds().Dx()) / float64(d.width)
		return nrgba(img.At(int(float64(d.canvasX(x))*scale), img.Bounds().Dy()-1-int(float64(d.canvasY(y))*scale)))
	}
	for _, cell := range [][2]int{{0, 0}, {ny - 1, nx - 1}, {ny / 2, 7}, {10, 50}} {
		got, want := colorOf(float64(cell[1]), float64(cell[0])), nrgba(d.shadeOf(z[cell[0]][cell[1]]))
		for k, v := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
			if v < -12 || v > 12 { // the pixel may belong to the next cell, whose color differs slightly
				t.Errorf("cell %v: %v, want %v (%d)", cell, got, want, k)
			}
		}
	}
	if got := colorOf(5, 3); got != nrgba(gridColor) {
		t.Errorf("NaN: %v", got)
	}
	if got := colorOf(-8, 20); got != nrgba(backgroundColor) {
		t.Errorf("outside: %v", got)
	}
}

// TestMapText checks the texts of values in cells.
func TestMapText(t *testing.T) {
	m := &plots.HeatMap{}
	for v, want := range map[float64]string{1.234: "1.23", 12.34: "12.3", 999.7: "1000", 12345: "12,345",
		2.5e6: "2.5×10⁶",
		1e-5:  "10⁻⁵", 0: "0", -0.5: "−0.5", math.Inf(1): "∞"} {
		if got := valueText(m, v); got != want {
			t.Errorf("text(%g) = %q, want %q", v, got, want)
		}
	}
	if got := valueText(&plots.HeatMap{Format: "%.1f"}, 2.25); got != "2.2" {
		t.Errorf("format: %q", got)
	}
	svg := sampleMap().SVG()
	checkContains(t, svg, ">100<", ">40<", ">7<", ">∞<", ">dimension<", ">chosen<")
	if strings.Contains(svg, "nowhere") || strings.Contains(svg, "NaN") {
		t.Error("the map shows what it should not")
	}
	bare := sampleMap()
	bare.Map.Bare = true
	if strings.Contains(bare.SVG(), ">40<") {
		t.Error("a bare map has values")
	}
}

// TestColors checks that the lightness of the colors decreases, and that the values in the cells have enough contrast.
func TestColors(t *testing.T) {
	previous := 2.0
	for k := range 101 {
		lum := luminance(colorAt(float64(k) / 100))
		if lum >= previous {
			t.Fatalf("luminance rises at %d", k)
		}
		previous = lum
	}
	d := &drawing{figure: sampleMap(), color: newScale(&plots.Axis{Min: 0, Max: 1}, limits{0, 1})}
	for k := range 101 {
		z := 1e-9 + float64(k)/100
		a, b := luminance(d.shadeOf(z)), luminance(d.textColorOn(z))
		if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < 3.9 {
			t.Errorf("contrast %g at %g", ratio, z)
		}
	}
}

// luminance returns the relative luminance of a color in sRGB, from 0 to 1.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// TestMapValidate checks the errors of maps that cannot be drawn.
func TestMapValidate(t *testing.T) {
	nan := math.NaN()
	for want, change := range map[string]func(m *plots.HeatMap){
		`figure "κ": the map has no values of x`: func(m *plots.HeatMap) { m.X = nil },
		"must rise, and 1000 follows":            func(m *plots.HeatMap) { m.X[2] = 1000 },
		"at y = 0, which the axis cannot":        func(m *plots.HeatMap) { m.Y[0] = 0 },
		"1 rows for 2 values of y":               func(m *plots.HeatMap) { m.Z = m.Z[:1] },
		"row 1 of the map has 2 cells":           func(m *plots.HeatMap) { m.Z[1] = m.Z[1][:2] },
		"no value that its colors":               func(m *plots.HeatMap) { m.Z = [][]float64{{nan, nan, nan}, {0, -1, nan}} },
		"color axis runs from 2 down to":         func(m *plots.HeatMap) { m.Color.Min, m.Color.Max = 2, 1 },
		"reference lines at values of x":         nil,
	} {
		f := sampleMap()
		if change == nil {
			f.HLines, change = []plots.RefLine{{}}, func(*plots.HeatMap) {}
		}
		change(f.Map)
		checkRefused(t, f, want)
	}
}
