package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Constants of the rule of thumb for iterations to τ = 10⁻³. They were fitted to the iteration counts of the problems
// of make bench-plan; a larger value predicts more iterations. The rule need not be accurate, because the solve
// corrects the prediction while it runs. Package recipe has the constants of each preconditioner.
const (
	blockFactor     = 0.86 // iterations of block PCG, relative to those of PCG for one column
	fixed16Factor   = 1.4  // iterations with K in 16-bit tiles, relative to those with wider tiles
	fixed16Rounds   = 3    // number of true residuals with a recomputed K during a solve with 16-bit tiles
	float32Residual = 0.17 // relative residual of a float32 Cholesky solve, in units of u‖K‖₂/λ with u = 2⁻²⁴
)

// model combines a task with its pilot sample and the two models that predict its costs and its iterations.
type model struct {
	*Task
	*Pilot
	cost           cost.Model
	iterationModel cost.IterationModel
}

// choose predicts the seconds and bytes of every candidate for the task, at the given rates and with the iterations of
// the rule of thumb, and chooses the candidate with the least training time. It returns an error if no candidate is
// available or none fits into memory.
func choose(ctx context.Context, t *Task, rates cost.Rates) (*Plan, error) {
	pilot, err := newPilot(ctx, t)
	if err != nil {
		return nil, err
	}
	return chooseByPilot(ctx, t, pilot, rates)
}

// chooseByPilot does the same as choose, with the measurements of a given pilot sample.
func chooseByPilot(ctx context.Context, t *Task, pilot *Pilot, rates cost.Rates) (*Plan, error) {
	m := &model{Task: t, Pilot: pilot,
		cost: cost.Model{Rates: rates, Entries: pilot.Entries, N: t.N, D: t.D, T: t.T, TestRows: t.TestRows,
			PointBytes: t.PointBytes, Ranks: t.Comm.Size(), Trace: pilot.trace, MeanRowSum: pilot.MeanRowSum,
			K: &pilot.choice, ErrorKnown: t.Comm.Size() == 1},
		iterationModel: cost.IterationModel{Kernel: t.Kernel, N: t.N, SampleSize: pilot.SampleSize, Lambda: t.Lambda,
			S: t.Fixed.S, LambdaP: t.Fixed.LambdaP, PilotResidual: pilot.Residual, LowRank: pilot.LowRank,
			Decay: pilot.Decay, MeanRowSum: pilot.MeanRowSum, LargestRowSum: pilot.LargestRowSum,
			MaxDiagonal: pilot.maxDiagonal}}
	list, err := m.candidates(ctx)
	if err != nil {
		return nil, err
	}

	series, noSeriesReason := m.series()
	seriesChosen := series != nil && (t.Fixed.Solver == cost.Fourier || m.seriesIsFastest(series, list))
	if series != nil {
		list = append(list, series)
	}
	if len(list) == 0 && noSeriesReason != "" {
		return nil, fmt.Errorf("plan: %s", noSeriesReason)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("plan: no method whose costs it knows has the solver %q and the preconditioner %q",
			t.Fixed.Solver, fmt.Sprint(t.Fixed.Precond))
	}

	// A Fourier series is compared by operation counts (seriesIsFastest), not by measured rates. It therefore comes
	// first if it is the choice, and otherwise after all candidates that are not refused.
	orderKey := func(c *cost.Candidate) float64 {
		switch {
		case c != series || c.RefusalReason != "":
			return m.sortKey(c)
		case seriesChosen:
			return 0
		}
		return math.MaxFloat64
	}
	slices.SortStableFunc(list, func(a, b *cost.Candidate) int { return cmp.Compare(orderKey(a), orderKey(b)) })
	best := list[0]
	if best.RefusalReason != "" {
		return nil, m.errNoneFits(list)
	}
	p := &Plan{Candidates: list, Rates: rates, Pilot: *pilot, Report: Report{NoSeries: noSeriesReason}.WithChoice(best)}
	if p.Bytes = t.OtherBytes + best.Bytes; t.PeakBytes > 0 {
		p.Bytes = max(p.Bytes, accel.PeakRSS()) // Planning may have needed more memory than the solve will.
	}
	p.setAlternatives()
	if best == series && p.RunnerUp != nil {
		p.Fallback = p.RunnerUp // The solve uses it if the series misses the tolerance.
	}
	p.ChangeConditions = m.changeConditions(p)
	return p, nil
}

