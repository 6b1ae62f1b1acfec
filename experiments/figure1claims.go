package experiments

import (
	"fmt"
	"slices"
	"strings"
)

// comparison is one kernel's curves, as the claims of figure 1 need them.
type comparison struct {
	row             string
	exact, features []*spot
	last            *spot // of random features, at s = n; nil if it did not run
	best            *spot // of the exact method, the quickest; nil if none ran
	lo, mid, hi     float64
}

func (r *Report) compare(row string) comparison {
	c := comparison{row: row, exact: r.curve(row, exactRole, bySketch), features: r.curve(row, featuresRole, bySketch)}
	c.best = quickest(c.exact)
	all := allErrors(c.exact)
	c.lo, c.hi = ends(all)
	c.mid = median(all)
	c.last = best(c.features, func(p *spot) bool { return ran(p) && p.c.S == r.pointsOf(row) }, first)
	return c
}

// pointsOf returns the number of training points of a row's cases; 0 if none ran.
func (r *Report) pointsOf(row string) int {
	if e := r.any(row); e != nil {
		return e.Result.Data.N
	}
	return 0
}

// rowsText names the data of a row's cases and how many of them they are; empty if none ran.
func (r *Report) rowsText(row string) string {
	e := r.any(row)
	if e == nil {
		return ""
	}
	text := fmt.Sprintf("%s, %d training rows", e.Result.Data.Name, e.Result.Data.N)
	if of := e.Result.Data.Of; of > e.Result.Data.N {
		text += fmt.Sprintf(" of %d", of)
	}
	return text
}

// exactText gives the exact method's error, and over which range s and the seeds move it.
func (c comparison) exactText() string {
	ran := 0
	for _, p := range c.exact {
		if len(p.errors) > 0 {
			ran++
		}
	}
	switch {
	case ran < 2:
		return percent(c.mid)
	case percent(c.lo) == percent(c.hi):
		return percent(c.mid) + " whatever s"
	}
	return fmt.Sprintf("%s (from %s to %s over all s and seeds)", percent(c.mid), percent(c.lo), percent(c.hi))
}

// whole reports whether both methods have something to compare.
func (c comparison) whole() bool { return c.last != nil && c.best != nil }

// complete reports whether all seeds of both methods converged, of random features as far as
// s = n, at least two s of the exact method among them.
func (c comparison) complete() bool {
	for _, p := range slices.Concat(c.exact, c.features) {
		if !p.complete() {
			return false
		}
	}
	return c.last != nil && len(c.exact) > 1
}

func difference(v float64) string { return fmt.Sprintf("%.2f percentage points", 100*v) }

// near is how close to the exact error, as a factor, counts as close.
const near = 1.05

// reaches returns the least s at which the median error of random features is near the exact
// one's; nil if at no s it is.
func (c comparison) reaches() *spot {
	return best(c.features, func(p *spot) bool { return ran(p) && median(p.errors) <= near*c.mid }, first)
}

func figure1Verdicts(r *Report) []Verdict {
	const small = "the scale is too small to say"
	gap := evidence{claim: "the gap of random features persists at s = n: every seed's error is above every one of the exact method", undecided: small}
	flat := evidence{claim: "s does not change the exact method's error: all s and seeds within 0.1 %", undecided: small}
	closes := evidence{claim: "more features than points close the gap by more than half (not a claim of the paper, which stops at s = n)", undecided: small}
	slow := evidence{claim: "random features take longer to come within 5 % of the exact error than the exact method, or do not reach it with s ≤ n", undecided: small}
	for _, row := range r.Rows() {
		c := r.compare(row)
		if r.Scale == Smoke {
			continue
		}
		if strings.HasSuffix(row, beyond) {
			c.beyond(&closes)
			closes.on = []string{r.rowsText(row)}
			continue
		}
		for _, j := range []*evidence{&gap, &flat, &slow} {
			j.on = []string{r.rowsText(row)}
		}
		if !c.complete() {
			for _, j := range []*evidence{&gap, &flat, &slow} {
				j.add(Open, "%s: not all seeds ran and converged", row)
			}
			continue
		}
		lo, hi := ends(c.last.errors)
		gap.add(known(lo > c.hi), "%s: %s to %s with s = n = %d, against %s to %s", row, percent(lo), percent(hi), c.last.c.S, percent(c.lo), percent(c.hi))
		flat.add(known(c.hi-c.lo <= 0.001+1e-9), "%s: %s to %s", row, percent(c.lo), percent(c.hi))
		quick := fmt.Sprintf("%.0f s for the exact method with s = %d", median(c.best.seconds), c.best.c.S)
		if p := c.reaches(); p != nil {
			slow.add(known(median(p.seconds) > median(c.best.seconds)), "%s: s = %d in %.0f s, against %s", row, p.c.S, median(p.seconds), quick)
		} else {
			slow.add(Holds, "%s: not by s = n, in %.0f s, against %s", row, median(c.last.seconds), quick)
		}
	}
	return []Verdict{gap.verdict(), flat.verdict(), slow.verdict(), closes.verdict()}
}

