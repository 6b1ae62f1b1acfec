package experiments

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/plots"
)

// What the rounding of products costs plain conjugate gradients: the same solve with K in
// float32 and in float64. The paper does not say which it is in; where κ is near 1/ε of float32 the
// iteration loses the orthogonality it lives from sooner (Greenbaum 1989).

// roundingRow is the row of table 4 with both.
const roundingRow = "MNIST, first 20,000 rows, K in two precisions"

// roundingRoles are its roles, by what K is kept in.
var roundingRoles = []struct {
	role    string
	storage gram.Storage
}{{"K in float32", gram.Float32}, {"K in float64", gram.Float64}}

// roundingEntries returns both solves.
func roundingEntries(s Scale) []Entry {
	if s == Smoke {
		return nil
	}
	w := set{roundingRow, "", "mnist", 20000, 0, 1, ""}.row()
	var out []Entry
	for _, x := range roundingRoles {
		c := w.solve(CG)
		c.MaxIter, c.Storage, c.CountOnly = failAfter, x.storage.String(), true
		out = append(out, w.entry(x.role, c, 500))
	}
	return out
}

// rounding returns how many times the iterations in float64 those in float32 are; NaN if
// that was not measured.
func (r *Report) rounding() float64 {
	return r.sampleOf(roundingRow, roundingRoles[0].role).median() / r.sampleOf(roundingRow, roundingRoles[1].role).median()
}

// roundingTable shows both solves; nil if none ran.
func (r *Report) roundingTable() *plots.Table {
	t := &plots.Table{
		Title: "Plain conjugate gradients with K in float32 and in float64",
		Caption: "One system, one solver, products with K as stored. K in float32 is accurate enough for the answer (its residual is of K in float64), " +
			"but its products are rounded to 24 bits, and the iteration takes longer to the same residual. " + scaleText(r.Scale),
		Columns: []plots.Column{dataColumn, {Name: "K"}, {Name: "iterations", Align: plots.Right}, {Name: "κ", Format: "%.3g"}, residual("residual"), seconds("time"), usedColumn},
	}
	for _, x := range roundingRoles {
		s := r.sampleOf(roundingRow, x.role)
		if res := s.result(); res != nil {
			t.Add(roundingRow, res.Storage, s.text(), optional(res.Kappa), optional(res.residual()), number(s.train()), s.first.dataText())
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// roundingText says what was seen, empty if nothing was.
func (r *Report) roundingText() string {
	a, b := r.sampleOf(roundingRow, roundingRoles[0].role), r.sampleOf(roundingRow, roundingRoles[1].role)
	q := r.rounding()
	if math.IsNaN(q) {
		return ""
	}
	return fmt.Sprintf("plain CG with K in float32, as MNIST's is here, takes %.2f times the iterations that it takes with K in float64, on MNIST's first 20,000 rows: %s against %.0f",
		q, a.words(), b.median())
}
