package datasets

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// bumpCount is the number of bumps of a synthetic function.
const bumpCount = 20

// bumpSum is the function g(x) = Σ_m w_m exp(−‖x−c_m‖²/(2h²)), with bumpCount centers c_m uniform in [−1, 1]^d,
// standard normal weights and h = √d/2. It lies in the reproducing kernel Hilbert space of the Gaussian kernel with σ =
// h, and is smooth at that scale.
type bumpSum struct {
	centers       *points.Dense
	weights       []float64
	exponentScale float64 // 1/(2h²)
}

// newBumpSum draws the centers and the weights of a function on R^d. The values depend on the names of the streams,
// such as "centres".
func newBumpSum(d int, random rng.Stream) bumpSum {
	b := bumpSum{centers: uniformPoints(bumpCount, d, random.Sub("centres")), weights: make([]float64, bumpCount),
		exponentScale: 2 / float64(d)}
	random.Sub("weights").Normals(b.weights, 0)
	return b
}

// value returns g(x).
func (b bumpSum) value(x []float64) float64 {
	var g float64
	for m, w := range b.weights {
		var r2 float64 // ‖x−c_m‖²
		for j, c := range b.centers.Row(m) {
			r2 += (x[j] - c) * (x[j] - c)
		}
		g += w * math.Exp(-r2*b.exponentScale)
	}
	return g
}

// uniformPoints returns n points uniform in [−1, 1]^d. The first points do not depend on n.
func uniformPoints(n, d int, random rng.Stream) *points.Dense {
	x := points.NewDense(n, d, nil)
	for i := range x.Data {
		x.Data[i] = 2*random.Float64(uint64(i)) - 1
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
	random := rng.New(seed).Sub("synthetic regression")
	g, eps := newBumpSum(d, random), random.Sub("noise")
	x := uniformPoints(n, d, random.Sub("points"))
	out := &Dataset{
		Name: "synthetic-regression", X: x, Target: make([]float64, n), bestErrors: make([]float64, n),
		Source: fmt.Sprintf("generated: %d bumps in [-1, 1]^%d, noise %g, seed %d", bumpCount, d, noise, seed),
	}
	for i := range out.Target {
		noiseValue := noise * eps.Normal(uint64(i))
		out.Target[i], out.bestErrors[i] = g.value(x.Row(i))+noiseValue, noiseValue*noiseValue
	}
	return out
}

// SyntheticClasses returns n points x_i uniform in [−1, 1]^d of k ≥ 2 classes. The class is argmax_j g_j(x_i), where
// each g_j is a sum of 20 Gaussian bumps drawn from the seed. A random share noise < 1 − 1/k of the points has one of
// the other labels instead. No method can have a smaller expected error rate than noise; BestError is the error rate of
// argmax_j g_j on these points. The first points do not depend on n.
func SyntheticClasses(n, d, k int, noise float64, seed uint64) *Dataset {
	random := rng.New(seed).Sub("synthetic classes")
	out := &Dataset{
		Name: "synthetic-classes", Task: Classification, X: uniformPoints(n, d, random.Sub("points")),
		Class:      make([]int, n),
		bestErrors: make([]float64, n),
		Source: fmt.Sprintf("generated: %d classes in [-1, 1]^%d, %g of the labels wrong, seed %d", k, d, noise,
			seed),
	}
	g := make([]bumpSum, k)
	for j := range g {
		g[j] = newBumpSum(d, random.Sub("class", uint64(j)))
		out.Labels = append(out.Labels, strconv.Itoa(j))
	}
	row := make([]float64, d)
	flipped, otherClass := random.Sub("flip"), random.Sub("other")
	for i := range out.Class {
		out.X.RowTo(row, i)
		largest := math.Inf(-1)
		for j := range g {
			if value := g[j].value(row); value > largest {
				largest, out.Class[i] = value, j
			}
		}
		if flipped.Float64(uint64(i)) < noise {
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

// digitSide is the height and width in pixels of a picture of a synthetic digit. penSide is the height and width of the
// square in the middle of the picture that contains the digit. Both are as in MNIST.
const (
	digitSide = 28
	penSide   = 20
)

// digitDeformation is the random deformation of synthetic digits, with Shift in pixels and Rotation in degrees. It is
// strong enough that they cannot be classified without error, but they remain legible.
var digitDeformation = deformation{Shift: 1.5, Rotation: 12, Alpha: 36, Sigma: 4}

// digitStrokes has the strokes of the ten digits in a square of side penSide. A stroke is a sequence of points,
// connected by straight lines; each point is given by its coordinates x and y, with y downwards.
var digitStrokes = parseStrokes(`
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

// parseStrokes parses one line for each digit, with strokes separated by semicolons. digits[k][l] has the coordinates
// of stroke l of digit k.
func parseStrokes(text string) (digits [][][]float64) {
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

// drawDigit sets dst to a digit drawn with a pen of the given radius in pixels. The value is 255 in the strokes and
// falls to 0 over one pixel.
func drawDigit(dst []float32, digit int, radius float64) {
	const margin = (digitSide - penSide) / 2
	for y := range digitSide {
		for x := range digitSide {
			squaredDist := math.Inf(1) // squared distance from a stroke
			for _, stroke := range digitStrokes[digit] {
				for k := 0; k+2 < len(stroke); k += 2 {
					squaredDist = min(squaredDist, squaredDistance(float64(x)-margin, float64(y)-margin, stroke[k:k+4]))
				}
			}
			dst[y*digitSide+x] = float32(math.Round(255 * min(1, max(0, radius+0.5-math.Sqrt(squaredDist)))))
		}
	}
}

// squaredDistance returns the squared distance of (x, y) from the line segment with the end points
// (segment[0], segment[1]) and (segment[2], segment[3]).
func squaredDistance(x, y float64, segment []float64) float64 {
	x, y = x-segment[0], y-segment[1]
	dx, dy := segment[2]-segment[0], segment[3]-segment[1]
	t := (x*dx + y*dy) / (dx*dx + dy*dy) // position of the nearest point, from 0 to 1 along the segment
	t = min(1, max(0, t))
	ex, ey := x-t*dx, y-t*dy
	return ex*ex + ey*ey
}

// SyntheticDigits returns n pictures of 28×28 pixels with values 0 … 255, stored row by row, in the style of MNIST.
// Each is a random digit, drawn with a pen of radius uniform in (0.8, 2) pixels, then shifted, rotated and distorted at
// random by digitDeformation. Row i is a function of the seed and i only.
func SyntheticDigits(n int, seed uint64) *Dataset {
	random := rng.New(seed).Sub("synthetic digits")
	x := points.NewDense32(n, digitSide*digitSide, nil)
	out := &Dataset{
		Name: "synthetic-digits", Task: Classification, X: x, Class: make([]int, n),
		Source: fmt.Sprintf("generated: drawn digits, %v, seed %d", digitDeformation, seed),
	}
	for d := range digitStrokes {
		out.Labels = append(out.Labels, strconv.Itoa(d))
	}
	digit, radius := random.Sub("digit"), random.Sub("pen")
	// deformRows returns an error only if its context ends, and this one does not.
	digitDeformation.deformRows(context.Background(), x, 0, random, func(i int, picture []float32) {
		out.Class[i] = digit.IntN(uint64(i), len(digitStrokes))
		drawDigit(picture, out.Class[i], 0.8+1.2*radius.Float64(uint64(i)))
	})
	return out
}
