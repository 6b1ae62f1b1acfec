package draw

import (
	"bytes"
	"encoding/xml"
	"html"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/plots"
)

// sampleFigure returns a figure with all styles and with values that cannot be shown.
func sampleFigure() *plots.Figure {
	return &plots.Figure{
		Title: "σ_i² & more", Caption: "a <b> caption",
		X: plots.Axis{Label: "i", Log: true}, Y: plots.Axis{Label: "λ_p", Log: true, Min: 1e-3, Max: math.NaN()},
		Series: []plots.Series{
			{Name: "one", X: []float64{1, 2, 3, 4}, Y: []float64{1, math.NaN(), 0.1, 0.01}},
			{Name: "two", X: []float64{1, 2, 3, 4}, Y: []float64{2, math.Inf(1), -1, 0.5}, Style: plots.Steps,
				Lo: []float64{1, 1, 0, 0.2}, Hi: []float64{3, 3, math.Inf(1), math.NaN()}},
			{Name: "three", X: []float64{1, 10, 0, math.Inf(-1)}, Y: []float64{2, 3, 4, 5}, Style: plots.Points,
				Lo: []float64{1, 2, 3, 4}, Hi: []float64{3, 4, 5, 6}},
		},
		HLines: []plots.RefLine{{At: 0.1, Label: "τ"}, {At: math.NaN()}},
		VLines: []plots.RefLine{{At: 2, Label: "here"}, {At: -1, Label: "nowhere"}},
		Marks:  []plots.Mark{{X: 2, Y: 0.2, Label: "mark"}, {X: 0, Y: 0}},
		Width:  5,
	}
}

// TestFormats checks the texts and the size of a figure in SVG, PNG and HTML.
func TestFormats(t *testing.T) {
	f := sampleFigure()
	svg := f.SVG()
	checkWellFormed(t, svg)
	checkContains(t, svg, "<title>σᵢ² &amp; more</title>", "<desc>a &lt;b&gt; caption</desc>", ">one<", ">two<",
		">three<", ">here<", "Arial", `width="360pt"`, `height="288pt"`)
	for _, forbidden := range []string{"nowhere", "NaN", "Inf"} {
		if strings.Contains(svg, forbidden) {
			t.Errorf("the SVG holds %q", forbidden)
		}
	}
	img := must(png.Decode(bytes.NewReader(f.PNG())))
	if s := img.Bounds().Size(); s.X != 800 || s.Y != 640 {
		t.Errorf("the PNG of 5×4 inches has %v pixels, want 800×640", s)
	}
	htmlText := f.HTML()
	if !strings.HasPrefix(htmlText, "<figure class=\"krr-figure\">\n<svg style=") ||
		!strings.Contains(htmlText, "<figcaption>a &lt;b&gt; caption</figcaption>") {
		t.Errorf("HTML: %.80q", htmlText)
	}
}

// TestSameBytes checks that a figure gives the same bytes each time.
func TestSameBytes(t *testing.T) {
	for _, format := range []string{"svg", "png", "pdf"} {
		first := must((drawer{}).Draw(sampleFigure(), format))
		if second, _ := (drawer{}).Draw(sampleFigure(), format); !bytes.Equal(first, second) {
			t.Errorf("two drawings of one figure differ as %s", format)
		}
		if format == "pdf" && (!bytes.HasPrefix(first, []byte("%PDF-")) ||
			!bytes.Contains(first, []byte("D:20000101000000"))) {
			t.Error("the PDF has a date, or is none")
		}
	}
}

// TestSave checks the files of all formats, and that a failed Save leaves the existing file unchanged.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.svg", "a.PNG", "a.pdf", "a.html"} {
		path := filepath.Join(dir, name)
		if err := sampleFigure().Save(path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() < 1000 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: want a file of mode 644 and at least 1,000 bytes, got %v, %v", name, info, err)
		}
	}
	os.Mkdir(filepath.Join(dir, "sub.svg"), 0o755)
	for name, want := range map[string]string{"a.jpg": ".svg, .png, .pdf or .html", "a": ".svg, .png, .pdf or .html",
		"none/a.svg": "none/a.svg: no such file", "sub.svg": "folder"} {
		err := sampleFigure().Save(filepath.Join(dir, name))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Save(%s) = %v, want %q", name, err, want)
		}
	}
	existing := filepath.Join(dir, "a.svg")
	before, _ := os.ReadFile(existing)
	if err := (&plots.Figure{}).Save(existing); err == nil ||
		!strings.Contains(err.Error(), "has no series, no map and no panels") {
		t.Errorf("Save of an empty figure: %v", err)
	}
	if after, _ := os.ReadFile(existing); !bytes.Equal(before, after) {
		t.Error("a figure that cannot be drawn changed the file")
	}
	if partFiles, _ := filepath.Glob(filepath.Join(dir, ".*part")); len(partFiles) > 0 {
		t.Errorf("left behind: %v", partFiles)
	}
	if plots.CheckFormat("x.svg") != nil || plots.CheckFormat("x.gif") == nil {
		t.Error("CheckFormat refuses .svg or accepts .gif")
	}
}

