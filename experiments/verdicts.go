package experiments

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// The rule for claims, the same for all of them.
//
// A claim is about rows. What is known of a row is a number, or, of a solve that its cap
// stopped, that the number is above the cap: bounds. A row bears the claim out if the claim is true
// for every number within the bounds, contradicts it if it is false for every one, and leaves
// it open if it is neither, or did not run. A claim fails if a row contradicts it; else it is open if a row
// leaves it open, or if there is no row; else it holds. Reasons that a number may have are for the
// pages: they do not enter.

// bounds is what is known of a number: it is from lo to hi. Both are NaN where nothing is.
type bounds struct{ lo, hi float64 }

// below judges a < b.
func below(a, b bounds) string {
	switch {
	case a.hi < b.lo:
		return Holds
	case a.lo >= b.hi:
		return Fails
	}
	return Open
}

// within judges |a − b| ≤ share·b.
func within(a bounds, b, share float64) string {
	lo, hi := (1-share)*b, (1+share)*b
	switch {
	case a.lo >= lo && a.hi <= hi:
		return Holds
	case a.hi < lo || a.lo > hi:
		return Fails
	}
	return Open
}

// not returns the outcome of the opposite claim.
func not(outcome string) string {
	switch outcome {
	case Holds:
		return Fails
	case Fails:
		return Holds
	}
	return outcome
}

// known returns the outcome of what is known to be true or false.
func known(ok bool) string {
	if ok {
		return Holds
	}
	return Fails
}

// evidence collects what a verdict is made of: rows that bear a claim out, rows that contradict
// it, and rows that leave it open.
type evidence struct {
	claim  string
	rows   map[string][]string // by outcome
	absent []string            // rows that were not run
	on     []string            // what it was judged on, where that is not all whole data of the paper's
}

func (j *evidence) add(outcome, format string, args ...any) {
	if j.rows == nil {
		j.rows = map[string][]string{}
	}
	j.rows[outcome] = append(j.rows[outcome], fmt.Sprintf(format, args...))
}

// missing notes a row that the claim is about and that has no result at the paper's n.
func (j *evidence) missing(row string) { j.absent = append(j.absent, row) }

// verdict returns what comes of it, by the rule above.
func (j *evidence) verdict() Verdict {
	if len(j.absent) > 0 {
		j.add(Open, "not run at the paper's n: %s", strings.Join(j.absent, ", "))
	}
	v := Verdict{Claim: j.claim, On: strings.Join(j.on, "; ")}
	var all []string
	for _, outcome := range []string{Fails, Open, Holds} {
		if rows := j.rows[outcome]; len(rows) > 0 {
			v.Outcome, all = cmp.Or(v.Outcome, outcome), append(all, rows...)
		}
	}
	if v.Detail = strings.Join(all, "; "); len(all) == 0 {
		v.Outcome, v.Detail = Open, "no row of this scale decides it"
	}
	return v
}

// tally says how many claims there are of each outcome: "Of 19 claims 17 hold, 1 fails, 1 is open".
func tally(counts map[string]int) string {
	total, parts := 0, []string(nil)
	for _, x := range []struct{ outcome, one, more string }{
		{Holds, "holds", "hold"}, {Fails, "fails", "fail"}, {Open, "is open", "are open"},
	} {
		n := counts[x.outcome]
		total += n
		switch n {
		case 0:
		case 1:
			parts = append(parts, "1 "+x.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, x.more))
		}
	}
	return fmt.Sprintf("Of %d claims %s", total, strings.Join(parts, ", "))
}

// far is from which share of the published iterations on ours are not theirs.
const far = 0.25

// planned returns the first entry of a row if it was to be run and its data are at hand; nil if not.
func (r *Report) planned(row string) *Entry {
	e := r.entry(row)
	if e.Skip != "" || e.Result != nil && strings.HasPrefix(e.Result.Reason, noFile) {
		return nil
	}
	return e
}

// beside returns what our seeds of a role took and a number of the published table of the report.
func (r *Report) beside(role, column string) func(row string) (ours *sample, theirs float64) {
	return func(row string) (*sample, float64) { return r.sampleOf(row, role), r.printed(r.ID, row).number(column) }
}

// iterationsAgree judges whether iterations are within 25 % of the published ones, on rows
// where the problem is the paper's. of returns what our seeds took and the published number, NaN
// for none. A row that did not run leaves the claim open, unless its data are not at hand; the
// verdict names the rows that it was judged on.
func (r *Report) iterationsAgree(what string, of func(row string) (ours *sample, theirs float64)) Verdict {
	j := evidence{claim: what + " within 25 % of the published"}
	for _, row := range r.Rows() {
		s, theirs := of(row)
		e := cmp.Or(s.first, r.planned(row))
		if e == nil || !e.sameProblem() || math.IsNaN(theirs) {
			continue
		}
		if s.first == nil {
			j.missing(row)
			continue
		}
		j.on = append(j.on, row)
		j.add(within(s.needs(), theirs, far), "%s %s against %.0f", row, s.words(), theirs)
	}
	return j.verdict()
}
