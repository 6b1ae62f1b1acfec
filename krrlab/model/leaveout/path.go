package leaveout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond"
)

// matrix is the symmetric positive semi-definite n×n matrix K. *gram.Matrix implements it.
type matrix interface {
	Dim() int
	// Diag returns the n diagonal entries.
	Diag() []float64
	// KMulTo sets dst = K·src, n×t.
	KMulTo(ctx context.Context, dst, src *mat.Dense) error
}

// Path computes the scores of all λ from products with K only. A score has the leave-one-out error: the mean square of
// c_i/(A⁻¹)_ii, or the share of labels that leave-one-out predicts wrongly, where A = K+λI and C = A⁻¹Y.
//
// The preconditioner woodbury must be ZZᵀ+λ_pI in the eigen form, where Z is n×s, with any λ_p. Its eigenvectors give M
// = ZZᵀ+λI for each λ. Let G, n×q, have q = Problem.Probes columns g of random signs. Path solves AX = [Y, G] for all λ
// in one subspace. Each pass over K adds one direction M⁻¹r for each column, where r is the residual of the λ with the
// largest error. The solutions give C and, by
//
//	diag(A⁻¹) = diag(M⁻¹) + E[g∘(A⁻¹−M⁻¹)g],
//
// estimates of diag(A⁻¹), from which the error is estimated (see leverages). Scores are in the order of lambdas. If
// ranks share the work, all of them must call Path, and they get the same result. Work: at most n²(t+q) multiply-adds
// per pass, ns² initially, and 4ns(t+q) for each λ, for the t columns of Y. Memory: at most 24n bytes for each
// direction, of which there are some hundred.
//
// The half-width of an interval is the sum of these errors:
//
//  1. The probe error, a Student interval from the jackknife over the probes. For labels, the standard deviation of the
//     number of wrong labels is added to it. The largest difference between this estimate and one or two estimates with
//     other assumptions is added as a bias.
//  2. The error of the solves, measured by the change of the result in one more step with M.
//  3. The effect of Problem.KError, as if it were spread evenly over the points.
//
// The upper end for a regression is e^{h/v}·v for an error v of half-width h, since 1/p² is skewed.
//
// If the noise of the probes exceeds a fifth of (A⁻¹)_ii, or if using the outliers' own estimates moves the error out
// of the interval, the interval is replaced by the bounds that follow from bounds of (A⁻¹)_ii, with errors 2 and 3
// added. Its lower end follows from (A⁻¹)_ii ≤ 1/λ or, if Problem.SketchExcess is known, from about (A⁻¹)_ii ≤
// (M⁻¹)_ii. Its upper end follows from 1/(K_ii+λ) ≤ (A⁻¹)_ii for labels, and is +Inf for regression. More columns of Z
// or more probes make intervals narrower. If Problem.KError is not below λ/2, the interval is unbounded.
//
// Path returns an error if a λ or an option is invalid, rows repeat in a classification, the stored K+λI is not
// positive definite, or ctx ends.
func Path(ctx context.Context, k matrix, woodbury *precond.Woodbury, y *mat.Dense, lambdas []float64,
	problem *Problem) ([]Score, error) {
	n := k.Dim()
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	options := problem.withDefaults()
	if options.Groups != nil {
		return nil, errors.New("leaveout: Path leaves out single rows or equal rows, but no other groups: take dense " +
			"factors")
	}
	rows, err := options.merge(y)
	if err != nil {
		return nil, err
	}
	if u := len(rows.firstRows); u < n {
		if options.Classification {
			return nil,
				fmt.Errorf("leaveout: %d of %d rows repeat others: Path can leave out repeated rows together only for "+
					"regression", n-u, n)
		}
		k, n, options.SketchExcess = mergedMatrix{k, rows}, u, 0
	}
	if woodbury.Dim() != n {
		panic(fmt.Sprintf("leaveout: K of order %d, preconditioner of order %d", n, woodbury.Dim()))
	}
	p := &pathSolver{k: k, woodbury: woodbury, problem: rows, lambdas: lambdas, options: &options}
	rhs := rows.rightHandSides()
	_, p.t = rhs.Dims()
	p.b = new(mat.Dense)
	p.b.Augment(rhs, estimate.RandomSigns(n, 0, options.Probes, options.Stream))
	start := time.Now()
	if err := p.diagonals(ctx); err != nil {
		return nil, err
	}
	if err := p.solve(ctx); err != nil {
		return nil, err
	}
	scores := make([]Score, len(lambdas))
	for j := range lambdas {
		s, err := p.score(ctx, j)
		if err != nil {
			return nil, err
		}
		s.Error.Seconds = time.Since(start).Seconds() / float64(len(lambdas))
		scores[j] = s
	}
	return scores, nil
}

