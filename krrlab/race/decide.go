package race

import (
	"cmp"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/internal/enum"
)

const (
	fewest = 4    // iterations before which nothing is said of a runner
	slow   = 1000 // iterations without M, of which nothing is known where the residual does not fall
	doubt  = 8    // a forecast after k iterations may be off by 1 + doubt/k
	// share, of the time of what leads, is what the others may take in all, and of its iterations what each may
	// do; of the time that building takes, it is for how long something has to run before.
	share = 0.05
	// trust is how many times the iterations expected of a runner it may take before its forecast alone counts: residuals of
	// conjugate gradients fall slowly first where M misses a few eigenvalues, and a forecast from there says several times too many.
	// Up to as many times those expected are counted for what is not built as what may be done soonest shows: they come from the same spectrum.
	trust = 1.5
)

// Phase is where a runner is in the race.
type Phase int

// The phases.
const (
	Waiting Phase = iota // M is not built
	Running
	Resting // it does not pay to go on with it, as far as is known
	Done    // it has reached τ
	Out     // it failed: see Standing.Why
)

var phaseNames = []string{"not built", "running", "resting", "done", "out"}

// String returns the phase in words.
func (p Phase) String() string { return enum.Name(phaseNames, p) }

// MarshalText implements encoding.TextMarshaler.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Phase) UnmarshalText(b []byte) (err error) {
	*p, err = enum.Parse[Phase]("phase", phaseNames, string(b))
	return err
}

// Standing is what is known of a runner.
type Standing struct {
	Name       string    `json:"name"`
	Phase      Phase     `json:"phase"`
	Iterations int       `json:"iterations"`          // done
	Residuals  []float64 `json:"residuals,omitempty"` // ‖r‖₂/‖y‖₂ by recurrence after 0, 1, …, Iterations
	// Bounds are upper bounds of ‖x−x_k‖_A/‖y‖₂ (pcg.History.Error) after k = 1, 2, … iterations, where λ_min is known.
	Bounds []float64 `json:"bounds,omitempty"`
	Build  float64   `json:"build_seconds"` // of building M: expected while it waits, then measured
	Solve  float64   `json:"solve_seconds"` // of M⁻¹R for all right-hand sides, likewise
	Spent  float64   `json:"spent_seconds"` // on its own part of the iterations of the race
	// Expected are the iterations expected, of Runner.Iterations; 0 where nothing is.
	Expected float64 `json:"expected_iterations"`
	Times    float64 `json:"-"` // Runner.Times
	// Left and Seconds are the iterations and the seconds that it still needs, building included, as Decide
	// predicts; +Inf where it gets no nearer to τ.
	Left    float64 `json:"-"`
	Seconds float64 `json:"-"`
	Why     string  `json:"why,omitempty"` // of Out
}

// built reports whether M is built, and nothing is wrong with it.
func (s *Standing) built() bool { return s.Phase == Running || s.Phase == Resting }

// Forecast predicts how many iterations more bring residuals, those after 0, 1, … iterations, to tol: by the
// rate of the last half of them, so that
//
//	mid = ln(r_k/τ)/rate,  rate = (ln r_h − ln r_k)/(k−h),  h = ⌊k/2⌋,
//
// each r being the least so far. low and high are mid divided and multiplied by 1+8/k. All are +Inf where
// the rate is not positive, and low is 0 and high +Inf for less than four iterations.
func Forecast(residuals []float64, tol float64) (low, mid, high float64) {
	k := len(residuals) - 1
	if k < 1 {
		return 0, math.Inf(1), math.Inf(1)
	}
	h := k / 2
	before := slices.Min(residuals[:h+1])
	last := min(before, slices.Min(residuals[h+1:]))
	if last <= tol {
		return 0, 0, 0
	}
	mid = math.Inf(1)
	if rate := math.Log(before/last) / float64(k-h); rate > 0 {
		mid = math.Log(last/tol) / rate
	}
	if k < fewest {
		return 0, mid, math.Inf(1)
	}
	f := 1 + doubt/float64(k)
	return mid / f, mid, mid * f
}

