// Package datasets finds, reads, splits and scales the data, and encodes its labels, for kernel ridge regression.
//
// # Files
//
// ReadFile reads the idx format of MNIST (bytes, pixels 0 … 255), the sparse LIBSVM format (points.CSR), NumPy arrays,
// and tables of numbers with a column of answers (dense float64). Each file may be compressed with gzip, bzip2, xz,
// zstd or zip, which is recognized by its first bytes. A Format describes how files are recognized and read;
// RegisterFormat adds one, and importing datasets/parquet adds Parquet.
//
// Files are streamed: the uncompressed text is never in memory as a whole, and the memory for the data counts against a
// memory budget. Blocks of text and of bzip2 are read on all threads; tables with quotes are split by encoding/csv.
// Format, separator and header are decided by the first rows, and Dataset.ReadReport records the decisions and their
// reasons. The output of WriteCSV of a gota data frame can be read. A syntax error in a file is a *ParseError with line
// and column; texts that it quotes are escaped and shortened.
//
// # Names
//
// Load loads a data set of the Registry by its name: the nine data sets of the paper (krrlab data list), substitutes
// for and subsets of them (described by Note), and three built-in problems that need no file. The best possible error
// is known for two of these. Load searches the folders of Dirs by default: $KRRLAB_DATA and the user's cache. A missing
// file is a *MissingFilesError that says where to get it and where to put it. Fetch downloads files.
//
// Holdout splits user files without a test file at random, with rows of one group on the same side. Data sets that come
// in one file are split by a fixed random permutation of their rows.
//
// # Infinite data
//
// "mnist-infinite" has any number of rows: the 60,000 of MNIST, followed by shifted, rotated and distorted ones, each
// of them a function of its number. SyntheticDigits draws digits if no file is available.
//
// # Answers and scaling
//
// Coding converts classes to ±1 columns, and decision values back to labels; the labels are those of the file. Scale
// fits a Scaling on the training points and applies it to the training set and the test set. Both record the scaling,
// so that a model fitted on them can scale raw points. AutoScaling decides whether features need scaling. The answers
// of a regression are centered by Center only, and are never scaled.
package datasets
