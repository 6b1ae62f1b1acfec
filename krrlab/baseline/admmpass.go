package baseline

import (
	"cmp"
	"context"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/enum"
)

// panelFunc does its part of a pass with rows r0, …, r1-1 of a task; sum and part belong to it.
type panelFunc func(w *passScratch, task int, r0, r1 int, sum *residuals)

// pass calls body for all rows of Z, a panel at a time, and adds what the tasks have summed in
// their order: g is the sum of their parts, and the residuals that of all.
func (s *admmState) pass(ctx context.Context, g []float64, body panelFunc) (total residuals, err error) {
	a := s.a
	err = accel.ForEach(ctx, len(a.tasks), func(worker, q int) {
		k := a.tasks[q]
		clear(s.part[q])
		s.sums[q] = residuals{}
		for r0 := k.r0; r0 < k.r1 && ctx.Err() == nil; r0 += a.panel {
			body(&s.work[worker], q, r0, min(r0+a.panel, k.r1), &s.sums[q])
		}
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return total, err
	}
	clear(g)
	for q := range a.tasks {
		total.add(s.sums[q])
		for e, v := range s.part[q] {
			g[e] += v
		}
	}
	return total, nil
}

// out returns the block j of the scratch, t×rows.
func (s *admmState) out(w *passScratch, j, rows int) []float64 {
	size := s.a.t * s.a.panel
	return w.out[j*size : j*size+s.a.t*rows]
}

// multiply sets block j of the scratch to Z_j·x for rows r0, …, r1-1, x being a vector over the
// features.
func (s *admmState) multiply(w *passScratch, x []float64, j, r0, r1 int) []float64 {
	z, out := s.a.block(j, r0, r1), s.out(w, j, r1-r0)
	clear(out)
	simd.Forward(z.N, z.D, z.Data, z.Stride, s.a.colsOf(x, j), z.D, out, z.N, s.a.t)
	return out
}

// scatter adds Z_jᵀ·v of rows r0, …, r1-1 to the part of a task, v being t×rows.
func (s *admmState) scatter(w *passScratch, task, j, r0, r1 int, v []float64) {
	z := s.a.block(j, r0, r1)
	simd.Backward(z.N, z.D, z.Data, z.Stride, s.a.colsOf(s.part[task], j), z.D, v, z.N, s.a.t, &w.simd)
}

// iteratePanel sets y_j = Z_jx_j, does the y-part, and adds Z_jᵀ(y_j+ỹ) to g.
func (s *admmState) iteratePanel(w *passScratch, task int, r0, r1 int, sum *residuals) {
	for j := range s.a.blocks() {
		s.multiply(w, s.xj, j, r0, r1)
	}
	s.exchange(w, r0, r1, sum)
	for j := range s.a.blocks() {
		s.scatter(w, task, j, r0, r1, s.out(w, j, r1-r0))
	}
}

// exchange is the y-part of an iteration for rows r0, …, r1-1, with y_j of the projection in the
// scratch, where y_j+ỹ is left:
//
//	y^½ = prox(y−ỹ),  δ = (y^½ − Σ_j y_j)/(C+1)
//	y ← y^½ − δ,  y_j ← y_j + δ,  ỹ ← ỹ + δ
func (s *admmState) exchange(w *passScratch, r0, r1 int, sum *residuals) {
	a := s.a
	rows, blocks := r1-r0, a.blocks()
	copies := float64(blocks + 1)
	step := w.step[:rows] // Σ_j y_j, and then δ
	var primal, dual, z1, z2, change float64
	for c := range a.t {
		at := c*a.n + r0
		y, yd, target := s.y[at:at+rows], s.yd[at:at+rows], a.targets[at:at+rows]
		copy(step, s.out(w, 0, r1-r0)[c*rows:])
		for j := 1; j < blocks; j++ {
			for r, v := range s.out(w, j, rows)[c*rows : (c+1)*rows] {
				step[r] += v
			}
		}
		for r, fit := range step {
			old := y[r]
			half := a.loss.Prox(target[r], old-yd[r], s.rho)
			d := (half - fit) / copies
			mean := half - d
			step[r], y[r] = d, mean
			yd[r] += d
			primal += copies * d * d
			dual += copies * yd[r] * yd[r]
			z1 += half * half
			z2 += mean * mean
			change += (mean - old) * (mean - old)
		}
		for j := range blocks {
			out, yj := s.out(w, j, rows)[c*rows:(c+1)*rows], s.yj[j][at:at+rows]
			for r, v := range out {
				old, next := yj[r], v+step[r]
				yj[r], out[r] = next, next+yd[r]
				z1 += v * v
				z2 += next * next
				change += (next - old) * (next - old)
			}
		}
	}
	sum.add(residuals{primal: primal, dual: dual, z1: z1, z2: z2, change: change})
}

// measurePanel adds the loss of ZW, W being the consensus x, and the conjugate at the
// subgradients u = ρ(v − prox(v)), v = y−ỹ; and Z_jᵀu to the part of the task.
func (s *admmState) measurePanel(w *passScratch, task int, r0, r1 int, sum *residuals) {
	a, rows := s.a, r1-r0
	first := s.multiply(w, s.x, 0, r0, r1)
	for j := 1; j < a.blocks(); j++ {
		for p, v := range s.multiply(w, s.x, j, r0, r1) {
			first[p] += v
		}
	}
	var loss, conj float64
	for c := range a.t {
		at := c*a.n + r0
		for r := range rows {
			k, p := at+r, c*rows+r
			target, v := a.targets[k], s.y[at+r]-s.yd[at+r]
			loss += a.loss.Value(target, first[p])
			u := a.loss.dualPoint(target, v, a.loss.Prox(target, v, s.rho), s.rho)
			conj += a.loss.Conjugate(target, u)
			first[p] = u
		}
	}
	sum.add(residuals{loss: loss, conj: conj})
	for j := range a.blocks() {
		s.scatter(w, task, j, r0, r1, first)
	}
}

// Loss is a convex loss of one output o against one target y. Hinge has
// y = ±1, one column for each class against the rest.
type Loss int

const (
	Square Loss = iota // ½(y−o)²
	Hinge              // max(0, 1−yo)
)

var lossNames = []string{"square", "hinge"}

func (l Loss) String() string { return enum.Name(lossNames, l) }

// ParseLoss is the inverse of String.
func ParseLoss(name string) (Loss, error) { return enum.Parse[Loss]("loss", lossNames, name) }

// Value returns the loss.
func (l Loss) Value(y, o float64) float64 {
	if l == Square {
		return (y - o) * (y - o) / 2
	}
	return max(0, 1-y*o)
}

// Conjugate returns the convex conjugate sup_o (uo − loss(y, o)): uy + ½u² of Square; of Hinge uy for
// −1 ≤ uy ≤ 0, and +Inf outside.
func (l Loss) Conjugate(y, u float64) float64 {
	switch a := -u * y; {
	case l == Square:
		return u*y + u*u/2
	case !(a >= 0 && a <= 1):
		return math.Inf(1)
	default:
		return -a
	}
}

// Prox returns the proximal point argmin_o loss(y, o) + (ρ/2)(o−v)²:
//
//	square  (y+ρv)/(1+ρ)
//	hinge   v if yv ≥ 1, v + y/ρ if yv ≤ 1−1/ρ, and y between
func (l Loss) Prox(y, v, rho float64) float64 {
	switch m := y * v; {
	case l == Square:
		return (y + rho*v) / (1 + rho)
	case m >= 1:
		return v
	case m <= 1-1/rho:
		return v + y/rho
	}
	return y
}

// dualPoint returns the subgradient u = ρ(v−o) of the loss at o = Prox(y, v, ρ), of which
// rounding is not let leave the conjugate's domain.
func (l Loss) dualPoint(y, v, o, rho float64) float64 {
	u := rho * (v - o)
	if l == Square {
		return u
	}
	return -y * max(0, min(1, -u*y))
}
