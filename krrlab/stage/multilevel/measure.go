package multilevel

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// problem is (K+λI)C = Y with the ridge λ_p > 0 of its preconditioners.
type problem struct {
	A       stage.Operator // K̃+λI with the stored K̃
	X       points.Points  // n points
	Y       *mat.Dense     // n×t
	LambdaP float64
	Error   float64   // upper bound of ‖K̃−K‖₂ for the stored K̃ in A; the intervals are those of K itself
	Comm    comm.Comm // ranks that share K and the rows of Z; all have X and Y, and call measure together
}

// Seconds are the times of the parts of a measurement.
type Seconds struct {
	Form   float64 `json:"form"`   // time to form Z, including all previous levels
	Factor float64 `json:"factor"` // time to set up M
	Solve  float64 `json:"solve"`  // time of the solve
	Error  float64 `json:"error"`  // time to measure ‖ZZᵀ−K‖₂
	Kappa  float64 `json:"kappa"`  // time to measure κ
}

// fitTotal returns the time of a fit.
func (s *Seconds) fitTotal() float64 { return s.Form + s.Factor + s.Solve }

// Measurement is the result for one Z. All fields after Indefinite are nil or zero if M was not set up.
type Measurement struct {
	Error      estimate.Interval `json:"error"`          // ‖ZZᵀ−K‖₂
	SkipReason string            `json:"left,omitempty"` // reason why M was not set up; empty if it was
	// Indefinite states that the stored K+λI has a negative eigenvalue. The storage error then exceeds λ, even if
	// problem.Error does not, and κ is unknown.
	Indefinite bool `json:"stored_indefinite,omitempty"`

	Form         string             `json:"precond_form,omitempty"` // form of M⁻¹ in package precond
	Kappa        *estimate.Interval `json:"kappa"`                  // κ(M⁻¹A)
	Iterations   int                `json:"iterations"`             // number of PCG iterations
	Status       pcg.Status         `json:"status,omitempty"`       // how PCG ended
	Converged    bool               `json:"converged"`
	TrueResidual float64            `json:"true_residual"` // largest ‖y_j−Ac_j‖₂/‖y_j‖₂, with the stored K
	Seconds      Seconds            `json:"seconds"`
}

// metric is M with the methods that the Lanczos process and PCG need.
type metric interface {
	lanczos.Metric
	pcg.Preconditioner
}

// measure forms Z by mapping the points with featureMap, and measures ‖ZZᵀ−K‖₂, κ(M⁻¹A) and a solve. The random numbers
// of the Lanczos processes come from stream. If ctx ends, measure returns no result and ctx's error. It returns an
// error if a feature or a product is not finite, or if M is not positive definite.
func measure(ctx context.Context, p *problem, featureMap feature.Map, stream rng.Stream,
	o *Options) (*Measurement, error) {
	_, width := featureMap.Dims()
	n := p.A.Dim()
	measurement := &Measurement{}
	work := float64(width) * float64(width) * (float64(n) + float64(width)/3)
	requiredBytes := 24 * int64(width) * int64(width) // ZᵀZ, its factor and the inverse of the factor
	switch {
	case !o.memory.Fits(p.featureBytes(width) + requiredBytes):
		measurement.SkipReason = fmt.Sprintf("it would take %.3g GB in addition to Z", float64(requiredBytes)/1e9)
	case work > o.Work:
		measurement.SkipReason = fmt.Sprintf("its set-up would take %.2g flops", work)
	}

	clock := time.Now()
	z, err := formFeatures(ctx, featureMap, p, func(completed, total int) {
		o.progress("", "features", completed, total)
	})
	if err != nil {
		return nil, err
	}
	measurement.Seconds.Form = stage.Lap(&clock)
	if err := measurement.measureError(ctx, p, z, stream, o); err != nil {
		return nil, err
	}
	measurement.Seconds.Error = stage.Lap(&clock)
	if measurement.SkipReason != "" {
		return measurement, nil
	}

	o.progress("", "factor", 0, 0)
	metric, err := measurement.factor(ctx, p, z)
	if err != nil {
		return nil, err
	}
	measurement.Seconds.Factor = stage.Lap(&clock)
	if err := measurement.measureKappa(ctx, p, metric, stream, o); err != nil {
		return nil, err
	}
	measurement.Seconds.Kappa = stage.Lap(&clock)
	if err := measurement.solve(ctx, p, metric, width, o); err != nil {
		return nil, err
	}
	measurement.Seconds.Solve = stage.Lap(&clock)
	return measurement, nil
}

// formFeatures returns the features of this rank's points.
func formFeatures(ctx context.Context, featureMap feature.Map, p *problem,
	progress func(completed, total int)) (*points.Dense32, error) {
	n, _ := p.X.Dims()
	z, err := feature.Matrix(ctx, featureMap,
		p.X.Slice(comm.RowRange(n, precond.RankRows, p.Comm.Rank(), p.Comm.Size())), progress)
	return z, comm.Agree(ctx, p.Comm, err)
}

