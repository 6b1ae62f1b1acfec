package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
)

// What is a candidate, and the iterations to τ = 10⁻³ that a rule of thumb expects of it, as counted on the problems of
// make bench-plan: where they decide, seconds are far apart, and what is observed corrects them.
const (
	rankShare, mostRank  = 1. / 20, 12000 // of n
	ridges               = 10             // λ_p/λ
	pivotSteps           = 12             // of pivots, times (1+γ/λ)^¼
	sparseSteps          = 1.1            // of a sparse inverse, times (1+k(x,x)/λ)^⅛ and √(1 + sum of a row)
	nearest, nearer      = 15, 1.5        // neighbors that its rule takes at least, and for each of that sum,
	mostNear             = 90             // at most
	bothSteps, bothPower = 4.2, 0.6       // of the nearest ones beside half of the pivots, times this power of pivots'
	featuresSlow         = 2.3            // of random features, times those of pivots
	blockSteps           = 0.86           // of blocks of columns, times those of one
	halfSteps, rounds    = 1.4, 3         // of 16-bit tiles, times those of others, and true residuals
	leaves               = 0.17           // of a residual by a factor in float32, times u‖K‖₂/λ
)

// model is a task, what is known of it, and what it costs.
type model struct {
	*Task
	*Pilot
	cost Cost
}

// choose predicts seconds and bytes of the candidates of the task by counts at the rates, with the iterations that a
// rule expects, and chooses the one of least training time.
func choose(ctx context.Context, t *Task, rates Rates) (*Plan, error) {
	pilot, err := newPilot(ctx, t)
	if err != nil {
		return nil, err
	}
	m := &model{t, pilot, Cost{Rates: rates, Entries: pilot.Entries, N: t.N, D: t.D, T: t.T, Tests: t.Tests,
		PointBytes: t.Points, Ranks: t.Comm.Size(), Form: t.Form, K: &pilot.choice,
		Looked: t.Comm.Size() == 1}}
	list := m.candidates(ctx)
	if len(list) == 0 {
		return nil, fmt.Errorf("plan: no method whose costs it knows has the solver %q and the preconditioner %q",
			t.Held.Solver, t.Held.Precond)
	}
	slices.SortStableFunc(list, func(a, b *Candidate) int { return cmp.Compare(m.rank(a), m.rank(b)) })
	best := list[0]
	switch {
	case best.Refused == "":
	case m.ruled(best):
		return nil, fmt.Errorf("plan: no memory for %v: %s; take an iterative solver", best, best.Refused)
	default:
		best = slices.MinFunc(list, func(a, b *Candidate) int { return cmp.Compare(a.Bytes, b.Bytes) })
		return nil, fmt.Errorf("plan: no way to solve fits, the least is %v: %s", best, best.Refused)
	}
	p := &Plan{Candidates: list, Rates: rates, Pilot: *pilot, Report: Report{}.Going(best)}
	p.Bytes = max(t.Beside+best.Bytes, t.Peak)
	most, _ := accel.MemoryLimit() // of the machine, where the task has no limit
	for i, o := range list[1:] {
		switch {
		case o.Refused != "":
			continue
		case i == 0:
			p.RunnerUp = o
		}
		if p.Instead == nil && o.Solver == Direct && best.Solver != Direct && o.Bytes <= most/10*9 {
			p.Instead = o
		}
	}
	p.Flips = m.flips(p)
	return p, nil
}

// rank orders candidates: what a fixed rule takes, whether it fits or not, by training time, and those refused.
func (m *model) rank(c *Candidate) float64 {
	switch {
	case m.ruled(c):
		return 0
	case c.Refused != "":
		return math.Inf(1)
	}
	return c.Seconds.training()
}

// candidates lists the ways that do what is held.
func (m *model) candidates(ctx context.Context) (list []*Candidate) {
	h, storages, one, several := m.Held, m.storages(ctx), CG, PCG
	s := min(cmp.Or(h.S, max(1, int(rankShare*float64(m.N)))), mostRank)
	if BlockPays(m.N, s, m.T) {
		several = BlockPCG
	}
	switch h.Solver {
	case PCG:
		several = PCG
	case BlockPCG:
		one, several = BlockPCG, BlockPCG
	}
	add := func(c Candidate) {
		if h.Precond != "" && h.Precond != c.Precond || h.Solver != "" && h.Solver != c.Solver {
			return
		}
		c.Named = h.Named
		of := storages
		if c.Solver == Direct {
			of = []gram.Storage{c.Storage}
		}
		for _, c.Storage = range of {
			half := c.Storage == gram.Fixed16 && h.Storage == gram.Auto
			if m.predict(&c); c.Refused == "" && !(half && c.Precond == Vecchia) { // whose neighbors K tells
				break
			}
		}
		list = append(list, &c)
	}
	if h.S == 0 && h.LambdaP == 0 {
		for _, s := range m.factored() {
			add(Candidate{Solver: Direct, Precond: None, Storage: s})
		}
		add(Candidate{Solver: one, Precond: None})
	}
	for _, method := range []string{RPCholesky, Nystrom, Features} {
		if method == RPCholesky || method == h.Precond {
			add(Candidate{Solver: several, Precond: method, S: s, LambdaP: cmp.Or(h.LambdaP, ridges*m.Lambda)})
		}
	}
	if h.LambdaP == 0 && kernel.Given(m.Kernel) == nil {
		sparse := func(s, k int) {
			k = max(min(cmp.Or(h.Neighbors, k), m.N-1), 0)
			add(Candidate{Solver: several, Precond: Vecchia, S: s, Neighbors: k})
		}
		rule := int(min(max(nearest, nearer*m.Sum), mostNear))
		if h.S == 0 {
			sparse(0, rule)
		}
		if h.Precond == "" {
			sparse(cmp.Or(h.S, (s+1)/2), nearest)
		} else if h.S > 0 {
			sparse(h.S, rule)
		}
	}
	return list
}

