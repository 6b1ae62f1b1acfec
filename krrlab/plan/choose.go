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
)

// What a race may take of the training time of what is chosen, and how many times that what else races may.
const (
	raceShare = 0.08
	within    = 3
)

// model is a task, what is known of it, and what it costs.
type model struct {
	*Task
	cost  Cost
	pilot *Pilot
}

// Choose predicts seconds and bytes of the candidates of the task by counts at the rates, with the iterations that a rule
// expects, and chooses the one of least training time: what is done where the Rivals do not race.
func Choose(ctx context.Context, t *Task, rates Rates) (*Plan, error) {
	t.settle()
	_, d := t.X.Dims()
	m := &model{Task: t, cost: Cost{Rates: rates, N: t.n, D: d, T: t.t, Tests: t.Tests, PointBytes: t.PointBytes, Ranks: t.Ranks, ExactWork: t.ExactWork}}
	var err error
	if m.pilot, err = newPilot(ctx, t, rates); err != nil {
		return nil, err
	}
	m.cost.Entries = m.pilot.Entries
	list := m.candidates()
	if len(list) == 0 {
		return nil, fmt.Errorf("plan: no method has the solver %q and the preconditioner %q", t.Solver, t.Precond)
	}
	m.predict(list)
	open := t.Small == gram.Auto && t.Storage == gram.Auto && kernel.Given(t.Kernel) == nil
	refines := m.rounds(m.left(&Candidate{Solver: PCG, Storage: m.storage()})) > 0 // which K in float64 does not
	if list[0].Solver != Direct || list[0].Refused != "" || refines && open {
		if err := m.pilot.look(ctx); err != nil {
			return nil, err
		}
		list = m.candidates()
		m.predict(list)
	}
	c := &Plan{Candidates: list, Rates: rates, Advice: m.advice()}
	best := list[0]
	if best.Refused != "" {
		return nil, fmt.Errorf("plan: no way to solve fits: %v: %s", best, best.Refused)
	}
	for _, o := range list[1:] {
		if o.Refused == "" && (o.Precond != best.Precond || o.Solver != best.Solver) {
			c.RunnerUp = o
			break
		}
	}
	c.Pilot = *m.pilot
	c.Rivals = m.rivals(list)
	for _, o := range c.Rivals {
		o.Bytes = m.cost.bytes(o, true)
	}
	c.Report = c.Of(best)
	c.flips(m)
	return c, nil
}

// predict sets what the candidates take and sorts them: those that are refused last, and first what a fixed rule takes.
func (m *model) predict(list []*Candidate) {
	m.cost.Entries, m.cost.Look, m.cost.K = m.pilot.Entries, m.pilot.Look, m.pilot.choice
	if m.pilot.choice != nil {
		m.cost.Look = 0 // the plan has taken it
	}
	for _, c := range list {
		m.cost.Rounds = m.rounds(m.left(c))
		if c.Iterations = m.cost.Rounds; c.Solver != Direct {
			c.Iterations = int(m.expected(c))
		}
		m.cost.Of(c)
		m.refuse(c)
	}
	rank := func(c *Candidate) int {
		switch {
		case c.Refused != "":
			return 2
		case m.ruled(c):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Seconds.training(), b.Seconds.training()))
	})
}

// ruled reports whether a fixed rule takes the candidate.
func (m *model) ruled(c *Candidate) bool {
	return m.Small != gram.Auto && c.Solver == Direct && c.Storage == m.Small
}

// refuse says why a candidate cannot be taken.
func (m *model) refuse(c *Candidate) {
	c.Refused = ""
	switch {
	case m.Memory > 0 && c.Bytes > m.Memory:
		c.Refused = fmt.Sprintf("it holds %s, the limit is %s", accel.Bytes(c.Bytes), accel.Bytes(m.Memory))
	case c.Solver == Direct && c.Storage == gram.Float32 && !direct.Definite(m.n, m.pilot.largest, m.Lambda):
		c.Refused = "K+λI may not be positive definite in float32"
	}
}

