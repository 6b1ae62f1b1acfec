package experiments

import (
	"math"
	"reflect"
	"testing"

	"github.com/krrlab/lab/plots"
)

// publishedNumber returns the number in a published table. The test ends if there is none.
func publishedNumber(t *testing.T, id, dataset, column string) float64 {
	t.Helper()
	v := publishedRow{id, dataset}.number(column)
	if math.IsNaN(v) {
		t.Fatalf("%s has no number for %s, %s", id, dataset, column)
	}
	return v
}

// TestSpotValues compares numbers of the tables with the paper, among them numbers that contradict each other.
func TestSpotValues(t *testing.T) {
	expectError(t, errorOf(Published("table6")), `the paper has no table "table6"`)
	for _, c := range []struct {
		id, dataset, column string
		want                float64
	}{
		{"table1", "MNIST", "error_rate", 0.0133},
		{"table3", "COVTYPE", "admm_error", 0.0573},
		{"table5", "MNIST-200K", "tol_1e-3_iterations", 90},
		// Tables that contradict each other (theory/ERRATA.md, point 13).
		{"table1", "IJCNN1", "s", 12500},
		{"table4", "IJCNN1", "s", 10000},
		{"table1", "IJCNN1", "iterations", publishedNumber(t, "table4", "IJCNN1", "proposed_iterations")},
		{"table1", "IJCNN1", "time", publishedNumber(t, "table4", "IJCNN1", "proposed_time")},
		{"table1", "ADULT", "time", 19.8},
		{"table4", "ADULT", "proposed_time", 19.1},
		{"table1", "EPSILON", "error_rate", 0.1021},
		{"table5", "EPSILON", "tol_1e-3_error", 0.1022},
	} {
		if got := publishedNumber(t, c.id, c.dataset, c.column); got != c.want {
			t.Errorf("%s, %s, %s = %g, want %g", c.id, c.dataset, c.column, got, c.want)
		}
	}
	for _, name := range []string{"MNIST-200K", "MNIST-300K", "YEARMSD"} {
		if c := (publishedRow{"table4", name}).cell("cg_iterations"); c != plots.Text("FAIL") {
			t.Errorf("%s without preconditioner: %v, want FAIL", name, c)
		}
	}
	for _, missing := range []plots.Cell{publishedRow{"table1", "NONE"}.cell("n"), publishedRow{"table1", "MNIST"}.cell("none"),
		publishedRow{}.cell("n")} {
		if !missing.IsBlank() {
			t.Errorf("what is not there: %v", missing)
		}
	}
}

// TestDiscrepancies checks that the contradictions of the printed tables (theory/ERRATA.md, point 13) are not
// corrected in the transcription.
func TestDiscrepancies(t *testing.T) {
	if c := (publishedRow{"table2", "ADULT"}).cell("lambda_p"); !c.IsBlank() {
		t.Errorf("λ_p of ADULT is %v, want a blank", c)
	}
	var moreIterations, otherSize []string
	for _, row := range must(Published("table2")).Rows {
		name := row[0].String()
		if publishedNumber(t, "table2", name, "iterations") > publishedNumber(t, "table1", name, "iterations") {
			moreIterations = append(moreIterations, name)
		}
		if publishedNumber(t, "table2", name, "s") != publishedNumber(t, "table1", name, "s") {
			otherSize = append(otherSize, name)
		}
	}
	if want := []string{"ADULT", "EPSILON", "YEARMSD"}; !reflect.DeepEqual(moreIterations, want) {
		t.Errorf("more iterations with another λ_p: %v, want %v", moreIterations, want)
	}
	if want := []string{"IJCNN1", "MNIST-400K", "MNIST-1M", "COVTYPE"}; !reflect.DeepEqual(otherSize, want) {
		t.Errorf("another s with another λ_p: %v, want %v", otherSize, want)
	}
}

// TestYearError checks that the printed error of YEARMSD is relative to years near 2,000 (theory/ERRATA.md, point 12).
func TestYearError(t *testing.T) {
	const meanYear = 1998.4
	if rmse := publishedNumber(t, "table1", "YEARMSD", "error_rate") * meanYear; math.Abs(rmse-9.15) > 0.01 {
		t.Errorf("4.58e-3 of a mean year of %g is %.2f years, want 9.15", meanYear, rmse)
	}
}
