// Package precond provides preconditioners for K+λI: M = ZZᵀ+λ_pI, where the rows of Z, n×s, are the random features
// φ(x_i)ᵀ, and the identity.
//
// # The inverse
//
// M is never formed. By Woodbury's formula (section 3.1 of the paper, with λ_p instead of λ, and with UᵀU corrected),
//
//	M⁻¹ = λ_p⁻¹(I − Z(ZᵀZ+λ_pI)⁻¹Zᵀ) = λ_p⁻¹(I − UᵀU),
//	LLᵀ = C = ZᵀZ+λ_pI,  LU = Zᵀ.
//
// # The forms
//
//	L      two triangular solves with L       setup ns² + s³/3    8s² bytes
//	Linv   two products with L⁻¹              + s³/3              8s² bytes
//	U      M⁻¹ = λ_p⁻¹(I − UᵀU), U stored     + ns²               8ns bytes, Z is not stored
//	eigen  ZᵀZ = VΣ²Vᵀ                        about + 9s³         8s² bytes
//
// L has the cheapest setup. Linv replaces triangular solves by products, which are faster, and computes StatDim at no
// additional cost; it is cheaper than L after about s/6t applications. U is the paper's form: an application consists
// of two products with n×s matrices only, but the setup costs ns² more. Counting flops, U is cheaper than L if
// applications·t·ρ > n/2, where ρ is the slowdown of triangular solves relative to products; counting time, it is
// cheaper sooner, because U is stored in float64 while Z is converted in every application. U takes twice the memory of
// Z. eigen serves every λ_p without a new factorization (WithLambda): use it to vary λ_p. It also cannot fail with a
// pivot that is not positive. AutoForm chooses Linv, or U if U needs no more memory and has a lower Cost.
//
// An application with the forms L, Linv and eigen takes 4nst + 2s²t flops (eigen: 4s²t) and reads Z twice.
//
// # Precision
//
// The difference λ_p⁻¹(x − UᵀUx) suffers from cancellation: in the leading direction of Z, x and UᵀUx differ by
// λ_p/(σ₁²+λ_p) only. An error ε in UᵀUx therefore becomes an error of about ε·σ₁(Z)²/λ_p in M⁻¹x. With float32
// arithmetic that would be 0.1 to 0.4 on MNIST at λ_p = 0.01. Therefore only Z is stored in float32. It is converted in
// blocks that fit a cache, all products and sums are computed in float64, and ZᵀZ is that of the stored Z without
// further rounding. The error is then about
//
//	‖error‖₂ ≲ 10·2⁻⁵³·(1 + σ₁(Z)²/λ_p)·‖M⁻¹x‖₂,
//
// which is 1e-9 at σ₁²/λ_p = 1e6 in the worst direction, and up to 30 times as much for the eigen form (measured:
// TestAccuracy); in a random direction it is far smaller. U is stored in float64 for the same reason: rounding U to
// float32 could even make λ_p⁻¹(I−UᵀU) indefinite.
//
// The relative error of rᵀM⁻¹r for r drawn from N(0, M), and for Mr, is about 5·2⁻⁵³·σ₁²/λ_p. Linv loses more if
// columns of Z are nearly parallel: in proportion to (σ₁²/λ_p)^1.5, and all digits at 1e13. If tr ZᵀZ/λ_p > 1e10,
// SolveTo therefore corrects its result y = λ_p⁻¹(r − Zv), for which ZᵀM⁻¹r = v holds in exact arithmetic, by
//
//	y ← y + Z(ZᵀZ+λ_pI)⁻¹(v − Zᵀy).
//
// The error is then below 1e-4 up to σ₁²/λ_p = 1e13, for every form except U (TestCorrection), at twice the cost of an
// application. AutoForm does not choose U if a correction is needed.
//
// A preconditioner must be definite, but need not be accurate. With Options.Fast, New forms ZᵀZ by float32 products of
// short panels, summed in float64, if the predicted error is at most λ_p/10 (on MNIST with n = 60,000 and s = 6,000 for
// λ_p ≥ 2e-3). No model of rounding errors is valid for landmark factors and repeated rows. New therefore also compares
// the result with ZᵀZV for random V, which takes 128ns flops, and uses it only if the measured error is at most λ_p/10.
//
// # Parallelism
//
// ZᵀR and ZᵀZ are sums of products of RankRows rows. Each product depends on Z only. The products are added exactly, as
// 64-bit integers (comm.FixedPoint), and C is factored by tiles. Results therefore have the same bits for any number of
// threads and of ranks. The unit of (Zᵀr)_k is at most 2⁻⁶⁰·max_i|Z_ik|·‖r‖₁, the unit of (ZᵀZ)_jk at most
// 2⁻⁵⁹·n·max_i|Z_ij|·max_i|Z_ik|, and each of the n/RankRows products has an error of less than one unit. That is less
// than the rounding error of float64 sums, for columns of small and of large norm.
//
// With Options.Comm, the rows of Z are distributed over the ranks of an MPI run; the factor is replicated, or shared if
// it is large (RanksPerFactor). A process without MPI is a single rank.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using
// sketching and preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017),
// doi:10.1137/16M1105396: section 3.1, proposition 3. M. A. Woodbury, Inverting
// modified matrices, 1950. N. J. Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed., SIAM 2002: chapters 8, 10 and 14 (explicit inverses of triangular matrices).
package precond
