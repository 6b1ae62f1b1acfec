// Package model defines the result of a fit: the function
//
//	f_j(x) = Σ_i C_ij k(x_i, x),   i = 1 … n,  j = 1 … t,
//
// with the training points x_i (rows of X, n×d, after scaling), the coefficients C (n×t), the kernel k, the scaling of
// the training data, and the labels of the classes. Raw points are scaled before they are used; a data set that is
// marked as scaled in the same way is used directly.
//
// A Model predicts in batches with bounded memory (Decision, Predict). It can be evaluated on data with known answers
// (Evaluate), and saved to and loaded from one self-contained file (Save, Load): a zip archive of model.json and .npy
// arrays, which NumPy can also open:
//
//	>>> import numpy, json
//	>>> m = numpy.load("model.krr")
//	>>> m["c"].shape, json.loads(m["model.json"])["kernel"]
//	((2000, 1), {'name': 'gaussian', 'sigma': 1.5})
//
// The arrays are c (n×t, float64) and either x (n×d, float32, float64, or uint8 with a unit) or, for sparse points,
// x_data, x_indices and x_indptr as in scipy.sparse.csr_matrix. The format has a version. Load rejects a later version,
// a damaged archive (every entry has a CRC-32), and arrays that contradict each other.
package model
