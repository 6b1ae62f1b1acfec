// Package kernel evaluates kernel functions k(x, z), for one pair of points or for a tile of a kernel matrix.
//
// # The kernels
//
// Each kernel of the package is a type whose comment has the formula; Names lists their names. Those that are functions
// of x−z (ShiftInvariant) have values in [0, 1] and k(x, x) = 1 (Bounded01). Func is a user-defined one. Any type with
// Eval and String is a Kernel. A type with these methods only is evaluated pair by pair on dense rows, by several
// goroutines at once. A kernel must be symmetric and positive semidefinite, otherwise the results of the solvers are
// meaningless.
//
// # User-defined kernels
//
// A kernel may implement these optional interfaces, as the built-in kernels do:
//
//	Radial          k is a function g of ‖x−z‖² (method Profile). Tiles are then computed by BLAS.
//	Mixture         k is a Radial and a mixture of Gaussians, so that Fourier features can be drawn.
//	Spectral        k is another kernel of x−z whose Fourier features can be drawn.
//	Scaled          k has a length scale, which the flag --sigma sets and package tune searches.
//	Differentiable  k has a derivative, with which package tune searches a length scale for each feature.
//
// It may also have these methods:
//
//	Validate        checks the parameters.
//	EvalTile        evaluates many pairs in one call, for a kernel whose calls are expensive.
//
// Tiles of the user-defined Radial 1/(1+r²/2σ²) take 1.3 to 1.4 times as long as the Gaussian's. Profile and EvalTile
// of a user-defined kernel are called once per tile, with all its entries.
//
// Register gives a kernel a name for model files, checkpoints, MPI ranks and command lines (Parse).
//
// # Tiles
//
// Tile64 and Tile32 fill a block of the kernel matrix. Gaussian, Matérn and polynomial kernels are functions of (xᵀz,
// ‖x‖², ‖z‖²) and share a fast method: inner products by BLAS, then, row by row,
//
//	r² = max(0, ‖x‖² + ‖z‖² − 2xᵀz)
//
// and the kernel. The Laplacian needs Σ|x−z|, for which BLAS has no routine. It is summed coordinate by coordinate,
// which makes the Laplacian the slowest built-in kernel.
//
// # Precision
//
// Arithmetic selects the precision in which the inner products of a float32 tile are formed. Float32 is twice as fast.
// Its error relative to k is about ε·max‖x‖²/(2σ²) with ε = 6e-8, because r² is formed with cancellation. This error is
// correlated along rows, so it grows like ‖K‖₂, whereas independent rounding errors grow like √n. Package gram measures
// the error and chooses. With Float32, panels should come from points.NewPanel32, whose norms are those of the rounded
// points. NewPlacement decides whether points should be shifted by their mean first, in either precision. Everything
// after the inner product (r² and the argument of the exponential) is computed in float64; the exponential of a float32
// tile is simd.Exp32.
//
// A value whose exponential is below 2^-100 (float32) or 2^-200 (float64) is stored as 0. It is smaller than any error
// above. If it were stored, products with K would meet subnormal numbers, which are up to a hundred times slower.
//
// # References
//
// C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press 2006, section 4.2 (Matérn
// with ν = 3/2, 5/2: equation 4.17).
package kernel
