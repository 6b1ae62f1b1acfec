package pcg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// decreaseFactor = 1−2⁻²⁰ multiplies the decrease of the error in a step. It is slightly below 1, so that rounding
// cannot make the bound of a very small remaining error negative.
const decreaseFactor = 1 - 0x1p-20

// bounds computes upper bounds of the error e_k = x_k − A⁻¹y, where y is a column of B, x_k is the iterate after k
// iterations and r_k is its residual. All fields are zero without Options.LambdaMin = μ > 0.
//
// For one column, with ρ_k = r_kᵀM⁻¹r_k and the coefficients α_k and β_k of Solve, ‖e_k‖_A² ≤ γ_kρ_k with γ_0 = 1/μ
// and, by the Gauss–Radau rule with a node at μ (Meurant and Tichý 2013, doi:10.1007/s11075-012-9591-9),
//
//	‖e_{k+1}‖_A² ≤ (γ_k−α_k)ρ_k,  γ_{k+1} = (γ_k−α_k)/(μ(γ_k−α_k)+β_k).
//
// For a block, with Q, C, S and Π of SolveBlock and column c_j of C, e_jᵀAe_j = c_jᵀWc_j with W = QᵀA⁻¹Q ≼ Γ, Γ_0 = I/μ
// and, by the block form of the rule (Zimmerling, Druskin and Simoncini 2025, doi:10.1007/s10915-025-02799-z),
//
//	W_{k+1}: SᵀW_{k+1}S = W_k − Π⁻¹,  Γ_{k+1} = (μI + S(Γ_k−Π⁻¹)⁻¹Sᵀ)⁻¹.
type bounds struct {
	mu        float64   // lower bound of λ_min(M⁻¹A); 0 means no bounds
	gamma     []float64 // γ_j by position in solver.cols; in a block solve Γ, width×width
	remaining []float64 // γ−α; in a block solve Γ−Π⁻¹
	scratch   []float64 // scratch memory of a block solve
	history   table     // bounds of ‖e_j‖_A/‖y_j‖₂, one row per iteration
}

// newBounds returns bounds for the given number of columns, with gammaSize numbers in gamma, and with memory for a
// history of historyRows iterations. It returns the zero value for mu = 0.
func newBounds(mu float64, columns, gammaSize, historyRows int) bounds {
	if mu == 0 {
		return bounds{}
	}
	return bounds{mu: mu, gamma: make([]float64, gammaSize), remaining: make([]float64, gammaSize),
		scratch: make([]float64, gammaSize), history: newTable(columns, historyRows)}
}

// addRow appends a row to the history, initialized with the previous row.
func (b *bounds) addRow() {
	previous := b.history.lastRow()
	copy(b.history.addRow(), previous)
}

// startIteration counts an iteration and appends rows for its decrease and bounds of the error.
func (s *solver) startIteration() {
	s.res.Iterations++
	for _, c := range s.cols {
		s.res.Columns[c].Iterations++
	}
	s.decreaseRow = s.decreases.addRow()
	if s.bounds.mu > 0 {
		s.bounds.addRow()
	}
}

// setBound sets the bound of column c in the last row of the history, given yNorm = ‖y_c‖₂ and an upper bound of
// ‖e_c‖_A². The bound is NaN if squaredError is negative, because then μ is not a lower bound of the spectrum.
func (b *bounds) setBound(c int, squaredError, yNorm float64) {
	b.history.lastRow()[c] = math.Sqrt(squaredError) / yNorm
}

// setMu sets μ for the normalized preconditioner.
func (s *solver) setMu() {
	if s.normalized != nil {
		s.bounds.mu = s.opt.LambdaMin * s.normalized.Factor()
	}
}

// startErrorBounds initializes the bounds from ρ: ‖e‖_A² = rᵀA⁻¹r ≤ rᵀM⁻¹r/μ.
func (s *solver) startErrorBounds() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	s.setMu()
	for j := range s.cols {
		b.gamma[j] = 1 / b.mu
	}
	if len(b.history.data) > 0 { // after a restart, keep the known bounds of the current iterate
		return
	}
	b.addRow()
	for c, yNorm := range s.yNorm {
		if yNorm > 0 { // columns that have already ended have no bound; bounds of the others follow
			b.history.lastRow()[c] = math.NaN()
		}
	}
	for j, c := range s.cols {
		b.setBound(c, s.rho[j]/b.mu, s.yNorm[c])
	}
}

// updateErrorBounds records the decrease α_jρ_j of ‖e_j‖_A² in this step, and bounds the remaining error.
func (s *solver) updateErrorBounds() {
	b := &s.bounds
	for j, c := range s.cols {
		if s.alpha[j] == 0 { // the column has ended
			continue
		}
		s.decreaseRow[c] = s.alpha[j] * s.rho[j] / s.yNorm[c] / s.yNorm[c]
		s.addDecrease(c)
		if b.mu > 0 {
			b.remaining[j] = b.gamma[j] - decreaseFactor*s.alpha[j]
			b.setBound(c, b.remaining[j]*s.rho[j], s.yNorm[c])
		}
	}
}

// addDecrease adds the decrease of ‖e_c‖_A² in this step to its total. After the first restart, which starts a new
// Krylov space, it does nothing.
func (s *solver) addDecrease(c int) {
	if s.res.History.Restarts == nil {
		s.totalDecrease[c] += s.decreaseRow[c]
	}
}

