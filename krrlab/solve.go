package krrlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/compare"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// startPart is the name in solve.Appended of the coefficients that the solve starts from.
const startPart = "coefficients, as a start"

// solve solves by the configured method. It returns a solution without a model if the solve failed, with the error,
// which is solve.ErrLate if the method takes so much longer than planned that the fallback replaces it. Otherwise the
// solution has a model, and an error, if there is one, says why the solve ended early.
func (l *Lab) solve(ctx context.Context) (*Solution, error) {
	start := time.Now()
	if l.cfg.Solver != Direct {
		if err := l.checkMemory(ctx); err != nil {
			return nil, err
		}
	}
	sol := l.newSolution()
	system := l.system()
	system.Fingerprint = l.fingerprint
	c, err := solve.Run(ctx, system, l.matrices, sol)
	if err == solve.ErrLate {
		return sol, err
	}
	if c == nil {
		return nil, err
	}
	sol.Model = l.model(c, sol, start)
	sol.SetTrainingError(l.data)
	sol.Seconds.Total = time.Since(start).Seconds()
	if ranks := sol.Ranks; ranks != nil { // the traffic of all stages so far
		traffic := l.comm.Traffic()
		ranks.Bytes, ranks.Seconds = traffic.Bytes, traffic.Seconds
	}
	return sol, err
}

// completeRemote completes a solution that the Backend returned. It returns an error if the coefficients have the wrong
// shape.
func (l *Lab) completeRemote(ctx context.Context, sol *Solution) error {
	n, _, t := l.Dims()
	if rows, columns := sol.Model.C.Dims(); rows != n || columns != t {
		return fmt.Errorf("krrlab: the backend returned coefficients %d×%d, want %d×%d", rows, columns, n, t)
	}
	if sol.Status == pcg.Canceled && stage.StoppedByMonitor(ctx) {
		sol.Status = pcg.Stopped
	}
	sol.System, sol.Model = l.system(), l.model(sol.Model.C, sol, time.Now())
	sol.SetTrainingError(l.data)
	return nil
}

// model returns the model with the coefficients c, whose computation started at the given time.
func (l *Lab) model(c *mat.Dense, sol *Solution, started time.Time) *model.Model {
	if l.weighted() {
		c = mat.DenseCopyOf(c)
		l.scaleRows(c)
	}
	var firstEqual []int
	if l.data.Repeats == nil && kernel.AsPrecomputed(l.cfg.Kernel) != nil { // the points are numbers of rows
		firstEqual = kernel.FirstEqual(l.cfg.Kernel, l.data.X)
	}
	grouped := l.data.WithGroups(firstEqual)
	m := &model.Model{
		Kernel: l.cfg.Kernel, Lambda: l.cfg.Lambda, X: l.data.X, C: c, Weighted: l.weighted(), Labels: l.coding.Labels,
		Targets: l.data.TargetNames, Mean: l.coding.Mean, Scaling: l.data.Scaling, Columns: l.data.Columns,
		ErrorBounds: sol.Error.ForModel(), Groups: grouped.Groups, Repeats: grouped.Repeats,
		Origin: model.Origin{
			Dataset: l.data.Name, Solver: l.cfg.Solver.String(), Method: sol.Method(), Status: sol.Status.String(),
			Tol:          sol.Tol,
			TrueResidual: new(float64(sol.TrueResidual)), Seed: l.cfg.Seed, Created: started.UTC().Format(time.RFC3339),
		},
	}
	m.SetTrainingAnswers(l.data)
	return m
}

