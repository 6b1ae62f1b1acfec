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
	Shift    float64 // each component of t is uniform in (−Shift, Shift)
	Rotation float64 // the angle of R is uniform in (−Rotation, Rotation), in degrees
	Alpha    float64 // α: the components of the displacement have the root mean square α/(2σ√(3π))
	Sigma    float64 // σ ≥ 0: 0 omits the elastic part
}

// String describes the distribution for the source of a data set.
func (d deformation) String() string {
	return fmt.Sprintf("shifts to %g pixels, rotations to %g degrees, elastic α = %g, σ = %g", d.Shift, d.Rotation,
		d.Alpha, d.Sigma)
}

// deformRows sets the rows of x from firstRow on to deformed pictures. draw makes the square picture of a row from its
// number, and the deformation is a function of g and the number.
func (d deformation) deformRows(ctx context.Context, x *points.Dense32, firstRow int, g rng.Stream,
	draw func(i int, picture []float32)) error {
	const blockRows = 64 // rows for which a thread allocates its memory once
	return accel.ForEach(ctx, max(0, x.N-firstRow+blockRows-1)/blockRows, func(_, block int) {
		worker, picture := newDeformer(d, int(math.Sqrt(float64(x.D)))), make([]float32, x.D)
		for i := firstRow + block*blockRows; i < min(firstRow+(block+1)*blockRows, x.N); i++ {
			draw(i, picture)
			worker.apply(x.Row(i), picture, g.Sub("row", uint64(i)))
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
func newDeformer(distribution deformation, side int) *deformer {
	d := &deformer{deformation: distribution, side: side}
	if d.Alpha == 0 || d.Sigma <= 0 {
		return d
	}
	r := int(math.Ceil(3 * d.Sigma)) // radius of the filter
	d.filter = make([]float64, 2*r+1)
	var sum float64
	for k := range d.filter {
		x := float64(k-r) / d.Sigma
		d.filter[k] = math.Exp(-x * x / 2)
		sum += d.filter[k]
	}
	for k := range d.filter {
		d.filter[k] /= sum
	}
	paddedSide := side + 2*r
	d.noise, d.filteredRows = make([]float64, paddedSide*paddedSide), make([]float64, paddedSide*side)
	d.field = [2][]float64{make([]float64, side*side), make([]float64, side*side)}
	return d
}

// drawField sets the displacement field to α·(G_σ ∗ u), with u drawn from g. The noise extends beyond the picture by
// the radius of the filter, so that the field has the same strength at the border as inside.
func (d *deformer) drawField(g rng.Stream) {
	paddedSide, n := d.side+len(d.filter)-1, d.side
	for axis, field := range d.field {
		g.Sub("field", uint64(axis)).Float64s(d.noise, 0)
		for i, v := range d.noise {
			d.noise[i] = d.Alpha * (2*v - 1)
		}
		clear(d.filteredRows)
		clear(field)
		for y := range paddedSide {
			row := d.filteredRows[y*n : (y+1)*n]
			for k, w := range d.filter {
				floats.AddScaled(row, w, d.noise[y*paddedSide+k:y*paddedSide+k+n])
			}
		}
		for k, w := range d.filter {
			floats.AddScaled(field, w, d.filteredRows[k*n:(k+n)*n])
		}
	}
}

// apply deforms the picture src by a deformation drawn from g, and writes the result to dst. Both pictures are stored
// row by row. Values are rounded to whole numbers, because pixels are bytes.
func (d *deformer) apply(dst, src []float32, g rng.Stream) {
	if d.filter != nil {
		d.drawField(g)
	}
	u := g.Sub("affine")
	uniform := func(i uint64) float64 { return 2*u.Float64(i) - 1 } // uniform in (−1, 1)
	tx, ty := d.Shift*uniform(0), d.Shift*uniform(1)
	sin, cos := math.Sincos(d.Rotation * uniform(2) * math.Pi / 180)
	c := float64(d.side-1) / 2
	for y := range d.side {
		for x := range d.side {
			k := y*d.side + x
			px, py := float64(x)-c, float64(y)-c
			sx, sy := c+cos*px-sin*py+tx, c+sin*px+cos*py+ty
			if d.filter != nil {
				sx, sy = sx+d.field[0][k], sy+d.field[1][k]
			}
			dst[k] = float32(math.Round(d.value(src, sx, sy)))
		}
	}
}

// value returns the value of the picture at (x, y), interpolated bilinearly.
func (d *deformer) value(src []float32, x, y float64) float64 {
	x0, y0 := math.Floor(x), math.Floor(y)
	fx, fy := x-x0, y-y0
	i, j := int(y0), int(x0)
	return (1-fy)*((1-fx)*d.pixel(src, i, j)+fx*d.pixel(src, i, j+1)) +
		fy*((1-fx)*d.pixel(src, i+1, j)+fx*d.pixel(src, i+1, j+1))
}

// pixel returns the pixel in row i and column j, or 0 outside the picture.
func (d *deformer) pixel(src []float32, i, j int) float64 {
	if i < 0 || j < 0 || i >= d.side || j >= d.side {
		return 0
	}
	return float64(src[i*d.side+j])
}
