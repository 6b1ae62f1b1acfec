package plots

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// pixels counts the pixels of an image of a color.
func pixels(img image.Image, want color.Color) (n int) {
	rgba := color.RGBAModel.Convert(want).(color.RGBA)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if color.RGBAModel.Convert(img.At(x, y)) == color.Color(rgba) {
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
		Series{Name: "κ", X: []float64{1e-7, 1e-6, 1e-5, 1e-4}, Y: []float64{90, 20, 5, 60},
			Lo: []float64{80, 18, 4, 50}, Hi: []float64{99, 25, 6, 70}},
		Series{Name: "measured", X: []float64{1e-7, 1e-5}, Y: []float64{80, 6}, Style: Points})
	sweep.Marks = []Mark{{1e-5, 5, "least"}}
	for name, f := range map[string]*Figure{"sweep": sweep, "map": sampleMap(), "sample": sample(),
		"convergence": Convergence("c", 1e-3, Series{Name: "pcg", Y: []float64{1, 0.1, 1e-4}},
			Series{Y: []float64{1, 0.9, 0.8}})} {
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
			if a.got.Min != a.want.Min || a.got.Max != a.want.Max || a.got.Label.Text != a.of.Label ||
				!reflect.DeepEqual(labels(ticks), labels(a.want.ticks)) {
				t.Errorf("%s: axis %q in [%g, %g] with %v, want [%g, %g] with %v", name, a.got.Label.Text, a.got.Min,
					a.got.Max, labels(ticks),
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

// TestPlotGoesOn checks that axes that were changed have their own ticks.
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
