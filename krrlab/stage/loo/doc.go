// Package loo computes the leave-one-out error and generalized cross-validation (GCV) for each λ of a grid. For small n
// they are exact; for larger n they are intervals, from products with K alone. Package leaveout has the formulas and
// the methods.
package loo
