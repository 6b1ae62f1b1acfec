// Package pcg solves AX = B, A symmetric positive definite n×n and B n×t, by
// preconditioned conjugate gradients, for all t right-hand sides at once: Solve, one
// recurrence for every column, or SolveBlock, one for the block. It knows
// A and the preconditioner M ≈ A by one method each and nothing of kernels.
//
// # The method
//
// For every column y = b_j, from x = 0 or a guess, with r = y − Ax, z = M⁻¹r, p = z
// and ρ = rᵀz (Saad, algorithm 9.1; line 9 of Algorithm 1 of the paper):
//
//	α = ρ / pᵀAp
//	x ← x + αp
//	r ← r − αAp
//	z = M⁻¹r
//	β = rᵀz / ρ,  ρ ← rᵀz
//	p ← z + βp
//
// Each column has its own α and β, but one call of Operator.MulTo multiplies by A
// for all of them: where A is large, reading it is what costs, and it is read once
// an iteration. A column that has ended is frozen: its x does not change any more,
// and it is taken out of the blocks that are multiplied.
//
// # When it stops
//
// A column converges when ‖y−Ax‖₂ ≤ τ‖y‖₂, τ = Options.Tol. In the loop r is
// the residual by recurrence, which drifts from the true one by rounding. So at the
// end y−Ax is recomputed, with Options.Exact if there is one. A column that the
// recurrence saw converged and the true residual does not is taken up again from
// the true residual, with a smaller target if little is missing, as long as that helps, and what a
// restart made worse is taken back. With another Exact than A this is iterative refinement: it
// corrects for an A that is stored in less precision, and with Options.Refine it recomputes the
// residual as soon as A can tell no more of it. Status Converged thus always
// means that the residual returned in TrueRelRes, with its Rounding, is at most τ; what could not be
// brought there is Inaccurate. How a loop ended is a Status; only data that are not
// finite, the end of a context and the errors of operators and monitors are errors.
//
// # How many iterations
//
// After k iterations the error is, in exact arithmetic (Shewchuk; Saad, 6.128),
//
//	‖x_k−x‖_A ≤ 2((√κ−1)/(√κ+1))^k ‖x_0−x‖_A ≤ ε‖x_0−x‖_A
//	for k ≥ (√κ/2)·ln(2/ε),  κ = λ_max/λ_min of M⁻¹A,
//
// which is IterationBound. It is a bound in the A-norm, while the stopping test is on
// the residual in the 2-norm. Of Solve Result.Cond estimates κ, and Result.Ritz the
// eigenvalues of M⁻¹A, from the α and β alone.
//
// # How far from the solution
//
// The A-norm of the error is what conjugate gradients make least, and it bounds predictions:
// |k_xᵀ(c−c_k)| ≤ √k(x,x)·‖c−c_k‖_A for A = K+λI. Each step takes α_kρ_k off its square, ρ_k = r_kᵀM⁻¹r_k
// (Hestenes and Stiefel 1952), so the steps that follow bound it from below. From above it is bounded with a
// lower bound μ of λ_min(M⁻¹A), Options.LambdaMin, by the Gauss–Radau rule:
//
//	‖e_k‖_A² ≤ γ_kρ_k,  γ_0 = 1/μ,  γ_{k+1} = (γ_k−α_k)/(μ(γ_k−α_k)+β_k),
//
// and by its block form in SolveBlock. History.Decrease and History.Error have both; they cost nothing beside an
// iteration. Of a kernel matrix of 1,000 points with a Nyström preconditioner and μ exact, the upper bound of
// ‖e_k‖_A² was 1.4 to 1.9 times it in every iteration, ρ_k/μ 7 to 13 times, and ‖r_k‖₂²/λ 16 to 67 times.
//
// # What it costs
//
// An iteration is one MulTo, one SolveTo and five passes over blocks of n×t. Those
// run on all threads, in pieces of rowBlock rows, whose sums are added in the order of the rows:
// they have the same bits for any number of threads. Memory is 4nt numbers: X, R, P and W, which holds
// AP and then M⁻¹R. No iteration allocates; the history grows by slabs of 1,024
// iterations.
//
// # Block conjugate gradients, and when they pay
//
// In Solve every column searches its own space. SolveBlock searches the sum of
// these spaces for all columns, with the same products: after k iterations each x_j is
// the point nearest to the solution in the A-norm out of
//
//	span{M⁻¹B, (M⁻¹A)M⁻¹B, …, (M⁻¹A)^(k-1)M⁻¹B},  of up to kt dimensions,
//
// never farther than Solve's. O'Leary's bound has κ replaced by λ_n/λ_t: the t−1
// smallest eigenvalues of M⁻¹A (or largest, or some of both) do not count any more.
// So the gain is large where few eigenvalues make the iteration slow, with weak
// preconditioners and many columns, and small where M⁻¹A is well-conditioned. Iterations
// of Solve and SolveBlock to τ = 1e-3, for a Gaussian kernel of 500 points of 8 features
// and one column of ±1 per class, λ = 0.01, with a Nyström preconditioner of s points:
//
//	         κ(M⁻¹A)    t = 3      t = 10     t = 30
//	s = 0       3000   86 → 58    81 → 36    82 → 22
//	s = 50       380   58 → 50    56 → 35    56 → 20
//	s = 200      130   35 → 32    34 → 24    34 → 13
//
// An iteration costs the same product and solve, and BlockFlops instead of five passes:
// on two threads of a server (Zen 5), at n = 60,000, some 9 ms instead of 4 for t = 10, and 37
// instead of 14 for t = 40. Block conjugate gradients pay if
//
//	(iterations of SolveBlock)·(product + solve + BlockFlops at that rate)
//	    < (iterations of Solve)·(product + solve),
//
// which is nearly always the case where reading or forming A costs most, and A is not
// well preconditioned already. Two things weigh on the other side. Solve takes columns
// that have converged out of the products, SolveBlock keeps their directions; so
// columns that differ much in difficulty, in products whose cost is in arithmetic
// rather than in reading A, favor Solve. And with t = 1 the two are the same but for
// rounding, where Solve is cheaper.
//
// # References
//
// M. R. Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear
// systems, J. Res. NBS 49 (1952), doi:10.6028/jres.049.044. Y. Saad, Iterative
// Methods for Sparse Linear Systems, 2nd ed., SIAM 2003: sections 6.7 (CG and the
// Lanczos tridiagonal) and 9.2 (preconditioned). J. R. Shewchuk, An introduction to
// the conjugate gradient method without the agonizing pain, CMU-CS-94-125. H. A. van
// der Vorst and Q. Ye, Residual replacement strategies for Krylov subspace iterative
// methods, SIAM J. Sci. Comput. 22 (2000), doi:10.1137/S1064827599353865. H. Avron,
// K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and
// preconditioning, SIAM J. Matrix Anal. Appl. 38 (2017), doi:10.1137/16M1105396:
// Algorithm 1, and the remark on repetition after Theorem 6 for MedianByNorm.
//
// For the error: G. Meurant and P. Tichý, On computing quadrature-based bounds for the A-norm of the
// error in conjugate gradients, Numer. Algorithms 62 (2013), doi:10.1007/s11075-012-9591-9. Z. Strakoš and
// P. Tichý, On error estimation in the conjugate gradient method and why it works in finite precision
// computations, Electron. Trans. Numer. Anal. 13 (2002) 56–80. J. Zimmerling, V. Druskin and V. Simoncini,
// Monotonicity, bounds and acceleration of block Gauss and Gauss–Radau quadrature for computing Bᵀφ(A)B,
// J. Sci. Comput. (2025), doi:10.1007/s10915-025-02799-z.
//
// For SolveBlock: D. P. O'Leary, The block conjugate gradient algorithm and related
// methods, Linear Algebra Appl. 29 (1980), doi:10.1016/0024-3795(80)90247-5. A. A.
// Dubrulle, Retooling the method of block conjugate gradients, Electron. Trans. Numer.
// Anal. 12 (2001) 216–233: BCGrQ. Y. Yamamoto, Y. Nakatsukasa, Y. Yanagisawa, T. Fukaya,
// Roundoff error analysis of the CholeskyQR2 algorithm, ibid. 44 (2015) 306–326.
package pcg
