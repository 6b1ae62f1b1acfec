// Package precond holds preconditioners for K+λI: M = ZZᵀ+λ_pI, where Z, n×s, has
// the random features φ(x_i)ᵀ as its rows, and the identity.
//
// # The inverse
//
// M is never formed. By Woodbury's formula (section 3.1 of the paper, with λ_p in place
// of λ and UᵀU put right),
//
//	M⁻¹ = λ_p⁻¹(I − Z(ZᵀZ+λ_pI)⁻¹Zᵀ) = λ_p⁻¹(I − UᵀU),
//	LLᵀ = C = ZᵀZ+λ_pI,  LU = Zᵀ.
//
// # The forms
//
//	L      two triangular solves with L       setup ns² + s³/3    8s² bytes
//	Linv   two products with L⁻¹              + s³/3              8s² bytes
//	U      M⁻¹ = λ_p⁻¹(I − UᵀU), U stored     + ns²               8ns bytes, Z not kept
//	eigen  ZᵀZ = VΣ²Vᵀ                        about + 9s³         8s² bytes
//
// L is the cheapest to set up. Linv has no triangular solves, only products, which is
// faster per application, and gives StatDim for free; it pays after some s/6t applications. U is
// the paper's: it leaves only the two products with n×s matrices, but costs ns² more. In
// flops it pays off only if applications·t·ρ > n/2, ρ being the slowdown of triangular solves
// against products; in time sooner, since U is float64 already and Z is converted in
// every application. Its price is memory, twice that of Z. eigen serves every λ_p without
// refactoring (WithLambda): it is what one sweeps λ_p with, and it never meets a pivot
// that is not positive. AutoForm takes Linv or, where it needs no more
// memory and is of less Cost, U.
//
// With the L, Linv and eigen forms one application is 4nst + 2s²t flops (eigen: 4s²t) and reads
// Z twice.
//
// # Precision
//
// λ_p⁻¹(x − UᵀUx) cancels: x and UᵀUx agree to λ_p/(σ₁²+λ_p) in the leading direction
// of Z, so an error of ε in UᵀUx is one of about ε·σ₁(Z)²/λ_p in M⁻¹x. In float32
// that is 0.1 to 0.4 on MNIST at λ_p = 0.01. So only Z is float32; it is converted in
// blocks that fit a cache and everything is multiplied and accumulated in float64,
// and ZᵀZ is that of the stored Z, with no rounding between: the error is then about
//
//	‖error‖₂ ≲ 10·2⁻⁵³·(1 + σ₁(Z)²/λ_p)·‖M⁻¹x‖₂,
//
// 1e-9 at σ₁²/λ_p = 1e6 in the worst direction, up to 30 times as much for the eigen form
// (measured: TestAccuracy); in a random direction it is far less. U is held in float64 for the same
// reason: rounded to float32 it could even make λ_p⁻¹(I−UᵀU) indefinite.
//
// A preconditioner need not be that accurate, only definite. Options.Fast forms ZᵀZ by float32
// products of short panels, summed in float64, wherever the error of that is predicted to
// be at most λ_p/10 (on MNIST with n = 60,000 and s = 6,000 from λ_p = 2e-3 on), and, as no model
// of rounding errors holds for landmark factors and repeated rows, is found to be when the
// result is compared with ZᵀZV for random V: 128ns flops.
//
// # Parallelism
//
// ZᵀR and ZᵀZ are sums of products of RankRows rows. The products depend on Z alone; they are
// added as 64-bit integers (comm.Fixed), exactly, and C is factored by tiles, so that results have
// the same bits for any number of threads and of ranks. The unit of (Zᵀr)_k is at most
// 2⁻⁶⁰·max_i|Z_ik|·‖r‖₁, that of (ZᵀZ)_jk 2⁻⁵⁹·n·max_i|Z_ij|·max_i|Z_ik|, and each of the n/RankRows
// products loses less than one: less than float64 sums would round, for short columns as for long.
//
// With Options.Comm the rows of Z are dealt to the ranks of a distributed run; the factor is
// held, and applied, by all of them. A process without ranks is one.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using
// sketching and preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017),
// doi:10.1137/16M1105396: section 3.1, proposition 3. M. A. Woodbury, Inverting
// modified matrices, 1950. N. J. Higham, Accuracy and Stability of Numerical Algorithms,
// 2nd ed., SIAM 2002: chapters 8, 10 and 14 (explicit inverses of triangular matrices).
package precond