// errNoneFits returns the error for a list of candidates in the order of sortKey whose first candidate is refused.
func (m *model) errNoneFits(list []*cost.Candidate) error {
	if first := list[0]; m.fixedByRule(first) {
		return fmt.Errorf("plan: no memory for %v: %s; take an iterative solver", first, first.RefusalReason)
	}
	smallest := slices.MinFunc(list, func(a, b *cost.Candidate) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return fmt.Errorf("plan: no way to solve fits, the least is %v: %s", smallest, smallest.RefusalReason)
}

// setAlternatives sets RunnerUp and Fallback from the candidates after the first one, which is the choice. The fallback
// of an iteration is the fastest direct solver that fits into the default memory limit of a process, because the task
// itself may have no memory limit.
func (p *Plan) setAlternatives() {
	processBudget := accel.Budget{Limit: accel.ProcessLimit(0, 1)}
	for i, candidate := range p.Candidates[1:] {
		switch {
		case candidate.RefusalReason != "":
			continue
		case i == 0:
			p.RunnerUp = candidate
		}
		if p.Fallback == nil && candidate.Solver == cost.Direct && p.Choice.Solver != cost.Direct &&
			processBudget.Fits(candidate.Bytes) {
			p.Fallback = candidate
		}
	}
}

// sortKey orders the candidates: first the one that the fixed rule requires, whether or not it fits, then the others by
// training time, and the refused ones last.
func (m *model) sortKey(c *cost.Candidate) float64 {
	switch {
	case m.fixedByRule(c):
		return 0
	case c.RefusalReason != "":
		return math.Inf(1)
	}
	return c.Seconds.Training()
}

// chooseStorage predicts the costs of an iterative method with the first of the given storages that fits into memory.
// If none fits, the candidate has the last storage and is refused. Automatic storage in 16 bits is skipped for a
// preconditioner that reads entries of K.
func (m *model) chooseStorage(c *cost.Candidate, storages []gram.Storage) {
	_, needsExactK := c.Preconditioner.(stage.KernelPreconditioner) // M is computed from entries of K
	for _, c.Storage = range storages {
		autoFixed16 := c.Storage == gram.Fixed16 && m.Fixed.Storage == gram.Auto
		if m.predict(c); c.RefusalReason == "" && !(autoFixed16 && needsExactK) {
			return
		}
	}
}

// candidates lists the candidates that respect the choices in Task.Fixed, with predicted costs. The storage of an
// iterative method is one of kernelStorages (chooseStorage).
func (m *model) candidates(ctx context.Context) (list []*cost.Candidate, err error) {
	fixed, storages := m.Fixed, m.kernelStorages(ctx)
	addIfAllowed := func(c cost.Candidate) {
		if fixed.Solver != "" && fixed.Solver != c.Solver {
			return
		}
		if c.Solver == cost.Direct {
			m.predict(&c)
		} else {
			m.chooseStorage(&c, storages)
		}
		list = append(list, &c)
	}
	plainSolver, precondSolver := cost.CG, cost.PCG
	if cost.BlockIsFaster(m.N, m.iterationModel.Rank(), m.T) {
		precondSolver = cost.BlockPCG
	}
	switch fixed.Solver {
	case cost.PCG:
		precondSolver = cost.PCG
	case cost.BlockPCG:
		plainSolver, precondSolver = cost.BlockPCG, cost.BlockPCG
	}
	if fixed.S == 0 && fixed.LambdaP == 0 && (fixed.Precond == nil || isIdentity(fixed.Precond)) {
		for _, storage := range m.directStorages() {
			addIfAllowed(cost.Candidate{Solver: cost.Direct, Precond: cost.None, Storage: storage})
		}
		addIfAllowed(cost.Candidate{Solver: plainSolver, Precond: cost.None})
	}
	m.iterationModel.TrainingSeconds = func(p stage.Preconditioner) float64 {
		c := cost.Candidate{Solver: precondSolver, Preconditioner: p}
		m.chooseStorage(&c, storages)
		return m.sortKey(&c)
	}
	proposed, err := m.proposals()
	for _, p := range proposed {
		recipe, _ := stage.PreconditionerText(p, m.Kernel) // "" if a part of p has no text
		addIfAllowed(cost.Candidate{Solver: precondSolver, Precond: stage.NameOf(p), Recipe: recipe, Preconditioner: p})
	}
	return list, err
}

// isIdentity reports whether p is the preconditioner M = I.
func isIdentity(p stage.Preconditioner) bool {
	k, _ := stage.KindOf(p)
	return k.Name == cost.None
}

// proposals returns the preconditioner that the task fixes. If there is none, it returns the preconditioners that the
// registered kinds propose, without those that lack an option that the task fixes. It returns an error if the fixed
// preconditioner cannot predict its costs and iterations.
func (m *model) proposals() (list []stage.Preconditioner, err error) {
	if p := m.Fixed.Precond; p != nil {
		if isIdentity(p) {
			return nil, nil
		}
		if _, ok := p.(cost.IterationPredictor); !ok {
			missing := "methods Cost and Iterations, which a plan asks for (cost.IterationPredictor)"
			if _, ok := p.(cost.Preconditioner); ok {
				missing = "method Iterations, which a plan asks for (cost.IterationPredictor)"
			}
			return nil, fmt.Errorf("plan: the preconditioner %s has no %s", stage.NameOf(p), missing)
		}
		return []stage.Preconditioner{p}, nil
	}
	for _, k := range stage.Kinds() {
		if p, ok := k.Zero.(cost.Proposer); ok && k.CheckKernel(m.Kernel) == nil {
			list = append(list, p.Propose(&m.iterationModel)...)
		}
	}
	return slices.DeleteFunc(list, m.lacksFixedOption), nil
}

// lacksFixedOption reports whether the task fixes a rank or a ridge λ_p that p does not set.
func (m *model) lacksFixedOption(p stage.Preconditioner) bool {
	text, _ := stage.PreconditionerText(p, m.Kernel)
	return m.Fixed.S > 0 && !strings.Contains(text, " features=") ||
		m.Fixed.LambdaP > 0 && !strings.Contains(text, " lambda-p=")
}

// directStorages returns the storages in which a direct solver may keep its Cholesky factor, or nil if the task needs
// an iterative solver. If the fixed rule applies, its storage is the only one. Otherwise the list has the storages that
// the task allows: float64 always, and float32 if refinement with a float32 factor is likely to converge. The latter
// has two conditions, with u = 2⁻²⁴. First, λ must be at least the expected rounding error u·√n·max k(x, x) of a pivot,
// because otherwise the factorization may fail. Second, u‖K‖₂/λ must be at most ½, so that each round of refinement
// reduces the residual.
func (m *model) directStorages() (list []gram.Storage) {
	if m.IterativeOnly {
		return nil
	}
	if m.DirectStorage != gram.Auto {
		return []gram.Storage{m.DirectStorage}
	}
	for _, storage := range []gram.Storage{gram.Float32, gram.Float64} {
		if (m.Fixed.Storage == gram.Auto || m.Fixed.Storage == storage) &&
			(storage == gram.Float64 || m.relativeRounding(unitRoundoff32) <= 0.5 &&
				m.Lambda >= unitRoundoff32*math.Sqrt(float64(m.N))*m.maxDiagonal) {
			list = append(list, storage)
		}
	}
	return list
}

// predictIterations returns the iterations that the rule of thumb predicts for a candidate. The rule is for τ = 10⁻³,
// for which ln(2/τ) = ln 2000; for another tolerance, iterations grow in proportion to ln(2/τ).
//
// For M = I the prediction is the smaller of two bounds. The first is the bound for the condition number κ = 1 +
// (largest row sum of |K|)/λ. The second is the size of the pilot sample plus the iterations with as many pivots,
// because each of r large eigenvalues takes one iteration.
func (m *model) predictIterations(c *cost.Candidate) float64 {
	tolFactor, pivotIterations := math.Log(2/cmp.Or(m.ExpectedTol, m.Tol))/math.Log(2000),
		m.iterationModel.PivotIterations(m.iterationModel.Rank())
	iterations := min(math.Log(2000)/2*math.Sqrt(1+m.LargestRowSum/m.Lambda),
		float64(m.SampleSize)/tolFactor+pivotIterations)
	if p, ok := c.Preconditioner.(cost.IterationPredictor); ok {
		iterations = p.Iterations(&m.iterationModel)
	}
	if c.Solver == cost.BlockPCG {
		iterations *= blockFactor
	}
	return math.Ceil(min(tolFactor*iterations, float64(m.N)))
}

// predict sets the iterations, seconds and bytes of a candidate, and RefusalReason if it needs more than the memory
// budget. The iterations of a direct solver in float32 are the rounds of refinement after the first solve. The solve
// and each round reduce the residual by the factor ρ = reduction, so that log τ/log ρ solves are needed to reach τ.
func (m *model) predict(c *cost.Candidate) {
	if c.Solver == cost.Fourier {
		c.Work = c.Series.Work(m.N, m.T, m.Lambda)
		c.Iterations = c.Work.Iterations
	} else if c.Solver != cost.Direct {
		c.Iterations = int(m.predictIterations(c))
	} else if c.Storage == gram.Float32 {
		reduction := min(float32Residual*m.relativeRounding(unitRoundoff32), 0.5)
		c.Iterations = max(0, int(math.Ceil(math.Log(m.Tol)/math.Log(reduction)))-1)
	}
	if m.cost.ResidualRounds = 0; m.Task.ExactResidual {
		m.cost.ResidualRounds = 1
	}
	if c.Storage == gram.Fixed16 {
		c.Iterations, m.cost.ResidualRounds = int(fixed16Factor*float64(c.Iterations)), fixed16Rounds
	}
	c.RefusalReason = ""
	m.cost.Predict(c)
	if err := m.totalBudget().Check(c.Bytes, "it", ""); err != nil {
		c.RefusalReason = err.Error()
	}
}

// fixedByRule reports whether the fixed rule for few points requires this candidate.
func (m *model) fixedByRule(c *cost.Candidate) bool {
	return m.DirectStorage != gram.Auto && c.Solver == cost.Direct
}

// kernelStorages returns the storages to try for K, the fastest first: the one that the accuracy requires, then
// float32, then 16 bits if float32 would take more than half of the memory and 16 bits are accurate enough, and finally
// recomputing K for each product. A storage that the task fixes is the only one.
func (m *model) kernelStorages(ctx context.Context) (list []gram.Storage) {
	if m.Fixed.Storage != gram.Auto {
		return []gram.Storage{m.Fixed.Storage}
	}
	list = append(list, m.choice.Storage, gram.Float32)
	if m.MayRefine && !m.totalBudget().Fits(2*m.cost.KernelBytes(gram.Float32)) {
		options := gram.Options{Storage: gram.Fixed16, Tiles: m.Tiles, Seed: m.Seed}
		if _, err := gram.Choose(ctx, m.Kernel, m.X, m.Lambda, &options); err == nil {
			list = append(list, gram.Fixed16)
		}
	}
	return append(list, gram.Recompute)
}

// changeConditions describes what would change the choice of p: the number of iterations of the choice, or of the
// runner-up if the choice is a direct solver, at which both take equally long; and the memory budget of the first
// faster candidate that was refused.
func (m *model) changeConditions(p *Plan) (conditions []string) {
	choice, runnerUp := &p.Choice, p.RunnerUp
	if m.fixedByRule(choice) {
		return []string{
			"--solver or --precond: so few points are solved directly, by a fixed rule, whatever is predicted"}
	}
	if runnerUp != nil && choice.Solver != cost.Fourier && runnerUp.Solver != cost.Fourier {
		iterative, comparison := choice, "more"
		// Iterations that take extraSeconds more, or less, make both equally fast.
		extraSeconds := runnerUp.Seconds.Training() - choice.Seconds.Training()
		if choice.Solver == cost.Direct {
			iterative, comparison, extraSeconds = runnerUp, "fewer", -extraSeconds
		}
		if breakEven := float64(iterative.Iterations) + extraSeconds/iterative.IterationSeconds(); breakEven >= 1 {
			conditions = append(conditions,
				fmt.Sprintf("%s than %.0f iterations where %d are expected: then %v is faster", comparison, breakEven,
					iterative.Iterations, runnerUp))
		}
	}
	for _, candidate := range p.Candidates {
		if candidate.RefusalReason != "" && candidate.Seconds.Training() < choice.Seconds.Training() {
			return append(conditions, fmt.Sprintf("a memory budget of %s in addition to the program: then %v, %.3g s",
				accel.FormatBytes(candidate.Bytes), candidate, candidate.Seconds.Training()))
		}
	}
	return conditions
}

const (
	unitRoundoff32 = 0x1p-24 // unit roundoff of float32
	unitRoundoff64 = 0x1p-53 // unit roundoff of float64
)

// relativeRounding returns u·‖K‖₂/λ for the unit roundoff u. The mean row sum of |K| serves as an estimate of ‖K‖₂.
func (m *model) relativeRounding(u float64) float64 {
	return u * (m.MeanRowSum + m.maxDiagonal) / m.Lambda
}
