// Package theory holds the bounds of the method as functions that can be called, and
// checked.
//
// The method is that of Avron, Clarkson and Woodruff, "Faster Kernel Ridge Regression
// Using Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4), 2017, DOI
// 10.1137/16M1105396), called the paper below. In its notation A = K+λI is the system,
// M = ZZᵀ+λ_pI the preconditioner with Z of s columns, κ = κ(M⁻¹A) the condition number
// that conjugate gradients see, and s_λ(K) = tr(K(K+λI)⁻¹) the statistical dimension.
//
// What to use when. Iterations turns a κ into a number of iterations. Features gives
// the s of Theorem 1. RidgeBound says what κ can be at most for a λ_p given
// ‖K−ZZᵀ‖₂, and BestRidge where that bound is least. A Test holds the constants of
// Theorem 7's conditions, and Test.Bound the κ that they guarantee; PaperTest, Kappa5
// and Kappa10 are three choices.
//
// Every one of them is an upper bound that holds always, in exact arithmetic; none says
// what κ is. Where the paper's text is in error the functions follow the corrected
// form, and ERRATA.md in this folder says what was wrong and which test pins it.
package theory
