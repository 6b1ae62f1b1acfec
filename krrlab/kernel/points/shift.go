package points

import "fmt"

// Shifted is a view of points shifted by −C: row i is x_i − C, computed in float64 and rounded afterwards if the
// caller wants float32. A kernel of x−z does not change if all points are shifted by the same vector, but distances
// formed from inner products have the error ε·max‖x‖². Shifting the mean to the origin reduces that at little cost if
// the points are far from the origin. A view of sparse points is dense.
type Shifted struct {
	X Points    // the original points
	C []float64 // vector that is subtracted from every point, of length d
}

var _ Points = (*Shifted)(nil)

// Shift returns the view with rows x_i − c, and with the weights of x if it is Weighted. The view keeps c without a
// copy. Shift panics if len(c) is not the dimension.
func Shift(x Points, c []float64) Points {
	if _, d := x.Dims(); d != len(c) {
		panic(fmt.Sprintf("points: Shift of points of dimension %d by a vector of %d", d, len(c)))
	}
	if w, ok := x.(*Weighted); ok {
		return &Weighted{Shift(w.Points, c), w.Factors}
	}
	return &Shifted{x, c}
}

// Dims implements Points.
func (x *Shifted) Dims() (n, d int) { return x.X.Dims() }

// Slice implements Points.
func (x *Shifted) Slice(i, j int) Points { return &Shifted{x.X.Slice(i, j), x.C} }

// RowTo implements Points.
func (x *Shifted) RowTo(dst []float64, i int) {
	x.X.RowTo(dst, i)
	for j, c := range x.C {
		dst[j] -= c
	}
}
