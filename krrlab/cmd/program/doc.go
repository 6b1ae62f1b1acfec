// Package program is the main function of krrlab as a library. A program of yours registers its kernels,
// preconditioners and file formats, and calls Run: then every command has them, with the streams, signals, MPI ranks,
// BLAS and data folders of krrlab itself. Import datasets/parquet too if it should read Parquet files.
package program
