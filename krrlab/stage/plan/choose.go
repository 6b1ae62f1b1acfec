package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// The iterations to τ = 10⁻³ that a rule of thumb expects, as counted on the problems of make bench-plan: where they
// decide, seconds are far apart, and what is observed corrects them. Those of a preconditioner are with its kind
// (package recipe).
const (
	blockSteps        = 0.86   // of blocks of columns, times those of one
	halfSteps, rounds = 1.4, 3 // of 16-bit tiles, times those of others, and true residuals
	leaves            = 0.17   // of a residual by a factor in float32, times u‖K‖₂/λ
)

// model is a task, what is known of it, and what it costs.
type model struct {
	*Task
	*Pilot
	cost    cost.Model
	outlook cost.Outlook
}

// choose predicts seconds and bytes of the candidates of the task by counts at the rates, with the iterations that a
// rule expects, and chooses the one of least training time.
func choose(ctx context.Context, t *Task, rates cost.Rates) (*Plan, error) {
	pilot, err := newPilot(ctx, t)
	if err != nil {
		return nil, err
	}
	m := &model{t, pilot, cost.Model{Rates: rates, Entries: pilot.Entries, N: t.N, D: t.D, T: t.T, Tests: t.Tests,
		PointBytes: t.PointBytes, Ranks: t.Comm.Size(), MeanRowSum: pilot.MeanRowSum, K: &pilot.choice,
		ErrorKnown: t.Comm.Size() == 1},
		cost.Outlook{Kernel: t.Kernel, N: t.N, M: pilot.M, Lambda: t.Lambda, S: t.Fixed.S, LambdaP: t.Fixed.LambdaP,
			PilotResidual: pilot.Residual, MeanRowSum: pilot.MeanRowSum, LargestRowSum: pilot.LargestRowSum,
			MaxDiagonal: pilot.most}}
	list, err := m.candidates(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("plan: no method whose costs it knows has the solver %q and the preconditioner %q",
			t.Fixed.Solver, fmt.Sprint(t.Fixed.Precond))
	}
	slices.SortStableFunc(list, func(a, b *cost.Candidate) int { return cmp.Compare(m.rank(a), m.rank(b)) })
	best := list[0]
	switch {
	case best.Refused == "":
	case m.ruled(best):
		return nil, fmt.Errorf("plan: no memory for %v: %s; take an iterative solver", best, best.Refused)
	default:
		best = slices.MinFunc(list, func(a, b *cost.Candidate) int { return cmp.Compare(a.Bytes, b.Bytes) })
		return nil, fmt.Errorf("plan: no way to solve fits, the least is %v: %s", best, best.Refused)
	}
	p := &Plan{Candidates: list, Rates: rates, Pilot: *pilot, Report: Report{}.WithChoice(best)}
	p.Bytes = max(t.OtherBytes+best.Bytes, t.PeakBytes)
	most, _ := accel.MemoryLimit() // of the machine, where the task has no limit
	for i, o := range list[1:] {
		switch {
		case o.Refused != "":
			continue
		case i == 0:
			p.RunnerUp = o
		}
		if p.Fallback == nil && o.Solver == cost.Direct && best.Solver != cost.Direct && o.Bytes <= most/10*9 {
			p.Fallback = o
		}
	}
	p.Flips = m.flips(p)
	return p, nil
}

// rank orders candidates: what a fixed rule takes, whether it fits or not, by training time, and those refused.
func (m *model) rank(c *cost.Candidate) float64 {
	switch {
	case m.ruled(c):
		return 0
	case c.Refused != "":
		return math.Inf(1)
	}
	return c.Seconds.Training()
}

// candidates lists the ways that do what is held.
func (m *model) candidates(ctx context.Context) (list []*cost.Candidate, err error) {
	h, storages := m.Fixed, m.storages(ctx)
	add := func(c cost.Candidate) {
		if h.Solver != "" && h.Solver != c.Solver {
			return
		}
		of := storages
		if c.Solver == cost.Direct {
			of = []gram.Storage{c.Storage}
		}
		_, needs := c.M.(stage.FromK) // exact entries of K, such as which are the largest
		for _, c.Storage = range of {
			half := c.Storage == gram.Fixed16 && h.Storage == gram.Auto
			if m.predict(&c); c.Refused == "" && !(half && needs) {
				break
			}
		}
		list = append(list, &c)
	}
	one, several := cost.CG, cost.PCG
	if cost.BlockPays(m.N, m.outlook.Rank(), m.T) {
		several = cost.BlockPCG
	}
	switch h.Solver {
	case cost.PCG:
		several = cost.PCG
	case cost.BlockPCG:
		one, several = cost.BlockPCG, cost.BlockPCG
	}
	if h.S == 0 && h.LambdaP == 0 && (h.Precond == nil || plain(h.Precond)) {
		for _, s := range m.factored() {
			add(cost.Candidate{Solver: cost.Direct, Precond: cost.None, Storage: s})
		}
		add(cost.Candidate{Solver: one, Precond: cost.None})
	}
	proposed, err := m.proposals()
	for _, p := range proposed {
		add(cost.Candidate{Solver: several, Precond: stage.NameOf(p), Recipe: textOf(p, m.Kernel), M: p})
	}
	return list, err
}

// plain reports whether M = I.
func plain(p stage.Preconditioner) bool {
	k, _ := stage.KindOf(p)
	return k.Name == cost.None
}

