// Package theory contains executable checks of the claims of the paper and of this project, and functions that return
// the bounds of the method.
//
// The method is that of Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression Using Sketching and
// Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI 10.1137/16M1105396), called the paper below. In its
// notation A = K+λI is the system, M = ZZᵀ+λ_pI the preconditioner with an n×s matrix Z, κ = κ(M⁻¹A) the condition
// number that determines the convergence of conjugate gradients, and s_λ(K) = tr(K(K+λI)⁻¹) the statistical dimension.
//
// # Checks
//
// Claims lists the claims, FindClaim returns one by name, Claim.Check runs the check of a claim, and CheckClaims those
// of several. A Claim contains its formula, its place in the paper, the measured quantities, and the reason why the
// check can fail. There are three kinds of claims:
//
//	Identity     fails if an error is larger than rounding explains
//	Bound        fails if there is one counterexample
//	Probability  fails if the trials contradict its δ, or if a mean differs from its expectation
//
// Every measure has a ratio, which is above 1 if the measure contradicts the claim. For an identity, the ratio is the
// error divided by the tolerance. For a bound, it is the largest ratio of a measured value to its bound. For an event
// with probability at most δ, it is the lower end of the one-sided 99.9 % interval of Clopper and Pearson divided by δ.
// For a mean with known expectation, it is Student's t divided by its two-sided quantile of level 1e-6. The margin of a
// result is 1 minus the largest ratio: it is 0 if a bound is attained, and negative if the claim fails. A few measures
// ensure that a check is meaningful, for example that some draws meet the conditions of Theorem 7 and some do not. They
// have the ratio 0 or 2.
//
// Many bounds of the paper are too loose to be contradicted: the s of Theorem 1 is about ten times larger than
// necessary. In these cases the quantity that the proof bounds is also compared with its expectation in closed form, in
// a two-sided test. Measure.Tightness is this expectation divided by the bound; a value above 1 contradicts the claim.
//
// The checks use the project's own feature maps, sketches, factors and solvers. Options.Parts replaces any of them. The
// tests use this to show that a check detects a broken part; it also allows trying a new feature map. The results are
// compared with dense float64 linear algebra written from the definitions. They depend only on the options and not on
// the number of threads.
//
// # Bounds
//
// SufficientFeatures returns the s of Theorem 1, PredictionBound bounds the error of a prediction, and LeaveOneOut
// returns the leave-one-out residuals. Other bounds are in the packages that use them: pcg.IterationBound returns a
// number of iterations for a κ, lambdap.Bound bounds κ for a λ_p and ‖K−ZZᵀ‖₂, and sketchsize.ConditionConstants
// contains the constants of Theorem 7's conditions and the κ that they guarantee.
//
// All bounds are upper bounds that hold in exact arithmetic; none of them is an estimate of κ. If the paper contains an
// error, the functions and claims follow the corrected form. ERRATA.md in this folder describes each error and names
// the test for it. README.md is a guide with a figure for each theorem.
//
// # References
//
// C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of
// the binomial, Biometrika 26 (1934). H. Avron, H. L. Nguyễn, D. P. Woodruff, Subspace embeddings for
// the polynomial kernel, NIPS 27 (2014): Lemma 4. J. R. Shewchuk, An introduction to the conjugate
// gradient method without the agonizing pain, CMU-CS-94-125: the count of iterations.
package theory
