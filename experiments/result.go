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

// Result contains the measurements of a case. A number that was not measured, or does not apply, is a nil pointer, and
// null in JSON.
type Result struct {
	Status Status `json:"status"`           // how the case ended
	Reason string `json:"reason,omitempty"` // why it failed or was not run
	// Converged reports whether the true residual of every column is within the tolerance. For methods without a
	// tolerance it reports whether the method completed.
	Converged bool `json:"converged"`

	Data Data `json:"data"` // the points that the case was run on

	Iterations int       `json:"iterations"`        // number of iterations of the solver
	Reached    []Reached `json:"reached,omitempty"` // iterations to coarser tolerances
	History    []float64 `json:"history,omitempty"` // worst recursive relative residual after 0, 1, … iterations

	TrueResidual    *float64 `json:"true_residual"`                // worst ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂, recomputed
	ResidualKind    string   `json:"true_residual_kind,omitempty"` // matrix that the true residual was computed with
	SampledResidual *float64 `json:"sampled_residual"`             // estimate of TrueResidual from rows of K in float64
	Kappa           *float64 `json:"kappa"`                        // estimate of κ(M⁻¹A)

	TestN     int      `json:"test_n"`              // number of test rows
	TestError *float64 `json:"test_error"`          // share of wrong labels
	RMSE      *float64 `json:"rmse"`                // root mean square error of a regression
	RelErr    *float64 `json:"relative_error"`      // ‖ŷ−y‖₂/‖y‖₂
	BestError *float64 `json:"best_possible_error"` // smallest possible error, if the problem is synthetic

	// Seconds is the time by stage, as if the case had been run alone. A stage named in Shared was computed for another
	// case of the same run, and counts the time that it took there.
	Seconds krrlab.Seconds `json:"seconds"`
	// Shared lists the stages whose results were shared with another case.
	Shared []string `json:"shared,omitempty"`

	Chosen  string             `json:"chosen,omitempty"`       // solver and preconditioner that Auto chose
	Storage string             `json:"storage,omitempty"`      // number format of the stored K
	Form    string             `json:"precond_form,omitempty"` // form in which M⁻¹ is applied
	Bytes   int64              `json:"bytes"`                  // peak memory of the process until the end of the case
	Values  map[string]float64 `json:"values,omitempty"`       // further numbers that only this method has, by name

	Machine Machine `json:"machine"` // machine that the case was run on
	Date    string  `json:"date"`    // RFC 3339, UTC
	Commit  string  `json:"commit"`  // version of the program
}

// Status is the way a case ended: Failed, NotRun, or the text of a status of package pcg.
type Status string

const (
	Failed Status = "failed"  // the case ended with the error in Reason
	NotRun Status = "not run" // the case could not be started, for the reason in Reason
)

// Is reports whether s is the text of this status of package pcg.
func (s Status) Is(status pcg.Status) bool { return string(s) == status.String() }

// Reached is the number of iterations after which the recursive residual of every column has been within Tol at least
// once. A solve with the tolerance Tol would have ended there.
type Reached struct {
	Tol        float64 `json:"tol"`        // tolerance of the relative residual
	Iterations int     `json:"iterations"` // number of iterations to this tolerance
}

// Data describes the points that a case was run on.
type Data struct {
	Name   string   `json:"name"`             // name in package datasets
	Title  string   `json:"title,omitempty"`  // title of the data set
	Source string   `json:"source,omitempty"` // file, or how it was generated
	SHA256 []string `json:"sha256,omitempty"` // checksums of the unpacked contents of its files
	N      int      `json:"n"`                // number of training points used
	TotalN int      `json:"of"`               // number of training points in the complete data set
	TestN  int      `json:"test_n"`           // number of test points used
	D      int      `json:"d"`                // dimension of the points
	T      int      `json:"t"`                // number of right-hand sides
	Note   string   `json:"note,omitempty"`   // such as that it is a subset or a stand-in
}

// Machine describes the machine that a case was run on.
type Machine struct {
	CPU     string `json:"cpu"`     // model of the processor
	Threads int    `json:"threads"` // number of threads used
	Memory  int64  `json:"memory"`  // memory limit of the process in bytes
	BLAS    string `json:"blas"`    // BLAS library used
	OS      string `json:"os"`      // operating system and architecture
}

