// Package interval computes intervals that contain the answer of a new point at a stated level.
//
// Let A = K+λI for the model's n training points, C = A⁻¹Y its coefficients, k_z the vector of k(x_i, z), and let 1−α
// be the level:
//
//	Split          f(z) ± the ⌈(1−α)(m+1)⌉-th smallest of |y_i−f(x_i)| over m rows that were not used for training
//	Jackknife      f(z) ± the same order statistic of the n leave-one-out residuals, r_i = c_i/(A⁻¹)_ii
//	JackknifePlus  from the ⌊α(n+1)⌋-th smallest f_{−i}(z)−|r_i| to the ⌈(1−α)(n+1)⌉-th smallest f_{−i}(z)+|r_i|,
//	               where f_{−i}(z) = f(z) − r_i(A⁻¹k_z)_i is fitted without point i
//
// # Guarantees
//
// The guarantees require that the new point and the rows of the scores are exchangeable, as independent draws are.
// Split then covers with probability at least 1−α, and at most 1/(m+1) more if no scores are equal. JackknifePlus
// covers with probability at least 1−2α, and usually close to 1−α. Jackknife has no guarantee, but is close to 1−α if
// leaving out one point changes the prediction little. All these statements are for the average coverage over points,
// not for each point. They do not hold if kernel, λ or scaling were chosen on the rows of the scores, or if rows
// repeat, because copies are not exchangeable with a new row. Intervals.Guarantee reports such cases if they are known.
// Equal rows are left out together, and the mean of the targets is that of the remaining rows.
//
// For classes, Split and Jackknife return sets. A set contains the labels j for which max_{k≠j} f_k(z) − f_j(z) is at
// most the same order statistic of this score of the true labels, and always the predicted label. The sets therefore
// cover at least as often as the model is right.
//
// # Probabilities
//
// For classes, Probabilities fits Platt's map p_j = 1/(1+exp(−a_jf_j−b_j)) to decision values of the same rows, which
// were held out or left out one by one. Leave-one-out assumes that rows are exchangeable. In a time series, rows are
// predicted from their neighbors, so the probabilities are overconfident.
//
// # Accuracy of the model
//
// Jackknife and JackknifePlus need an accurate solution. A model file does not contain Y, so AC replaces Y. C fits AC
// without error, even if C is far from the solution. A model that is too far from the solution is therefore rejected
// (ErrUnsolved, NewFactoredSystem). Split works with any model.
//
// # How to choose
//
// Use Split if some rows can be held out: it costs only their prediction, and its guarantee is the strongest. Otherwise
// use JackknifePlus, for up to some thousands of points: it needs a factorization of n³/2 multiply-adds, and 2n² for
// each new point. Use GaussianProcess for maps, whose error grows with the distance to the data, and for millions of
// points in one to three dimensions; its intervals have the stated level only if the kernel and λ are right.
//
// # References
//
// V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World (2005). J. Lei, M. G'Sell, A. Rinaldo, R. J.
// Tibshirani, L. Wasserman, Distribution-free predictive inference for regression, JASA 113 (2018),
// doi:10.1080/01621459.2017.1307116. R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, Predictive inference with
// the jackknife+, Ann. Statist. 49 (2021), doi:10.1214/20-AOS1965. C. E. Rasmussen and C. K. I. Williams, Gaussian
// Processes for Machine Learning, MIT Press 2006, section 2.2 (posterior). J. C. Platt, Probabilistic outputs for
// support vector machines, in: Advances in Large Margin Classifiers (2000).
package interval
