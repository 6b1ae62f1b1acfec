package baseline

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Loss is a convex loss of one output o against one target y. Hinge and Logistic have
// y = ±1, one column for each class against the rest.
type Loss int

const (
	Square   Loss = iota // ½(y−o)²
	Hinge                // max(0, 1−yo)
	Logistic             // log(1+e^(−yo))
)

// String returns "square", "hinge" or "logistic".
func (l Loss) String() string {
	switch l {
	case Square:
		return "square"
	case Hinge:
		return "hinge"
	case Logistic:
		return "logistic"
	}
	return fmt.Sprintf("Loss(%d)", int(l))
}

// ParseLoss is the inverse of String.
func ParseLoss(name string) (Loss, error) {
	for l := Square; l <= Logistic; l++ {
		if l.String() == name {
			return l, nil
		}
	}
	return 0, fmt.Errorf("baseline: no loss %q; there are square, hinge and logistic", name)
}

// Value returns the loss.
func (l Loss) Value(y, o float64) float64 {
	switch l {
	case Square:
		return (y - o) * (y - o) / 2
	case Hinge:
		return max(0, 1-y*o)
	}
	if m := y * o; m < 0 { // log(1+e^−m), without overflow
		return -m + math.Log1p(math.Exp(m))
	}
	return math.Log1p(math.Exp(-y * o))
}

// Conjugate returns the convex conjugate sup_o (uo − loss(y, o)): with a = −uy,
//
//	square uy + ½u²,  hinge uy,  logistic a·log a + (1−a)·log(1−a),
//
// the last two for 0 ≤ a ≤ 1 and +Inf outside.
func (l Loss) Conjugate(y, u float64) float64 {
	a := -u * y
	switch {
	case l == Square:
		return u*y + u*u/2
	case !(a >= 0 && a <= 1):
		return math.Inf(1)
	case l == Hinge:
		return -a
	}
	return xlogx(a) + xlogx(1-a)
}

// xlogx returns x·log x, 0 at 0.
func xlogx(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log(x)
}

// Prox returns the proximal point argmin_o loss(y, o) + (ρ/2)(o−v)²:
//
//	square    (y+ρv)/(1+ρ)
//	hinge     v if yv ≥ 1, v + y/ρ if yv ≤ 1−1/ρ, and y between
//	logistic  the root of ρ(o−v) = y/(1+e^(yo)), by Halley's method kept in its bracket
func (l Loss) Prox(y, v, rho float64) float64 { return l.proxFrom(y, v, rho, v) }

// proxFrom is Prox with Halley's method started at o.
func (l Loss) proxFrom(y, v, rho, o float64) float64 {
	switch l {
	case Square:
		return (y + rho*v) / (1 + rho)
	case Hinge:
		switch m := y * v; {
		case m >= 1:
			return v
		case m <= 1-1/rho:
			return v + y/rho
		}
		return y
	}
	return y * logisticProx(y*v, rho, y*o)
}

// logisticProx returns the root m of the increasing function h(m) = ρ(m−c) − p, p = 1/(1+e^m), which
// is in [c, c+1/ρ], as h(c) < 0 < h(c+1/ρ), by Halley's method from m,
//
//	δ = h/(h' − ½h·h''/h'),  h' = ρ + p(1−p),  h'' = −p(1−p)(1−2p),
//
// of which an exponential is the cost of a step. A step that leaves the bracket, which shrinks with
// every value of h, or is more than half the last one is replaced by bisection. After a step δ of
// Halley's the error is of the order of |δ|³/(20·min(1, ρ)²) at most.
func logisticProx(c, rho, m float64) float64 {
	lo, hi := c, c+1/rho
	m = max(lo, min(hi, m))
	last, enough := hi-lo, 0x1p-50*min(1, rho*rho)
	for range 200 {
		p := sigmoid(-m)
		h := rho*(m-c) - p
		if h < 0 {
			lo = m
		} else {
			hi = m
		}
		q := p * (1 - p)
		slope := rho + q
		step := h / (slope + h*q*(1-2*p)/(2*slope))
		size := math.Abs(step)
		next := m - step
		if !(next >= lo && next <= hi) || 2*size > last {
			next = lo + (hi-lo)/2
			last = math.Abs(next - m)
			m = next
			if hi-lo <= 0x1p-52*math.Abs(m) {
				break
			}
			continue
		}
		m, last = next, size
		if size*size*size <= enough {
			break
		}
	}
	return m
}

// sigmoid returns 1/(1+e^−x).
func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// dualPoint returns the subgradient u = ρ(v−o) of the loss at o = Prox(y, v, ρ), of which
// rounding is not let leave the conjugate's domain.
func (l Loss) dualPoint(y, v, o, rho float64) float64 {
	u := rho * (v - o)
	if l == Square {
		return u
	}
	return -y * max(0, min(1, -u*y))
}

// checkCoding returns an error if the loss needs targets of ±1 and y has others.
func (l Loss) checkCoding(y *mat.Dense) error {
	if l == Square {
		return nil
	}
	n, _ := y.Dims()
	for i := range n {
		for j, v := range y.RawRowView(i) {
			if v != 1 && v != -1 {
				return fmt.Errorf("baseline: the %v loss has targets +1 and −1, row %d, column %d has %g: code the classes one against the rest", l, i, j, v)
			}
		}
	}
	return nil
}
