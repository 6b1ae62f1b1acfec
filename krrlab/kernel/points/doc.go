// Package points stores n points in R^d, the rows of the matrix X: dense in float64 or float32, sparse, or bytes. It
// forms the inner products and distances of two blocks of points from which kernels are computed.
//
// # Which type
//
// A Dense32 needs half the memory of a Dense. It is exact for data that are small integers or were rounded to float32
// (MNIST pixels divided by 255 get a relative error of 6e-8). A CSR stores only the nonzeros. It saves time below about
// one nonzero in ten, and in any case if d is in the tens of thousands. Bytes store integers from 0 to 255 times a
// common scale, such as pictures or data of zeros and ones, in one byte per number, with exact inner products. A
// Shifted is a view of points relative to another origin, for points that are far from zero.
//
// # Products
//
// Inner64 and Inner32 form the inner products, and L1Dist64 and L1Dist32 the 1-distances, of all pairs of two blocks.
// Dense points of the right type are passed to BLAS without copying. Other points are converted to dense panels in the
// memory of the caller's Workspace, in blocks of columns if d is large. Two sparse blocks that share few columns are
// multiplied by iterating over their nonzeros. A Panel stores the squared norms that turn inner products into
// distances:
//
//	‖x−z‖² = ‖x‖² + ‖z‖² − 2xᵀz.
package points
