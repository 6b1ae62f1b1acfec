package datasets

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/rng"
)

// Deformation is a distribution over small deformations of a picture: a translation, a
// rotation about its centre c, and the elastic deformation of Simard, Steinkraus and Platt
// (ICDAR 2003, DOI 10.1109/ICDAR.2003.1227801). Pixel p of the deformed picture has the
// value of the given one at
//
//	c + R(p − c) + t + α·(G_σ ∗ u)(p),
//
// R the rotation, t the translation, u two pictures of numbers uniform in (−1, 1) and G_σ
// the Gaussian filter of standard deviation σ, cut off at 3σ and of sum 1. Between pixels
// values are interpolated bilinearly; outside the picture there is zero. All lengths are in
// pixels. The zero value leaves pictures as they are.
type Deformation struct {
	Shift  float64 // each component of t is uniform in (−Shift, Shift)
	Rotate float64 // the angle of R is uniform in (−Rotate, Rotate), in degrees
	Alpha  float64 // α: the field's components have the root mean square α/(2σ√(3π))
	Sigma  float64 // σ ≥ 0: 0 leaves out the elastic part
}

// String returns the numbers in words.
func (d Deformation) String() string {
	return fmt.Sprintf("shifts to %g pixels, rotations to %g degrees, elastic α = %g, σ = %g", d.Shift, d.Rotate, d.Alpha, d.Sigma)
}

// deformer applies deformations to pictures of side×side pixels. It holds work space: each
// goroutine has its own.
type deformer struct {
	Deformation
	side   int
	filter []float64 // of G_σ; nil for no elastic part
	noise  []float64 // (side+2r)², r the radius of the filter
	rows   []float64 // side columns of the noise, filtered along rows
	field  [2][]float64
}

func newDeformer(d Deformation, side int) *deformer {
	f := &deformer{Deformation: d, side: side}
	if d.Alpha == 0 || d.Sigma <= 0 {
		return f
	}
	r := int(math.Ceil(3 * d.Sigma))
	f.filter = make([]float64, 2*r+1)
	var sum float64
	for k := range f.filter {
		x := float64(k-r) / d.Sigma
		f.filter[k] = math.Exp(-x * x / 2)
		sum += f.filter[k]
	}
	for k := range f.filter {
		f.filter[k] /= sum
	}
	wide := side + 2*r
	f.noise, f.rows = make([]float64, wide*wide), make([]float64, wide*side)
	f.field = [2][]float64{make([]float64, side*side), make([]float64, side*side)}
	return f
}

// draw sets the displacement field to α·(G_σ ∗ u), u from g. The noise reaches beyond the
// picture as far as the filter, so that the field is as strong at the border as inside.
func (f *deformer) draw(g rng.Stream) {
	wide, n := f.side+len(f.filter)-1, f.side
	for axis, field := range f.field {
		g.Sub("field", uint64(axis)).Float64s(f.noise, 0)
		for i, v := range f.noise {
			f.noise[i] = f.Alpha * (2*v - 1)
		}
		clear(f.rows)
		clear(field)
		for y := range wide {
			row := f.rows[y*n : (y+1)*n]
			for k, w := range f.filter {
				floats.AddScaled(row, w, f.noise[y*wide+k:y*wide+k+n])
			}
		}
		for k, w := range f.filter {
			floats.AddScaled(field, w, f.rows[k*n:(k+n)*n])
		}
	}
}

// apply sets dst to the picture src, both row by row, under the deformation that g draws;
// values are rounded to whole numbers, as pixels are.
func (f *deformer) apply(dst, src []float32, g rng.Stream) {
	if f.filter != nil {
		f.draw(g)
	}
	u := g.Sub("affine")
	sym := func(i uint64) float64 { return 2*u.Float64(i) - 1 }
	tx, ty := f.Shift*sym(0), f.Shift*sym(1)
	sin, cos := math.Sincos(f.Rotate * sym(2) * math.Pi / 180)
	c := float64(f.side-1) / 2
	for y := range f.side {
		for x := range f.side {
			at := y*f.side + x
			px, py := float64(x)-c, float64(y)-c
			sx, sy := c+cos*px-sin*py+tx, c+sin*px+cos*py+ty
			if f.filter != nil {
				sx, sy = sx+f.field[0][at], sy+f.field[1][at]
			}
			dst[at] = float32(math.Round(f.value(src, sx, sy)))
		}
	}
}

// value returns the picture's value at (x, y), interpolated bilinearly.
func (f *deformer) value(src []float32, x, y float64) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	a, b := x-x0, y-y0
	i, j := int(y0), int(x0)
	return (1-b)*((1-a)*f.pixel(src, i, j)+a*f.pixel(src, i, j+1)) + b*((1-a)*f.pixel(src, i+1, j)+a*f.pixel(src, i+1, j+1))
}

// pixel returns the pixel in row i, column j; 0 outside.
func (f *deformer) pixel(src []float32, i, j int) float64 {
	if i < 0 || j < 0 || i >= f.side || j >= f.side {
		return 0
	}
	return float64(src[i*f.side+j])
}
