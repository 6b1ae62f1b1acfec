// Package kernel evaluates kernel functions k(x, z), one pair at a time and by
// tiles of a kernel matrix.
//
// # The kernels
//
//	Gaussian    exp(−‖x−z‖₂²/(2σ²))
//	Laplacian   exp(−‖x−z‖₁/σ)
//	Matern32    (1 + √3r/σ)·exp(−√3r/σ),              r = ‖x−z‖₂
//	Matern52    (1 + √5r/σ + 5r²/(3σ²))·exp(−√5r/σ),  r = ‖x−z‖₂
//	Polynomial  (γxᵀz + c)^q
//	Func        user-defined
//
// The first four depend on x−z only (ShiftInvariant), have values in [0, 1] and
// k(x, x) = 1 (Bounded01). Any type with Eval and String is a Kernel; a
// user-defined one is evaluated pair by pair on dense rows, by several goroutines
// at once, and must be symmetric and positive semidefinite for the solvers above
// to mean anything.
//
// # User-defined kernels
//
// What else a kernel can do it says by methods, which the built-in ones have too:
//
//	Radial          k = g(‖x−z‖²) by rows: tiles from BLAS, in 1.3 to 1.4 times the Gaussian's time for 1/(1+r²/2σ²)
//	Mixture         a Radial's spectral measure: Fourier features
//	Spectral        the spectral measure of another kernel of x−z
//	Scaled          a length scale, which --sigma sets and tune searches
//	Differentiable  its derivative, for the search of a length scale for each feature
//	Validate        which parameters it may have
//	EvalTile        Eval of many pairs at once, where a call is expensive
//
// Profile and EvalTile are called once for a tile.
//
// Register gives it a name, for model files, checkpoints, ranks and command lines (Parse).
//
// # Tiles
//
// Tile64 and Tile32 fill a block of the kernel matrix. Gaussian, Matérn and
// polynomial kernels are functions of (xᵀz, ‖x‖², ‖z‖²) and share one fast path:
// inner products by BLAS, then, row by row,
//
//	r² = max(0, ‖x‖² + ‖z‖² − 2xᵀz)
//
// and the kernel. The Laplacian forms |x−z| coordinate by coordinate, which no
// BLAS does, and is the slowest of them.
//
// # Precision
//
// Arithmetic says in which precision the inner products of a float32 tile are formed. Float32 is twice as fast, and
// wrong by about ε·max‖x‖²/(2σ²) relative to k with ε = 6e-8, since r² cancels; this error is alike for whole rows, so
// it grows with ‖K‖₂ while rounding grows with √n only. Package gram measures it and chooses. In Float32 the panels
// should come from points.NewPanel32, whose norms belong to the rounded points. Origin says which points are better
// moved to their mean first, in either precision. Everything after the inner product (r², the argument of the
// exponential) is float64; the exponential of a float32 tile is simd.Exp32.
//
// A value whose exponential is below 2^-100 (float32) or 2^-200 (float64) is
// stored as 0: it is less than any error above, and without it the products with
// K would meet subnormal numbers, which cost up to a hundred times a normal one.
//
// # References
//
// C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning,
// MIT Press 2006, section 4.2 (Matérn with ν = 3/2, 5/2: equation 4.17).
package kernel
