package datasets

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// deformation is a distribution over small deformations of a picture: a translation, a rotation about its center c, and
// the elastic deformation of Simard, Steinkraus and Platt (ICDAR 2003, DOI 10.1109/ICDAR.2003.1227801). Pixel p of the
// deformed picture has the value of the original one at
//
//	c + R(p − c) + t + α·(G_σ ∗ u)(p),
//
// where R is the rotation, t the translation, u two pictures of numbers uniform in (−1, 1), and G_σ the Gaussian filter
// of standard deviation σ, truncated at 3σ and normalized to sum 1. Values between pixels are interpolated bilinearly;
// outside the picture they are zero. All lengths are in pixels. The zero value does not change pictures.
type deformation struct {
	Shift  float64 // each component of t is uniform in (−Shift, Shift)
	Rotate float64 // the angle of R is uniform in (−Rotate, Rotate), in degrees
	Alpha  float64 // α: the components of the displacement have the root mean square α/(2σ√(3π))
	Sigma  float64 // σ ≥ 0: 0 omits the elastic part
}

// String describes the distribution for the source of a data set.
func (d deformation) String() string {
	return fmt.Sprintf("shifts to %g pixels, rotations to %g degrees, elastic α = %g, σ = %g", d.Shift, d.Rotate,
		d.Alpha, d.Sigma)
}

// deformRows sets the rows of x from firstRow on to deformed pictures. draw makes the square picture of a row from its
// number, and the deformation is a function of g and the number.
func (d deformation) deformRows(ctx context.Context, x *points.Dense32, firstRow int, g rng.Stream,
	draw func(i int, picture []float32)) error {
	const blockRows = 64 // rows for which a thread allocates its memory once
	return accel.ForEach(ctx, max(0, x.N-firstRow+blockRows-1)/blockRows, func(_, b int) {
		f, picture := newDeformer(d, int(math.Sqrt(float64(x.D)))), make([]float32, x.D)
		for i := firstRow + b*blockRows; i < min(firstRow+(b+1)*blockRows, x.N); i++ {
			draw(i, picture)
			f.apply(x.Row(i), picture, g.Sub("row", uint64(i)))
		}
	})
}

// deformer applies deformations to pictures of side×side pixels. It contains scratch memory for one goroutine.
type deformer struct {
	deformation
	side         int
	filter       []float64    // weights of G_σ; nil without an elastic part
	noise        []float64    // (side+2r)² numbers, where r is the radius of the filter
	filteredRows []float64    // noise filtered along rows, (side+2r)×side
	field        [2][]float64 // the two components of the displacement, side² numbers each
}

// newDeformer returns a deformer of pictures of side×side pixels.
func newDeformer(d deformation, side int) *deformer {
	f := &deformer{deformation: d, side: side}
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
	paddedSide := side + 2*r
	f.noise, f.filteredRows = make([]float64, paddedSide*paddedSide), make([]float64, paddedSide*side)
	f.field = [2][]float64{make([]float64, side*side), make([]float64, side*side)}
	return f
}

// drawField sets the displacement field to α·(G_σ ∗ u), with u drawn from g. The noise extends beyond the picture by
// the radius of the filter, so that the field has the same strength at the border as inside.
func (f *deformer) drawField(g rng.Stream) {
	paddedSide, n := f.side+len(f.filter)-1, f.side
	for axis, field := range f.field {
		g.Sub("field", uint64(axis)).Float64s(f.noise, 0)
		for i, v := range f.noise {
			f.noise[i] = f.Alpha * (2*v - 1)
		}
		clear(f.filteredRows)
		clear(field)
		for y := range paddedSide {
			row := f.filteredRows[y*n : (y+1)*n]
			for k, w := range f.filter {
				floats.AddScaled(row, w, f.noise[y*paddedSide+k:y*paddedSide+k+n])
			}
		}
		for k, w := range f.filter {
			floats.AddScaled(field, w, f.filteredRows[k*n:(k+n)*n])
		}
	}
}

// apply sets dst to the picture src under the deformation drawn from g. Both are stored row by row. Values are rounded
// to whole numbers, as pixels are.
func (f *deformer) apply(dst, src []float32, g rng.Stream) {
	if f.filter != nil {
		f.drawField(g)
	}
	u := g.Sub("affine")
	symmetric := func(i uint64) float64 { return 2*u.Float64(i) - 1 } // uniform in (−1, 1)
	tx, ty := f.Shift*symmetric(0), f.Shift*symmetric(1)
	sin, cos := math.Sincos(f.Rotate * symmetric(2) * math.Pi / 180)
	c := float64(f.side-1) / 2
	for y := range f.side {
		for x := range f.side {
			k := y*f.side + x
			px, py := float64(x)-c, float64(y)-c
			sx, sy := c+cos*px-sin*py+tx, c+sin*px+cos*py+ty
			if f.filter != nil {
				sx, sy = sx+f.field[0][k], sy+f.field[1][k]
			}
			dst[k] = float32(math.Round(f.value(src, sx, sy)))
		}
	}
}

// value returns the value of the picture at (x, y), interpolated bilinearly.
func (f *deformer) value(src []float32, x, y float64) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	a, b := x-x0, y-y0
	i, j := int(y0), int(x0)
	return (1-b)*((1-a)*f.pixel(src, i, j)+a*f.pixel(src, i, j+1)) +
		b*((1-a)*f.pixel(src, i+1, j)+a*f.pixel(src, i+1, j+1))
}

// pixel returns the pixel in row i and column j, or 0 outside the picture.
func (f *deformer) pixel(src []float32, i, j int) float64 {
	if i < 0 || j < 0 || i >= f.side || j >= f.side {
		return 0
	}
	return float64(src[i*f.side+j])
}
