// Package theory holds the claims of the paper, and those of the project, as executable checks, and
// the bounds of the method as functions that can be called.
//
// The method is that of Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression
// Using Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI
// 10.1137/16M1105396), called the paper below. In its notation A = K+λI is the system,
// M = ZZᵀ+λ_pI the preconditioner with Z of s columns, κ = κ(M⁻¹A) the condition number
// that conjugate gradients see, and s_λ(K) = tr(K(K+λI)⁻¹) the statistical dimension.
//
// # Checks
//
// Claims lists them, Find finds one by name, Check runs them. Each claim is a value with its
// formula, its place, what is measured and why the check can fail, and is of one of three kinds:
//
//	Identity     an error above rounding fails it
//	Bound        one counterexample fails it
//	Probability  trials that contradict its δ fail it, or a mean that is not what it should be
//
// Every measure has a ratio that is above 1 where it contradicts the claim: for an identity the
// error over the tolerance; for a bound the largest of what is measured over its bound; for an
// event that has the probability δ at most, the lower end of the one-sided 99.9 % interval of Clopper and
// Pearson over δ; for a mean that is known Student's t over its two-sided quantile of level 1e-6. The
// margin of a result is 1 less the largest ratio: 0 where a bound is met, negative where the
// claim fails. A few measures say that a check is no check unless something is seen, for instance
// draws that meet the conditions of Theorem 7 and draws that do not; they have the ratio 0 or 2.
//
// Many of the paper's bounds are too loose to be contradicted: the s of Theorem 1 is some ten times
// what it need be. There the quantity that the proof bounds is compared, on both sides, with its
// expectation in closed form, and Measure.Tightness is that expectation over the bound;
// above 1 it contradicts the claim.
//
// The checks run on the project's own feature maps, sketches, factors and solvers. Parts replaces
// one of them by another, which is how the tests show that a check notices what is broken, and how
// a new feature map can be tried. What they are compared with is dense float64 linear algebra by the
// definitions. Results depend on the options alone, not on the number of threads.
//
// # Bounds
//
// Features gives the s of Theorem 1, PredictionBound bounds the error of a prediction, LeaveOneOut gives
// the residuals of points left out. The others are where they are used: pcg.IterationBound turns a κ into
// a number of iterations, lambdap.Bound says what κ can be at most for a λ_p given ‖K−ZZᵀ‖₂, and sketchsize.Test
// holds the constants of Theorem 7's conditions and the κ that they guarantee.
//
// Every one of the bounds is an upper bound that holds always, in exact arithmetic; none says
// what κ is. Where the paper's text is in error the functions and claims follow the corrected
// form, and ERRATA.md in this folder says what was wrong and which test pins it. README.md is the
// reader's guide, with a figure for each theorem.
//
// # References
//
// C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of
// the binomial, Biometrika 26 (1934). H. Avron, H. L. Nguyễn, D. P. Woodruff, Subspace embeddings for
// the polynomial kernel, NIPS 27 (2014): Lemma 4. J. R. Shewchuk, An introduction to the conjugate
// gradient method without the agonizing pain, CMU-CS-94-125: the count of iterations.
package theory
