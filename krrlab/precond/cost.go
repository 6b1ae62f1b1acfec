package precond

import (
	"fmt"
	"math"
)

// SolveSlowdown is ρ of Cost: how much longer a flop of a triangular solve with
// t columns takes than one of a product, as measured with OpenBLAS on two cores at
// s = 2,000 and t = 10 (BenchmarkMiddle). With more cores it grows.
const SolveSlowdown = 3

// Cost returns the work, in flops of a matrix product, of setting up M⁻¹ for n points
// and s features in a form and applying it the given number of times to t columns:
//
//	all    ns²                  to form half of ZᵀZ
//	L      s³/3        + iterations·(4nst + 2s²t·ρ)
//	Linv   2s³/3       + iterations·(4nst + 2s²t)
//	U      s³/3 + ns²  + iterations·4nst
//	eigen  9s³         + iterations·(4nst + 4s²t)
//
// Hence U against L pays if iterations·t·ρ > n/2, and Linv against L if
// iterations·t·(ρ−1) > s/6. Cost panics for AutoForm.
func Cost(form Form, n, s, t, iterations int) float64 {
	fn, fs, ft, it := float64(n), float64(s), float64(t), float64(iterations)
	gram, chol := fn*fs*fs, fs*fs*fs/3
	products := 4 * fn * fs * ft
	middle := 2 * fs * fs * ft
	switch form {
	case FormL:
		return gram + chol + it*(products+middle*SolveSlowdown)
	case FormLInv:
		return gram + 2*chol + it*(products+middle)
	case FormU:
		return gram + chol + fn*fs*fs + it*products
	case FormEigen:
		return gram + 9*fs*fs*fs + it*(products+2*middle)
	}
	panic(fmt.Sprintf("precond: Cost of form %v", form))
}

// choose returns the form of least Cost; the first on a tie. The eigen form never is.
func choose(n, s, t, iterations int) Form {
	best, least := FormL, math.Inf(1)
	for _, f := range []Form{FormL, FormLInv, FormU} {
		if c := Cost(f, n, s, t, iterations); c < least {
			best, least = f, c
		}
	}
	return best
}
