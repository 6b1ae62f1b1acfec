package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/plots"
)

// sample contains the results of all seeds of one case.
type sample struct {
	position     float64 // position on a curve: s in figure 1, n in figure 2
	firstCase    Case    // case of the first seed
	firstRun     *Entry  // first seed that ran, which is the tested seed if that ran; nil if none ran
	plannedSeeds int     // number of seeds in the plan
	ranSeeds     int     // number of seeds that ran
	unconverged  *Entry  // first seed that did not converge; nil if all converged

	seconds    []float64 // seconds of training of the seeds that ran, ascending
	iterations []float64 // iterations of the seeds that converged, ascending
	errors     []float64 // test errors of the seeds that converged and were tested, ascending
}

// newSample collects the results of the seeds of a case. Iterations are counted to the tolerance tol if a seed was
// solved to a smaller one, and otherwise to the tolerance of its solve; tol = 0 always counts to the latter.
func newSample(entries []*Entry, tol float64) *sample {
	s := &sample{plannedSeeds: len(entries)}
	for i, e := range entries {
		if i == 0 {
			s.firstCase = e.Case
		}
		result := e.Result
		if !result.Ran() {
			continue
		}
		s.ranSeeds++
		s.firstRun = cmp.Or(s.firstRun, e)
		s.seconds = append(s.seconds, result.TrainSeconds())
		iterations, ok := result.Iterations, result.Converged
		if e.Case.Tol < tol {
			iterations, ok = result.iterationsTo(tol)
		}
		if !ok {
			s.unconverged = cmp.Or(s.unconverged, e)
			continue
		}
		s.iterations = append(s.iterations, float64(iterations))
		if testError := result.Error(); !math.IsNaN(testError) {
			s.errors = append(s.errors, testError)
		}
	}
	for _, values := range [][]float64{s.seconds, s.iterations, s.errors} {
		slices.Sort(values)
	}
	return s
}

// sampleOf returns the sample of a row and a role.
func (r *Report) sampleOf(row, role string) *sample { return newSample(r.Find(row, role), 0) }

// curve returns a sample for each position of a row and a role, in the order of the plan. The position is s in figure 1
// and n in figure 2.
func (r *Report) curve(row, role string) []*sample {
	var positions []int
	entriesAt := map[int][]*Entry{}
	for _, e := range r.Find(row, role) {
		position := e.Case.S
		if r.ID == "figure2" {
			position = sizeOf(e.Case).N
		}
		positions, entriesAt[position] = appendUnique(positions, position), append(entriesAt[position], e)
	}
	var out []*sample
	for _, position := range positions {
		s := newSample(entriesAt[position], 0)
		s.position = float64(position)
		out = append(out, s)
	}
	return out
}

// complete reports whether all planned seeds ran, converged and were tested.
func (s *sample) complete() bool { return len(s.errors) == s.plannedSeeds }

// median returns the median of ascending numbers: the middle one, or the mean of the middle two. It is NaN if there are
// no numbers.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// minMax returns the smallest and the largest of ascending numbers. There must be at least one.
func minMax(v []float64) (lo, hi float64) { return v[0], v[len(v)-1] }

// medianIterations returns the median number of iterations. It is NaN if a seed did not converge or no seed ran.
func (s *sample) medianIterations() float64 {
	if s.unconverged != nil {
		return math.NaN()
	}
	return median(s.iterations)
}

// iterationBounds returns bounds for the number of iterations to the tolerance. Both are the median if all seeds
// converged. If a seed did not converge, the lower bound is one more than its iterations and the upper bound is
// infinite. Both are NaN if no seed ran.
func (s *sample) iterationBounds() bounds {
	if s.unconverged != nil {
		return bounds{float64(s.unconverged.Result.Iterations) + 1, math.Inf(1)}
	}
	return bounds{s.medianIterations(), s.medianIterations()}
}

// spreadCell returns a cell with the median, the minimum and the maximum of ascending numbers. Its text is "85
// (83–88)", or "85" if the three are equal, followed by the note. verb is the format of a number. Without numbers the
// text is the note alone.
func spreadCell(v []float64, verb, note string) plots.Cell {
	if len(v) == 0 {
		return plots.Text(note)
	}
	lo, hi := minMax(v)
	text := fmt.Sprintf(verb, median(v))
	if loText, hiText := fmt.Sprintf(verb, lo), fmt.Sprintf(verb, hi); loText != hiText {
		text += fmt.Sprintf(" (%s–%s)", loText, hiText)
	}
	return plots.Spread(median(v), lo, hi, text+note)
}

// iterationsCell returns a cell with the iterations, as spreadCell does. If a seed did not converge within the allowed
// iterations, the text is "FAIL (1000)", the paper's word. If a seed ended in another way without converging, its
// status replaces FAIL. The text also has the number of seeds that ran, if not all of them did. The cell is blank if
// none ran.
func (s *sample) iterationsCell() plots.Cell {
	switch {
	case s.unconverged != nil:
		status := s.unconverged.Result.Status
		if status.Is(pcg.MaxIterations) {
			status = "FAIL"
		}
		limits := s.iterationBounds()
		return plots.Spread(math.NaN(), limits.lo, limits.hi,
			fmt.Sprintf("%s (%d)%s", status, s.unconverged.Result.Iterations, s.seedsNote()))
	case s.ranSeeds == 1 && s.plannedSeeds == 1:
		return plots.Number(s.medianIterations())
	}
	return spreadCell(s.iterations, "%g", s.seedsNote())
}

// seedsNote returns a note such as ", 2 of 5 seeds" if only some of the planned seeds ran, and "" otherwise.
func (s *sample) seedsNote() string {
	if s.ranSeeds == 0 || s.ranSeeds == s.plannedSeeds {
		return ""
	}
	return fmt.Sprintf(", %d of %d seeds", s.ranSeeds, s.plannedSeeds)
}

// iterationsText returns the iterations for use in a sentence, such as "90 (85–95) iterations" or "more than 1000
// iterations".
func (s *sample) iterationsText() string {
	switch {
	case s.ranSeeds == 0:
		return "no iterations"
	case s.unconverged == nil:
		return spreadCell(s.iterations, "%g", " iterations"+s.seedsNote()).String()
	case s.unconverged.Result.Status.Is(pcg.MaxIterations):
		return fmt.Sprintf("more than %d iterations", s.unconverged.Result.Iterations)
	}
	return fmt.Sprintf("%d iterations without an answer (%s)", s.unconverged.Result.Iterations,
		s.unconverged.Result.Status)
}

// trainSeconds returns the median of the seconds of training, or NaN if no seed ran.
func (s *sample) trainSeconds() float64 { return median(s.seconds) }

// result returns the result of the first seed that ran, or nil if none did.
func (s *sample) result() *Result {
	if s.firstRun == nil {
		return nil
	}
	return s.firstRun.Result
}

// seedsCell returns a cell with the number of seeds, such as "5", "3 of 5 converged" or "3 of 5 run".
func (s *sample) seedsCell() plots.Cell {
	switch n := len(s.errors); {
	case s.unconverged != nil:
		return plots.Text(fmt.Sprintf("%d of %d converged", n, s.ranSeeds))
	case n < s.plannedSeeds:
		return plots.Text(fmt.Sprintf("%d of %d run", n, s.plannedSeeds))
	default:
		return plots.Number(float64(n))
	}
}