// featureBytes returns the largest memory of the rows of Z on any rank.
func (p *problem) featureBytes(s int) int64 {
	n, roundRows := p.A.Dim(), precond.RankRows*p.Comm.Size() // ranks own blocks of RankRows rows
	return 4 * int64(min(n, (n+roundRows-1)/roundRows*precond.RankRows)) * int64(s)
}

// confidenceOfEach returns the confidence required of each of two statements that shall hold together with the given
// confidence.
func confidenceOfEach(confidence float64) float64 { return (1 + confidence) / 2 }

// measureError measures ‖ZZᵀ−K‖₂ for K itself, not for the stored K.
func (m *Measurement) measureError(ctx context.Context, p *problem, z *points.Dense32, stream rng.Stream,
	o *Options) error {
	outerProduct, err := precond.NewOuterProduct(ctx, p.Comm, z)
	if err != nil {
		return err
	}
	result, err := lanczos.Run(ctx, outerProduct.SubtractFrom(p.A), &lanczos.Options{
		Steps: o.steps, Tol: o.width, Confidence: confidenceOfEach(o.Confidence), Quantity: lanczos.TwoNorm,
		Start:   stream.Sub("error"),
		Monitor: func(r *lanczos.Result) error { o.progress("", "error", r.Steps, 0); return nil },
	})
	if err != nil {
		return err
	}
	m.Error = result.Norm().Widened(p.Error)
	return nil
}

// factor sets up M in the cheaper of two forms, FormL and FormLInv, for an assumed number of applications.
func (m *Measurement) factor(ctx context.Context, p *problem, z *points.Dense32) (metric, error) {
	const applications = 100 // assumed number of products with M⁻¹ in the Lanczos process and the solve
	_, t := p.Y.Dims()
	// The option Fast is not set, because it would change M.
	options := &precond.Options{RHS: t, Form: precond.FormLInv, Comm: p.Comm}
	cost := func(form precond.Form) float64 { return precond.Cost(form, p.A.Dim(), z.D, t, applications) }
	if cost(precond.FormL) < cost(precond.FormLInv) {
		options.Form = precond.FormL
	}
	preconditioner, err := precond.New(ctx, z, p.LambdaP, options)
	if err != nil {
		return nil, err
	}
	m.Form = preconditioner.Form().String()
	return preconditioner, nil
}

// measureKappa measures κ(M⁻¹A) for A = K+λI with K itself, not the stored K. measureError must have run. If the
// Lanczos process gives only a weak bound of λ_min, the error gives another: with η ≥ ‖ZZᵀ−K‖₂,
//
//	M ≼ K+(η+λ_p)I ≼ max(1, (η+λ_p)/λ)·A,  so  λ_min(M⁻¹A) ≥ 1/max(1, (η+λ_p)/λ).
func (m *Measurement) measureKappa(ctx context.Context, p *problem, preconditioner metric, stream rng.Stream,
	o *Options) error {
	result, err := lanczos.RunPencil(ctx, p.A, preconditioner, &lanczos.Options{
		Steps: o.steps, Tol: o.width, Confidence: confidenceOfEach(o.Confidence), Start: stream.Sub("kappa"),
		Monitor: func(r *lanczos.Result) error { o.progress("", "kappa", r.Steps, 0); return nil },
	})
	if err != nil {
		return err
	}
	kappa, _, largest := result.PerturbedIntervals(p.Error / p.A.Lambda())
	m.Kappa, m.Indefinite = &kappa, result.Indefinite()
	if hi := largest.Hi * max(1, (m.Error.Hi+p.LambdaP)/p.A.Lambda()); hi < m.Kappa.Hi {
		m.Kappa.Hi = max(hi, m.Kappa.Lo)
	}
	m.Kappa.Confidence = o.Confidence
	return nil
}

// solve solves AC = Y by PCG from C = 0, for the iterations. s is the number of features, for the error. Without
// convergence it returns no error, but Converged is false.
func (m *Measurement) solve(ctx context.Context, p *problem, preconditioner metric, s int, o *Options) error {
	solution, err := pcg.Solve(ctx, p.A, preconditioner, p.Y, &pcg.Options{
		Tol: o.tol, TolFraction: stage.TolFraction, MaxIter: o.maxIter,
		Monitor: func(iteration *pcg.Iteration) error { o.progress("", "solve", iteration.Index, 0); return nil },
	})
	if err != nil {
		return err
	}
	m.Iterations, m.Status, m.Converged = solution.Iterations, solution.Status, solution.Status == pcg.Converged
	m.TrueResidual = solution.MaxTrueRelRes()
	if math.IsNaN(m.TrueResidual) {
		return fmt.Errorf("multilevel: the solve with s = %d broke down: %v", s, solution.Status)
	}
	return nil
}
