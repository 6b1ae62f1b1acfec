package points

import "github.com/krrlab/lab/krrlab/accel"

// Panel is a block of points with their squared norms. A tile of a kernel that depends on xᵀz, ‖x‖² and ‖z‖² only is
// computed from two panels.
type Panel struct {
	X       Points    // the points without weights
	Norms   []float64 // ‖x_i‖²
	Factors []float64 // √w_i of Weighted points, which multiply kernel values; nil means ones
}

// NewPanel returns the panel of x, with squared norms in float64.
func NewPanel(x Points) Panel { return newPanel(x, sumSq) }

// newPanel returns the panel of x with squared norms computed by sqNorm.
func newPanel(x Points, sqNorm func(row []float64) float64) Panel {
	x, factors := SplitFactors(x)
	return Panel{x, squaredNorms(x, sqNorm), factors}
}

// NewPanel32 returns the panel of x with the squared norms of the points *rounded to float32*, accumulated in float64.
// These are the right norms for inner products of the rounded points (Inner32): ‖x‖²+‖z‖²−2xᵀz is then the squared
// distance of the rounded points. With unit roundoff ε, rounding the points changes the squared distance by about
// 2ε‖x−z‖·‖x‖, whereas norms of the unrounded points would add an error of ε‖x‖². Rounding in the inner products comes
// in addition to both. Bytes are not rounded.
func NewPanel32(x Points) Panel {
	return newPanel(x, sumSq32)
}

// Len returns the number of points.
func (p Panel) Len() int { return len(p.Norms) }

// Slice returns points i, …, j-1 of the panel. The result shares memory with p.
func (p Panel) Slice(i, j int) Panel {
	s := Panel{X: p.X.Slice(i, j), Norms: p.Norms[i:j]}
	if p.Factors != nil {
		s.Factors = p.Factors[i:j]
	}
	return s
}

// MultiplyByWeights multiplies v_i by the weight of point i, in place, and returns v.
func (p Panel) MultiplyByWeights(v []float64) []float64 {
	for i, f := range p.Factors {
		v[i] *= f * f
	}
	return v
}

// SqNorms returns the squared Euclidean norms ‖x_i‖² of all points, in float64.
func SqNorms(x Points) []float64 { return squaredNorms(x, sumSq) }

// squaredNorms returns the squared norm of every point, computed on all threads: sumOfSquares of the stored values,
// where sumOfSquares is sumSq or sumSq32. For Bytes it does not call sumOfSquares, but computes scale²·Σ b² and rounds
// it twice.
func squaredNorms(x Points, sumOfSquares func(v []float64) float64) []float64 {
	n, _ := x.Dims()
	norms, rows := make([]float64, n), make([][]float64, accel.Threads())
	bytes, isBytes := x.(*Bytes)
	forEachPoint(n, func(thread, i int) bool {
		if isBytes {
			norms[i] = float64(sumSqBytes(bytes.Row(i))) * (bytes.Scale * bytes.Scale)
		} else {
			_, val := storedValues(x, i, &rows[thread])
			norms[i] = sumOfSquares(val)
		}
		return true
	})
	return norms
}

// sumSq returns Σ v².
func sumSq(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return sum
}

// sumSq32 returns the sum of squares of the numbers rounded to float32.
func sumSq32(row []float64) (sum float64) {
	for _, v := range row {
		rounded := float64(float32(v))
		sum += rounded * rounded
	}
	return sum
}

// sumSqBytes returns Σ v².
func sumSqBytes(v []uint8) (sum uint64) {
	for _, b := range v {
		sum += uint64(b) * uint64(b)
	}
	return sum
}

// Mean returns the mean of the points, a vector of length d, or zeros if there is no point. The sums are computed in
// float64.
func Mean(x Points) []float64 {
	n, d := x.Dims()
	mean := make([]float64, d)
	if n == 0 {
		return mean
	}
	var row []float64
	for i := range n {
		col, val := storedValues(x, i, &row)
		if col == nil {
			for j, v := range val {
				mean[j] += v
			}
			continue
		}
		for k, j := range col {
			mean[j] += val[k]
		}
	}
	for j := range mean {
		mean[j] /= float64(n)
	}
	return mean
}
