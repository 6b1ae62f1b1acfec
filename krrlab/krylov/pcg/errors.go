package pcg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// nearly is 1−2⁻²⁰: what a step takes off the error is counted a little less than in full, so that
// rounding does not turn the little that is left at the end into less than nothing.
const nearly = 1 - 0x1p-20

// bounds is where a solve keeps its upper bounds of the error; all of it is nil without
// Options.LambdaMin.
//
// One column: ‖e_k‖_A² ≤ γ_kρ_k with γ_0 = 1/μ and, by the Gauss–Radau rule with a node at μ (Meurant
// and Tichý 2013),
//
//	‖e_{k+1}‖_A² ≤ (γ_k−α_k)ρ_k,  γ_{k+1} = (γ_k−α_k)/(μ(γ_k−α_k)+β_k).
//
// A block: e_jᵀAe_j = c_jᵀWc_j with W = QᵀA⁻¹Q ≼ Γ, Γ_0 = I/μ and, by its block form (Zimmerling,
// Druskin and Simoncini 2025),
//
//	W_{k+1}: SᵀW_{k+1}S = W_k − Π⁻¹,  Γ_{k+1} = (μI + S(Γ_k−Π⁻¹)⁻¹Sᵀ)⁻¹.
type bounds struct {
	mu    float64
	gamma []float64 // by position; of a block Γ, width×width
	left  []float64 // γ−α, or Γ−Π⁻¹
	next  []float64 // scratch of a block
	all   table     // the bounds, relative to ‖y_j‖₂
}

func newBounds(mu float64, t, size, rows int) bounds {
	if mu == 0 {
		return bounds{}
	}
	return bounds{mu: mu, gamma: make([]float64, size), left: make([]float64, size), next: make([]float64, size),
		all: newTable(t, rows)}
}

// add appends a row, that of before to begin with.
func (b *bounds) add() {
	before := b.all.last()
	copy(b.all.add(), before)
}

// advance begins an iteration, with a row for what it takes off the error.
func (s *solver) advance() {
	s.res.Iterations++
	s.fall = s.decreases.add()
	if s.bounds.mu > 0 {
		s.bounds.add()
	}
}

// set sets the bound of a column of norm y whose squared error is at most v, NaN if v is negative: μ is
// no lower bound of the spectrum then.
func (b *bounds) set(c int, v, y float64) { b.all.last()[c] = math.Sqrt(v) / y }

// beginErrors begins the bounds with a residual of which only ρ is known: ‖e‖_A² = rᵀA⁻¹r ≤ rᵀM⁻¹r/μ.
func (s *solver) beginErrors() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	for j := range s.cols {
		b.gamma[j] = 1 / b.mu
	}
	if len(b.all.data) > 0 { // a restart: what is known of x_k already stays
		return
	}
	b.add()
	for c, y := range s.ynorm {
		if y > 0 { // those that have ended as they were given
			b.all.last()[c] = math.NaN()
		}
	}
	for j, c := range s.cols {
		b.set(c, s.rho[j]/b.mu, s.ynorm[c])
	}
}

// stepErrors notes what the step took off ‖e_j‖_A², α_jρ_j, and what is left at most.
func (s *solver) stepErrors() {
	b := &s.bounds
	for j, c := range s.cols {
		if s.alpha[j] == 0 { // the column has ended
			continue
		}
		s.fall[c] = s.alpha[j] * s.rho[j] / s.ynorm[c] / s.ynorm[c]
		s.sumFall(c)
		if b.mu > 0 {
			b.left[j] = b.gamma[j] - nearly*s.alpha[j]
			b.set(c, b.left[j]*s.rho[j], s.ynorm[c])
		}
	}
}

// sumFall adds what the step took off ‖e_c‖_A² to what those before it did, as long as all are of one Krylov space.
func (s *solver) sumFall(c int) {
	if s.res.History.Restarts == nil {
		s.fallen[c] += s.fall[c]
	}
}

// keepResidual keeps the residual by recurrence of column c, at position j; of a block r_j = Qc_j.
func (s *solver) keepResidual(j, c int) {
	b, a := s.block, len(s.cols)
	if b == nil {
		s.last.SetCol(c, mat.Col(nil, j, s.r))
		return
	}
	for i := range s.n {
		var sum float64
		for m, q := range s.buf[0][i*b.k : (i+1)*b.k] {
			sum += q * b.c[m*a+j]
		}
		s.last.Set(i, c, sum)
	}
}