// TestValidate checks the errors of figures that cannot be drawn.
func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, f := range map[string]*plots.Figure{
		"has no series":                       {},
		"has no value that its axes can show": {Series: []plots.Series{{}}},
		"no value that its axes":              {Series: unnamedSeries(nan, inf)},
		"no value that":                       {Y: plots.Axis{Log: true}, Series: unnamedSeries(0, -1)},
		"1 values of x and 2 of y":            {Series: []plots.Series{{X: []float64{1}, Y: []float64{1, 2}}}},
		"with 1 lower and 0 upper bounds":     {Series: []plots.Series{{Lo: []float64{1}, Y: []float64{1}}}},
		"unknown style 9":                     {Series: []plots.Series{{Y: []float64{1}, Style: 9}}},
		"the x axis runs from 2 down to 1":    {X: plots.Axis{Min: 2, Max: 1}, Series: unnamedSeries(1)},
		"the y axis cannot end at 0":          {Y: plots.Axis{Log: true, Max: 1}, Series: unnamedSeries(1)},
		"the y axis cannot end at +Inf":       {Y: plots.Axis{Min: 0, Max: inf}, Series: unnamedSeries(1)},
		"is 0.1 by 4 inches":                  {Width: 0.1, Series: unnamedSeries(1)},
	} {
		checkRefused(t, f, want)
	}
}

// checkRefused checks that a figure cannot be drawn for a reason in one line, and that all formats show it.
func checkRefused(t *testing.T, f *plots.Figure, wantErr string) {
	t.Helper()
	err := f.Validate()
	if err == nil || !strings.Contains(err.Error(), wantErr) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %q", err, wantErr)
		return
	}
	want := html.EscapeString(err.Error())
	if got := f.HTML(); got != "<pre>"+want+"</pre>\n" {
		t.Errorf("HTML: %q, want %q", got, want)
	}
	if got := f.SVG(); !strings.Contains(got, "<desc>"+want+"</desc>") {
		t.Errorf("SVG: %.200q, want %q", got, want)
	}
	if _, err := png.Decode(bytes.NewReader(f.PNG())); err != nil {
		t.Errorf("PNG: %v", err)
	}
}

// TestHardData draws extreme but valid data in every format.
func TestHardData(t *testing.T) {
	samples := make([]float64, 200000)
	for i := range samples {
		samples[i] = math.Sin(float64(i))
	}
	ascending := make([]float64, 60)
	for i := range ascending {
		ascending[i] = float64(i + 1)
	}
	wideTitle := plots.Convergence(strings.Repeat("title ", 30), 0, plots.Series{Y: []float64{1, 2}})
	manySeries := &plots.Figure{}
	for range 20 {
		manySeries.Series = append(manySeries.Series, plots.Series{Name: strings.Repeat("long name ", 12),
			Y: []float64{1, 2}})
	}
	for name, f := range map[string]*plots.Figure{
		"one point":  {Series: unnamedSeries(3)},
		"zero":       {Series: unnamedSeries(0, 0)},
		"constant":   {Y: plots.Axis{Log: true}, Series: unnamedSeries(1e-300, 1e-300)},
		"huge":       {Series: unnamedSeries(-math.MaxFloat64, math.MaxFloat64)},
		"huge log":   {Y: plots.Axis{Log: true}, Series: unnamedSeries(5e-324, math.MaxFloat64)},
		"tiny range": {Series: unnamedSeries(1, 1+1e-15, 1)},
		"tiny log":   {Y: plots.Axis{Log: true}, Series: unnamedSeries(1, 1.0001)},
		"outside": {Y: plots.Axis{Min: 10, Max: 11}, X: plots.Axis{Min: math.NaN(), Max: -5},
			Series: unnamedSeries(1, 2)},
		"outside log": {Y: plots.Axis{Log: true, Min: 10, Max: math.NaN()}, Series: unnamedSeries(1, 2)},
		"long":        {Series: unnamedSeries(samples...)},
		"many":        manySeries,
		"small": {Width: 1, Height: 1, Title: strings.Repeat("title ", 20), X: plots.Axis{Label: "x"},
			Y: plots.Axis{Label: "y"}, Series: []plots.Series{{Name: "n", Y: []float64{1, 2}}}},
		"odd text": {Title: "_a^ ^{ _{} 日本 \x00", Series: []plots.Series{{Name: "^", Y: []float64{1, 2}}}},
		"two marks": {Series: unnamedSeries(1, 2), Marks: []plots.Mark{{X: 0, Y: 1, Label: "a"}, {X: 0, Y: 1,
			Label: "b"}}},
		"band of lines": {Series: []plots.Series{{Y: []float64{1}, Lo: []float64{0}, Hi: []float64{2}}}},
		"one panel":     plots.Grid("", 0, wideTitle),
		"long titles": plots.Grid(strings.Repeat("title ", 50), 8, wideTitle, wideTitle, wideTitle, wideTitle,
			wideTitle, wideTitle, wideTitle, wideTitle),
		"mixed":        plots.Grid("t", 0, sampleMap(), wideTitle, &sampleGrid().Panels[0], sampleMap()),
		"small panels": {Width: 1, Height: 1, Panels: sampleGrid().Panels},
		"zero map":     {Map: &plots.HeatMap{X: []float64{0}, Y: []float64{0}, Z: [][]float64{{0}}}},
		"huge map": {Map: &plots.HeatMap{X: []float64{-math.MaxFloat64, math.MaxFloat64}, Y: []float64{0},
			Z: [][]float64{{-math.MaxFloat64, math.MaxFloat64}}}},
		"huge log map": plots.Map("", "", "", "", []float64{5e-324, math.MaxFloat64}, []float64{1},
			[][]float64{{5e-324, math.MaxFloat64}}),
		"many cells":  plots.Map("t", "x", "y", "z", ascending, ascending, slices.Repeat([][]float64{ascending}, len(ascending))),
		"outside map": {X: plots.Axis{Min: 5, Max: 6}, Map: &plots.HeatMap{X: []float64{1}, Y: []float64{1}, Z: [][]float64{{3}}}},
		"map, series": {Map: &plots.HeatMap{X: []float64{1}, Y: []float64{1}, Z: [][]float64{{3}}},
			Series: []plots.Series{{Name: "path", Y: []float64{1, 2}}}},
	} {
		for _, format := range []string{"svg", "pdf", "png"} {
			if name == "long" && format != "svg" {
				continue
			}
			if encoded, err := (drawer{}).Draw(f, format); err != nil || format == "svg" &&
				bytes.Contains(encoded, []byte("NaN")) {
				t.Errorf("%s as %s: %v", name, format, err)
			}
		}
	}
	odd := (&plots.Figure{Title: "a\x00b\nc\xff", Caption: "\x01",
		Series: []plots.Series{{Name: "\x02<", Y: []float64{1, 2}}}}).SVG()
	checkWellFormed(t, odd)
}

