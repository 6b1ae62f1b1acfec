// Package points holds n points in R^d, the rows of the matrix X: dense in
// float64 or float32, or sparse; and the products of two blocks of points that
// kernels are made of.
//
// # Which type
//
// A Dense32 halves the memory of a Dense and is exact for data that were small integers or were rounded to float32 to
// begin with (MNIST pixels divided by 255 carry a relative error of 6e-8). A CSR keeps only the nonzeros; it pays below
// about one nonzero in ten, and always when d is in the tens of thousands. Bytes hold whole numbers from 0 to 255 times
// one scale, such as pictures or data of 0 and 1: a byte each, with products that are exact. A Shifted is a view of
// points moved to another origin, for points that lie far from zero.
//
// # Products
//
// Inner64 and Inner32 form the inner products, L1Dist64 and L1Dist32 the
// 1-distances, of all pairs of two blocks. Dense points of the right type go to
// BLAS where they are; others are converted, or made dense, in panels held by the
// caller's Workspace, in blocks of columns when d is huge; two sparse blocks that
// share few columns are multiplied by walking their nonzeros. A Panel carries the
// squared norms that turn inner products into distances:
//
//	‖x−z‖² = ‖x‖² + ‖z‖² − 2xᵀz.
package points