// beyond judges whether more features than points close the gap.
func (c comparison) beyond(j *evidence) {
	end := largest(c.features)
	if !c.whole() || end == c.last || !c.last.complete() || !end.complete() || !c.best.complete() {
		j.add(Open, "%s: not all seeds ran and converged", c.row)
		return
	}
	was, is := median(c.last.errors)-c.mid, median(end.errors)-c.mid
	j.add(known(is < was/2), "%s: %s above the exact error with s = n = %d, %s with s = %d", strings.TrimSuffix(c.row, beyond), difference(was), c.last.c.S, difference(is), end.c.S)
}

func figure1Prose(r *Report) string {
	var parts []string
	for _, row := range r.Rows() {
		c := r.compare(row)
		first, last := smallest(c.features), largest(c.features)
		if strings.HasSuffix(row, beyond) || c.best == nil || last == nil {
			continue
		}
		end := "s = n"
		if last != c.last {
			end = fmt.Sprintf("s = %d, the largest that ran", last.c.S)
		}
		text := fmt.Sprintf("With the %s, and n = %d points, the exact method has an error of %s, and is fastest at s = %d: %s seconds and %.0f iterations. "+
			"Random features begin at %s with s = %d and end at %s with %s, where they take %s seconds",
			row, r.pointsOf(row), c.exactText(), c.best.c.S, tidy(median(c.best.seconds)), median(c.best.iterations),
			percent(median(first.errors)), first.c.S, percent(median(last.errors)), end, tidy(median(last.seconds)))
		if p := c.reaches(); p != nil && p != last {
			text += fmt.Sprintf("; they come within 5 %% of the exact error at s = %d, after %s seconds", p.c.S, tidy(median(p.seconds)))
		} else if p == nil {
			text += fmt.Sprintf(", still %s above the exact error", difference(median(last.errors)-c.mid))
		}
		parts = append(parts, text+".")
	}
	if len(parts) == 0 {
		return "Of figure 1 no kernel has both methods."
	}
	text := "Figure 1 asks what a random feature is worth. Used as the model, s features are all that is learned; used in the preconditioner, they only set how fast the exact answer is reached."
	if r.Scale != Paper {
		text += " The paper has this on all 60,000 of MNIST, on 36 virtual processors, and prints of it only that training took less than 2 minutes with the Gaussian and less than 4 with the polynomial kernel: what can be compared is the shape."
	}
	return text + "\n\n" + strings.Join(parts, " ") + figure1Why(r)
}

// figure1Why explains the shapes, where both methods ran.
func figure1Why(r *Report) string {
	text := " The time of random features grows as ns² + s³/3; that of the exact method falls with s while iterations are saved, and rises where the factor costs more than they do."
	var parts []string
	var peaks []string
	for _, row := range r.Rows() {
		c := r.compare(row)
		if !strings.HasSuffix(row, beyond) || !c.whole() {
			continue
		}
		name, end := strings.TrimSuffix(c.row, beyond), largest(c.features)
		parts = append(parts, fmt.Sprintf("%s with s = n = %d and %s with s = %d against %s exactly (%s)",
			percent(median(c.last.errors)), c.last.c.S, percent(median(end.errors)), end.c.S, percent(c.mid), name))
		if top := best(slices.Concat([]*spot{c.last}, c.features), func(p *spot) bool { return ran(p) && p.x <= c.last.x }, leastError); top != c.last {
			peaks = append(peaks, fmt.Sprintf("%s with s = %d already (%s)", percent(median(top.errors)), top.c.S, name))
		}
	}
	if len(parts) == 0 {
		return text
	}
	text += "\n\nThe paper stops at s = n. Beyond it, on fewer points: " + strings.Join(parts, "; ") + "."
	if len(peaks) > 0 {
		text += " More features up to n can even do harm: " + strings.Join(peaks, "; ") + ". As many features as points, with a small λ, fit the training labels almost exactly by coefficients " +
			"that have no room to be small, and there the error of such models peaks (double descent: Belkin, Hsu, Ma and Mandal 2019)."
	}
	return text
}
