package baseline

import (
	"cmp"
	"context"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// iteration is the state of block ADMM for one ρ, in scaled form. Vectors over rows and features are laid
// out as admm says. The dual of y_j needs no room: it is −ỹ.
type iteration struct {
	*admm
	rho float64

	y, yd   []float64   // y and its dual ỹ
	yj      [][]float64 // C: y_j
	x, xd   []float64   // the consensus, and its dual x̃
	xj, xjd []float64   // x_j after the projection, and their duals x̃_j
	g       []float64   // Z_jᵀ(y_j+ỹ)
	c       []float64   // x − x̃_j + g

	part  [][]float64 // of each task: its share of a sum over rows
	sums  []residuals // of each task
	work  []scratch   // of each worker
	total residuals
}

// residuals are the sums that the stopping test and the objective are made of.
type residuals struct {
	primal float64 // ‖z₁−z₂‖²
	change float64 // ‖z₂−z₂'‖², z₂' that of the iteration before
	z1, z2 float64 // ‖z₁‖², ‖z₂‖²
	dual   float64 // ‖u‖²
	loss   float64 // when measuring: Σ loss(y, (ZW))
	conj   float64 // and Σ loss*(y, u)
}

func (r *residuals) add(o residuals) {
	r.primal += o.primal
	r.change += o.change
	r.z1 += o.z1
	r.z2 += o.z2
	r.dual += o.dual
	r.loss += o.loss
	r.conj += o.conj
}

type scratch struct {
	out  [][]float64 // C: of a panel, t×rows
	sum  []float64   // of these
	simd simd.Workspace
}

func vectors(k, size int) [][]float64 {
	v := make([][]float64, k)
	for i := range v {
		v[i] = make([]float64, size)
	}
	return v
}

// start returns the state of zero iterations: all zero.
func (a *admm) start(rho float64) *iteration {
	nt, st := a.n*a.t, a.s*a.t
	v := vectors(6, st)
	s := &iteration{
		admm: a, rho: rho, y: make([]float64, nt), yd: make([]float64, nt), yj: vectors(a.Blocks, nt),
		x: v[0], xd: v[1], xj: v[2], xjd: v[3], g: v[4], c: v[5],
		part: vectors(a.tasks, st), sums: make([]residuals, a.tasks), work: make([]scratch, accel.Threads()),
	}
	for i := range s.work {
		s.work[i].out, s.work[i].sum = vectors(a.Blocks, a.t*a.panel), make([]float64, a.t*a.panel)
	}
	return s
}

// iterate is one iteration: the proximal points and projections, the averages, the duals. After an
// error, ctx's, the state is undefined.
func (s *iteration) iterate(ctx context.Context) (err error) {
	for k := range s.c {
		s.c[k] = s.x[k] - s.xjd[k] + s.g[k]
	}
	err = accel.ForEach(ctx, len(s.strips), func(_, q int) { // x_j = (I+Z_jᵀZ_j)⁻¹(x − x̃_j + Z_jᵀ(y_j+ỹ))
		j, r0 := s.strips[q].j, s.strips[q].r0
		k := s.order(j)
		rows, dst := min(inverseRows, k-r0), s.cols(s.xj, j)[r0:]
		for c := range s.t {
			clear(dst[c*k : c*k+rows])
		}
		simd.Forward(rows, k, s.inverse[j][r0*k:], k, s.cols(s.c, j), k, dst, k, s.t)
	})
	if err != nil {
		return err
	}
	// y_j = Z_jx_j, the y-part, and Z_jᵀ(y_j+ỹ) for the next iteration, in one pass
	if s.total, err = s.pass(ctx, s.xj, s.g, s.exchange); err == nil {
		s.average()
	}
	return err
}

// pass goes over Z, a panel of rows at a time: it sets the blocks of out to Z_jx_j for the rows r0 and on, t×rows,
// calls body, which adds to sum, and adds Z_jᵀ times what is in out then to g_j. Tasks are added in their order.
func (s *iteration) pass(ctx context.Context, x, g []float64,
	body func(w *scratch, r0, rows int, sum *residuals)) (total residuals, err error) {
	err = accel.ForEach(ctx, s.tasks, func(worker, q int) {
		w, part := &s.work[worker], s.part[q]
		clear(part)
		s.sums[q] = residuals{}
		end := (q + 1) * s.n / s.tasks
		for r0 := q * s.n / s.tasks; r0 < end && ctx.Err() == nil; r0 += s.panel {
			rows := min(s.panel, end-r0)
			for j, out := range w.out {
				z := s.block(j, r0, r0+rows)
				clear(out)
				simd.Forward(rows, z.D, z.Data, z.Stride, s.cols(x, j), z.D, out, rows, s.t)
			}
			body(w, r0, rows, &s.sums[q])
			for j, out := range w.out {
				z := s.block(j, r0, r0+rows)
				simd.Backward(rows, z.D, z.Data, z.Stride, s.cols(part, j), z.D, out, rows, s.t, &w.simd)
			}
		}
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return total, err
	}
	clear(g)
	for q, part := range s.part {
		total.add(s.sums[q])
		floats.Add(g, part)
	}
	return total, nil
}

// add sets the sum to that of the blocks of out.
func (w *scratch) add() {
	copy(w.sum, w.out[0])
	for _, out := range w.out[1:] {
		floats.Add(w.sum, out)
	}
}

// exchange is the y-part of an iteration, with y_j of the projection in the scratch, where y_j+ỹ is left:
//
//	y^½ = prox(y−ỹ),  δ = (y^½ − Σ_j y_j)/(C+1)
//	y ← y^½ − δ,  y_j ← y_j + δ,  ỹ ← ỹ + δ
func (s *iteration) exchange(w *scratch, r0, rows int, sum *residuals) {
	w.add()
	copies := float64(s.Blocks + 1)
	var r residuals
	for c := range s.t {
		at, step := c*s.n+r0, w.sum[c*rows:(c+1)*rows] // Σ_j y_j, and then δ
		y, yd, target := s.y[at:at+rows], s.yd[at:at+rows], s.targets[at:at+rows]
		for i, fit := range step {
			old := y[i]
			half := s.Loss.Prox(target[i], old-yd[i], s.rho)
			d := (half - fit) / copies
			mean := half - d
			step[i], y[i] = d, mean
			yd[i] += d
			r.primal += copies * d * d
			r.dual += copies * yd[i] * yd[i]
			r.z1 += half * half
			r.z2 += mean * mean
			r.change += (mean - old) * (mean - old)
		}
		for j, blocks := range w.out {
			out, yj := blocks[c*rows:(c+1)*rows], s.yj[j][at:at+rows]
			for i, v := range out {
				old, next := yj[i], v+step[i]
				yj[i], out[i] = next, next+yd[i]
				r.z1 += v * v
				r.z2 += next * next
				r.change += (next - old) * (next - old)
			}
		}
	}
	sum.add(r)
}

// average is the x-part of an iteration:
//
//	x^½ = ρ(x−x̃)/(λ+ρ)                  the proximal point of (λ/2)‖·‖²
//	x ← (x^½ + x_j)/2
//	x̃ ← x̃ + x^½ − x,  x̃_j ← x̃_j + x_j − x
func (s *iteration) average() {
	shrink := s.rho / (s.lambda + s.rho)
	sum := &s.total
	for k, old := range s.x {
		half, own := shrink*(old-s.xd[k]), s.xj[k]
		mean := (half + own) / 2
		s.xd[k] += half - mean
		s.xjd[k] += own - mean
		sum.primal += (half-mean)*(half-mean) + (own-mean)*(own-mean)
		sum.z1 += half*half + own*own
		sum.dual += s.xd[k]*s.xd[k] + s.xjd[k]*s.xjd[k]
		sum.change += 2 * (mean - old) * (mean - old)
		sum.z2 += 2 * mean * mean
		s.x[k] = mean
	}
}

// measure sets the objective F(W) of the consensus and the best dual value of θu, 0 ≤ θ ≤ 1, that is known for the
// subgradients u = ρ(v − prox(v)), v = y−ỹ, of the losses: conjugates are convex and 0 at 0, so that
//
//	−θ·Σ loss*(y, u) − θ²‖Zᵀu‖_F²/(2λ) ≤ D(θu) = −Σ loss*(y, θu) − ‖Zᵀθu‖_F²/(2λ) ≤ min F   (Fenchel).
//
// At the optimum θ = 1; far from it D(u) may be below 0, which every loss is above.
func (s *iteration) measure(ctx context.Context, res *Result) error {
	zu := make([]float64, len(s.x))
	sum, err := s.pass(ctx, s.x, zu, func(w *scratch, r0, rows int, sum *residuals) {
		w.add() // ZW
		for c := range s.t {
			for r := range rows {
				at, p := c*s.n+r0+r, c*rows+r
				u := s.Loss.dualPoint(s.targets[at], s.y[at]-s.yd[at], s.rho)
				sum.loss += s.Loss.Value(s.targets[at], w.sum[p])
				sum.conj += s.Loss.Conjugate(s.targets[at], u)
				w.sum[p] = u
			}
		}
		for _, out := range w.out {
			copy(out, w.sum)
		}
	})
	if err != nil {
		return err
	}
	res.Objective = sum.loss + s.lambda/2*floats.Dot(s.x, s.x)
	res.Dual = dualBound(sum.conj, floats.Dot(zu, zu)/s.lambda)
	if res.Gap = 0; res.Objective > res.Dual {
		res.Gap = (res.Objective - res.Dual) / res.Objective
	}
	return nil
}

// dualBound returns the maximum of −θc − θ²q/2 over 0 ≤ θ ≤ 1, q ≥ 0.
func dualBound(c, q float64) float64 {
	theta := 1.0
	if -c < q {
		theta = max(0, -c) / q
	}
	return -theta*c - theta*theta*q/2
}
