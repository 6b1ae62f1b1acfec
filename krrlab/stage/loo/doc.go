// Package loo computes the leave-one-out error, for which each row is predicted by a fit to all other rows, and the
// generalized cross-validation score (GCV; Golub, Heath and Wahba, Technometrics 21 (1979)) for each λ of a grid. For
// small n they are exact; for larger n they are intervals, from products with K alone. Package leaveout has the
// formulas and the methods.
package loo
