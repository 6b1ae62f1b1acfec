package baseline

import (
	"cmp"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// LimitError says that a method does not fit the memory allowed.
type LimitError struct {
	Method string // "random features" or "block ADMM"
	Size   string // what was asked for: "n = 60000, s = 20000"
	Need   int64  // bytes
	Have   int64  // bytes allowed
	Hint   string // what to do
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("baseline: %s with %s needs %.3g GB, %.3g GB are allowed; %s",
		e.Method, e.Size, float64(e.Need)/1e9, float64(e.Have)/1e9, e.Hint)
}

// fits returns a *LimitError if need is more than the limit, 0 being none.
func fits(method, size string, need, limit int64, hint string) error {
	if limit > 0 && need > limit {
		return &LimitError{method, size, need, limit, hint}
	}
	return nil
}

// checkTargets panics if y has not one row for each of n points, and returns an error for a
// number in y that is not finite.
func checkTargets(n int, y *mat.Dense) error {
	rows, _ := y.Dims()
	if rows != n {
		panic(fmt.Sprintf("baseline: %d points, %d rows of targets", n, rows))
	}
	for i := range n {
		for j, v := range y.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("baseline: the targets have %v in row %d, column %d", v, i, j)
			}
		}
	}
	return nil
}

// checkLambda returns an error unless λ is positive and finite.
func checkLambda(lambda float64) error {
	if !(lambda > 0) || math.IsInf(lambda, 1) {
		return fmt.Errorf("baseline: λ = %v, want a positive number", lambda)
	}
	return nil
}

// refinements returns the rounds that an option asks for: 30 by default, none if it is negative.
func refinements(asked int) int { return max(0, cmp.Or(asked, 30)) }

// worst returns the largest of v, NaN if one is NaN.
func worst(v []float64) float64 {
	var m float64
	for _, x := range v {
		m = math.Max(m, x)
	}
	return m
}

// byCols returns y as t×n: column j of y in row j.
func byCols(y *mat.Dense) []float64 {
	n, t := y.Dims()
	v := make([]float64, n*t)
	for i := range n {
		for j, x := range y.RawRowView(i) {
			v[j*n+i] = x
		}
	}
	return v
}

// fromCols is the inverse of byCols.
func fromCols(v []float64, n, t int) *mat.Dense {
	y := mat.NewDense(n, t, nil)
	for i := range n {
		row := y.RawRowView(i)
		for j := range row {
			row[j] = v[j*n+i]
		}
	}
	return y
}

// sumSquares adds in blocks, for accuracy.
func sumSquares(x []float64) (sum float64) {
	for len(x) > 0 {
		k := min(len(x), 1024)
		var part float64
		for _, v := range x[:k] {
			part += v * v
		}
		sum += part
		x = x[k:]
	}
	return sum
}

// grow returns x with length n. Its contents are undefined.
func grow[T float32 | float64](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
