package precond

import (
	"fmt"
	"math"
)

// Constants of Cost, measured with OpenBLAS on two cores at n = 20,000, s = 2,000 and
// t = 1, 4, 10 (BenchmarkSolveTo, BenchmarkMiddle).
const (
	// SolveSlowdown is ρ: how much longer a flop of a triangular solve takes than one of
	// a product. With more cores it grows, as t columns are few to share.
	SolveSlowdown = 2
	// ReadZ and ReadU say how long reading an n×s matrix takes, as a number of columns
	// more to multiply it by: Z must be read and converted, U only read.
	ReadZ, ReadU = 20, 12
)

// Cost returns the work, in flops of a matrix product, of setting up M⁻¹ for n points
// and s features in a form and applying it the given number of times to t columns:
//
//	all    ns²                  to form half of ZᵀZ
//	L      s³/3        + iterations·(4ns(t+ReadZ) + 2s²t·ρ)
//	Linv   2s³/3       + iterations·(4ns(t+ReadZ) + 2s²t)
//	U      s³/3 + ns²  + iterations·4ns(t+ReadU)
//	eigen  9s³         + iterations·(4ns(t+ReadZ) + 4s²t)
//
// In flops alone (ReadZ = ReadU = 0) U pays against L if iterations·t·ρ > n/2; and Linv
// against L if iterations·t·(ρ−1) > s/6. Cost panics for AutoForm.
func Cost(form Form, n, s, t, iterations int) float64 {
	fn, fs, ft, it := float64(n), float64(s), float64(t), float64(iterations)
	gram, chol := fn*fs*fs, fs*fs*fs/3
	products := 4 * fn * fs * (ft + ReadZ)
	middle := 2 * fs * fs * ft
	switch form {
	case FormL:
		return gram + chol + it*(products+middle*SolveSlowdown)
	case FormLInv:
		return gram + 2*chol + it*(products+middle)
	case FormU:
		return gram + chol + fn*fs*fs + it*4*fn*fs*(ft+ReadU)
	case FormEigen:
		return gram + 9*fs*fs*fs + it*(products+2*middle)
	}
	panic(fmt.Sprintf("precond: Cost of form %v", form))
}

// choose returns the form of least Cost, the first on a tie. The eigen form never is,
// and U is left out where its 8ns bytes are more than the 4ns + 8s² of the others,
// about n > 2s. With stat, L is charged s³/3 for StatDim.
func choose(n, s, t, iterations int, stat bool) Form {
	best, least := FormL, math.Inf(1)
	for _, f := range []Form{FormL, FormLInv, FormU} {
		c := Cost(f, n, s, t, iterations)
		switch {
		case f == FormU && n > 2*s:
			continue
		case f == FormL && stat:
			c += float64(s) * float64(s) * float64(s) / 3
		}
		if c < least {
			best, least = f, c
		}
	}
	return best
}
