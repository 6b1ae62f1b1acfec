package precond

import "fmt"

// These constants of Cost were measured with OpenBLAS on two cores at n = 20,000, s = 2,000 and t = 1, 4, 10
// (BenchmarkSolveTo, BenchmarkInnerSolve).
const (
	// solveSlowdown is ρ: the time of a flop in a triangular solve, relative to a flop in a product. It is larger on
	// more cores, because t columns offer little parallelism.
	solveSlowdown = 2
	// readZ and readU are the time to read an n×s matrix, in units of the time to multiply it by one column. Z must be
	// read and converted, U only read.
	readZ, readU = 20, 12
)

// Cost returns the work of setting up M⁻¹ in a form, for n points and s features, and of applying it to t columns the
// given number of times. Here M = ZZᵀ+λ_pI with Z, n×s; L is the Cholesky factor of ZᵀZ+λ_pI, Linv its inverse, U =
// L⁻¹Zᵀ, and eigen uses an eigendecomposition of ZᵀZ (see Form). The unit of work is one flop of a matrix product:
//
//	all    ns²                  to form half of ZᵀZ
//	L      s³/3        + iterations·(4ns(t+readZ) + 2s²t·ρ)
//	Linv   2s³/3       + iterations·(4ns(t+readZ) + 2s²t)
//	U      s³/3 + ns²  + iterations·4ns(t+readU)
//	eigen  9s³         + iterations·(4ns(t+readZ) + 4s²t)
//
// Counting flops only (readZ = readU = 0), U is cheaper than L if iterations·t·ρ > n/2, and Linv is cheaper than L if
// iterations·t·(ρ−1) > s/6. If Woodbury.Corrects returns true, an iteration costs twice as much; Cost does not include
// this. Cost panics for AutoForm.
func Cost(form Form, n, s, t, iterations int) float64 {
	fn, fs, ft, fi := float64(n), float64(s), float64(t), float64(iterations)
	gram, chol := fn*fs*fs, fs*fs*fs/3
	products := 4 * fn * fs * (ft + readZ)
	inner := 2 * fs * fs * ft
	switch form {
	case FormL:
		return gram + chol + fi*(products+inner*solveSlowdown)
	case FormLInv:
		return gram + 2*chol + fi*(products+inner)
	case FormU:
		return gram + chol + fn*fs*fs + fi*4*fn*fs*(ft+readU)
	case FormEigen:
		return gram + 9*fs*fs*fs + fi*(products+2*inner)
	}
	panic(fmt.Sprintf("precond: Cost of form %v", form))
}

// cheaperForm returns FormU or FormLInv, the one with the lower Cost for t columns and a typical number of
// applications. It never returns FormL: FormL saves s³/3 flops in the setup, but StatDim would spend as many later,
// because it needs L⁻¹. It returns FormU only if the 8ns bytes of FormU are at most the 4ns + 8s² bytes of FormLInv,
// which means n ≤ 2s.
func cheaperForm(n, s, t int) Form {
	const applications = 100 // an iterative solve usually takes some tens to some hundreds
	if n <= 2*s && Cost(FormU, n, s, t, applications) < Cost(FormLInv, n, s, t, applications) {
		return FormU
	}
	return FormLInv
}
