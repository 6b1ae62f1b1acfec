// Package krrlab is the bench a researcher works at: one kernel ridge regression
// problem and its stages, each of which can be run and looked at alone.
//
// Kernel ridge regression finds f(x) = Σ_i c_i k(x_i, x) by solving
//
//	(K + λI) C = Y,   K_ij = k(x_i, x_j),   K n×n,   Y n×t.
//
// The method is Algorithm 1 of Avron, Clarkson and Woodruff, "Faster Kernel Ridge
// Regression Using Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4),
// 2017, DOI 10.1137/16M1105396): conjugate gradients preconditioned by ZZᵀ + λ_pI,
// where the rows of Z (n×s) are random features of the points. It solves the
// problem itself, not a low-rank approximation of it; the features only decide how
// many iterations that takes.
//
//	train → New → Lab ─┬─ Features  Z, n×s           (package feature)
//	                   ├─ Precond   (ZZᵀ+λ_pI)⁻¹     (package precond)
//	                   ├─ Gram      K+λI in tiles    (package gram)
//	                   ├─ LowRank   F, FFᵀ ≈ K       (package lowrank), in place of Z
//	                   └─ Solve     PCG, CG, direct  (packages pcg, baseline)
//	                         ↓
//	                     Solution: Model, residuals, κ, history → Report
//
// What can be looked at alone: StatDim, SketchSize, MultiLevel, LambdaP and Quality, each a
// method of Lab whose result has String, Table, Plot and JSON, and Verify for a saved model.
//
// A Config says what to do; its zero values mean the documented defaults. Solve does
// all that is needed:
//
//	lab, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 8.5}, Lambda: 0.01, Features: 6000})
//	sol, err := lab.Solve(ctx)
//	score, err := sol.Model.Evaluate(ctx, test, nil)
//
// How to choose. λ sets the smoothness of f, and with the kernel's parameters it is
// all that the answer depends on. s (Features) and λ_p (LambdaP) only change the
// time: more features cost n·s² once and save iterations; λ_p above λ (10λ is the
// paper's rule of thumb) often saves iterations and sometimes costs some. Landmarks
// (Precond: Nystrom, RPCholesky) make a better preconditioner of the same width than
// features where K is stored, and BlockPCG fewer iterations of several right-hand sides;
// the paper has neither. Tol is the
// relative residual ‖y_j − (K+λI)c_j‖₂ ≤ τ‖y_j‖₂ asked of every column; the paper uses
// 1e-3 for classification and 1e-5 for regression.
//
// Where. The stages run here, on all threads. With Config.Backend they are sent to ranks that
// mpirun, srun or sbatch starts, on this machine or others, and their values come back the
// same; a program that is a rank itself sets Config.Comm.
//
// Not converging is not an error: the Solution says so in its Status, with the best
// answer there is. Errors are bad input, too little memory, and the context's end.
package krrlab
