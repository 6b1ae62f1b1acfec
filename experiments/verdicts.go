package experiments

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// All claims are judged by the same rule.
//
// A claim is about rows of a table. For each row, the number that the claim is about is known within bounds. The bounds
// are equal if the number was measured. If a solve was stopped at its limit of iterations, only a lower bound is known.
// A row confirms the claim if the claim is true for every number within the bounds. It contradicts the claim if the
// claim is false for every such number. Otherwise, and if it did not run, the row leaves the claim open.
//
// A claim fails if a row contradicts it. Otherwise it is open if a row leaves it open or if there is no row. Otherwise
// it holds. Explanations for a number do not change the outcome; they belong on the pages of the documentation.

// bounds is an interval from lo to hi that contains a number. Both are NaN if nothing is known about the number.
type bounds struct{ lo, hi float64 }

// judgeLess returns the outcome of the claim a < b.
func judgeLess(a, b bounds) string {
	switch {
	case a.hi < b.lo:
		return Holds
	case a.lo >= b.hi:
		return Fails
	}
	return Open
}

// judgeWithin returns the outcome of the claim |ours − published| ≤ relTol·published, for published > 0.
func judgeWithin(ours bounds, published, relTol float64) string {
	lo, hi := (1-relTol)*published, (1+relTol)*published
	switch {
	case ours.lo >= lo && ours.hi <= hi:
		return Holds
	case ours.hi < lo || ours.lo > hi:
		return Fails
	}
	return Open
}

// negate returns the outcome of the negated claim.
func negate(outcome string) string {
	switch outcome {
	case Holds:
		return Fails
	case Fails:
		return Holds
	}
	return outcome
}

// outcomeOf returns Holds if ok is true and Fails otherwise.
func outcomeOf(ok bool) string {
	if ok {
		return Holds
	}
	return Fails
}

// evidence collects the rows that confirm a claim, contradict it or leave it open.
type evidence struct {
	claim       string              // text of the claim
	rows        map[string][]string // texts about the rows, by outcome
	missingRows []string            // rows of the claim that have no result at the paper's n
	basis       []string            // rows or data for Verdict.Basis
}

// addRow adds a row with its outcome. The format and the arguments make the text of the row.
func (e *evidence) addRow(outcome, format string, args ...any) {
	if e.rows == nil {
		e.rows = map[string][]string{}
	}
	e.rows[outcome] = append(e.rows[outcome], fmt.Sprintf(format, args...))
}

// addMissing adds a row of the claim that has no result at the paper's n.
func (e *evidence) addMissing(row string) { e.missingRows = append(e.missingRows, row) }

// verdict returns the verdict on the claim, by the rule above.
func (e *evidence) verdict() Verdict {
	if len(e.missingRows) > 0 {
		e.addRow(Open, "not run at the paper's n: %s", strings.Join(e.missingRows, ", "))
	}
	v := Verdict{Claim: e.claim, Basis: strings.Join(e.basis, "; ")}
	var details []string
	for _, outcome := range []string{Fails, Open, Holds} {
		if rows := e.rows[outcome]; len(rows) > 0 {
			v.Outcome, details = cmp.Or(v.Outcome, outcome), append(details, rows...)
		}
	}
	if v.Detail = strings.Join(details, "; "); len(details) == 0 {
		v.Outcome, v.Detail = Open, "no row of this scale decides it"
	}
	return v
}

// tally returns the numbers of claims of each outcome as text, such as "Of 19 claims 17 hold, 1 fails, 1 is open".
func tally(counts map[string]int) string {
	total, parts := 0, []string(nil)
	for _, form := range []struct{ outcome, singular, plural string }{
		{Holds, "holds", "hold"}, {Fails, "fails", "fail"}, {Open, "is open", "are open"},
	} {
		n := counts[form.outcome]
		total += n
		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+form.singular)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, form.plural))
		}
	}
	return fmt.Sprintf("Of %d claims %s", total, strings.Join(parts, ", "))
}

// iterationTolerance is the largest relative difference between our and the published iterations that counts as
// agreement.
const iterationTolerance = 0.25

// plannedEntry returns the first entry of a row, or nil if it is skipped or its data are not on this machine.
func (r *Report) plannedEntry(row string) *Entry {
	e := r.firstOfRow(row)
	if e.SkipReason != "" || e.Result != nil && strings.HasPrefix(e.Result.Reason, missingFilePrefix) {
		return nil
	}
	return e
}

// comparison returns the function that maps a row to our sample of a role and to the number in a column of the
// published table with the report's ID.
func (r *Report) comparison(role, column string) func(row string) (ours *sample, theirs float64) {
	return func(row string) (*sample, float64) {
		return r.sampleOf(row, role), r.publishedRow(r.ID, row).number(column)
	}
}

// iterationsVerdict judges the claim that the iterations of the subject agree with the published ones up to
// iterationTolerance. It uses the rows with the paper's data and n. compare returns our sample and the published
// number, which is NaN if there is none. A row that did not run leaves the claim open, unless its data are not on this
// machine. The verdict names the rows.
func (r *Report) iterationsVerdict(subject string, compare func(row string) (ours *sample, theirs float64)) Verdict {
	judged := evidence{claim: fmt.Sprintf("%s within %.0f %% of the published", subject, 100*iterationTolerance)}
	for _, row := range r.Rows() {
		ours, theirs := compare(row)
		e := cmp.Or(ours.firstRun, r.plannedEntry(row))
		if e == nil || !e.sameProblem() || math.IsNaN(theirs) {
			continue
		}
		if ours.firstRun == nil {
			judged.addMissing(row)
			continue
		}
		judged.basis = append(judged.basis, row)
		judged.addRow(judgeWithin(ours.iterationBounds(), theirs, iterationTolerance), "%s %s against %.0f", row,
			ours.iterationsText(), theirs)
	}
	return judged.verdict()
}
