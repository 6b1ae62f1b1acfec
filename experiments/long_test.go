package experiments

import (
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/suite"
)

// TestAdult runs the laptop's cases of ADULT, whole, of tables 1, 2, 4 and 5, and holds them to the
// published errors and iterations. It takes minutes, 7 GB and the data in $KRRLAB_DATA.
func TestAdult(t *testing.T) {
	dir := suite.RealData(t)
	if missing("adult", []string{dir}) != "" {
		t.Skip("no ADULT in $KRRLAB_DATA")
	}
	lib, err := accel.OpenBLAS()
	if err != nil {
		t.Logf("%v", err)
	}
	accel.Use(lib)
	defer accel.Use(nil)
	var plans []*Plan
	for _, id := range []string{"table1", "table2", "table4", "table5"} {
		e := must(Find(id))
		p := NewPlan(e, Laptop)
		p.Entries = slices.DeleteFunc(p.Entries, func(x Entry) bool { return x.Row != "ADULT" })
		plans = append(plans, p)
	}
	reports := must(Run(t.Context(), plans, &Options{Dirs: []string{dir},
		Finished: func(c Case, r *Result) {
			t.Logf("%v: %s %s, %d iterations, error %.4f, shared %q, %+v", c, r.Status, r.Reason, r.Iterations,
				r.Error(),
				r.Shared, r.Seconds)
		}}))
	for _, r := range reports {
		t.Logf("\n%s", r.Text())
	}
	within := func(what string, got, want, share float64) {
		t.Helper()
		if math.IsNaN(got) || math.Abs(got-want) > share*want {
			t.Errorf("%s: %g, published %g", what, got, want)
		}
	}
	one, two, four, five := reports[0], reports[1], reports[2], reports[3]
	within("error", one.sampleOf("ADULT", proposed).result().Error(), 0.1499, 0.001/0.1499)
	within("error at 10⁻²", five.coarse("ADULT").result().Error(), 0.1499, 0.001/0.1499)
	within("iterations", one.sampleOf("ADULT", proposed).median(), 13, 0.25)
	within("iterations to 10⁻²", five.coarse("ADULT").median(), 10, 0.25)
	within("iterations with 10λ", two.sampleOf("ADULT", tenLambda).median(), 17, 0.25)
	within("iterations of plain CG", four.sampleOf("ADULT", plainRole).median(), 369, 0.25)
}
