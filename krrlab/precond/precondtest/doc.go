// Package precondtest is the conformance suite of preconditioners and of operators: every type that
// implements pcg.Preconditioner should pass Test, and every pcg.Operator should pass Operator, built-in or
// user-defined.
//
//	func TestConforms(t *testing.T) {
//		if err := precondtest.Test(t.Context(), m, &precondtest.Options{InPlace: true}); err != nil {
//			t.Error(err)
//		}
//	}
//
// # What every M must do
//
// M⁻¹ passes Operator: it is linear, symmetric and positive definite by probes, columns of a block do not influence
// each other, blocks of one column and of many give the same, sources stay as they are, old contents of the destination
// do not matter, the same call gives the same bits, and a canceled context is the error. It has the same bits on one
// thread and on several (accel.SetThreads), so that results can be reproduced on another machine. A block of the wrong
// shape is an error or a panic with a message: not a silent answer, and not an index out of range somewhere below.
//
// # What some can do besides
//
// An M with NormalTo is a lanczos.Metric, which gives κ(M⁻¹A) an upper end: draws must have
// mean 0 and covariance M, the M whose inverse SolveTo applies, and depend on the stream
// alone. One with MulTo is a pcg.Operator: MulTo must undo SolveTo, and passes Operator too. A method
// that is there but cannot serve this M returns an error that wraps errors.ErrUnsupported, and is
// then not tested. What else a type promises is stated in Options.
//
// # Limits
//
// Probes find what is wrong in almost every direction or in simple ones; they prove nothing. The
// statistics of NormalTo have fixed seeds and bounds of six standard deviations: a covariance that
// has an error of less than half in the directions probed, and of less than 6·√(2/500n) in all, passes.
package precondtest
