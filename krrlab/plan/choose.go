package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/direct"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// margin is the share of the training time of what the rule prefers below which another candidate is chosen: what is
// nearer is within what seconds of entries vary by from run to run.
const margin = 0.95

// model is a task, what is known of it, and what it costs.
type model struct {
	*Task
	cost  Cost
	pilot *Pilot
	look  float64 // seconds of deciding how to keep K, 0 where that is known
}

// choose predicts seconds and bytes of the candidates of the task by counts at the rates, with the iterations that a
// rule expects, and chooses the one of least training time, or one that is as good by the margin and comes before.
func choose(ctx context.Context, t *Task, rates Rates) (*Plan, error) {
	t.settle()
	_, d := t.X.Dims()
	m := &model{Task: t, cost: Cost{
		Rates: rates, N: t.n, D: d, T: t.t, Tests: t.Tests, PointBytes: t.PointBytes, Ranks: t.Ranks,
	}}
	var err error
	if m.pilot, err = newPilot(ctx, t); err != nil {
		return nil, err
	}
	m.look = m.looking()
	list, best, err := m.least()
	if err == nil && best.Solver != Direct {
		if err = m.pilot.look(ctx); err == nil {
			m.look, m.cost.K = 0, m.pilot.choice // the plan has taken it
			list, best, err = m.least()
		}
	}
	if err != nil {
		return nil, err
	}
	p := &Plan{Candidates: list, Rates: rates, Pilot: *m.pilot}
	for _, o := range list[1:] {
		if o.Refused == "" && (o.Precond != best.Precond || o.Solver != best.Solver) {
			p.RunnerUp = o
			break
		}
	}
	p.Report = m.report(list, best)
	p.flips(m)
	return p, nil
}

// looking predicts the seconds of look: K of some rows is formed as accurately as need be and as it is kept, and
// norms of both are taken in some thirty products each.
func (m *model) looking() float64 {
	const passes = 90
	rows, p := float64(m.pilot.k.Rows()), m.pilot
	return rows*rows/2*(p.Exact+p.Stored+8*passes/m.cost.Read) + vecchia.RuleRows*float64(m.n)*p.Exact
}

// least lists the candidates, the one that is chosen first and those refused last.
func (m *model) least() (list []*Candidate, best *Candidate, err error) {
	m.cost.Entries = m.pilot.Entries
	list = m.candidates()
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("plan: no method has the solver %q and the preconditioner %q", m.Solver, m.Precond)
	}
	rank := func(c *Candidate) int {
		switch {
		case c.Refused != "":
			return 3
		case m.ruled(c):
			return 0
		case c == best:
			return 1
		}
		return 2
	}
	for _, c := range list {
		if c.Refused == "" && (best == nil || c.Seconds.training() < margin*best.Seconds.training()) {
			best = c
		}
	}
	slices.SortStableFunc(list, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Seconds.training(), b.Seconds.training()))
	})
	if best = list[0]; best.Refused != "" {
		return nil, nil, fmt.Errorf("plan: no way to solve fits: %v: %s", best, best.Refused)
	}
	return list, best, nil
}

// predict sets what a candidate takes, and why it cannot be taken.
func (m *model) predict(c *Candidate) {
	m.cost.Rounds = m.rounds(c) + 1
	if c.Iterations = m.cost.Rounds - 1; c.Solver != Direct {
		c.Iterations = int(math.Ceil(m.expected(c)))
	}
	if n := float64(m.n); n*n*float64(m.cost.D) > m.ExactWork {
		m.cost.Rounds = 0
	}
	if m.cost.Of(c); c.Solver != Direct {
		c.Seconds.Kernel += m.look
		c.Seconds.Total += m.look
	}
	switch {
	case m.Memory > 0 && c.Bytes > m.Memory:
		c.Refused = fmt.Sprintf("it holds %s, the limit is %s", accel.Bytes(c.Bytes), accel.Bytes(m.Memory))
	case c.Solver == Direct && c.Storage == gram.Float32 && !direct.Definite(m.n, m.pilot.largest, m.Lambda):
		c.Refused = "K+λI may not be positive definite in float32"
	}
}

// ruled reports whether a fixed rule takes the candidate.
func (m *model) ruled(c *Candidate) bool {
	return m.Small != gram.Auto && c.Solver == Direct && c.Storage == m.Small
}

// rounds predicts the rounds of refinement of a candidate by what its solve leaves of the residual: iterations with
// float32 tiles the error of products with them (package gram),
//
//	4u·(rms(K)·√n·‖c‖₂ + ‖Kc‖₂)/‖y‖₂,  u = 2⁻²⁴,
//
// with ‖c‖₂ as the pilot has it and ‖Kc‖₂ ≤ ‖y‖₂, and a factor of K+λI in float32 direct.Left at most, and
// 4u·max k(x,x)·√n·‖c‖₂/‖y‖₂: of eleven data sets, n = 3,000 and two λ each, 0.01 to 0.97 of that.
func (m *model) rounds(c *Candidate) int {
	p, root := m.pilot, math.Sqrt(float64(m.n))
	left := 4 * 0x1p-24 * (p.rms*root*p.c + 1)
	switch {
	case c.Storage == gram.Float64:
		return 0
	case c.Solver == Direct:
		left = min(direct.Left(m.n, p.largest, m.Lambda), 4*0x1p-24*p.largest*root*p.c)
	}
	return max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(min(left, 0.5))))-1)
}

// storage returns how K will be stored: by its error, where the pilot has looked, and by what fits the memory; one
// that is given is read where it is.
func (m *model) storage() gram.Storage {
	fits := func(s gram.Storage) bool {
		return m.Memory == 0 || m.PointBytes+m.cost.kernelBytes(s)+80*int64(m.n)*int64(m.t) <= m.Memory
	}
	switch {
	case m.Storage != gram.Auto:
		return m.Storage
	case kernel.Given(m.Kernel) != nil:
		return gram.Recompute
	case m.pilot.choice != nil && m.pilot.choice.Storage == gram.Float64 && fits(gram.Float64):
		return gram.Float64
	case fits(gram.Float32):
		return gram.Float32
	}
	return gram.Recompute
}

// flips says by how much a prediction may be wrong before the runner-up wins, and what memory would change.
func (p *Plan) flips(m *model) {
	b, r := &p.Choice, p.RunnerUp
	say := func(format string, args ...any) { p.Flips = append(p.Flips, fmt.Sprintf(format, args...)) }
	if m.ruled(b) {
		say("--solver or --precond: so few points are solved directly, by a fixed rule, whatever is predicted")
		return
	}
	if r != nil {
		gain := r.Seconds.training() - b.Seconds.training()
		if gain < (1/margin-1)*b.Seconds.training() {
			say("nothing much: %v is as good, by what is known", r)
		}
		if b.Solver != Direct {
			limit := float64(b.Iterations) + gain/b.each()
			say("more than %.0f iterations where %d are expected: then %v is faster", math.Floor(limit), b.Iterations,
				r)
		}
	}
	for _, o := range p.Candidates {
		if o.Refused != "" && m.Memory > 0 && o.Bytes > m.Memory && o.Seconds.training() < b.Seconds.training() {
			say("a memory limit of %s: then %v, %.3g s", accel.Bytes(o.Bytes), o, o.Seconds.training())
			break
		}
	}
}
