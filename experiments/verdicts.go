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
	undecided  string   // said where there is neither
	incomplete []string // what leaves it open
	absent     []string // rows that were not run
	excused    []string // rows that bear the claim out by an explanation only
	on         []string // what it was judged on, where that is not all whole data of the paper's
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

// missing notes a row that the claim is about and that has no result at the paper's n.
func (j *judgement) missing(row string) { j.absent = append(j.absent, row) }

// unclear notes a row whose result does not decide the claim.
func (j *judgement) unclear(format string, args ...any) {
	j.incomplete = append(j.incomplete, fmt.Sprintf(format, args...))
}

// verdict returns what comes of it. A row that contradicts the claim settles it; a row that
// is missing leaves it open.
func (j *judgement) verdict() Verdict {
	if len(j.absent) > 0 {
		j.unclear("not run at the paper's n: %s", strings.Join(j.absent, ", "))
	}
	v := Verdict{Claim: j.claim, Outcome: Holds, Detail: strings.Join(append(j.bad, j.good...), "; ")}
	switch {
	case len(j.bad) > 0:
		v.Outcome = Fails
	case len(j.incomplete) > 0:
		v.Outcome = Open
		v.Detail = strings.TrimPrefix(v.Detail+"; "+strings.Join(j.incomplete, "; "), "; ")
	case len(j.good) == 0:
		v.Outcome, v.Detail = Open, j.undecided
	}
	v.Excuse, v.On = strings.Join(j.excused, "; "), strings.Join(j.on, "; ")
	return v
}

// excuses explain iterations that are not the published ones, by the published name of their row:
// why ours are fewer, and why they are more.
type excuses struct{ fewer, more map[string]string }

// slips explains fewer iterations with the s of table 1 by what the paper prints (theory/ERRATA.md, point 13).
var slips = map[string]string{
	"IJCNN1": "the paper prints 120 iterations for s = 12,500 in table 1 and the same 120 for s = 10,000 in table 4; one of them is a slip",
}

// far is from which share of the published iterations on ours need an explanation.
const far = 0.25

// planned returns the first entry of a row if it was to be run and its data are at hand; nil if not.
func (r *Report) planned(row string) *Entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Row == row {
			if e.Skip != "" || e.Result != nil && strings.HasPrefix(e.Result.Reason, noFile) {
				return nil
			}
			return e
		}
	}
	return nil
}

// iterationsAgree judges whether iterations are within 25 % of the published ones, on rows
// where the problem is the paper's. of returns what our seeds took and the published number, NaN
// for none. An explanation is quoted in the verdict. More iterations than were allowed need
// one too; without it they contradict the claim where the limit is 25 % above the
// published number, and leave it open where it is not. So does a row that did not run, unless its
// data are not at hand.
func (r *Report) iterationsAgree(what string, why excuses, of func(row string) (ours sample, theirs float64)) Verdict {
	j := judgement{
		claim:     what + " within 25 % of the published, or explained",
		undecided: "no case has the paper's data and n at this scale",
	}
	for _, row := range r.Rows() {
		s, theirs := of(row)
		e := s.first
		if e == nil {
			e = r.planned(row)
		}
		if e == nil || !e.sameProblem() || math.IsNaN(theirs) {
			continue
		}
		if s.first == nil {
			j.missing(row)
			continue
		}
		text := fmt.Sprintf("%s %s against %.0f", row, s.words(), theirs)
		q := s.needs() / theirs
		excuse := ""
		switch {
		case q < 1-far:
			excuse = why.fewer[e.Paper]
		case q > 1+far: // or not known
			excuse = why.more[e.Paper]
		}
		switch {
		case excuse != "":
			text += " (" + excuse + ")"
			j.add(true, "%s", text)
			j.excused = append(j.excused, text)
		case s.capped != nil && s.needed() <= (1+far)*theirs:
			j.unclear("%s", text)
		default:
			j.add(math.Abs(q-1) <= far, "%s", text)
		}
	}
	return j.verdict()
}