// textOf returns what names a preconditioner with its options, "" for one that is not all text.
func textOf(p stage.Preconditioner, k kernel.Kernel) string {
	text, _ := stage.PreconditionerText(p, k)
	return text
}

// proposals returns the preconditioner that is held, or what the kinds propose.
func (m *model) proposals() (list []stage.Preconditioner, err error) {
	if p := m.Fixed.Precond; p != nil {
		if plain(p) {
			return nil, nil
		}
		if _, ok := p.(cost.IterationPredictor); !ok {
			return nil, fmt.Errorf("plan: the preconditioner %v has no methods Cost and Iterations, which a plan asks for "+
				"(cost.IterationPredictor)", p)
		}
		return []stage.Preconditioner{p}, nil
	}
	for _, k := range stage.Kinds() {
		if p, ok := k.Zero.(cost.Proposer); ok && k.Suits(m.Kernel) == nil {
			list = append(list, p.Propose(&m.outlook)...)
		}
	}
	return list, nil
}

// factored returns how a direct solver may keep its factor: by the fixed rule, as asked, or in float64, and in float32
// where that is likely to do.
func (m *model) factored() (list []gram.Storage) {
	if m.IterativeOnly {
		return nil
	}
	if m.DirectStorage != gram.Auto {
		return []gram.Storage{m.DirectStorage}
	}
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		if (m.Fixed.Storage == gram.Auto || m.Fixed.Storage == s) &&
			(s == gram.Float64 || m.rounding() <= 0.5 && m.Lambda >= 0x1p-24*math.Sqrt(float64(m.N))*m.most) {
			list = append(list, s)
		}
	}
	return list
}

// expected returns the iterations that the rule expects of a candidate, in proportion to ln(2/τ). M = I has those of
// κ = the largest sum of a row/λ, or one for each of r eigenvalues and what r pivots take.
func (m *model) expected(c *cost.Candidate) float64 {
	digits, pivots := math.Log(2/m.Tol)/math.Log(2000), m.outlook.PivotIterations()
	its := min(math.Log(2000)/2*math.Sqrt(1+m.LargestRowSum/m.Lambda), float64(m.M)/digits+pivots)
	if p, ok := c.M.(cost.IterationPredictor); ok {
		its = p.Iterations(&m.outlook)
	}
	if c.Solver == cost.BlockPCG {
		its *= blockSteps
	}
	return math.Ceil(min(digits*its, float64(m.N)))
}

// predict sets what a candidate takes, and why it cannot be taken.
func (m *model) predict(c *cost.Candidate) {
	if c.Solver != cost.Direct {
		c.Iterations = int(m.expected(c))
	} else if c.Storage == gram.Float32 {
		left := min(leaves*m.rounding(), 0.5)
		c.Iterations = max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(left)))-1)
	}
	if m.cost.ResidualRounds = 0; m.Task.ExactResidual {
		m.cost.ResidualRounds = 1
	}
	if c.Storage == gram.Fixed16 {
		c.Iterations, m.cost.ResidualRounds = int(halfSteps*float64(c.Iterations)), rounds
	}
	c.Refused = ""
	if m.cost.Predict(c); m.Memory > 0 && c.Bytes > m.Memory {
		c.Refused = fmt.Sprintf("it holds %s, the limit is %s beside the program", accel.Bytes(c.Bytes),
			accel.Bytes(m.Memory))
	}
}

// ruled reports whether a fixed rule takes the candidate.
func (m *model) ruled(c *cost.Candidate) bool {
	return m.DirectStorage != gram.Auto && c.Solver == cost.Direct
}

// storages returns how K may be stored, the fastest first: as its error asks, in 16 bits where float32 is much of the
// memory and they are accurate enough, or not at all.
func (m *model) storages(ctx context.Context) (list []gram.Storage) {
	if m.Fixed.Storage != gram.Auto {
		return []gram.Storage{m.Fixed.Storage}
	}
	list = append(list, m.choice.Storage, gram.Float32)
	if m.Refined && m.Memory > 0 && m.cost.KernelBytes(gram.Float32) > m.Memory/2 {
		o := gram.Options{Storage: gram.Fixed16, Tiles: m.Tiles, Seed: m.Seed}
		if _, err := gram.Choose(ctx, m.Kernel, m.X, m.Lambda, &o); err == nil {
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
		gain, c, than := r.Seconds.Training()-b.Seconds.Training(), b, "more"
		if b.Solver == cost.Direct {
			gain, c, than = -gain, r, "fewer"
		}
		if limit := float64(c.Iterations) + gain/c.IterationSeconds(); limit >= 1 {
			flips = append(flips, fmt.Sprintf("%s than %.0f iterations where %d are expected: then %v is faster", than,
				limit, c.Iterations, r))
		}
	}
	for _, o := range p.Candidates {
		if o.Refused != "" && o.Seconds.Training() < b.Seconds.Training() {
			return append(flips, fmt.Sprintf("a memory limit of %s beside the program: then %v, %.3g s",
				accel.Bytes(o.Bytes), o, o.Seconds.Training()))
		}
	}
	return flips
}

// rounding returns u·‖K‖₂/λ, u = 2⁻²⁴, with the mean sum of a row for ‖K‖₂.
func (m *model) rounding() float64 { return 0x1p-24 * (m.MeanRowSum + m.most) / m.Lambda }
