package plots

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// pixels counts the pixels of an image of a color, or of one that looks the same.
func pixels(img image.Image, want color.Color) (n int) {
	rgba := color.RGBAModel.Convert(want).(color.RGBA)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if alike(color.RGBAModel.Convert(img.At(x, y)).(color.RGBA), rgba) {
				n++
			}
		}
	}
	return n
}

// drawn returns a plot as gonum draws it at the size of a figure.
func drawn(p *plot.Plot) image.Image {
	c := vgimg.NewWith(vgimg.UseWH(6.5*vg.Inch, 4*vg.Inch), vgimg.UseDPI(DotsPerInch))
	p.Draw(draw.New(c))
	return c.Image()
}

func decoded(t *testing.T, f *Figure) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(f.PNG()))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestPlot draws figures both ways and compares what must be the same.
func TestPlot(t *testing.T) {
	sweep := Sweep("κ of λ_p", "λ_p", "κ", []RefLine{{1e-6, "λ"}},
		Series{Name: "κ", X: []float64{1e-7, 1e-6, 1e-5, 1e-4}, Y: []float64{90, 20, 5, 60}, Lo: []float64{80, 18, 4, 50}, Hi: []float64{99, 25, 6, 70}},
		Series{Name: "measured", X: []float64{1e-7, 1e-5}, Y: []float64{80, 6}, Style: Points})
	sweep.Marks = []Mark{{1e-5, 5, "least"}}
	for name, f := range map[string]*Figure{"sweep": sweep, "map": sampleMap(), "sample": sample(),
		"convergence": Convergence("c", 1e-3, Series{Name: "pcg", Y: []float64{1, 0.1, 1e-4}}, Series{Y: []float64{1, 0.9, 0.8}})} {
		w, h := f.size()
		d := &drawing{f: f, w: vg.Length(w) * vg.Inch, h: vg.Length(h) * vg.Inch, extent: f.extent()}
		key, _ := d.arrange()
		p, err := f.Plot()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []struct {
			got  plot.Axis
			want *scale
			of   Axis
		}{{p.X, d.x, f.X}, {p.Y, d.y, f.Y}} {
			ticks := a.got.Tick.Marker.Ticks(a.got.Min, a.got.Max)
			if a.got.Min != a.want.Min || a.got.Max != a.want.Max || a.got.Label.Text != a.of.Label || !reflect.DeepEqual(labels(ticks), labels(a.want.ticks)) {
				t.Errorf("%s: axis %q in [%g, %g] with %v, want [%g, %g] with %v", name, a.got.Label.Text, a.got.Min, a.got.Max, labels(ticks),
					a.want.Min, a.want.Max, labels(a.want.ticks))
			}
		}
		if got := reflect.ValueOf(p.Legend).FieldByName("entries").Len(); got != len(key.entries) || got == 0 {
			t.Errorf("%s: %d entries in the legend, want %d", name, got, len(key.entries))
		}
		clr := color.Color(palette[0])
		if f.Map != nil {
			clr = colorAt(1)
		}
		theirs, ours := pixels(drawn(p), clr), pixels(decoded(t, f), clr)
		if theirs < 100 || theirs < ours/3 || theirs > 3*ours {
			t.Errorf("%s: %d pixels of the first series, %d in the figure", name, theirs, ours)
		}
	}
}

// TestPlotGoesOn checks that axes that were changed have ticks of their own.
func TestPlotGoesOn(t *testing.T) {
	p, err := Convergence("c", 1e-3, Series{Name: "pcg", Y: []float64{1, 0.1, 1e-4}}).Plot()
	if err != nil {
		t.Fatal(err)
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: 50, Y: 1e-9}})
	if err != nil {
		t.Fatal(err)
	}
	line.Color = color.RGBA{200, 0, 0, 255}
	p.Add(line)
	p.Y.Max = 10
	if p.X.Max != 50 || p.Y.Min != 1e-9 {
		t.Errorf("ranges to %g and from %g", p.X.Max, p.Y.Min)
	}
	x, y := labels(p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max)), labels(p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max))
	if x[len(x)-1] != "50" || y[0] != "10⁻⁸" {
		t.Errorf("ticks %v and %v", x, y)
	}
	img := drawn(p)
	if pixels(img, line.Color) < 100 || pixels(img, palette[0]) < 100 {
		t.Error("a line is not drawn")
	}
	for _, ext := range []string{"svg", "pdf", "png", "eps"} {
		if err := p.Save(300, 200, filepath.Join(t.TempDir(), "p."+ext)); err != nil {
			t.Error(err)
		}
	}
	if _, err := sampleGrid().Plot(); err == nil || !strings.Contains(err.Error(), "3 panels") {
		t.Errorf("the plot of a grid: %v", err)
	}
	if _, err := (&Figure{}).Plot(); err == nil {
		t.Error("the plot of an empty figure")
	}
}