// checkWellFormed ends the test if a text is not well-formed XML.
func checkWellFormed(t *testing.T, text string) {
	t.Helper()
	for dec := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

// TestLegendClear checks that the legend covers no sample: it is in a free corner of the plot, or above the plot if
// there is none.
func TestLegendClear(t *testing.T) {
	f := &plots.Figure{Series: []plots.Series{{Name: "rise", Y: []float64{0, 1, 2, 3}}}}
	d := layOut(f)
	d.rasterizeData()
	lg, isInside := d.placeLegend()
	if !isInside || d.darknessIn(lg.box) != 0 || lg.box.Max.X > (d.box.Min.X+d.box.Max.X)/2 {
		t.Errorf("rising line: inside %v at %v covers %g of data", isInside, lg.box, d.darknessIn(lg.box))
	}
	var y []float64
	for i := range 60 {
		y = append(y, float64(i%2))
	}
	d = layOut(&plots.Figure{Series: []plots.Series{{Name: "zigzag", Y: y}}})
	d.rasterizeData()
	if _, isInside := d.placeLegend(); isInside {
		t.Error("a legend inside a plot that is full")
	}
}

// layOut returns the drawing of a figure on 468×288 points, with its layout.
func layOut(f *plots.Figure) *drawing {
	d := &drawing{figure: f, width: 468, height: 288, extent: extentOf(f)}
	d.layout(0)
	return d
}

// TestNeutral checks that a neutral line has no markers and takes no color from the named series, that neutral points
// have markers, and that those of many points are small.
func TestNeutral(t *testing.T) {
	values := []float64{0, 1}
	f := &plots.Figure{Panels: []plots.Figure{{Series: []plots.Series{{Name: "reference", X: values, Y: values, Neutral: true},
		{Name: "bins", Style: plots.Points, X: values, Y: values, Neutral: true}, {Name: "a", X: values, Y: values},
		{Name: "many", Style: plots.Points, Y: make([]float64, 2*manyPoints)}}}}}
	var d *drawing
	must(document{format: "png", width: 6, height: 4}.render(func(p pen, w, h vg.Length) { d = drawTo(f, p, w, h)[0] }))
	if a := d.appearanceOf(2); len(d.markerPoints(0)) != 0 || len(d.markerPoints(1)) != 2 || a.color != palette[0] ||
		d.appearanceOf(1).color != axisColor || a.radius != markRadius || d.appearanceOf(3).radius >= markRadius {
		t.Errorf("marked points %v and %v, appearance %+v", d.markerPoints(0), d.markerPoints(1), a)
	}
}
