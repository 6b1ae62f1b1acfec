package experiments

import (
	"fmt"
	"math"
	"strings"
)

// judgement collects what a verdict is made of: rows that bear a claim out, and rows that
// do not.
type judgement struct {
	claim      string
	good, bad  []string
	undecided  string // said where there is neither
	incomplete []string
}

// add notes a row.
func (j *judgement) add(ok bool, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if ok {
		j.good = append(j.good, s)
	} else {
		j.bad = append(j.bad, s)
	}
}

// missing notes a row that the claim is about and that has no result.
func (j *judgement) missing(row string) { j.incomplete = append(j.incomplete, row) }

// verdict returns what comes of it. A row that contradicts the claim settles it; a row that
// is missing leaves it open.
func (j *judgement) verdict() Verdict {
	v := Verdict{Claim: j.claim, Outcome: Holds, Detail: strings.Join(append(j.bad, j.good...), "; ")}
	switch {
	case len(j.bad) > 0:
		v.Outcome = Fails
	case len(j.incomplete) > 0:
		v.Outcome = Open
		v.Detail = strings.TrimPrefix(v.Detail+"; not run at the paper's n: "+strings.Join(j.incomplete, ", "), "; ")
	case len(j.good) == 0:
		v.Outcome, v.Detail = Open, j.undecided
	}
	return v
}

// slips explains iterations with the s of table 1 that differ from the published ones by what the
// paper prints (theory/ERRATA.md, point 13).
var slips = map[string]string{
	"IJCNN1": "the paper prints 120 iterations for s = 12,500 in table 1 and the same 120 for s = 10,000 in table 4; one of them is a slip",
}

// iterationsAgree judges whether iterations are within 25 % of the published ones, on rows
// where the problem is the paper's. of returns ours and theirs of a row, NaN for none.
// explained says, for rows by their published name, why they are not; the verdict quotes it.
func (r *Report) iterationsAgree(what string, explained map[string]string, of func(row string) (e *Entry, ours, theirs float64)) Verdict {
	j := judgement{
		claim:     what + " within 25 % of the published, or explained",
		undecided: "no case has the paper's data and n at this scale",
	}
	for _, row := range r.Rows() {
		e, ours, theirs := of(row)
		if e == nil || !e.sameProblem() || math.IsNaN(ours) || math.IsNaN(theirs) {
			continue
		}
		q := ours / theirs
		text := fmt.Sprintf("%s %.0f against %.0f", row, ours, theirs)
		why := explained[e.Paper]
		if off := math.Abs(q - 1); off > 0.25 && why != "" {
			text += " (" + why + ")"
			j.add(true, "%s", text)
		} else {
			j.add(off <= 0.25, "%s", text)
		}
	}
	return j.verdict()
}