// saveResidual saves the recursive residual of column c, at position j of s.cols, in endResiduals. In a block solve
// r_j = Qc_j. With Options.Smooth it is the residual of the smoothed iterate.
func (s *solver) saveResidual(j, c int) {
	block, active := s.block, len(s.cols)
	qData := s.buf[0] // in a block solve, Q, n×k
	for i := range s.n {
		var residual float64
		switch {
		case s.opt.Smooth:
			residual = s.smooth.r[i*s.t+c]
		case block == nil:
			residual = s.r.At(i, j)
		default:
			for l, qEntry := range qData[i*block.k : (i+1)*block.k] {
				residual += qEntry * block.c[l*active+j]
			}
		}
		s.endResiduals.Set(i, c, residual)
	}
}

// saveEndResiduals saves the recursive residuals of the columns in s.cols that have ended, from which setGap computes
// Gap.
func (s *solver) saveEndResiduals() {
	if s.endResiduals == nil {
		return
	}
	for j, c := range s.cols {
		switch status := s.res.Columns[c].Status; {
		case status >= IndefinitePreconditioner: // R may be partly updated, so the residual is unknown
			s.endResiduals.Set(0, c, math.NaN())
		case status != Active:
			s.saveResidual(j, c)
		}
	}
}

// setGap sets Result.Gap, ‖r_c − r̂_c‖₂/‖y_c‖₂ for the true residual r_c and the recursive residual r̂_c of each column
// when it ended, and 0 for y_c = 0. R must be the true residual, n×t.
func (s *solver) setGap() {
	if s.endResiduals == nil {
		return
	}
	for c, yNorm := range s.yNorm {
		var square float64
		for i := range s.n {
			difference := s.r.At(i, c) - s.endResiduals.At(i, c)
			square += difference * difference
		}
		if s.res.Gap[c] = 0; yNorm > 0 {
			s.res.Gap[c] = math.Sqrt(square) / yNorm
		}
	}
}

// advanceGamma computes the next γ_j, using β_j.
func (s *solver) advanceGamma() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	for j := range s.cols {
		b.gamma[j] = math.NaN()
		if b.remaining[j] > 0 {
			b.gamma[j] = b.remaining[j] / (b.mu*b.remaining[j] + s.beta[j])
		}
	}
}

// startErrorBounds initializes the bounds of a block solve with Γ = I/μ.
func (s *block) startErrorBounds() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	copy(s.d, s.c) // CᵀC = RᵀM⁻¹R
	for j := range s.cols {
		s.rho[j] = s.dotCD(j)
	}
	s.solver.startErrorBounds()
	identity(b.gamma, s.k)
	for i := range s.k {
		b.gamma[i*s.k+i] = 1 / b.mu
	}
}

// dotCD returns c_jᵀd_j for the columns j of C and D.
func (s *block) dotCD(j int) (sum float64) {
	active := len(s.cols)
	for i := range s.k {
		sum += s.c[i*active+j] * s.d[i*active+j]
	}
	return sum
}

// updateErrorBounds records the decrease c_jᵀΠ⁻¹c_j of ‖e_j‖_A² in this step of a block solve, and bounds the remaining
// error. D must be Π⁻¹C.
func (s *block) updateErrorBounds() {
	for j, c := range s.cols {
		s.decreaseRow[c] = s.dotCD(j) / s.yNorm[c] / s.yNorm[c]
		s.addDecrease(c)
	}
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	k, active := s.k, len(s.cols)
	for i, piInverse := range s.h[:k*k] {
		b.remaining[i] = b.gamma[i] - decreaseFactor*piInverse
	}
	product(s.d, b.remaining, s.c, k, k, active)
	for j, c := range s.cols {
		b.setBound(c, s.dotCD(j), s.yNorm[c])
	}
}

// advanceGamma sets Γ ← (μI + S(Γ−Π⁻¹)⁻¹Sᵀ)⁻¹ in a block solve. It fills Γ with NaN if Γ−Π⁻¹ is not positive definite.
func (s *block) advanceGamma() {
	b := &s.bounds
	if b.mu == 0 || s.k == 0 {
		return
	}
	k, width := s.k, s.width
	factor, ok := lapack64.Potrf(symmetric(b.remaining, width)) // Γ−Π⁻¹ = UᵀU
	if ok {
		transpose(b.scratch, s.s, k, width)
		sTransposed := blas64.General{Rows: width, Cols: k, Stride: k, Data: b.scratch[:width*k]}
		blas64.Trsm(blas.Left, blas.Trans, 1, factor, sTransposed) // T = U⁻ᵀSᵀ
		nextGamma := symmetric(b.gamma, k)
		identity(b.gamma, k)
		blas64.Syrk(blas.Trans, 1, sTransposed, b.mu, nextGamma) // μI + TᵀT
		factor, ok = lapack64.Potrf(nextGamma)
	}
	if !ok {
		for i := range b.gamma {
			b.gamma[i] = math.NaN()
		}
		return
	}
	lapack64.Potri(factor) // sets the upper triangle, which is copied to the lower one
	for i := range k {
		for j := range i {
			b.gamma[i*k+j] = b.gamma[j*k+i]
		}
	}
}

// symmetric returns the n×n matrix with contiguous rows in data, of which the upper triangle is used.
func symmetric(data []float64, n int) blas64.Symmetric {
	return blas64.Symmetric{N: n, Stride: n, Data: data[:n*n], Uplo: blas.Upper}
}
