// Package gram holds the kernel matrix K, K_ij = k(x_i, x_j), in symmetric tiles,
// and multiplies by K+λI.
//
// # Tiles
//
// The n points are cut into B blocks of Options.TileSize (the last may be
// shorter). Only the tiles T_ij of block rows i ≥ j exist, each contiguous and
// row-major, each formed straight into its place by one worker: K is never held
// twice and there is no n×n temporary. Diagonal tiles are stored whole, exactly
// symmetric, with the diagonal k(x, x) exact.
//
// # Storages
//
//	Float64    4n² bytes; exact to rounding, also that of distances: ‖E‖₂ as in Choice
//	Float32    2n² bytes; ‖E‖₂ as predicted in Choice
//	Fixed16    n² bytes; kernels with values in [0, 1] and k(x, x) = 1, each rounded to a
//	           multiple of 1/65535: ‖E‖₂ ≈ 2·4.4e-6·√n, checked to be at most λ/2
//	Recompute  no K: tiles are formed again for each product, n²d flops each time
//	Auto       the smallest of these that is accurate enough and fits
//
// Auto, the default, measures the error E = K_stored − K on a subset of the rows and extrapolates (see Estimate):
// float32 with distances formed in float32, then with the points moved to their mean, then with distances in float64,
// then float64 storage, until the predicted ‖E‖₂ is at most Options.Accuracy, λ/10 unless told otherwise. Where a
// smaller bound is preferred (Options.Prefer) and float64 storage fits, it is taken for that too. What does not fit
// Options.Memory is recomputed, or, if Options.Refined and that is accurate enough, kept in 16 bits. The other storages
// choose the arithmetic by the same rule. Choice says what was decided, on which numbers.
//
// Where the squared distances of points in bytes take few values, all entries come from a table
// (kernel.DistanceTable), and float32 tiles hold K − μ11ᵀ, μ the mean of the sample's entries
// (Choice.Shift): a wide kernel has entries near μ, of which float32 holds the differences to more digits.
// Products add μ1(1ᵀx), summed in float64.
//
// # Sparse tiles
//
// K of a kernel that decreases with the distance (kernel.TailBound) may be next to nothing for most pairs of points. The
// points are then ordered by a tree (package tree), whose leaves are the blocks. Tiles of two leaves between which the
// kernel is certainly below ε₁ are never formed, and of those that are formed float32 and float64 tiles keep the
// entries of at least ε₂, with a bit for each entry, unless more than three quarters are. What is left out, E ≥ 0, is
// summed by rows: ‖E‖₂ ≤ max_i Σ_j E_ij, at most Options.Drop and part of Choice.Error. ε₁ = Drop/(2n) makes half of
// that by construction, and ε₂ is the power of two below which 128 rows sum to an eighth of it at most; if other rows
// sum to more than half, ε₂ = ε₁ and the tiles are formed again. The order is the matrix's own affair: vectors, columns
// and neighbors are by the points as they were given. Options.Tiles auto takes sparse tiles from 4,096 points on where
// at most 0.4 of the entries are to be formed. Exact forms the same tiles and more, with its own bound, and all
// where a user-defined kernel only says that it decreases.
//
// # Products
//
// MulTo reads K once for all t right-hand sides: each tile serves twice while it
// is in cache,
//
//	y_i += T_ij·x_j   and   y_j += T_ijᵀ·x_i.
//
// Contributions T_ij·x_j depend on the tiling alone. They are added as 64-bit integers
// (comm.Fixed), exactly, so that the result has the same bits in any order: for any number of
// threads and of ranks. A product allocates nothing once warm.
//
// As |k_ij| ≤ √(k_ii·k_jj), their unit is, for entry i of column c, at most
//
//	q = 2⁻⁵⁹·√k_ii·Σ_j √k_jj·|x_jc|,
//
// and each of the n/TileSize contributions to it loses less than one: with float32 tiles at most
// n/TileSize·q in all, far below what float32 loses. With float64 tiles, so with Exact, what is
// cut off is added in a second word, and the loss is 2⁻⁴⁰ of that: the error of a product is that
// of the tiles' own sums, at most TileSize terms in float64, and of the last rounding.
//
// Float32 tiles are multiplied in float32: x is scaled column by column to 1 and
// rounded once, each tile's sums (at most TileSize terms) are float32, and sums
// across tiles are integers. With u = 2^-24 the error of a column is about
//
//	‖ŷ − Kx‖₂ ≲ 4u·( rms(K)·√n·‖x‖₂ + ‖Kx‖₂ ),
//
// the order of what the rounding of K's entries does, 2·rms(E)·√n·‖x‖₂ with
// rms(E) ≈ u·rms(K)/√3 (measured: TestProductError).
//
// # Ranks
//
// With Options.Comm the tiles are dealt to the ranks of a distributed run in turn, in their
// order, so that each forms and holds 1/P of K. Every rank has all points and all of x;
// a product is one all-reduce of nt+2 integers of 64 bits, 2nt+2 with float64 tiles. A process
// without ranks is one rank, and computes the same.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using
// sketching and preconditioning, SIAM J. Matrix Anal. Appl. 38(4), 2017, for the
// method. N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// SIAM 2002, chapter 3, for the error of inner products.
package gram