// factored returns how a direct solver may keep its factor: by the fixed rule, as asked, or in float64, and in float32
// where that is likely to do.
func (m *model) factored() (list []gram.Storage) {
	if m.Iterative {
		return nil
	}
	if m.Small != gram.Auto {
		return []gram.Storage{m.Small}
	}
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		if (m.Held.Storage == gram.Auto || m.Held.Storage == s) &&
			(s == gram.Float64 || m.rounding() <= 0.5 && m.Lambda >= 0x1p-24*math.Sqrt(float64(m.N))*m.most) {
			list = append(list, s)
		}
	}
	return list
}

// expected returns the iterations that the rule expects of a candidate, in proportion to ln(2/τ). Of r pivots
// γ = (n−r)·Left/r, at most the largest sum of a row, is the ridge at which K has about r degrees of freedom. None has
// those of κ = that sum/λ, or one for each of r eigenvalues and what r pivots take.
func (m *model) expected(c *Candidate) float64 {
	r, digits := float64(m.M), math.Log(2/m.Tol)/math.Log(2000)
	gamma := min((float64(m.N)-r)*m.Left/r, m.Largest)
	its := pivotSteps * math.Pow(1+gamma/m.Lambda, 0.25)
	switch {
	case c.Precond == None:
		its = min(math.Log(2000)/2*math.Sqrt(1+m.Largest/m.Lambda), r/digits+its)
	case c.Precond == Features:
		its *= featuresSlow
	case c.Precond == Vecchia && c.S == 0:
		its = sparseSteps * math.Pow(1+m.most/m.Lambda, 0.125) * math.Sqrt(1+m.Sum)
	case c.Precond == Vecchia:
		its = bothSteps * math.Pow(its, bothPower)
	}
	if c.Solver == BlockPCG {
		its *= blockSteps
	}
	return math.Ceil(min(digits*its, float64(m.N)))
}

// predict sets what a candidate takes, and why it cannot be taken.
func (m *model) predict(c *Candidate) {
	if c.Solver != Direct {
		c.Iterations = int(m.expected(c))
	} else if c.Storage == gram.Float32 {
		left := min(leaves*m.rounding(), 0.5)
		c.Iterations = max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(left)))-1)
	}
	if m.cost.Rounds = 0; m.Task.Exact {
		m.cost.Rounds = 1
	}
	if c.Storage == gram.Fixed16 {
		c.Iterations, m.cost.Rounds = int(halfSteps*float64(c.Iterations)), rounds
	}
	c.Refused = ""
	if m.cost.Of(c); m.Memory > 0 && c.Bytes > m.Memory {
		c.Refused = fmt.Sprintf("it holds %s, the limit is %s beside the program", accel.Bytes(c.Bytes),
			accel.Bytes(m.Memory))
	}
}

// ruled reports whether a fixed rule takes the candidate.
func (m *model) ruled(c *Candidate) bool { return m.Small != gram.Auto && c.Solver == Direct }

// storages returns how K may be stored, the fastest first: as its error asks, in 16 bits where float32 is much of the
// memory and they are accurate enough, or not at all.
func (m *model) storages(ctx context.Context) (list []gram.Storage) {
	if m.Held.Storage != gram.Auto {
		return []gram.Storage{m.Held.Storage}
	}
	list = append(list, m.choice.Storage, gram.Float32)
	if m.Refined && m.Memory > 0 && m.cost.kernelBytes(gram.Float32) > m.Memory/2 {
		o := gram.Options{Storage: gram.Fixed16, Tiles: m.Tiles, Seed: m.Seed}
		if _, err := gram.Look(ctx, m.Kernel, m.X, m.Lambda, &o); err == nil {
			list = append(list, gram.Fixed16)
		}
	}
	return append(list, gram.Recompute)
}

// flips says how many iterations or what memory would change the choice.
func (m *model) flips(p *Plan) (flips []string) {
	b, r := &p.Choice, p.RunnerUp
	if m.ruled(b) {
		return []string{
			"--solver or --precond: so few points are solved directly, by a fixed rule, whatever is predicted"}
	}
	if r != nil {
		gain, c, than := r.Seconds.training()-b.Seconds.training(), b, "more"
		if b.Solver == Direct {
			gain, c, than = -gain, r, "fewer"
		}
		if limit := float64(c.Iterations) + gain/c.each(); limit >= 1 {
			flips = append(flips, fmt.Sprintf("%s than %.0f iterations where %d are expected: then %v is faster", than,
				limit, c.Iterations, r))
		}
	}
	for _, o := range p.Candidates {
		if o.Refused != "" && o.Seconds.training() < b.Seconds.training() {
			return append(flips, fmt.Sprintf("a memory limit of %s beside the program: then %v, %.3g s",
				accel.Bytes(o.Bytes), o, o.Seconds.training()))
		}
	}
	return flips
}

// rounding returns u·‖K‖₂/λ, u = 2⁻²⁴, with the mean sum of a row for ‖K‖₂.
func (m *model) rounding() float64 { return 0x1p-24 * (m.Sum + m.most) / m.Lambda }
