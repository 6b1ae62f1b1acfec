package plots

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// closeEnough is by how much a component of a pixel's color may differ, of 255: it is not seen.
const closeEnough = 12

// encodePNG writes an image with a palette of its 256 most frequent colors, where each pixel has one that is
// close enough, and otherwise with all: lines and text then take a fourth of the bytes.
func encodePNG(img image.Image) ([]byte, error) {
	if p := withPalette(img); p != nil {
		img = p
	}
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img)
	return b.Bytes(), err
}

func withPalette(img image.Image) *image.Paletted {
	count := map[color.RGBA]int{}
	r := img.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B), cmp.Compare(a.A, b.A))
	})
	var palette color.Palette
	index := map[color.RGBA]uint8{}
	for _, c := range colors {
		i := palette.Index(c)
		if len(palette) == 0 || !alike(palette[i].(color.RGBA), c) {
			if len(palette) == 256 {
				return nil
			}
			i, palette = len(palette), append(palette, c)
		}
		index[c] = uint8(i)
	}
	out := image.NewPaletted(r, palette)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	return out
}

// alike reports whether two colors look the same.
func alike(a, b color.RGBA) bool {
	differ := func(x, y uint8) bool { return max(x, y)-min(x, y) > closeEnough }
	return !differ(a.R, b.R) && !differ(a.G, b.G) && !differ(a.B, b.B) && !differ(a.A, b.A)
}
