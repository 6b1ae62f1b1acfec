package pcg

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// smoothing holds the iterates of minimal residual smoothing (Options.Smooth). From the iterates x of conjugate
// gradients and their residuals r it computes, for every column,
//
//	d = r − r̄,  θ = −r̄ᵀd/dᵀd,  r̄ ← r̄ + θd,  x̄ ← x̄ + θ(x − x̄),
//
// so that ‖r̄‖₂ never increases and is at most ‖r‖₂. The recurrence of x does not change. With bounds b of ‖e‖_A for x,
// the bound for x̄ is b̄ ← |1−θ|b̄ + |θ|b.
//
// Source: L. Zhou and H. F. Walker, Residual smoothing techniques for iterative methods, SIAM J. Sci. Comput. 15
// (1994), doi:10.1137/0915021.
type smoothing struct {
	x, r   []float64 // X̄ and R̄, n×t
	cgR    []float64 // residuals r of the iterates x of conjugate gradients, by position in solver.cols
	theta  []float64 // θ by position in solver.cols
	bounds []float64 // bounds of ‖ē_c‖_A/‖y_c‖₂; none without Options.LambdaMin
	sums   []float64 // sums of the two sweeps
}

// startSmoothing sets X̄ = X and R̄ = R for the columns s.cols, whose residuals are in R.
func (s *solver) startSmoothing() {
	if !s.opt.Smooth {
		return
	}
	smooth := &s.smooth
	if smooth.x == nil {
		smooth.x, smooth.r = make([]float64, s.n*s.t), make([]float64, s.n*s.t)
		smooth.theta, smooth.sums = make([]float64, s.t), make([]float64, 2*s.t)
	}
	k := len(s.cols)
	smooth.cgR = s.buf[0]
	if s.block != nil { // R = QC overwrites AP, which the step no longer needs
		smooth.cgR = s.buf[2]
	}
	copy(smooth.x, s.x.RawMatrix().Data)
	for i := range s.n {
		for j, c := range s.cols {
			smooth.r[i*s.t+c] = s.buf[0][i*k+j]
		}
	}
}

// smoothStep updates X̄ and R̄ after a step, sets rSquares and xSquares to ‖r̄_j‖₂² and ‖x̄_j‖₂², and replaces
// the last bounds of the error by those of X̄.
func (s *solver) smoothStep() {
	if !s.opt.Smooth {
		return
	}
	smooth, k := &s.smooth, len(s.cols)
	sums := smooth.sums[:2*k]
	s.sweep.run(sums, s.n, 0, (*smoothingAngles)(s))
	for j := range s.cols {
		smooth.theta[j] = 0
		if dSquared := sums[k+j]; dSquared > 0 {
			smooth.theta[j] = -sums[j] / dSquared
		}
	}
	s.sweep.run(sums, s.n, 0, (*smoothingRows)(s))
	copy(s.rSquares, sums[:k])
	copy(s.xSquares, sums[k:])
	for j, c := range s.cols {
		if len(smooth.bounds) > 0 {
			row, theta := s.bounds.history.lastRow(), smooth.theta[j]
			row[c] = math.Abs(1-theta)*smooth.bounds[c] + math.Abs(theta)*row[c]
			smooth.bounds[c] = row[c]
		}
	}
}

// smoothingAngles is a solver as the rowTask that adds r̄_jᵀd_j and d_jᵀd_j.
type smoothingAngles solver

// rows implements rowTask.
func (s *smoothingAngles) rows(i0, i1 int, sum, _ []float64) {
	k := len(s.cols)
	if block := s.block; block != nil {
		cgResiduals := rowsOf(s.smooth.cgR, i0, i1, k)
		clear(cgResiduals.Data)
		addThinProduct(1, rowsOf(s.buf[0], i0, i1, block.k), rowsOf(block.c, 0, block.k, k), cgResiduals) // R = QC
	}
	for i := i0; i < i1; i++ {
		smoothed, cgResiduals := s.smooth.r[i*s.t:(i+1)*s.t], s.smooth.cgR[i*k:(i+1)*k]
		for j, c := range s.cols {
			d := cgResiduals[j] - smoothed[c]
			sum[j] += smoothed[c] * d
			sum[k+j] += d * d
		}
	}
}

// smoothingRows is a solver as the rowTask that updates X̄ and R̄ and adds their squares.
type smoothingRows solver

// rows implements rowTask.
func (s *smoothingRows) rows(i0, i1 int, sum, _ []float64) {
	k, x := len(s.cols), s.x.RawMatrix().Data
	for i := i0; i < i1; i++ {
		for j, c := range s.cols {
			theta, smoothedR, smoothedX := s.smooth.theta[j], &s.smooth.r[i*s.t+c], &s.smooth.x[i*s.t+c]
			*smoothedR += theta * (s.smooth.cgR[i*k+j] - *smoothedR)
			*smoothedX += theta * (x[i*s.t+c] - *smoothedX)
			sum[j] += *smoothedR * *smoothedR
			sum[k+j] += *smoothedX * *smoothedX
		}
	}
}

// copySmoothed sets the given columns of dst, n×t, to those of X̄. It does nothing without Options.Smooth.
func (s *solver) copySmoothed(dst *mat.Dense, columns []int) {
	if !s.opt.Smooth {
		return
	}
	for i := range s.n {
		row, smoothed := dst.RawRowView(i), s.smooth.x[i*s.t:(i+1)*s.t]
		for _, c := range columns {
			row[c] = smoothed[c]
		}
	}
}
