package plots

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// closeEnough is by how much a component of a pixel's color may differ, of 255: it is not seen.
const closeEnough = 12

// encodePNG writes an image with a palette where at most 256 colors are close enough to
// those of all pixels: lines and text then take a fourth of the bytes.
func encodePNG(img image.Image) ([]byte, error) {
	if p := withPalette(img); p != nil {
		img = p
	}
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img)
	return b.Bytes(), err
}

// withPalette returns the image with a palette, which begins with the colors of the
// style, or nil if it has too many colors.
func withPalette(img image.Image) *image.Paletted {
	var colors color.Palette
	index := map[color.RGBA]uint8{}
	known := func(c color.RGBA) uint8 {
		if k, ok := index[c]; ok {
			return k
		}
		k := colors.Index(c)
		if len(colors) == 0 || !alike(colors[k].(color.RGBA), c) && len(colors) < 256 {
			k, colors = len(colors), append(colors, c)
		}
		index[c] = uint8(k)
		return index[c]
	}
	for _, c := range append(palette, paper, ink, soft, grid, faint) {
		known(color.RGBA(c))
	}
	r := img.Bounds()
	out := image.NewPaletted(r, nil)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			k := known(c)
			if !alike(colors[k].(color.RGBA), c) {
				return nil
			}
			out.SetColorIndex(x, y, k)
		}
	}
	out.Palette = colors
	return out
}

// alike reports whether two colors look the same.
func alike(a, b color.RGBA) bool {
	differ := func(x, y uint8) bool { return max(x, y)-min(x, y) > closeEnough }
	return !differ(a.R, b.R) && !differ(a.G, b.G) && !differ(a.B, b.B) && !differ(a.A, b.A)
}
