// Package interval computes intervals that contain the answer of a new point at a stated level.
//
// Let A = K+λI for the model's n training points, C = A⁻¹Y its coefficients, k_z the vector of k(x_i, z), and α one
// minus the level:
//
//	Split          f(z) ± the ⌈(1−α)(m+1)⌉-th smallest of |y_i−f(x_i)| over m rows that were not trained on
//	Jackknife      f(z) ± the same of the n residuals of leave-one-out, r_i = c_i/(A⁻¹)_ii
//	JackknifePlus  from the ⌊α(n+1)⌋-th smallest f_{−i}(z)−|r_i| to the ⌈(1−α)(n+1)⌉-th smallest f_{−i}(z)+|r_i|,
//	               with f_{−i}(z) = f(z) − r_i(A⁻¹k_z)_i, what is fitted without point i
//
// # What is guaranteed
//
// The guarantees need the new point and the rows of the scores to be exchangeable, as independent draws are. Then Split
// covers with probability at least 1−α, and at most 1/(m+1) more if no scores are equal. JackknifePlus covers with at
// least 1−2α, and mostly near 1−α. Jackknife has no guarantee, but is near 1−α where leaving out one point moves the
// prediction little. All of these concern the coverage on average over points, not at each point. They are lost if
// kernel, λ or scaling were chosen to fit the very rows of the scores, and if rows repeat, as copies are not
// exchangeable with a new row: Intervals.Guarantee says so where it is known. Equal rows are left out together, and the
// mean of the targets is that of the rows that are left.
//
// For classes Split and Jackknife return sets: the labels j with max_{k≠j} f_k(z) − f_j(z) at most the same order
// statistic of that score of the true labels, and always the predicted label, so that they cover at least as often as
// the model is right.
//
// # Probabilities
//
// For classes, Probabilities fits Platt's map p_j = 1/(1+exp(−a_jf_j−b_j)) to decision values of the same rows, held
// out or left out one by one. Leave-one-out assumes that rows are exchangeable. Rows of a time series are predicted by
// their neighbors, and the probabilities are then overconfident.
//
// # Accuracy of the model
//
// Jackknife and JackknifePlus need an accurate solution. A model file has no Y, and AC is taken for it, which
// C fits without error however coarsely it was solved for. So a model that is too far from the solution is refused
// (ErrUnsolved, Cholesky). Split takes any model.
//
// # How to choose
//
// Split where rows can be spared: it costs nothing beside their prediction, and its guarantee is the strongest.
// JackknifePlus where they cannot, up to some thousands of points: a factorization of n³/2 multiply-adds and 2n² for
// each point.
//
// # References
//
// V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World (2005). J. Lei, M. G'Sell, A. Rinaldo, R. J.
// Tibshirani, L. Wasserman, Distribution-free predictive inference for regression, JASA 113 (2018),
// doi:10.1080/01621459.2017.1307116. R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, Predictive inference with
// the jackknife+, Ann. Statist. 49 (2021), doi:10.1214/20-AOS1965. J. C. Platt, Probabilistic outputs for support
// vector machines, in: Advances in Large Margin Classifiers (2000).
package interval
