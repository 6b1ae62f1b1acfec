package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/plots"
)

// sample is what the seeds of one case gave.
type sample struct {
	x          float64 // its place on a curve: one s of figure 1, one n of figure 2
	c          Case    // of the first seed
	first      *Entry  // the first seed that ran: the one that was tested, if it did; nil if none ran
	seeds, ran int     // planned, and of these those that ran
	capped     *Entry  // a seed that did not converge; nil if all did

	// Ascending: training of the seeds that ran, iterations of those that converged, errors of those that were tested
	// too.
	seconds, iterations, errors []float64
}

// gather makes a sample of the seeds of a case, with the iterations to τ where their solve went on beyond it; 0: to
// their own tolerance.
func gather(entries []*Entry, tol float64) *sample {
	s := &sample{seeds: len(entries)}
	for i, e := range entries {
		if i == 0 {
			s.c = e.Case
		}
		x := e.Result
		if !x.Ran() {
			continue
		}
		s.ran++
		s.first = cmp.Or(s.first, e)
		s.seconds = append(s.seconds, x.Train())
		iterations, ok := x.Iterations, x.Converged
		if e.Case.Tol < tol {
			iterations, ok = x.iterationsTo(tol)
		}
		if !ok {
			s.capped = cmp.Or(s.capped, e)
			continue
		}
		s.iterations = append(s.iterations, float64(iterations))
		if v := x.Error(); !math.IsNaN(v) {
			s.errors = append(s.errors, v)
		}
	}
	for _, v := range [][]float64{s.seconds, s.iterations, s.errors} {
		slices.Sort(v)
	}
	return s
}

// sampleOf collects the seeds of a row and a role.
func (r *Report) sampleOf(row, role string) *sample { return gather(r.Find(row, role), 0) }

// curve collects the entries of a row and a role by their place, s in figure 1 and n in figure 2, in the order of the
// plan.
func (r *Report) curve(row, role string) []*sample {
	var places []int
	by := map[int][]*Entry{}
	for _, e := range r.Find(row, role) {
		x := e.Case.S
		if r.ID == "figure2" {
			x = sizeOf(e.Case).N
		}
		places, by[x] = once(places, x), append(by[x], e)
	}
	var out []*sample
	for _, x := range places {
		s := gather(by[x], 0)
		s.x = float64(x)
		out = append(out, s)
	}
	return out
}

// complete reports whether all seeds ran, converged and were tested.
func (s *sample) complete() bool { return len(s.errors) == s.seeds }

// median returns the median of an ascending sample, halfway between the middle two of an even number; NaN of none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ends returns the least and the largest of an ascending sample.
func ends(v []float64) (lo, hi float64) { return v[0], v[len(v)-1] }

// median returns the median number of iterations; NaN where a seed did not converge or none ran.
func (s *sample) median() float64 {
	if s.capped != nil {
		return math.NaN()
	}
	return median(s.iterations)
}

// needs returns what is known of the iterations to the tolerance: the median; more than were allowed
// where a seed did not converge; nothing where none ran.
func (s *sample) needs() bounds {
	if s.capped != nil {
		return bounds{float64(s.capped.Result.Iterations) + 1, math.Inf(1)}
	}
	return bounds{s.median(), s.median()}
}

// spread returns the median of an ascending sample with its ends, shown as "85", or "85 (83–88)" where that is not all,
// with the verb of a float64; nothing of none. A note follows.
func spread(v []float64, verb, note string) plots.Cell {
	if len(v) == 0 {
		return plots.Text(note)
	}
	lo, hi := ends(v)
	text := fmt.Sprintf(verb, median(v))
	if a, b := fmt.Sprintf(verb, lo), fmt.Sprintf(verb, hi); a != b {
		text += fmt.Sprintf(" (%s–%s)", a, b)
	}
	return plots.Spread(median(v), lo, hi, text+note)
}

// text gives the iterations as spread does, as "FAIL (1000)" in the paper's word where a seed did not converge within
// the iterations allowed, what else it ended with, and a blank where none ran; how many of the seeds these are, where
// it is not all.
func (s *sample) text() plots.Cell {
	switch {
	case s.capped != nil:
		how := s.capped.Result.Status
		if how.Is(pcg.MaxIterations) {
			how = "FAIL"
		}
		b := s.needs()
		text := fmt.Sprintf("%s (%d)%s", how, s.capped.Result.Iterations, s.share())
		return plots.Spread(math.NaN(), b.lo, b.hi, text)
	case s.ran == 1 && s.seeds == 1:
		return plots.Number(s.median())
	}
	return spread(s.iterations, "%g", s.share())
}

// share says how many of the seeds ran where it is not all: ", 2 of 5 seeds".
func (s *sample) share() string {
	if s.ran == 0 || s.ran == s.seeds {
		return ""
	}
	return fmt.Sprintf(", %d of %d seeds", s.ran, s.seeds)
}

// words gives the iterations in a sentence: "90 (85–95) iterations", "more than 1000 iterations".
func (s *sample) words() string {
	switch {
	case s.ran == 0:
		return "no iterations"
	case s.capped == nil:
		return spread(s.iterations, "%g", " iterations"+s.share()).String()
	case s.capped.Result.Status.Is(pcg.MaxIterations):
		return fmt.Sprintf("more than %d iterations", s.capped.Result.Iterations)
	}
	return fmt.Sprintf("%d iterations without an answer (%s)", s.capped.Result.Iterations, s.capped.Result.Status)
}

// train returns the median of the seconds of training; NaN if no seed ran.
func (s *sample) train() float64 { return median(s.seconds) }

// result returns the first seed's result; nil if none ran.
func (s *sample) result() *Result {
	if s.first == nil {
		return nil
	}
	return s.first.Result
}

// seedsText says how many seeds a place has: "5", "3 of 5 converged".
func (s *sample) seedsText() plots.Cell {
	switch n := len(s.errors); {
	case s.capped != nil:
		return plots.Text(fmt.Sprintf("%d of %d converged", n, s.ran))
	case n < s.seeds:
		return plots.Text(fmt.Sprintf("%d of %d run", n, s.seeds))
	default:
		return plots.Number(float64(n))
	}
}
