package baseline

import "math"

// Loss is a convex loss function of an output o and a target y. For Hinge the targets are y = ±1, with one column for
// each class, which is 1 for this class and −1 for all other classes.
type Loss string

const (
	Square Loss = "square" // ½(y−o)²
	Hinge  Loss = "hinge"  // max(0, 1−yo)
)

// Value returns loss(y, o).
func (l Loss) Value(y, o float64) float64 {
	if l == Square {
		return (y - o) * (y - o) / 2
	}
	return max(0, 1-y*o)
}

// Conjugate returns the convex conjugate sup_o (uo − loss(y, o)). It is uy + ½u² for Square. For Hinge it is uy if
// −1 ≤ uy ≤ 0, and +Inf otherwise.
func (l Loss) Conjugate(y, u float64) float64 {
	switch negated := -u * y; {
	case l == Square:
		return u*y + u*u/2
	case !(negated >= 0 && negated <= 1):
		return math.Inf(1)
	default:
		return -negated
	}
}

// Prox returns the proximal point argmin_o loss(y, o) + (ρ/2)(o−v)²:
//
//	square  (y+ρv)/(1+ρ)
//	hinge   v if yv ≥ 1, v + y/ρ if yv ≤ 1−1/ρ, and y otherwise
func (l Loss) Prox(y, v, rho float64) float64 {
	switch margin := y * v; {
	case l == Square:
		return (y + rho*v) / (1 + rho)
	case margin >= 1:
		return v
	case margin <= 1-1/rho:
		return v + y/rho
	}
	return y
}

// dualPoint returns the subgradient u = ρ(v−o) of the loss at o = Prox(y, v, ρ). It is clipped to the domain of the
// conjugate, so that rounding errors cannot make the conjugate infinite.
func (l Loss) dualPoint(y, v, rho float64) float64 {
	u := rho * (v - l.Prox(y, v, rho))
	if l == Square {
		return u
	}
	return -y * max(0, min(1, -u*y))
}
