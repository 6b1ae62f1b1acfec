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
	encoded := f.PNG()
	img := must(png.Decode(bytes.NewReader(encoded)))
	if _, ok := img.(*image.Paletted); !ok || len(encoded) > 40000 {
		t.Errorf("a %T of %d bytes", img, len(encoded))
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
	paletted := withPalette(few)
	for i := range 100 {
		if got := paletted.At(i, 0).(color.RGBA); !looksAlike(got, few.RGBAAt(i, 0)) {
			t.Errorf("%v became %v", few.RGBAAt(i, 0), got)
		}
	}
}

// TestMapPalette checks that a palette keeps the colors of a color bar apart, although neighboring ones look alike.
func TestMapPalette(t *testing.T) {
	colorBar := image.NewRGBA(image.Rect(0, 0, stripCount, 1))
	for k := range stripCount {
		colorBar.Set(k, 0, stripColor(k))
	}
	paletted, colors := withPalette(colorBar), map[color.Color]bool{}
	for k := range stripCount {
		colors[paletted.At(k, 0)] = true
	}
	if len(colors) != stripCount {
		t.Errorf("%d of %d colors", len(colors), stripCount)
	}
}