// TrainSeconds returns the seconds of training: the sum of the stages plan, K, Z, its factorization and the solve. It
// does not include reading the data, recomputing the residual, and predicting.
func (r *Result) TrainSeconds() float64 {
	return r.Seconds.Plan + r.Seconds.Kernel + r.Seconds.Features + r.Seconds.Factor + r.Seconds.Solve
}

// valueCell returns a table cell with the number Values[name], blank if there is none.
func (r *Result) valueCell(name string) plots.Cell {
	if v, ok := r.Values[name]; ok {
		return plots.Number(v)
	}
	return plots.Blank()
}

// residual returns the worst relative residual of the answer, or nil if it is unknown. It is the estimate from rows of
// K in float64 if there is one, else the true residual. A solve has converged if either of the two is within τ
// (solve.Run); residual then returns the smaller one.
func (r *Result) residual() *float64 {
	sampled, trueResidual := r.SampledResidual, r.TrueResidual
	if sampled == nil || r.Converged && trueResidual != nil && *trueResidual < *sampled {
		return trueResidual
	}
	return sampled
}

// Ran reports whether the case was run to its end, whether or not it converged.
func (r *Result) Ran() bool { return r != nil && r.Status != Failed && r.Status != NotRun }

// Error returns the test error as defined in the paper: the share of wrong labels, or ‖ŷ−y‖₂/‖y‖₂ for regression. It is
// NaN if the case was not tested.
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

// iterationsTo returns the number of iterations to a tolerance, from r.Reached. ok is false if it is unknown.
func (r *Result) iterationsTo(tol float64) (iterations int, ok bool) {
	if r == nil {
		return 0, false
	}
	for _, reached := range r.Reached {
		if reached.Tol == tol {
			return reached.Iterations, true
		}
	}
	return 0, false
}

// Provenance returns a table with the origin of the report's numbers: the machines, dates, versions and seeds of the
// cases, and the file, checksum and number of rows of every data set.
func (r *Report) Provenance() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("Where the numbers come from (%s, %s scale)", r.ID, r.Scale),
		Columns: plots.ParseColumns("what", "value"),
	}
	values := map[string][]string{}
	largest := map[string]Data{} // for each data set, its use with the most rows
	add := func(name, value string) { values[name] = appendUnique(values[name], value) }
	for _, e := range r.Entries {
		result := e.Result
		if !result.Ran() {
			continue
		}
		date, _, _ := strings.Cut(result.Date, "T")
		add("machine", result.Machine.String())
		add("date", date)
		add("version", result.Commit)
		add("seeds", fmt.Sprint(e.Case.Seed))
		if data := result.Data; !e.Case.CountOnly && largest[data.Name].N < data.N {
			largest[data.Name] = data
		}
	}
	slices.Sort(values["date"])
	for _, name := range []string{"machine", "date", "version", "seeds"} {
		t.Add(name, strings.Join(values[name], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(largest)) {
		t.Add("data", largest[name].String())
	}
	return t
}

// shortName returns the processor and the number of threads.
func (m Machine) shortName() string { return fmt.Sprintf("%s with %d threads", m.CPU, m.Threads) }

// String describes the machine in one line.
func (m Machine) String() string {
	return fmt.Sprintf("%s, %d threads, %s of memory, BLAS %s, %s", m.CPU, m.Threads, accel.FormatBytes(m.Memory),
		m.BLAS, m.OS)
}

// String describes the data in one line: numbers of rows, source, note and checksums.
func (d Data) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d", d.Name, d.N)
	if d.N < d.TotalN {
		fmt.Fprintf(&b, " of %d", d.TotalN)
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

// NotRun returns a table of the rows with cases that have no result, and the reasons.
func (r *Report) NotRun() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("What was not run (%s, %s scale)", r.ID, r.Scale),
		Columns: plots.ParseColumns("rows", "why"),
	}
	rows := map[string][]string{}
	var reasons []string
	for _, e := range r.Entries {
		if reason := e.notRunReason(); reason != "" {
			reasons, rows[reason] = appendUnique(reasons, reason), appendUnique(rows[reason], e.Row)
		}
	}
	for _, reason := range reasons {
		t.Add(strings.Join(rows[reason], ", "), reason)
	}
	return t
}

// notRunReason returns the reason why the entry has no result; empty if it has one.
func (e *Entry) notRunReason() string {
	switch {
	case e.SkipReason != "":
		return e.SkipReason
	case e.Result == nil:
		return "not reached before the run was interrupted"
	case !e.Result.Ran():
		return fmt.Sprintf("%s: %s", e.Result.Status, e.Result.Reason)
	}
	return ""
}