// Of returns the candidate as a choice, with what the process holds beside, and no less than it has held.
func (p *Plan) Of(c *Candidate) Report {
	r := Report{Choice: *c, Seconds: c.Seconds, Bytes: c.Bytes, Flags: c.Flags()}
	most, _ := accel.MemoryLimit() // of the machine, where the task has no limit
	for _, o := range p.Candidates {
		if o.Solver == Direct && o.Refused == "" && o.Bytes <= most/10*9 && c.Solver != Direct {
			r.Instead = o
			break
		}
	}
	if t := p.Pilot.task; t != nil {
		r.Bytes = max(t.Beside+c.Bytes, t.Peak)
	}
	return r
}

// rivals returns the choice and the best of every other preconditioner that is expected within three times its time, with the
// best without M, if there are any and a race between them pays: it takes at most 8 % of the choice's time. A race takes four iterations without M, and with several columns, whose iterations are
// lost, a product with all of them and eight more of one.
func (m *model) rivals(list []*Candidate) (field []*Candidate) {
	best := list[0]
	if best.Solver == Direct || best.Storage == gram.Recompute {
		return nil
	}
	one := m.cost
	one.T = 1
	_, single, _ := one.iteration(best)
	cost := 4 * single
	if m.t > 1 {
		_, all, _ := m.cost.iteration(best)
		cost += all + 8*single
	}
	if cost > raceShare*best.Seconds.training() {
		return nil
	}
	for _, c := range list {
		met := slices.ContainsFunc(field, func(o *Candidate) bool { return o.Precond == c.Precond && (o.S > 0) == (c.S > 0) })
		soon := c.Seconds.training() <= within*best.Seconds.training() || c.Precond == None
		fits := m.Memory <= 0 || m.cost.bytes(c, true) <= m.Memory
		if !met && fits && soon && c.Refused == "" && c.Solver != Direct {
			field = append(field, c)
		}
	}
	if len(field) < 2 || field[0] != best {
		return nil
	}
	return field
}

// Alone returns the iterations that one column is expected to take, where block PCG takes fewer of t columns.
func (c *Candidate) Alone(t int) float64 {
	if c.Solver == BlockPCG {
		return float64(c.Iterations) / blockShare(t)
	}
	return float64(c.Iterations)
}

// flips says by how much what is expected may be off before the runner-up wins, and what memory would change.
func (c *Plan) flips(m *model) {
	b, r := &c.Choice, c.RunnerUp
	if m.ruled(b) {
		c.Flips = []string{"--solver or --precond: so few points are solved directly, by a fixed rule, whatever is predicted"}
		return
	}
	if r != nil && b.Solver != Direct && b.Iterations > 0 {
		each := b.each()
		limit := float64(b.Iterations) + (r.Seconds.training()-b.Seconds.training())/each
		c.Flips = append(c.Flips, fmt.Sprintf("more than %.0f iterations where %d are expected: then %v is faster", math.Floor(limit), b.Iterations, r))
	}
	if r != nil && r.Solver != Direct && r.Iterations > 0 {
		each := r.each()
		if limit := float64(r.Iterations) - (r.Seconds.training()-b.Seconds.training())/each; limit >= 1 {
			c.Flips = append(c.Flips, fmt.Sprintf("fewer than %.0f iterations of %v where %d are expected", math.Ceil(limit), r, r.Iterations))
		}
	}
	for _, o := range c.Candidates {
		if o.Refused != "" && m.Memory > 0 && o.Bytes > m.Memory && o.Seconds.training() < b.Seconds.training() {
			c.Flips = append(c.Flips, fmt.Sprintf("a memory limit of %s: then %v, %.3g s", accel.Bytes(o.Bytes), o, o.Seconds.training()))
			break
		}
	}
}

// advice says where another tool is better.
func (m *model) advice() string {
	if m.cost.D <= 3 && m.n >= 20000 {
		return fmt.Sprintf("d = %d and n = %d: for a smooth shift-invariant kernel in so few dimensions equispaced Fourier methods take O(n) time and memory, where this program takes O(n²)", m.cost.D, m.n)
	}
	for s := 16; s <= m.n/50 && s <= m.pilot.M/2; s *= 2 {
		if float64(m.n)*m.pilot.residual(float64(s)) <= m.Lambda {
			return fmt.Sprintf("K has about %d eigenvalues that count beside λ: a regression on that many random features or landmarks gives the same predictions in O(ns²) time without K", s)
		}
	}
	return ""
}