// saddle is a field for contours.
type saddle struct{}

func (saddle) Dims() (c, r int)   { return 20, 20 }
func (saddle) Z(c, r int) float64 { return float64((c - 10) * (r - 10)) }
func (saddle) X(c int) float64    { return float64(c) }
func (saddle) Y(r int) float64    { return float64(r) }

// TestPlotterSeries draws plotters of gonum in figures, with their ranges and thumbnails.
func TestPlotterSeries(t *testing.T) {
	hist, err := plotter.NewHist(plotter.Values{1, 2, 2, 3, 3, 3, 4, 4, 5}, 5)
	if err != nil {
		t.Fatal(err)
	}
	hist.FillColor = color.RGBA{1, 200, 3, 255}
	bars, err := plotter.NewBarChart(plotter.Values{3, 8, 5}, vg.Points(60))
	if err != nil {
		t.Fatal(err)
	}
	bars.Color = hist.FillColor
	contour := plotter.NewContour(saddle{}, []float64{-20, 20}, moreland.SmoothBlueRed().Palette(2))
	wave := plotter.NewFunction(math.Sin) // negative values, too
	wave.Color, wave.Width = color.RGBA{200, 2, 3, 255}, 2
	for name, c := range map[string]struct {
		f    *Figure
		clr  color.Color
		want extent
	}{
		"histogram": {&Figure{Series: []Series{{Name: "h", Plotter: hist}, {Name: "ours", X: []float64{2, 9}, Y: []float64{1, 2}}}}, hist.FillColor, extent{1, 9, 0, 3}},
		"bars":      {&Figure{Series: []Series{{Name: "b", Plotter: bars}}}, bars.Color, extent{-0.15, 2.15, 0, 8}},
		"contour":   {&Figure{Series: []Series{{Name: "c", Plotter: contour}}}, contour.Palette.Colors()[0], extent{0, 19, 0, 19}},
		"function":  {&Figure{X: Axis{Min: 0, Max: 7}, Y: Axis{Min: 0.01, Max: 1, Log: true}, Series: []Series{{Name: "f", Plotter: wave}}}, wave.Color, extent{0, 7, 0.01, 1}},
	} {
		if err := c.f.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := laidOut(c.f)
		if d.x.Min > c.want.xlo || d.x.Max < c.want.xhi || d.y.Min > c.want.ylo || d.y.Max < c.want.yhi {
			t.Errorf("%s: axes [%g, %g] and [%g, %g], want %v", name, d.x.Min, d.x.Max, d.y.Min, d.y.Max, c.want)
		}
		plain := *c.f
		plain.Series = append([]Series{{Plotter: c.f.Series[0].Plotter}}, c.f.Series[1:]...)
		with, without := pixels(decoded(t, c.f), c.clr), pixels(decoded(t, &plain), c.clr)
		if _, ok := c.f.Series[0].Plotter.(plot.Thumbnailer); without < 50 || ok && with == without {
			t.Errorf("%s: %d pixels with a legend and %d without", name, with, without)
		}
		p, err := c.f.Plot()
		if err != nil || pixels(drawn(p), c.clr) < 50 {
			t.Errorf("%s: no plot of gonum, %v", name, err)
		}
		if !strings.Contains(c.f.String(), "a *plotter.") {
			t.Errorf("%s: %s", name, c.f)
		}
	}
	for want, s := range map[string]Series{"want one": {Plotter: hist, Y: []float64{1}}, "no value that its axes": {Plotter: wave}} {
		if err := (&Figure{Series: []Series{s}}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
