package model

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// CheckDecision returns an error that names the first row of F whose decision values are not all
// finite; nil if there is none.
func CheckDecision(f *mat.Dense) error {
	rows, _ := f.Dims()
	for i := range rows {
		for _, v := range f.RawRowView(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("model: the prediction of row %d (counted from 0) is %g: its features are so large that kernel values overflow; correct the row, or fit with --scale standard", i, v)
			}
		}
	}
	return nil
}
