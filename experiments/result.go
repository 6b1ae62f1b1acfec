package experiments

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/plots"
)

// Result is what was measured of a case. A number that was not measured, or does not
// apply, is null in JSON and a nil pointer here.
type Result struct {
	Status Status `json:"status"` // how it ended
	Reason string `json:"reason,omitempty"`
	// Converged: the true residual of every column is within the tolerance; for methods
	// without a tolerance, that it was done.
	Converged bool `json:"converged"`

	Data Data `json:"data"`

	Iterations int       `json:"iterations"`
	Reached    []Reached `json:"reached,omitempty"` // iterations to coarser tolerances, see Reached
	History    []float64 `json:"history,omitempty"` // worst relative residual after 0, 1, … iterations, by recurrence

	TrueResidual    *float64 `json:"true_residual"` // worst ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, recomputed
	ResidualKind    string   `json:"true_residual_kind,omitempty"`
	SampledResidual *float64 `json:"sampled_residual"` // the same from rows of K in float64
	Kappa           *float64 `json:"kappa"`            // estimate of κ(M⁻¹A)

	TestN     int      `json:"test_n"`
	TestError *float64 `json:"test_error"` // share of wrong labels
	RMSE      *float64 `json:"rmse"`
	RelErr    *float64 `json:"relative_error"` // ‖ŷ−y‖₂/‖y‖₂
	BestError *float64 `json:"best_possible_error"`

	// Seconds by stage. Stages named in Shared were formed for another case of the same run:
	// their seconds are what that took then, so that a case's seconds are those of the
	// case run alone.
	Seconds krrlab.Seconds `json:"seconds"`
	Shared  []string       `json:"shared,omitempty"`

	Chosen  string             `json:"chosen,omitempty"`  // by Auto: solver and preconditioner
	Storage string             `json:"storage,omitempty"` // of K
	Form    string             `json:"precond_form,omitempty"`
	Bytes   int64              `json:"bytes"`            // the most that the process has held by then
	Values  map[string]float64 `json:"values,omitempty"` // what only this method has, by name

	Machine Machine `json:"machine"`
	Date    string  `json:"date"`   // RFC 3339, UTC
	Commit  string  `json:"commit"` // version of the program
}

// Status says how a case ended: one of these, or in its words a status of package pcg.
type Status string

const (
	Failed Status = "failed"  // it ended with the error in Reason
	NotRun Status = "not run" // it could not begin: Reason says why
)

// Is reports whether it is that status of package pcg.
func (s Status) Is(of pcg.Status) bool { return string(s) == of.String() }

// Reached says after how many iterations every column had been within Tol, by recurrence:
// where a solve to that tolerance would have ended.
type Reached struct {
	Tol        float64 `json:"tol"`
	Iterations int     `json:"iterations"`
}

// Data says what points a case was run on.
type Data struct {
	Name   string   `json:"name"`
	Title  string   `json:"title,omitempty"`
	Source string   `json:"source,omitempty"` // file, or how it was generated
	SHA256 []string `json:"sha256,omitempty"` // of the unpacked content of its files
	N      int      `json:"n"`                // training points used
	Of     int      `json:"of"`               // training points of the whole set
	TestN  int      `json:"test_n"`
	D      int      `json:"d"`
	T      int      `json:"t"`              // right-hand sides
	Note   string   `json:"note,omitempty"` // a subset, a stand-in
}

// Machine is what a case was run on.
type Machine struct {
	CPU     string `json:"cpu"`
	Threads int    `json:"threads"`
	Memory  int64  `json:"memory"` // bytes the process may use
	BLAS    string `json:"blas"`
	OS      string `json:"os"` // and architecture
}

// Train returns the seconds of training: the plan of Auto, K, Z, its factor and the solve. Reading the data,
// recomputing the residual and predicting are not in it.
func (r *Result) Train() float64 {
	return r.Seconds.Plan + r.Seconds.Kernel + r.Seconds.Features + r.Seconds.Factor + r.Seconds.Solve
}

// value returns one of Values as a cell, blank if it is not there.
func (r *Result) value(name string) plots.Cell {
	if v, ok := r.Values[name]; ok {
		return plots.Number(v)
	}
	return plots.Blank()
}