// keepResiduals keeps those of the columns in s.cols that have ended, or of all, where Gap will want them.
func (s *solver) keepResiduals(all bool) {
	if s.last == nil {
		return
	}
	for j, c := range s.cols {
		switch status := s.res.Columns[c].Status; {
		case status >= IndefinitePreconditioner: // it may have ended half way to another residual
			s.last.Set(0, c, math.NaN())
		case all || status != Active:
			s.keepResidual(j, c)
		}
	}
}

// setGap sets Gap; R is the residual recomputed, n×t.
func (s *solver) setGap() {
	if s.last == nil {
		return
	}
	for c, y := range s.ynorm {
		var sum float64
		for i := range s.n {
			d := s.r.At(i, c) - s.last.At(i, c)
			sum += d * d
		}
		if s.res.Gap[c] = 0; y > 0 {
			s.res.Gap[c] = math.Sqrt(sum) / y
		}
	}
}

// turnErrors advances to the next γ_j, with β_j.
func (s *solver) turnErrors() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	for j := range s.cols {
		b.gamma[j] = math.NaN()
		if b.left[j] > 0 {
			b.gamma[j] = b.left[j] / (b.mu*b.left[j] + s.beta[j])
		}
	}
}

// beginErrors is that of a block: Γ = I/μ.
func (s *block) beginErrors() {
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	copy(s.d, s.c) // CᵀC = RᵀM⁻¹R
	for j := range s.cols {
		s.rho[j] = s.inner(j)
	}
	s.solver.beginErrors()
	identity(b.gamma, s.k)
	for i := range s.k {
		b.gamma[i*s.k+i] = 1 / b.mu
	}
}

// inner returns c_jᵀd_j.
func (s *block) inner(j int) (sum float64) {
	a := len(s.cols)
	for i := range s.k {
		sum += s.c[i*a+j] * s.d[i*a+j]
	}
	return sum
}

// stepErrors is that of a block, where the step takes c_jᵀΠ⁻¹c_j off ‖e_j‖_A²; D is Π⁻¹C.
func (s *block) stepErrors() {
	for j, c := range s.cols {
		s.fall[c] = s.inner(j) / s.ynorm[c] / s.ynorm[c]
		s.sumFall(c)
	}
	b := &s.bounds
	if b.mu == 0 {
		return
	}
	k, a := s.k, len(s.cols)
	for i, h := range s.h[:k*k] {
		b.left[i] = b.gamma[i] - nearly*h
	}
	product(s.d, b.left, s.c, k, k, a)
	for j, c := range s.cols {
		b.set(c, s.inner(j), s.ynorm[c])
	}
}

// turnErrors is that of a block: Γ ← (μI + S(Γ−Π⁻¹)⁻¹Sᵀ)⁻¹, of NaN where Γ−Π⁻¹ is not positive definite.
func (s *block) turnErrors() {
	b := &s.bounds
	if b.mu == 0 || s.k == 0 {
		return
	}
	k, width := s.k, s.width
	spoil := func() {
		for i := range b.gamma {
			b.gamma[i] = math.NaN()
		}
	}
	factor, ok := lapack64.Potrf(symmetric(b.left, width)) // Γ−Π⁻¹ = UᵀU
	if !ok {
		spoil()
		return
	}
	transpose(b.next, s.s, k, width)
	st := blas64.General{Rows: width, Cols: k, Stride: k, Data: b.next[:width*k]}
	blas64.Trsm(blas.Left, blas.Trans, 1, factor, st) // T = U⁻ᵀSᵀ
	g := symmetric(b.gamma, k)
	identity(b.gamma, k)
	blas64.Syrk(blas.Trans, 1, st, b.mu, g) // μI + TᵀT
	if factor, ok = lapack64.Potrf(g); !ok {
		spoil()
		return
	}
	lapack64.Potri(factor)
	for i := range k {
		for j := range i {
			b.gamma[i*k+j] = b.gamma[j*k+i]
		}
	}
}

func symmetric(data []float64, n int) blas64.Symmetric {
	return blas64.Symmetric{N: n, Stride: n, Data: data[:n*n], Uplo: blas.Upper}
}
