// Package precondtest is the conformance suite for preconditioners and operators. Every type that implements
// pcg.Preconditioner should pass Test, and every type that implements pcg.Operator should pass TestOperator; both may
// be built-in or user-defined.
//
//	func TestConformance(t *testing.T) {
//		if err := precondtest.Test(t.Context(), m, &precondtest.Options{InPlace: true}); err != nil {
//			t.Error(err)
//		}
//	}
//
// # Requirements for every M
//
// M⁻¹ passes TestOperator, which checks these properties on probe vectors:
//
//   - M⁻¹ is linear, symmetric and positive definite;
//   - columns of a block do not influence each other, and a column alone gives the same result as in a block;
//   - the source is not changed, and the previous contents of the destination do not matter;
//   - a repeated call gives the same bits;
//   - if the context is canceled, its error is returned.
//
// In addition, M⁻¹ has the same bits on one thread and on several (accel.SetThreads), so that results can be reproduced
// on another machine. A block of the wrong shape leads to an error or to a panic with a message, not to a silent answer
// or to an index-out-of-range panic of the Go runtime.
//
// # Optional methods
//
// An M with NormalTo is a lanczos.Metric, with which an upper bound of κ(M⁻¹A) can be computed. Its draws must have
// mean 0 and covariance M, the M whose inverse SolveTo applies, and depend on the random stream only. An M with MulTo
// is a pcg.Operator; MulTo must be the inverse of SolveTo, and pass TestOperator. If a method exists but does not
// support this M, it returns an error that wraps errors.ErrUnsupported, and is not tested. Further promises of a type
// are stated in Options.
//
// # Limits
//
// Probe vectors find errors that appear in almost every direction or in simple directions; they prove nothing. The
// statistical tests of NormalTo have fixed seeds and tolerances of six standard deviations. A wrong covariance passes
// if its relative error is less than one half in the probed directions, and less than 6·√(2/500n) on average.
package precondtest
