// Package explain draws how good a model's predictions are, and measures which columns they depend on.
//
//	Quality  a figure of predictions and answers: predicted against actual and residuals of a regression; confusion
//	         matrix, ROC, precision-recall and calibration of a classifier
//	Run      importance of the columns by permutation, and partial dependence on the leading ones
//
// # Importance by permutation
//
// Let L be a loss, such as the RMSE, of the model on rows that the fit has not seen, and L_jr the loss after the cells
// of column j were permuted at random among the rows, for the r-th of R permutations. The importance is
//
//	I_j = (1/R) Σ_r L_jr − L
//
// (Breiman 2001; Fisher, Rudin and Dominici 2019). A column of words or dates is permuted as a whole, with all features
// that were made of it. Longitude and latitude that are projected are permuted together. Two columns that carry the
// same information share its importance: the model can use one of them while the other is permuted.
//
// The standard error is that of the jackknife over 20 groups of rows: I_j is computed without each group. A row counts
// twice, by its own loss and by the loss of the row that gets its cell, so that rows whose cell comes from the group
// are left out too. Copies of a record are in one group. The standard error covers the random choice of independent
// records and, with some excess, of the permutations. The standard deviation over the permutations is also returned.
// The standard error does not cover the fit: another sample of training rows gives another model.
//
// # Partial dependence
//
// The partial dependence on column j at v is the mean prediction over all rows after their cells in column j were set
// to v (Friedman 2001). The values v are those of the rows, or, if there are many, equally spaced between the 5th and
// the 95th percentile. If columns depend on each other, the mean includes rows that do not exist. The standard error is
// that of a mean over the rows.
//
// # References
//
// L. Breiman, Random forests, Machine Learning 45, 2001, doi:10.1023/A:1010933404324.
// A. Fisher, C. Rudin, F. Dominici, All models are wrong, but many are useful, JMLR 20(177), 2019.
// J. H. Friedman, Greedy function approximation: a gradient boosting machine, Ann. Statist. 29(5), 2001,
// doi:10.1214/aos/1013203451.
// B. Efron, C. Stein, The jackknife estimate of variance, Ann. Statist. 9(3), 1981, doi:10.1214/aos/1176345462.
package explain
