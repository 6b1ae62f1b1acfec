// Package loo finds the leave-one-out error and generalized cross-validation for each λ of a grid: for small n exactly,
// beyond with intervals, from products with K alone. Package leaveout has the formulas and the methods.
package loo
