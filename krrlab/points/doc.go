// Package points holds n points in R^d, the rows of the matrix X: dense in
// float64 or float32, or sparse.
//
// A Dense32 halves the memory of a Dense and is exact for data that were small
// integers or were rounded to float32 to begin with (MNIST pixels divided by 255
// carry a relative error of 6e-8). A CSR keeps only the nonzeros; everything that
// reads points densifies it in panels of rows, or walks the nonzeros where that is
// cheaper.
package points
