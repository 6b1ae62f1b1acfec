// Package krrlab is a laboratory for kernel ridge regression. A Lab is one problem with its stages, each of which can
// be run and examined separately.
//
// Kernel ridge regression finds f(x) = Σ_i c_i k(x_i, x) by solving
//
//	(K + λI) C = Y,   K_ij = k(x_i, x_j),   K n×n,   Y n×t.
//
// The method of the laboratory is Algorithm 1 of Avron, Clarkson and Woodruff, "Faster Kernel Ridge
// Regression Using Sketching and Preconditioning" (SIAM J. Matrix Anal. Appl. 38(4),
// 2017, DOI 10.1137/16M1105396): conjugate gradients preconditioned by ZZᵀ + λ_pI,
// where the rows of Z (n×s) are random features of the points. It solves the
// problem itself, not a low-rank approximation of it; the features only determine
// the number of iterations.
//
//	train → New → Lab ─┬─ Z      n×s, ZZᵀ ≈ K           (packages feature, lowrank)
//	                   ├─ M      (ZZᵀ+λ_pI)⁻¹, or another (package precond)
//	                   ├─ K      K+λI in tiles          (package gram)
//	                   └─ Solve  PCG, CG, direct        (packages pcg, direct)
//	                         ↓
//	                     Solution: Model, residuals, κ, history
//
// The stages are Plan, StatDim, SketchSize, MultiLevel, LambdaP, Quality, LeaveOneOut, Compare and Tune. Each is a
// method of Lab, whose result has String, Table, Plot and JSON. Verify is the stage for a saved model.
//
// A Config specifies the problem and the method; its zero values mean the documented defaults. If it names neither
// Solver nor Precond, the method is a Cholesky factorization up to DirectBelow points, and for more points the one
// that Plan predicts to be fastest on this machine. Solve runs all necessary steps:
//
//	lab, err := krrlab.New(train, krrlab.Config{
//		Kernel: kernel.Gaussian{Sigma: 8.5}, Lambda: 0.01, Precond: krrlab.Features{S: 6000},
//	})
//	sol, err := lab.Solve(ctx)
//	score, err := sol.Model.Evaluate(ctx, test, nil)
//
// How to choose. The ridge λ sets the smoothness of f. The answer depends only on λ and the kernel with its parameters;
// s and λ_p of the preconditioner only change the time. More features cost n·s² once and save iterations; λ_p above λ
// (10λ is the paper's rule of thumb) often saves iterations and sometimes costs some. If K is stored, landmarks
// (Nystrom, RPCholesky) give a better preconditioner than features of the same width, and BlockPCG takes fewer
// iterations with several right-hand sides; the paper has neither. Tol is the tolerance τ of the relative residual,
// ‖y_j − (K+λI)c_j‖₂ ≤ τ‖y_j‖₂ for every column. Without Tol, the iteration ends when the residual is 0.03 of the noise
// of the data (Config.Stop), or at the paper's tolerances, 1e-3 for classification and 1e-5 for regression.
//
// Matrices. K, Z and M are formed by the first stage that needs them, and later stages use them again.
// lab.With returns a Lab of the same problem with another method, which shares them. Free releases
// their memory.
//
// Ranks. The stages run in this process, on all threads. With a remote.Backend in the configuration they are sent
// to ranks that mpirun or srun starts, on this machine or others, and return the same
// values. A program that is itself a rank sets Config.Comm.
//
// Errors. Bad input, too little memory and the end of the context are errors. Missing convergence is not: the Solution
// reports it in its Status, and has the best answer found.
package krrlab