// pathSolver is the state of one call of Path. Matrices with a tilde are those of the merged problem (see merged),
// which has one row for each group of equal rows; b̃ is its right-hand side for the mean of the targets.
type pathSolver struct {
	k            matrix            // K, or PᵀKP if rows are merged
	woodbury     *precond.Woodbury // ZZᵀ+λ_pI in the eigen form
	problem      *merged
	b            *mat.Dense // B = [Ỹ, b̃, G]
	t            int        // number of columns of [Ỹ, b̃]
	lambdas      []float64
	options      *Problem
	subspace     *subspace  // subspace of the solutions
	hatDiag      *mat.Dense // diag(ZZᵀ(ZZᵀ+λ_jI)⁻¹), n×len(lambdas)
	residualDiag []float64  // diag(K−ZZᵀ)
}

// diagonals sets hatDiag and residualDiag from blocks of columns of ZV, where ZᵀZ = VΣ²Vᵀ. The squares of the entries
// of ZV, weighted by 1/(σ²+λ_j), add up to the diagonal of ZZᵀ(ZZᵀ+λ_jI)⁻¹.
func (p *pathSolver) diagonals(ctx context.Context) error {
	const blockColumns = 64
	n, s := p.k.Dim(), p.woodbury.Features()
	p.hatDiag, p.residualDiag = mat.NewDense(n, len(p.lambdas), nil), p.k.Diag()
	sigma2 := p.woodbury.Eigenvalues()
	for start := 0; start < s; start += blockColumns {
		width := min(blockColumns, s-start)
		unit, zv := mat.NewDense(s, width, nil), mat.NewDense(n, width, nil)
		weights := mat.NewDense(width, len(p.lambdas), nil)
		for k := range width {
			unit.Set(start+k, k, 1)
			for j, lambda := range p.lambdas {
				weights.Set(k, j, 1/(sigma2[start+k]+lambda))
			}
		}
		if err := p.woodbury.ZVMulTo(ctx, zv, unit); err != nil {
			return err
		}
		err := accel.ForEach(ctx, (n+panelRows-1)/panelRows, func(_, panel int) {
			for i := panel * panelRows; i < min((panel+1)*panelRows, n); i++ {
				row := zv.RawRowView(i)
				for k, v := range row {
					row[k] = v * v
					p.residualDiag[i] -= v * v
				}
			}
		})
		if err == nil {
			err = addProduct(ctx, 1, zv, weights, p.hatDiag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// solve extends the subspace until all columns have converged.
func (p *pathSolver) solve(ctx context.Context) error {
	preconditioners, err := p.woodbury.WithLambdas(p.lambdas)
	if err != nil {
		return err
	}
	p.subspace = newSubspace(p.k, p.b, p.lambdas)
	n, q := p.b.Dims()
	tolerances := make([]float64, q)
	for c := range tolerances {
		tolerances[c] = solveTol
		if c >= p.t {
			tolerances[c] *= probeTolFactor
		}
	}
	for pass := range p.options.MaxIter {
		columns, lambdaIndices := p.subspace.worstLambdas(tolerances)
		if len(columns) == 0 {
			break
		}
		r, err := p.subspace.residuals(ctx, columns, lambdaIndices)
		if err != nil {
			return err
		}
		z := mat.NewDense(n, len(columns), nil)
		if err := preconditioners.SolveColumnsTo(ctx, z, r, lambdaIndices); err != nil {
			return err
		}
		if pass > 0 { // in the first pass, there are no solutions whose error z could measure
			for i, c := range columns {
				p.subspace.observe(lambdaIndices[i], c, columnDot(r, r, i, i), columnDot(r, z, i, i), tolerances[c])
			}
		}
		u, err := p.subspace.orthonormalize(ctx, z)
		if err != nil {
			return err
		}
		if u == nil {
			break
		}
		if err := p.subspace.extend(ctx, u); err != nil {
			return err
		}
		unfinished := 0
		for _, isConverged := range p.subspace.converged {
			if !isConverged {
				unfinished++
			}
		}
		p.options.Progress(len(p.subspace.converged)-unfinished, len(p.subspace.converged))
	}
	return nil
}

// Tolerances of the solves, chosen by judgment. Smaller ones take more passes over K.
const (
	solveTol       = 0.003 // tolerance of C in the norm of K+λI, relative to the norm of C
	probeTolFactor = 8     // factor by which the tolerance of the probes is larger, because their errors are averaged
)

// solutions returns X_j = VW_j, and X_j + M⁻¹(B−(K+λ_jI)X_j), which is one step more accurate.
func (p *pathSolver) solutions(ctx context.Context, j int) (x, refined *mat.Dense, err error) {
	n, q := p.b.Dims()
	columns, lambdaIndices := make([]int, q), make([]int, q)
	for c := range columns {
		columns[c], lambdaIndices[c] = c, j
	}
	x, refined = mat.NewDense(n, q, nil), mat.NewDense(n, q, nil)
	r, err := p.subspace.residuals(ctx, columns, lambdaIndices)
	if err == nil {
		err = addProduct(ctx, 1, p.subspace.v, p.subspace.w[j], x)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := p.woodbury.WithLambda(p.lambdas[j])
	if err == nil {
		err = m.SolveTo(ctx, refined, r)
	}
	if err == nil {
		refined.Add(refined, x)
	}
	return x, refined, err
}

// score returns the score of λ_j from the solutions, and its interval from their difference and the probes.
func (p *pathSolver) score(ctx context.Context, j int) (Score, error) {
	n, q := p.b.Dims()
	lambda := p.lambdas[j]
	x, refined, err := p.solutions(ctx, j)
	if err != nil {
		return Score{}, err
	}
	g := mat.DenseCopyOf(p.b.Slice(0, n, p.t, q))
	mg := mat.NewDense(n, q-p.t, nil)
	m, err := p.woodbury.WithLambda(lambda)
	if err == nil {
		err = m.SolveTo(ctx, mg, g)
	}
	if err != nil {
		return Score{}, err
	}
	first, second := p.newEstimator(j, x, g, mg), p.newEstimator(j, refined, g, mg)
	return second.score(first), ctx.Err()
}

// estimator estimates the leave-one-out error at one λ from a solution X.
type estimator struct {
	p            *pathSolver
	lambda       float64
	leverages    *leverages
	distribution *distribution
	c, r         *mat.Dense // C, and R = λ times the numerators of Ẽ
	inverseTrace float64    // estimate of tr Ã⁻¹, minus the correction for the mean
	tau          []float64  // thresholds for classes; nil for a regression
}

// newEstimator returns the estimator for λ_j from x ≈ Ã⁻¹B, with the probes g and mg = M⁻¹g.
func (p *pathSolver) newEstimator(j int, x, g, mg *mat.Dense) *estimator {
	n, q := x.Dims()
	lambda := p.lambdas[j]
	numerators, _, c, traceCorrection := p.problem.numerators(x)
	e := &estimator{p: p, lambda: lambda, c: c, r: new(mat.Dense), inverseTrace: -traceCorrection}
	e.r.Scale(lambda, numerators)
	l := &leverages{problem: p.problem, precondComplement: make([]float64, n), coupling: make([]float64, n),
		lower: make([]float64, n), upper: make([]float64, n), estimates: mat.NewDense(n, q-p.t, nil)}
	diag := p.k.Diag()
	for i := range n {
		l.precondComplement[i] = max(1-p.hatDiag.At(i, j), lambda/(diag[i]+lambda))
		l.coupling[i] = max(0, p.residualDiag[i]) * l.precondComplement[i] / lambda
		l.lower[i], l.upper[i] = lambda/(diag[i]+lambda), 1
		if p.options.SketchExcess > 0 && p.options.SketchExcess < lambda {
			l.upper[i] = min(1, l.precondComplement[i]/(1-p.options.SketchExcess/lambda))
		}
		for probe := range q - p.t {
			v := l.precondComplement[i] + lambda*g.At(i, probe)*(x.At(i, p.t+probe)-mg.At(i, probe))
			l.estimates.Set(i, probe, v)
			e.inverseTrace += v / lambda / float64(q-p.t)
		}
	}
	if p.options.Classification {
		e.tau = thresholds(p.problem.y, e.r)
	}
	l.sortKey = make([]float64, n)
	for i := range n {
		if e.tau != nil {
			l.sortKey[i] = e.tau[i] / l.precondComplement[i]
			continue
		}
		for _, v := range e.r.RawRowView(i) {
			l.sortKey[i] += v * v / (l.precondComplement[i] * l.precondComplement[i])
		}
	}
	l.sortPoints()
	e.leverages, e.distribution = l, l.fitDistribution(-1)
	return e
}

// errorOf returns the leave-one-out error if each p_i = λ(Ã⁻¹)_ii has the distribution d: the expected share of wrong
// labels, or the mean of E[(r_ij/p_i)²].
func (e *estimator) errorOf(d *distribution) (v float64) {
	if e.tau != nil {
		v, _ = e.leverages.wrongShare(d, e.tau, 1)
		return v
	}
	return d.meanSquare(e.r)
}

// score computes the score. previous is the estimator of the less accurate solution, which measures the error of the
// solves.
func (e *estimator) score(previous *estimator) Score {
	n, t := e.r.Dims()
	_, m := e.leverages.estimates.Dims()
	options, rows := e.p.options, e.p.problem
	s := Score{Lambda: e.lambda, GCV: rows.gcv(e.c, e.inverseTrace), S: float64(n) - e.lambda*e.inverseTrace}
	withoutProbe, mean := make([]float64, m), 0.0
	for k := range m {
		withoutProbe[k] = e.errorOf(e.leverages.fitDistribution(k))
		mean += withoutProbe[k] / float64(m)
	}
	v := e.errorOf(e.distribution)
	var jackknife float64 // relative to v², because squares of squared targets may overflow
	for _, value := range withoutProbe {
		if v > 0 {
			jackknife += (value - mean) / v * ((value - mean) / v) * float64(m-1) / float64(m)
		}
	}

	slack := math.Abs(v - previous.errorOf(previous.distribution)) // error of the solves
	relKError := 2 * options.KError / (e.lambda - options.KError)  // relative error of c_i/(A⁻¹)_ii due to KError
	halfWidth := estimate.StudentHalfWidth(options.Confidence, float64(m-1)) * math.Sqrt(jackknife) * v
	bias := 0.0
	if e.tau != nil {
		_, deviation := e.leverages.wrongShare(e.distribution, e.tau, 1)
		halfWidth = math.Hypot(halfWidth, distuv.UnitNormal.Quantile(0.5+options.Confidence/2)*deviation)
		upperShare, _ := e.leverages.wrongShare(e.distribution, e.tau, 1+relKError)
		lowerShare, _ := e.leverages.wrongShare(e.distribution, e.tau, max(0, 1-relKError))
		slack += upperShare - lowerShare
		// The number of wrong labels is an integer.
		bias = math.Abs(v-e.leverages.extrapolatedShare(e.tau)) + 0.5/float64(n)
	} else {
		slack += v * ((1+relKError)*(1+relKError) - 1)
		bias = max(math.Abs(v-meanSquareFor(e.r, e.distribution.model)),
			math.Abs(v-e.leverages.seriesEstimate(e.distribution, e.r)))
	}

	halfWidth += bias + slack
	s.Error = estimate.Interval{Value: v, Lo: v - halfWidth, Hi: v + halfWidth, Confidence: options.Confidence,
		Method: "probes"}
	if e.tau == nil && v > 0 { // the mean of 1/p² is skewed
		s.Error.Hi = v * math.Exp(halfWidth/v)
	}
	e.widen(&s.Error, slack)
	if e.tau == nil { // from the merged rows to all rows
		for _, v := range []*float64{&s.Error.Value, &s.Error.Lo, &s.Error.Hi} {
			*v = rows.meanSquare(float64(n*t) * *v)
		}
	}
	if options.ComputeResiduals {
		var residuals mat.Dense
		d := e.distribution
		residuals.Apply(func(i, _ int, v float64) float64 { return v * (1 + d.cv2[i]) / d.mean[i] }, e.r)
		s.Residuals = rows.residuals(&residuals)
	}
	return s
}

// robustError returns the leave-one-out error if outliers, the points whose own estimates contradict their
// distribution, use their own estimates (see contradicts).
func (e *estimator) robustError() float64 {
	d := *e.distribution
	d.mean = d.robustMean
	return e.errorOf(&d)
}

// widen replaces the interval by the bounds that follow from lower ≤ p_i ≤ upper, plus slack for the error of C, if the
// probes are too noisy or robustError is outside the interval.
func (e *estimator) widen(interval *estimate.Interval, slack float64) {
	lo, hi := meanSquareFor(e.r, e.leverages.upper), math.Inf(1)
	if e.tau != nil {
		lo, hi = e.leverages.shareBelow(e.leverages.upper, e.tau), e.leverages.shareBelow(e.leverages.lower, e.tau)
	}
	if solutionKnown := 2*e.p.options.KError < e.lambda; !solutionKnown {
		interval.Lo, interval.Hi, interval.Method = 0, math.Inf(1), "bounds"
	} else if robust := e.robustError(); e.distribution.noise > maxNoise || robust < interval.Lo ||
		robust > interval.Hi {
		interval.Lo, interval.Hi, interval.Method = lo-slack, hi+slack, "bounds"
	}
	interval.Lo = min(interval.Value, max(interval.Lo, 0))
	interval.Hi = max(interval.Value, interval.Hi)
	if e.tau != nil {
		interval.Hi = min(interval.Hi, 1)
	}
}
