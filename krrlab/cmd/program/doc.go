// Package program is the main function of krrlab as a library. A program of yours registers its kernels,
// preconditioners and file formats, and calls Run. Every command then knows these additions, with the streams, signals,
// MPI ranks, BLAS and data folders of krrlab itself. A program that is to read Parquet files also imports
// datasets/parquet.
package program
