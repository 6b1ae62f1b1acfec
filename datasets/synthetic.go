package datasets

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// bumpCount is the number of bumps of a synthetic function.
const bumpCount = 20

// bumps is the function g(x) = Σ_m w_m exp(−‖x−c_m‖²/(2h²)), with bumpCount centers c_m uniform in [−1, 1]^d, standard
// normal weights and h = √d/2. It lies in the reproducing kernel Hilbert space of the Gaussian kernel with σ = h, and
// is smooth at that scale.
type bumps struct {
	centers     *points.Dense
	weights     []float64
	halfInverse float64 // 1/(2h²)
}

func newBumps(d int, s rng.Stream) bumps {
	b := bumps{centers: uniformPoints(bumpCount, d, s.Sub("centres")), weights: make([]float64, bumpCount),
		halfInverse: 2 / float64(d)}
	s.Sub("weights").Normals(b.weights, 0)
	return b
}

// value returns g(x).
func (b bumps) value(x []float64) float64 {
	var g float64
	for m, w := range b.weights {
		var squaredDistance float64
		for j, c := range b.centers.Row(m) {
			squaredDistance += (x[j] - c) * (x[j] - c)
		}
		g += w * math.Exp(-squaredDistance*b.halfInverse)
	}
	return g
}

// uniformPoints returns n points uniform in [−1, 1]^d. The first points do not depend on n.
func uniformPoints(n, d int, s rng.Stream) *points.Dense {
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = 2*s.Float64(uint64(i)) - 1
	}
	return x
}

// SyntheticRegression returns n points x_i uniform in [−1, 1]^d with the targets
//
//	y_i = g(x_i) + noise·ε_i,  ε_i standard normal,
//
// where g is a sum of 20 Gaussian bumps drawn from the seed. No method can have a smaller expected RMSE than noise;
// BestError is the RMSE of g on these points. The first points do not depend on n.
func SyntheticRegression(n, d int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic regression")
	g, eps := newBumps(d, s), s.Sub("noise")
	x := uniformPoints(n, d, s.Sub("points"))
	out := &Dataset{
		Name: "synthetic-regression", X: x, Target: make([]float64, n), bestErrors: make([]float64, n),
		Source: fmt.Sprintf("generated: %d bumps in [-1, 1]^%d, noise %g, seed %d", bumpCount, d, noise, seed),
	}
	for i := range out.Target {
		e := noise * eps.Normal(uint64(i))
		out.Target[i], out.bestErrors[i] = g.value(x.Row(i))+e, e*e
	}
	return out
}

// SyntheticClasses returns n points x_i uniform in [−1, 1]^d of k ≥ 2 classes. The class is argmax_j g_j(x_i), where
// each g_j is a sum of 20 Gaussian bumps drawn from the seed. A random share noise < 1 − 1/k of the points has one of
// the other labels instead. No method can have a smaller expected error rate than noise; BestError is the error rate of
// argmax_j g_j on these points. The first points do not depend on n.
func SyntheticClasses(n, d, k int, noise float64, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic classes")
	out := &Dataset{
		Name: "synthetic-classes", Task: Classification, X: uniformPoints(n, d, s.Sub("points")), Class: make([]int, n),
		bestErrors: make([]float64, n),
		Source: fmt.Sprintf("generated: %d classes in [-1, 1]^%d, %g of the labels wrong, seed %d", k, d, noise,
			seed),
	}
	g := make([]bumps, k)
	for j := range g {
		g[j] = newBumps(d, s.Sub("class", uint64(j)))
		out.Labels = append(out.Labels, strconv.Itoa(j))
	}
	row := make([]float64, d)
	flip, otherClass := s.Sub("flip"), s.Sub("other")
	for i := range out.Class {
		out.X.RowTo(row, i)
		best := math.Inf(-1)
		for j := range g {
			if v := g[j].value(row); v > best {
				best, out.Class[i] = v, j
			}
		}
		if flip.Float64(uint64(i)) < noise {
			out.Class[i] = (out.Class[i] + 1 + otherClass.IntN(uint64(i), k-1)) % k
			out.bestErrors[i] = 1
		}
	}
	return out
}

// BestError returns the error of the best possible predictor on these points: the RMSE for regression, the error rate
// for classification. It is known for built-in data only, and NaN otherwise.
func (d *Dataset) BestError() float64 {
	if len(d.bestErrors) == 0 {
		return math.NaN()
	}
	mean := floats.Sum(d.bestErrors) / float64(len(d.bestErrors))
	if d.Task == Regression {
		return math.Sqrt(mean)
	}
	return mean
}

// digitSide is the height and width of a picture of a synthetic digit in pixels, and penSide that of the square in its
// middle that contains the digit; both are as in MNIST.
const (
	digitSide = 28
	penSide   = 20
)

// digitDeformation is the deformation of synthetic digits. It is strong enough that they cannot be classified without
// error, but they remain legible.
var digitDeformation = deformation{Shift: 1.5, Rotate: 12, Alpha: 36, Sigma: 4}

