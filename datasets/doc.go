// Package datasets finds, reads, splits, scales and codes the data that kernel ridge
// regression is run on.
//
// # Files
//
// ReadFile reads MNIST's idx form (dense float32, pixels 0 … 255), LIBSVM's sparse form (points.CSR) and tables of
// numbers with a column of answers (dense float64), each plain or packed with gzip, bzip2, xz, zstd or zip, as its
// first bytes tell. A Format says how files are recognized and read; RegisterFormat adds one, and an import of
// datasets/parquet that of Parquet. Files are streamed: the unpacked text is never held whole, and what is held counts against a limit
// on memory. Blocks of text and of bzip2 are read on all threads; tables with quotes are split by encoding/csv. Format,
// separator and header are decided by the first rows, and Dataset.Read says what was decided and why; a data frame of
// gota is read by its WriteCSV. A fault in a file is a *ParseError with line and column; what it quotes is escaped and
// cut.
//
// # Names
//
// Load loads a data set of the Registry by its name: the nine of the paper's table,
// stand-ins and subsets (marked by Note), and three built-in problems that need no file, two of
// them with a known best possible error. By default it searches Dirs, $KRRLAB_DATA and the user's cache. A
// missing file is a *MissingError, which says where to get it and where to put it. Fetch downloads.
// Holdout splits user files without a test file, at random, with equal rows on one side.
// Sets that come in one file are split by a fixed random permutation of their rows.
//
// # Pictures without end
//
// "mnist-infinite" takes any number of rows: MNIST's 60,000, and after them shifted, turned and
// bent ones, each a function of its number. SyntheticDigits draws digits where there is no file.
//
// # Answers and scaling
//
// Coding turns classes into ±1 columns and decision values back into labels; the labels
// are kept as they were. Scale fits a Scaling on training points only and scales both data sets by it. The data
// sets record it, so that a model fitted on them scales points that are not scaled yet. AutoScaling
// decides whether features need scaling. Only Center centers targets, and nothing scales them.
package datasets