// residual returns the worst relative residual of the answer: recomputed, or estimated from rows of K in float64 where
// that was done; nil if neither was. A solve has converged where either is within τ (solve.Run): the smaller is given.
func (r *Result) residual() *float64 {
	s, t := r.SampledResidual, r.TrueResidual
	if s == nil || r.Converged && t != nil && *t < *s {
		return t
	}
	return s
}

// Ran reports whether the case ran to an end, converged or not.
func (r *Result) Ran() bool { return r != nil && r.Status != Failed && r.Status != NotRun }

// Error returns the error on the test data that the paper would give: the share of wrong
// labels, or for regression ‖ŷ−y‖₂/‖y‖₂; NaN if there is none.
func (r *Result) Error() float64 {
	switch {
	case r == nil:
		return math.NaN()
	case r.TestError != nil:
		return *r.TestError
	case r.RelErr != nil:
		return *r.RelErr
	}
	return math.NaN()
}

// iterationsTo returns after how many iterations the tolerance had been reached, by
// Reached; ok is false if it is not known.
func (r *Result) iterationsTo(tol float64) (iterations int, ok bool) {
	if r == nil {
		return 0, false
	}
	for _, x := range r.Reached {
		if x.Tol == tol {
			return x.Iterations, true
		}
	}
	return 0, false
}

// Provenance returns what the numbers of the report come from: for every set of data its
// file, checksum and rows, and the machines, dates, versions and seeds of the cases.
func (r *Report) Provenance() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("Where the numbers come from (%s, %s scale)", r.ID, r.Scale),
		Columns: plots.Heads("what", "value"),
	}
	values, most := map[string][]string{}, map[string]Data{} // of each data set, what was taken with the most rows
	add := func(what, s string) { values[what] = once(values[what], s) }
	for _, e := range r.Entries {
		x := e.Result
		if !x.Ran() {
			continue
		}
		date, _, _ := strings.Cut(x.Date, "T")
		add("machine", x.Machine.String())
		add("date", date)
		add("version", x.Commit)
		add("seeds", fmt.Sprint(e.Case.Seed))
		if d := x.Data; !e.Case.CountOnly && most[d.Name].N < d.N {
			most[d.Name] = d
		}
	}
	slices.Sort(values["date"])
	for _, what := range []string{"machine", "date", "version", "seeds"} {
		t.Add(what, strings.Join(values[what], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		t.Add("data", most[name].String())
	}
	return t
}

func (m Machine) short() string { return fmt.Sprintf("%s with %d threads", m.CPU, m.Threads) }

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d threads, %s of memory, BLAS %s, %s", m.CPU, m.Threads, accel.Bytes(m.Memory), m.BLAS,
		m.OS)
}

// String describes the data in one line: rows, source, what is special, checksums.
func (d Data) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d", d.Name, d.N)
	if d.N < d.Of {
		fmt.Fprintf(&b, " of %d", d.Of)
	}
	b.WriteString(" training rows")
	if d.TestN > 0 {
		fmt.Fprintf(&b, ", %d test rows", d.TestN)
	}
	if d.Source != "" {
		fmt.Fprintf(&b, "; %s", d.Source)
	}
	if d.Note != "" {
		fmt.Fprintf(&b, "; %s", d.Note)
	}
	for i, sum := range d.SHA256 {
		if i == 0 {
			b.WriteString("; sha256")
		}
		fmt.Fprintf(&b, " %s…", sum[:min(12, len(sum))])
	}
	return b.String()
}

// NotRun returns the rows that have cases without a result, and why.
func (r *Report) NotRun() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("What was not run (%s, %s scale)", r.ID, r.Scale),
		Columns: plots.Heads("rows", "why"),
	}
	rows := map[string][]string{}
	var reasons []string
	for _, e := range r.Entries {
		if why := e.whyNot(); why != "" {
			reasons, rows[why] = once(reasons, why), once(rows[why], e.Row)
		}
	}
	for _, why := range reasons {
		t.Add(strings.Join(rows[why], ", "), why)
	}
	return t
}

// whyNot says why the entry has no result; empty if it has.
func (e *Entry) whyNot() string {
	switch {
	case e.Skip != "":
		return e.Skip
	case e.Result == nil:
		return "not reached before the run was interrupted"
	case !e.Result.Ran():
		return fmt.Sprintf("%s: %s", e.Result.Status, e.Result.Reason)
	}
	return ""
}