// newSolution returns a solution that describes the request and has no results.
func (l *Lab) newSolution() *Solution {
	cfg := l.cfg
	sol := solve.NewSolution(l.header())
	sol.Stop, sol.MaxIter, sol.Solver, sol.Appended = cfg.Stop, cfg.MaxIter, cfg.Solver, l.appended
	if sol.Appended != nil && (cfg.Solver == Direct || cfg.Solver == Fourier) {
		sol.Appended = &solve.Appended{Rows: sol.Appended.Rows,
			NewParts: []string{"all, as a solver without iterations keeps nothing"}}
	}
	if sol.Appended != nil && cfg.Stop.Rule == bound.ByANorm { // solve.Run then starts from zeros
		if index := slices.Index(sol.Appended.KeptParts, startPart); index >= 0 {
			sol.Appended = &solve.Appended{Rows: sol.Appended.Rows,
				KeptParts: slices.Delete(slices.Clone(sol.Appended.KeptParts), index, index+1),
				NewParts: slices.Insert(slices.Clone(sol.Appended.NewParts), 0,
					"coefficients, as the stopping rule anorm starts from zeros")}
			if len(sol.Appended.KeptParts) == 0 {
				sol.Appended.KeptParts = nil
			}
		}
	}
	if !l.isIdentity() {
		sol.Precond = stage.NameOf(cfg.Precond)
	}
	if approx := l.approximation(); approx != nil {
		if sol.LambdaP, sol.S = Number(approx.LambdaP), approx.S; approx.Map() != nil {
			sol.Features = approx.String()
		} else if noFeatures(cfg.Kernel) {
			sol.PrecondReason = "the kernel has no random features"
		}
	}
	if cfg.Comm != nil {
		sol.Ranks = &Ranks{Count: l.comm.Size()}
	}
	return sol
}

var _ Stage = (*Solution)(nil)

// fingerprint returns a hash of the data and of the configuration that the answer depends on. It returns an error if a
// user-defined kernel or preconditioner cannot be identified by text.
func (l *Lab) fingerprint() (sum [sha256.Size]byte, err error) {
	cfg := l.cfg
	spec, err := kernel.ToSpec(l.cfg.Kernel)
	if err != nil { // two user-defined kernels may have the same text
		return sum, fmt.Errorf("%w; or run without a checkpoint", err)
	}
	recipe, err := stage.PreconditionerText(cfg.Precond, cfg.Kernel)
	if err != nil {
		return sum, fmt.Errorf("the preconditioner %v is user-defined, and its text does not identify it: use a "+
			"built-in one, or no checkpoint", cfg.Precond)
	}
	text := fmt.Sprintf("%x %v λ=%x %v %s τ=%x %v %d %v", l.train.Fingerprint(), cfg.Kernel, cfg.Lambda, cfg.Solver,
		recipe, cfg.Tol, cfg.Storage, cfg.Seed, cfg.Exact)
	if spec.Params != "" { // String may omit parameters
		text += fmt.Sprintf(" %s%s", spec.Name, spec.Params)
	}
	if cfg.Stop.Rule != bound.ByResidual {
		text += fmt.Sprintf(" stop %v", cfg.Stop)
	}
	return sha256.Sum256([]byte(text)), nil
}

// PlanTask returns the problem for planning, with the choices that the user has fixed. The plan makes all other
// choices.
func (b *bench) PlanTask() *plan.Task {
	l := b.Lab
	cfg, system := l.cfg, l.system()
	noSeries := cfg.Tiles == gram.SparseTiles || l.requested.stop.Rule > bound.ByResidual
	task := &plan.Task{
		Problem: b.Problem(), PreferredError: system.StorageErrorBound(), MaxDropped: system.PreferredError() / 4,
		PointBytes: l.pointBytes(), Tiles: cfg.Tiles,
		ExactResidual: system.UsesExactResidual(l.k.value), MayRefine: cfg.Exact == AutoResidual, NoSeries: noSeries,
		IterativeOnly: noSeries || cfg.onRanks() || cfg.Checkpoint != nil,
		ExpectedTol:   cfg.Stop.ExpectedTol(cfg.Tol),
	}
	if l.planChoices != nil && l.planChoices.fixedRule {
		task.DirectStorage = system.DirectStorage()
	}
	if task.Comm.Size() == 1 {
		runtime.GC() // release memory that is no longer used
		task.OtherBytes, task.PeakBytes = max(0, accel.MemoryInUse()-task.PointBytes), accel.PeakRSS()
	}
	fixed := &task.Fixed
	if l.planChoices == nil {
		fixed.Precond = cfg.Precond
	} else {
		fixed.S, fixed.LambdaP = l.planChoices.auto.S, l.planChoices.auto.LambdaP
	}
	if fixed.Storage = cfg.Storage; l.planChoices == nil || l.planChoices.solverSet {
		fixed.Solver = cfg.Solver.String()
	}
	return task
}

// solveRunner runs Solve as a stage. It accepts an indefinite precomputed K, for which it gives no error bounds. It is
// not in Stages, because krrlab fit is its command.
type solveRunner struct{}

