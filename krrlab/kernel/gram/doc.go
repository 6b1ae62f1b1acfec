// Package gram stores or recomputes the kernel matrix K, K_ij = k(x_i, x_j), in symmetric tiles, and multiplies vectors
// by K+λI.
//
// # Tiles
//
// The n points are divided into B blocks of Options.TileSize points (the last one may be shorter). Only the tiles T_ij
// with block row i ≥ block column j exist. A tile is contiguous and row-major, and one worker forms it directly in its
// final place, so there is never a second copy of K and no n×n temporary. Diagonal tiles are stored in full. They are
// exactly symmetric, and their diagonal k(x, x) is exact.
//
// # Storages
//
//	Float64    4n² bytes; exact except for rounding, also of the distances: ‖E‖₂ as in Choice
//	Float32    2n² bytes; ‖E‖₂ as predicted in Choice
//	Fixed16    n² bytes; kernels with values in [0, 1] and k(x, x) = 1, each rounded to a
//	           multiple of 1/65535: ‖E‖₂ ≈ 2·4.4e-6·√n, checked to be at most λ/2
//	Recompute  K is not stored: every product forms the tiles again, n²d flops each time
//	Auto       one of these, by the rule below
//
// Auto is the default. It measures the storage error E = K̃ − K, where K̃ is the stored or recomputed matrix, on a
// subset of the rows and extrapolates (see Estimate). The methods are tried in this order: float32 with distances
// formed in float32, the same with the points shifted by their mean, the same with distances formed in float64, and
// float64 storage. The first one with a predicted ‖E‖₂ ≤ Options.Accuracy (default λ/10) is chosen. If
// Options.PreferredAccuracy asks for a smaller error and float64 storage fits, float64 storage is also chosen to reach
// that. A matrix that does not fit Options.Memory is recomputed, or, if Options.ExactResiduals is set and 16 bits are
// accurate enough, stored in 16 bits. With an explicit storage, the arithmetic is chosen by the same rule. Choice
// reports the decision and the measurements behind it.
//
// If the points are bytes whose squared distances take few values, all entries come from a table
// (kernel.DistanceTable), and float32 tiles store K − μ11ᵀ, where μ is the mean entry of the sample (Choice.Shift). A
// wide kernel has entries near μ, and float32 stores the differences with more digits than the entries. Products add
// μ1(1ᵀx), which is summed in float64.
//
// # Sparse tiles
//
// If the kernel decreases with the distance (kernel.TailBound), most entries of K may be negligible. The points are
// then ordered by a tree (package tree), and its leaves are the blocks. A tile is skipped if the kernel between its two
// leaves is certainly below the cutoff ε₁. In the tiles that are formed, float32 and float64 storage drops entries
// below the cutoff ε₂ and marks the stored entries by one bit each, unless more than three quarters of the entries of a
// tile are stored. The row sums of the omitted part E ≥ 0 are accumulated: ‖E‖₂ ≤ max_i Σ_j E_ij. This bound is at most
// Options.MaxDroppedNorm and is included in Choice.Error.
//
// The cutoff ε₁ = MaxDroppedNorm/(2n) uses at most half of the allowance by construction. The cutoff ε₂ is the power of
// two for which the entries below it sum to at most an eighth of the allowance in each of 128 sampled rows. If some
// other row then exceeds half of the allowance, the tiles are formed again with ε₂ = ε₁. The order of the points is
// internal: vectors, columns and neighbors use the caller's numbering.
//
// With Options.Tiles = AutoTiles, sparse tiles are used for at least 4,096 points if at most the share 0.4 of the
// entries has to be formed. Exact skips tiles by its own, smaller bound, and forms all tiles if only a user-defined
// kernel's own claim says that it decreases.
//
// # Products
//
// MulTo reads K once for all t right-hand sides. Each tile is used twice while it is in cache:
//
//	y_i += T_ij·x_j   and   y_j += T_ijᵀ·x_i.
//
// The contributions T_ij·x_j depend on the tiling alone. They are added exactly, as 64-bit integers (comm.FixedPoint),
// so the result has the same bits in any order of summation, and therefore for any number of threads and ranks.
// Repeated products allocate no memory.
//
// Since |k_ij| ≤ √(k_ii·k_jj), the unit of these integers for entry i of column c is at most
//
//	q = 2⁻⁵⁹·√k_ii·Σ_j √k_jj·|x_jc|,
//
// where k_ii and k_jj below 2⁻⁶⁰ times the largest diagonal entry count as that number.
// Each of the n/TileSize contributions to the entry loses less than one unit. With float32 tiles this is at most
// n/TileSize·q in total, far below the rounding error of float32. With float64 tiles, and therefore with Exact, the
// truncated part is added in a second word, and the loss is 2⁻⁴⁰ of that. The error of a product is then the error of
// the sums within tiles, which have at most TileSize terms in float64, and of the last rounding.
//
// Float32 tiles are multiplied in float32: x is scaled column by column to magnitude 1 and rounded once, the sums of a
// tile (at most TileSize terms) are float32, and sums across tiles are integers. With u = 2^-24 the error of a column
// is about
//
//	‖ŷ − Kx‖₂ ≲ 4u·( rms(K)·√n·‖x‖₂ + ‖Kx‖₂ ).
//
// This has the order of the effect of rounding the entries of K, 2·rms(E)·√n·‖x‖₂ with rms(E) ≈ u·rms(K)/√3 (measured:
// TestFloat32ProductError).
//
// # Ranks
//
// With Options.Comm, the tiles are assigned to the ranks of a distributed run cyclically, so each rank forms and stores
// 1/P of K. Every rank has all points and all of x. A product needs one all-reduce of nt+2 integers of 64 bits, or
// 2nt+2 with float64 tiles. A process without ranks counts as one rank and computes the same result.
//
// # References
//
// H. Avron, K. L. Clarkson, D. P. Woodruff, Faster kernel ridge regression using sketching and preconditioning, SIAM J.
// Matrix Anal. Appl. 38(4), 2017, for the method. N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
// ed., SIAM 2002, chapter 3, for the error of inner products.
package gram