// Choice is what Decide decides.
type Choice struct {
	Leader int   // predicted to be done first of those that are built; −1 if there is none
	Run    []int // that take part in the next step, ascending
	Build  int   // to be built before; −1 for none
	Over   bool  // no other than the leader can be done first
}

// Terms are what Decide goes by beside the standings.
type Terms struct {
	Tol     float64 // τ
	Product float64 // seconds of a product with A for all right-hand sides
	Kept    bool    // what the winner does in the race is kept, so that going on with it costs nothing
}

// Decide says how a race goes on, and sets Left and Seconds of all. It depends on nothing but its arguments.
func Decide(t Terms, field []Standing) Choice {
	c := Choice{Leader: -1, Build: -1}
	first := -1                                                           // of those that are built, what may be done soonest: the least low
	low, high := make([]float64, len(field)), make([]float64, len(field)) // seconds
	young := false                                                        // one that runs of which nothing is known yet
	none, least := float64(slow), math.Inf(1)                             // iterations in all without M, and with the best that is built
	for i := range field {
		s := &field[i]
		if !s.built() {
			continue
		}
		var l, h float64
		l, s.Left, h = Forecast(s.Residuals, t.Tol)
		if rest := trust*s.Expected - float64(s.Iterations); rest > 0 {
			l = min(l, rest)
		}
		step := t.Product + s.Solve
		low[i], s.Seconds, high[i] = l*step, s.Left*step, h*step
		young = young || s.Iterations < fewest
		if all := float64(s.Iterations) + s.Left; s.Build == 0 {
			none = min(none, all)
		} else {
			least = min(least, all)
		}
		if c.Leader < 0 || s.Seconds < field[c.Leader].Seconds || s.Seconds == field[c.Leader].Seconds && s.Phase == Running && field[c.Leader].Phase != Running {
			c.Leader = i
		}
		if first < 0 || low[i] < low[first] {
			first = i
		}
	}
	hope := 2 * math.Sqrt(none) // iterations with one of which nothing is known: near what pilots show, if hopeful
	if !math.IsInf(least, 1) {
		hope = max(hope, least/2)
	}
	next, times := -1, 1.0 // those expected of what is not built are off by times
	if first >= 0 && field[first].Expected > 0 && !young {
		s := &field[first]
		times = min(max((float64(s.Iterations)+low[first]/(t.Product+s.Solve))/s.Expected, 1), trust)
	}
	for i := range field {
		s := &field[i]
		if s.Phase != Waiting {
			continue
		}
		s.Left = cmp.Or(s.Expected*times, s.Times*hope)
		s.Seconds = s.Build + s.Left*(t.Product+s.Solve)
		if next < 0 || s.Seconds < field[next].Seconds {
			next = i
		}
	}
	if c.Leader < 0 { // nothing runs: what is left is tried
		c.Build = next
		return c
	}
	lead := &field[c.Leader]
	step := t.Product + lead.Solve
	if next >= 0 && !young && low[first] > field[next].Seconds && float64(lead.Iterations)*step >= share*field[next].Build {
		c.Build = next
	}
	c.Over = !young && !math.IsInf(lead.Seconds, 1) && (next < 0 || high[c.Leader] < field[next].Seconds ||
		!t.Kept && lead.Iterations >= doubt && float64(lead.Iterations) >= share*lead.Left)
	var others float64
	for i := range field {
		if i != c.Leader {
			others += field[i].Spent
		}
	}
	dear := others > share*(float64(lead.Iterations)*step+lead.Seconds)
	for i := range field {
		s := &field[i]
		switch {
		case !s.built():
		case i == c.Leader, lead.Iterations < fewest, float64(s.Iterations) < max(fewest, share*float64(lead.Iterations)):
			c.Run = append(c.Run, i)
		case low[i] > high[c.Leader]:
		case dear: // as good as the other, for all that is known
		default:
			c.Run = append(c.Run, i)
		}
	}
	c.Over = c.Over && c.Build < 0 && len(c.Run) == 1
	return c
}