var solveStage = stage.Definition{Name: stage.Solve, Options: solveRunner{}, Result: (*Solution)(nil), Indefinite: true}

// Run implements stage.Runner.
func (solveRunner) Run(ctx context.Context, b stage.Bench) (Stage, error) {
	sol, err := b.(*bench).solvePlanned(ctx)
	if sol == nil { // return a nil interface rather than a nil pointer in it
		return nil, err
	}
	return sol, err
}

// solvePlanned solves by the configured method, or by the planned one if the configuration leaves the method to the
// plan.
func (l *Lab) solvePlanned(ctx context.Context) (*Solution, error) {
	if !l.Planning() {
		return l.solve(ctx)
	}
	p, planSeconds, err := l.currentPlan(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if p == nil {
		return l.solve(ctx)
	}
	var plannedLab *Lab
	if len(l.planChoices.auto.Race) > 0 {
		plannedLab, p, err = l.race(ctx, p, l.planChoices.auto.Race)
		planSeconds += time.Since(start).Seconds()
	} else {
		plannedLab, err = l.labForPlan(p)
	}
	if err != nil {
		return nil, err
	}
	solveStart := time.Now()
	sol, err := plannedLab.solve(ctx)
	var wasted float64
	if fallback := plannedLab.fallbackPlan(ctx, sol, err); fallback != nil {
		if plannedLab, err = l.labForPlan(fallback); err != nil {
			return nil, err
		}
		l.Free()
		if sol != nil { // the fallback cannot resume the checkpoints of sol
			if err := sol.RemoveCheckpoints(); err != nil {
				return nil, err
			}
		}
		wasted, p = time.Since(solveStart).Seconds(), fallback
		sol, err = plannedLab.solve(ctx)
	}
	if sol != nil {
		if sol.Storage == "dense float64" && p.Choice.Storage != gram.Float64 { // float32 did not reach τ
			retried := *p
			retried.Flags = "--solver direct --storage float64"
			p = &retried
		}
		sol.Plan, sol.Seconds.Plan = p, planSeconds+wasted
		sol.Seconds.Total = time.Since(solveStart).Seconds() + planSeconds
	}
	return sol, err
}

// fallbackPlan returns a plan that runs the plan's fallback, with the reason in Switched, in these cases: the planned
// solve is late according to the plan; it missed the tolerance and the plan prefers the fallback; or a Fourier series
// failed with an error. Otherwise it returns nil.
func (l *Lab) fallbackPlan(ctx context.Context, sol *Solution, err error) *plan.Report {
	if l.plan.Fallback == nil {
		return nil
	}
	missedTol := err == nil && !sol.CriterionMet() && sol.Status != pcg.Stopped
	fallback, planned := l.plan.WithChoice(l.plan.Fallback), &l.plan.Choice
	if l.cfg.Solver == Fourier {
		switch {
		case err != nil && ctx.Err() == nil:
			fallback.Switched = fmt.Sprintf("%v: %v", &fallback.Choice, err)
			return &fallback
		case missedTol && l.plan.PrefersSeriesFallback():
			fallback.Switched = fmt.Sprintf("%v: the Fourier series reached a residual of %.1e", &fallback.Choice,
				sol.TrueResidual)
			return &fallback
		}
		return nil
	}
	if err != solve.ErrLate && !(missedTol && l.plan.PrefersDirect(sol.Iterations)) {
		return nil
	}
	progress := plural.Count(sol.Iterations, "iteration")
	if k := len(sol.History); k > 0 {
		progress += fmt.Sprintf(" to a residual of %.1e", sol.History[k-1].Residual)
	}
	fallback.Switched = fmt.Sprintf("%v, after %s, where %s were predicted to reach %g (%v)", &fallback.Choice,
		progress, plural.Count(planned.Iterations, "iteration"), l.cfg.Stop.ExpectedTol(l.cfg.Tol), planned)
	return &fallback
}

// currentPlan returns the plan in a checkpoint that is resumed, or the one that Plan made, or a new one, and the
// seconds that planning took. A checkpoint has no plan if the configuration of its run named the method. The plan is
// nil if planning fails. currentPlan returns an error if the plan of a checkpoint cannot be read or ctx ends.
func (l *Lab) currentPlan(ctx context.Context) (p *plan.Report, seconds float64, err error) {
	checkpoint := l.cfg.Checkpoint
	if checkpoint != nil && checkpoint.Resume {
		if checkpoint.HasState() { // a plan without a state may belong to other data
			if p, err = plan.ReadReport(checkpoint.Dir); p != nil || err != nil {
				return p, 0, err
			}
		}
	}
	l.mu.Lock()
	saved := l.savedPlan
	l.mu.Unlock()
	if saved == nil {
		if saved, err = resultAs[*plan.Plan](plan.Options{}.Run(ctx, &bench{Lab: l})); err != nil && ctx.Err() == nil {
			return nil, 0, nil // without a plan, the default method runs and reports its own error
		}
		if err != nil {
			return nil, 0, err
		}
		l.savePlan(saved)
	}
	return &saved.Report, saved.PlanSeconds, nil
}

// labForPlan returns a lab of the same problem with the method that a plan chose. It returns an error if the plan,
// which may be from a file, does not name a known method.
func (l *Lab) labForPlan(p *plan.Report) (*Lab, error) {
	cfg := l.cfg
	cfg.Stop = l.requested.stop
	err := cfg.Solver.UnmarshalText([]byte(p.Choice.Solver))
	if err != nil {
		return nil, err
	}
	if cfg.Precond = p.Choice.Preconditioner; cfg.Precond == nil {
		if p.Choice.Recipe == "" && p.Choice.Precond != cost.None {
			return nil, fmt.Errorf("krrlab: a plan has the preconditioner %q without its options: it was saved by an "+
				"older version; plan again", p.Choice.Precond)
		}
		if cfg.Precond, err = stage.ParsePreconditioner(cmp.Or(p.Choice.Recipe, cost.None)); err != nil {
			return nil, err
		}
	}
	if storage := p.Choice.Storage; cfg.Solver == Direct || storage == gram.Recompute {
		cfg.Storage = storage
	}
	return l.withPlan(cfg, p)
}

// withPlan returns a lab of the same problem with the configuration that a plan chose.
func (l *Lab) withPlan(cfg Config, p *plan.Report) (*Lab, error) {
	n, _, t := l.Dims()
	cfg, err := cfg.withDefaults(n, t, l.defaultTol())
	if err != nil {
		return nil, err
	}
	planned := *l
	planned.cfg, planned.planChoices, planned.plan, planned.retryFloat64 = cfg, nil, p, l.cfg.Storage == gram.Auto
	return &planned, planned.check()
}

// raceIterations is the number of iterations of each preconditioner in a race. A larger number predicts better and
// takes longer.
const raceIterations = 30

// race runs raceIterations iterations with each of the given preconditioners, with the one of basePlan, and without
// one. It predicts from the slopes of the residuals which preconditioner finishes first. It returns a lab that uses the
// winner, whose M is then built already, or the direct solver of basePlan if this is predicted to be faster. It also
// returns the plan with the results of the race.
func (l *Lab) race(ctx context.Context, basePlan *plan.Report, racers []Preconditioner) (*Lab, *plan.Report, error) {
	planned, err := l.labForPlan(basePlan)
	if err != nil {
		return nil, nil, err
	}
	direct, candidates := basePlan.Fallback, append([]Preconditioner{None{}}, racers...)
	if planned.cfg.Solver == Direct || planned.cfg.Solver == Fourier {
		direct = &basePlan.Choice
	} else if !planned.isIdentity() {
		candidates = append(candidates, planned.cfg.Precond)
	}
	var entries stage.Entries
	for _, candidate := range candidates[1:] {
		entries = append(entries, stage.Entry{Value: candidate})
	}
	b := &bench{Lab: l}
	b.Problem().MaxIter = raceIterations
	result, err := compare.Options{With: entries, To: l.cfg.Tol, Steps: -1, MaxExactN: -1}.Run(ctx, b)
	if err != nil {
		return nil, nil, err
	}
	compared, tol := result.(*compare.Result), l.cfg.Stop.ExpectedTol(l.cfg.Tol)
	raced, leastSeconds := *basePlan, math.Inf(1)
	winnerIndex := []float64{-1} // a slice, because ranks share it
	if direct != nil {
		leastSeconds = direct.Seconds.Total
	}
	for i, row := range compared.Rows {
		entry := plan.RaceEntry{Name: row.Name, Seconds: row.Build, Reason: row.FailureReason}
		if entry.Reason == "" {
			_, iterations := pcg.RemainingIterations(row.Residuals, tol)
			entry.Iterations, entry.Remaining = len(row.Residuals)-1,
				stage.Number(iterations*(compared.Product+row.Solve))
			entry.Residual = stage.Number(row.Residuals[entry.Iterations])
			if float64(entry.Remaining) < leastSeconds {
				winnerIndex[0], leastSeconds = float64(i), float64(entry.Remaining)
			}
		}
		raced.Race = append(raced.Race, entry)
	}
	if err := comm.BroadcastFloats(ctx, l.comm, winnerIndex, 0); err != nil { // all ranks use the decision of the first
		return nil, nil, err
	}
	switch winner := int(winnerIndex[0]); {
	case winner >= 0:
		return l.labForWinner(candidates[winner], &raced, direct, &compared.Rows[winner], compared.Product)
	case direct != nil:
		raced = raced.WithChoice(direct)
	}
	planned, err = l.labForPlan(&raced)
	return planned, &raced, err
}

// labForWinner returns a lab that uses the preconditioner that won a race, and the plan for it. racedPlan is the plan
// with the results of the race, direct is the fallback, row has the results of the winner, and productSeconds is the
// time of a product with K.
func (l *Lab) labForWinner(winner Preconditioner, racedPlan *plan.Report, direct *cost.Candidate,
	row *pencil.Row, productSeconds float64) (*Lab, *plan.Report, error) {
	cfg := l.cfg
	if cfg.Precond, cfg.Solver = winner, l.requested.solver; cfg.Solver == AutoSolver {
		if cfg.Solver = PCG; l.columns() > 1 {
			cfg.Solver = BlockPCG
		}
	}
	_, remaining := pcg.RemainingIterations(row.Residuals, l.cfg.Stop.ExpectedTol(cfg.Tol))
	iterations := len(row.Residuals) - 1 + int(math.Ceil(remaining))
	recipe, err := stage.PreconditionerText(winner, cfg.Kernel)
	candidate := cost.Candidate{Solver: cfg.Solver.String(), Precond: stage.NameOf(winner), Recipe: recipe,
		Preconditioner: winner, S: row.S,
		LambdaP: row.LambdaP, Storage: racedPlan.Choice.Storage, Iterations: iterations, Bytes: racedPlan.Bytes,
		Seconds: cost.Seconds{Factor: row.Build, Solve: float64(iterations+1) * (productSeconds + row.Solve)}}
	candidate.Seconds.Total = candidate.Seconds.Sum()
	winnerPlan := racedPlan.WithChoice(&candidate)
	if winnerPlan.Fallback = direct; err != nil {
		winnerPlan.Flags = fmt.Sprintf("Config{Solver: %v, Precond: %v}", cfg.Solver, winner)
	}
	planned, err := l.withPlan(cfg, &winnerPlan)
	return planned, &winnerPlan, err
}

// gramFactor bounds the factor by which κ(M⁻¹A) grows if ZᵀZ is formed in float32. M⁻¹ then has a relative error of up
// to a tenth (precond.Options.Fast), so each eigenvalue changes by a factor from 0.9 to 1.1.
const gramFactor = 1.1 / 0.9

// matrices implements solve.MatrixBuilder. K is formed after M, when the memory that remains for K is known, unless M
// is built from K. resumed is the storage of K in a state that is resumed, or nil.
func (l *Lab) matrices(ctx context.Context, resumed *gram.Choice, sol *Solution) (m solve.Matrices, err error) {
	fromKernel, kernelFirst := l.cfg.Precond.(stage.KernelPreconditioner)
	if kernelFirst {
		if m.A, err = l.formKernel(ctx, kernelRequest{extraBytes: fromKernel.MaxBytes(l.train.Len()), resumed: resumed},
			sol); err != nil {
			return m, err
		}
	}
	if err = l.makePrecond(ctx, sol, &m); err == nil && !kernelFirst {
		var precondBytes int64
		if sized, ok := m.M.(interface{ Bytes() int64 }); ok {
			precondBytes = sized.Bytes()
		}
		m.A, err = l.formKernel(ctx, kernelRequest{extraBytes: precondBytes, resumed: resumed,
			refined: l.cfg.Exact == AutoResidual}, sol)
	}
	return m, err
}

// formKernel forms the requested K and describes it in sol.
func (l *Lab) formKernel(ctx context.Context, request kernelRequest, sol *Solution) (*gram.Matrix, error) {
	k, err := l.matrix(ctx, request)
	if _, full := errors.AsType[*accel.MemoryError](err); full && request.resumed != nil {
		return nil, fmt.Errorf("krrlab: the checkpoint in %s needs K in the storage %v: %w",
			l.cfg.Checkpoint.Dir, request.resumed.Storage, err)
	}
	if err != nil {
		return nil, err
	}
	noteShared(sol, k.shared, "kernel")
	choice := k.value.Choice()
	sol.Storage, sol.StorageReason = k.value.Storage().String(), choice.String()
	sol.KernelErrorBound, sol.KBytes, sol.HasExactProducts = Number(choice.Error), k.value.Bytes(), choice.ExactProducts
	if sparse := choice.Sparse; sparse != nil {
		sol.KeptShare, sol.DroppedBound = Number(sparse.StoredShare), Number(sparse.DroppedNorm)
	}
	sol.Seconds.Kernel += k.seconds
	return k.value, nil
}

// makePrecond builds the preconditioner, stores it in matrices and describes it in sol.
func (l *Lab) makePrecond(ctx context.Context, sol *Solution, matrices *solve.Matrices) error {
	approx := l.approximation()
	if approx == nil {
		seconds := 0.
		err := stage.Timed(&seconds, func() (err error) { matrices.M, err = l.M(ctx); return err })
		if cached := l.cachedM(l.cfg.Precond); cached.shared {
			seconds = cached.seconds
			noteShared(sol, true, "factor")
		}
		sol.Seconds.Factor += seconds
		if m, ok := matrices.M.(interface{ Rank() int }); ok {
			sol.S = m.Rank()
		}
		sol.Features = describe(matrices.M, l.cfg.Precond)
		if m, ok := matrices.M.(stage.SparseInverse); ok {
			sol.Neighbors, sol.Damping = m.Neighbors(), m.Damping()
		}
		return err
	}
	features, err := l.lowRankFactor(ctx, &bench{Lab: l}, approx)
	if err != nil {
		return err
	}
	noteShared(sol, features.shared, "features")
	sol.Seconds.Features += features.seconds
	matrices.LambdaP, matrices.Landmarks = approx.LambdaP+features.value.ExtraLambdaP, features.value.Factor
	if sol.LambdaP = Number(matrices.LambdaP); matrices.Landmarks != nil {
		sol.S = matrices.Landmarks.Rank()
		sol.KappaBound = Number(matrices.Landmarks.CondBound(l.cfg.Lambda, matrices.LambdaP) * gramFactor)
	}
	m, err := approx.Inverse(ctx, &bench{Lab: l})
	if err != nil {
		return err
	}
	cachedM := l.cachedM(*approx)
	noteShared(sol, cachedM.shared, "factor")
	sol.Seconds.Factor += cachedM.seconds
	matrices.M, sol.Form, sol.StatDim = m, m.Form().String(), Number(m.StatDim())
	return nil
}

// noteShared notes in sol that an earlier stage had done a part of the work.
func noteShared(sol *Solution, shared bool, work string) {
	if shared {
		sol.Shared = append(sol.Shared, work)
	}
}

// checkMemory returns an error if the solve needs more memory than the budget, even without K. The error names the
// largest part.
func (l *Lab) checkMemory(ctx context.Context) error {
	ranks := l.comm.Size()
	n, d, t := l.Dims()
	memory := cost.Model{N: n, D: d, T: t, Ranks: ranks, PointBytes: l.pointBytes(), MeanRowSum: math.Inf(1)}.Memory(
		&cost.Candidate{Preconditioner: l.cfg.Precond, Storage: gram.Recompute})
	holder := "the solve"
	if ranks > 1 {
		holder = fmt.Sprintf("each of %d ranks", ranks)
	}
	return comm.Agree(ctx, l.comm, accel.Budget{Limit: l.cfg.Memory}.Check(memory.Peak, "krrlab: "+holder+
		", without K and the program,", memory.LargestPart()))
}