// pen has the strokes of the ten digits in a square of side penSide. A stroke is a sequence of points, connected by
// straight lines; each point is its coordinates x and y, with y downwards.
var pen = parsePen(`
10 1 5 3 3 10 5 17 10 19 15 17 17 10 15 3 10 1
6 5 11 1 11 19
4 5 6 2 10 1 15 3 15 7 11 12 4 19 17 19
4 2 15 2 9 8 14 10 16 14 13 18 8 19 3 17
12 1 3 13 17 13; 13 6 13 19
16 1 5 1 5 8 11 8 15 10 16 14 13 18 8 19 3 17
13 1 7 6 4 13 6 18 10 19 14 18 16 14 13 11 8 11 5 13
3 2 16 2 11 10 8 19
10 1 6 3 6 7 10 9 14 7 14 3 10 1; 10 9 5 12 5 17 10 19 15 17 15 12 10 9
15 7 12 9 8 9 5 6 7 2 11 1 15 3 15 7 15 12 12 19`)

// parsePen parses one line for each digit, with strokes separated by semicolons.
func parsePen(text string) (digits [][][]float64) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		var strokes [][]float64
		for stroke := range strings.SplitSeq(line, ";") {
			var points []float64
			for word := range strings.FieldsSeq(stroke) {
				v, _ := parseShort(word)
				points = append(points, v)
			}
			strokes = append(strokes, points)
		}
		digits = append(digits, strokes)
	}
	return digits
}

// draw sets dst to a digit drawn with a pen of the given radius in pixels. The value is 255 in the strokes and falls to
// 0 over one pixel.
func draw(dst []float32, digit int, radius float64) {
	const corner = (digitSide - penSide) / 2
	for y := range digitSide {
		for x := range digitSide {
			best := math.Inf(1)
			for _, stroke := range pen[digit] {
				for k := 0; k+2 < len(stroke); k += 2 {
					best = min(best, fromLine(float64(x)-corner, float64(y)-corner, stroke[k:k+4]))
				}
			}
			dst[y*digitSide+x] = float32(math.Round(255 * min(1, max(0, radius+0.5-math.Sqrt(best)))))
		}
	}
}

// fromLine returns the squared distance of (x, y) from the line segment with the end points (ends[0], ends[1]) and
// (ends[2], ends[3]).
func fromLine(x, y float64, ends []float64) float64 {
	x, y = x-ends[0], y-ends[1]
	dx, dy := ends[2]-ends[0], ends[3]-ends[1]
	t := (x*dx + y*dy) / (dx*dx + dy*dy)
	t = min(1, max(0, t))
	ex, ey := x-t*dx, y-t*dy
	return ex*ex + ey*ey
}

// SyntheticDigits returns n pictures of 28×28 pixels with values 0 … 255, stored row by row, in the style of MNIST.
// Each is a random digit, drawn with a pen of radius uniform in (0.8, 2) pixels, and shifted, rotated and distorted
// (deformation). Row i is a function of the seed and i only.
func SyntheticDigits(n int, seed uint64) *Dataset {
	s := rng.New(seed).Sub("synthetic digits")
	x := points.NewDense32(n, digitSide*digitSide, nil)
	out := &Dataset{
		Name: "synthetic-digits", Task: Classification, X: x, Class: make([]int, n),
		Source: fmt.Sprintf("generated: drawn digits, %v, seed %d", digitDeformation, seed),
	}
	for d := range pen {
		out.Labels = append(out.Labels, strconv.Itoa(d))
	}
	digit, radius := s.Sub("digit"), s.Sub("pen")
	// The context never ends, so there is no error.
	digitDeformation.deformRows(context.Background(), x, 0, s, func(i int, picture []float32) {
		out.Class[i] = digit.IntN(uint64(i), len(pen))
		draw(picture, out.Class[i], 0.8+1.2*radius.Float64(uint64(i)))
	})
	return out
}

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

func (d deformation) String() string {
	return fmt.Sprintf("shifts to %g pixels, rotations to %g degrees, elastic α = %g, σ = %g", d.Shift, d.Rotate,
		d.Alpha, d.Sigma)
}

// deformRows sets the rows of x from firstRow on to deformed pictures. draw makes the square picture of a row from its
// number, and the deformation is a function of g and the number.
func (d deformation) deformRows(ctx context.Context, x *points.Dense32, firstRow int, g rng.Stream,
	draw func(i int, picture []float32)) error {
	const block = 64
	return accel.ForEach(ctx, max(0, x.N-firstRow+block-1)/block, func(_, b int) {
		f, picture := newDeformer(d, int(math.Sqrt(float64(x.D)))), make([]float32, x.D)
		for i := firstRow + b*block; i < min(firstRow+(b+1)*block, x.N); i++ {
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
	wide := side + 2*r
	f.noise, f.filteredRows = make([]float64, wide*wide), make([]float64, wide*side)
	f.field = [2][]float64{make([]float64, side*side), make([]float64, side*side)}
	return f
}

// drawField sets the displacement field to α·(G_σ ∗ u), with u drawn from g. The noise extends beyond the picture by
// the radius of the filter, so that the field has the same strength at the border as inside.
func (f *deformer) drawField(g rng.Stream) {
	wide, n := f.side+len(f.filter)-1, f.side
	for axis, field := range f.field {
		g.Sub("field", uint64(axis)).Float64s(f.noise, 0)
		for i, v := range f.noise {
			f.noise[i] = f.Alpha * (2*v - 1)
		}
		clear(f.filteredRows)
		clear(field)
		for y := range wide {
			row := f.filteredRows[y*n : (y+1)*n]
			for k, w := range f.filter {
				floats.AddScaled(row, w, f.noise[y*wide+k:y*wide+k+n])
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
	sym := func(i uint64) float64 { return 2*u.Float64(i) - 1 }
	tx, ty := f.Shift*sym(0), f.Shift*sym(1)
	sin, cos := math.Sincos(f.Rotate * sym(2) * math.Pi / 180)
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
