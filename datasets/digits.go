package datasets

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// digitSide is the height and width of a synthetic digit in pixels, as in MNIST.
const digitSide = 28

// digitDeformation makes synthetic digits differ so much that they are not told apart
// without error, yet can be read.
var digitDeformation = Deformation{Shift: 1.5, Rotate: 12, Alpha: 36, Sigma: 4}

// pen holds the strokes of the ten digits: points (x, y) in a square of side 20 in the
// middle of the picture, y downwards, joined by straight lines.
var pen = [10][][][2]float64{
	{{{10, 1}, {5, 3}, {3, 10}, {5, 17}, {10, 19}, {15, 17}, {17, 10}, {15, 3}, {10, 1}}},
	{{{6, 5}, {11, 1}, {11, 19}}},
	{{{4, 5}, {6, 2}, {10, 1}, {15, 3}, {15, 7}, {11, 12}, {4, 19}, {17, 19}}},
	{{{4, 2}, {15, 2}, {9, 8}, {14, 10}, {16, 14}, {13, 18}, {8, 19}, {3, 17}}},
	{{{12, 1}, {3, 13}, {17, 13}}, {{13, 6}, {13, 19}}},
	{{{16, 1}, {5, 1}, {5, 8}, {11, 8}, {15, 10}, {16, 14}, {13, 18}, {8, 19}, {3, 17}}},
	{{{13, 1}, {7, 6}, {4, 13}, {6, 18}, {10, 19}, {14, 18}, {16, 14}, {13, 11}, {8, 11}, {5, 13}}},
	{{{3, 2}, {16, 2}, {11, 10}, {8, 19}}},
	{{{10, 1}, {6, 3}, {6, 7}, {10, 9}, {14, 7}, {14, 3}, {10, 1}}, {{10, 9}, {5, 12}, {5, 17}, {10, 19}, {15, 17}, {15, 12}, {10, 9}}},
	{{{15, 7}, {12, 9}, {8, 9}, {5, 6}, {7, 2}, {11, 1}, {15, 3}, {15, 7}, {15, 12}, {12, 19}}},
}

// draw sets dst to a digit drawn with a pen of that radius in pixels: 255 in the strokes,
// falling to 0 over one pixel.
func draw(dst []float32, digit int, radius float64) {
	const corner = (digitSide - 20) / 2
	for y := range digitSide {
		for x := range digitSide {
			best := math.Inf(1)
			for _, stroke := range pen[digit] {
				for k := range len(stroke) - 1 {
					best = min(best, fromLine(float64(x)-corner, float64(y)-corner, stroke[k], stroke[k+1]))
				}
			}
			dst[y*digitSide+x] = float32(math.Round(255 * min(1, max(0, radius+0.5-math.Sqrt(best)))))
		}
	}
}

// fromLine returns the squared distance of (x, y) from the straight line between a and b.
func fromLine(x, y float64, a, b [2]float64) float64 {
	dx, dy := b[0]-a[0], b[1]-a[1]
	t := ((x-a[0])*dx + (y-a[1])*dy) / (dx*dx + dy*dy)
	t = min(1, max(0, t))
	ex, ey := x-a[0]-t*dx, y-a[1]-t*dy
	return ex*ex + ey*ey
}

// SyntheticDigits returns n pictures of 28×28 pixels with values 0 … 255, row by row, in the
// manner of MNIST: a digit chosen at random, drawn with a pen of radius uniform in (0.8, 2)
// pixels, shifted, turned and bent (see Deformation). Row i is a function of the seed and i
// alone.
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
	accel.ForEach(context.Background(), (n+63)/64, func(_, b int) { // its error is the context's end
		f, src := newDeformer(digitDeformation, digitSide), make([]float32, digitSide*digitSide)
		for i := 64 * b; i < min(64*(b+1), n); i++ {
			out.Class[i] = digit.IntN(uint64(i), len(pen))
			draw(src, out.Class[i], 0.8+1.2*radius.Float64(uint64(i)))
			f.apply(x.Row(i), src, s.Sub("row", uint64(i)))
		}
	})
	return out
}
