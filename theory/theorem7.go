package theory

import "github.com/krrlab/lab/krrlab/adapt"

// Test holds the constants (θ, α, γ) of Theorem 7's two conditions on a matrix of features, and
// knows the κ that they guarantee. Package adapt, which tests features with them, has it.
type Test = adapt.Test

// The presets: the printed constants, and those that guarantee κ ≤ 5 and κ ≤ 10.
var (
	PaperTest = adapt.PaperTest
	Kappa5    = adapt.Kappa5
	Kappa10   = adapt.Kappa10
)
