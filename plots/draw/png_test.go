package draw

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/krrlab/lab/plots"
)

// TestPNGPalette checks that a PNG image has a palette whose colors look like those of the drawing. An image with too
// many colors has none.
func TestPNGPalette(t *testing.T) {
	f := &plots.Figure{Title: "κ", Series: []plots.Series{{Name: "a", Y: []float64{1, 2}}, {Name: "b", Y: []float64{2, 1}}}}
	b := f.PNG()
	img := must(png.Decode(bytes.NewReader(b)))
	if _, ok := img.(*image.Paletted); !ok || len(b) > 40000 {
		t.Errorf("a %T of %d bytes", img, len(b))
	}
	many := image.NewRGBA(image.Rect(0, 0, 256, 256))
	few := image.NewRGBA(image.Rect(0, 0, 100, 1))
	for i := range 256 * 256 {
		many.SetRGBA(i%256, i/256, color.RGBA{uint8(i % 256), uint8(i / 256), 0, 255})
	}
	for i := range 100 {
		few.SetRGBA(i, 0, color.RGBA{uint8(2 * i), 7, 0, 255})
	}
	if withPalette(many) != nil {
		t.Error("65,536 colors in a palette")
	}
	p := withPalette(few)
	for i := range 100 {
		if got := p.At(i, 0).(color.RGBA); !looksAlike(got, few.RGBAAt(i, 0)) {
			t.Errorf("%v became %v", few.RGBAAt(i, 0), got)
		}
	}
}

// TestMapPalette checks that a palette keeps the colors of a color bar apart, although neighboring ones look alike.
func TestMapPalette(t *testing.T) {
	bar := image.NewRGBA(image.Rect(0, 0, strips, 1))
	for k := range strips {
		bar.Set(k, 0, stripColor(k))
	}
	p, seen := withPalette(bar), map[color.Color]bool{}
	for k := range strips {
		seen[p.At(k, 0)] = true
	}
	if len(seen) != strips {
		t.Errorf("%d of %d colors", len(seen), strips)
	}
}
