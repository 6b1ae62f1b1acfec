package baseline

import (
	"cmp"
	"context"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// iteration is the state of block ADMM for one penalty parameter ρ. The dual variables are scaled, which means that
// they are divided by ρ. Vectors have the layout that the comment of admm describes. The weights w_j of all blocks and
// their duals w̃_j, in the notation of the package documentation, are the vectors x and x̃ here. The dual of y_j is −ỹ
// and is not stored.
type iteration struct {
	*admm
	rho float64 // penalty parameter ρ

	y, yd   []float64   // outputs y, and their dual ỹ
	yj      [][]float64 // the C vectors y_j
	x, xd   []float64   // the consensus weights, and their dual x̃
	xj, xjd []float64   // x_j after the projection, and their duals x̃_j
	g       []float64   // Z_jᵀ(y_j+ỹ)
	c       []float64   // x − x̃_j + g

	partialSums [][]float64 // for each task: its part of a sum over the rows
	sums        []residuals // for each task: its part of the residuals
	work        []scratch   // for each worker goroutine: its temporary memory
	total       residuals   // residuals of the last iteration
}

// residuals contains the sums for the stopping test and for the objective. z₁ contains the proximal points and the
// projections of one iteration, z₂ the averages that replace them, and u the scaled duals.
type residuals struct {
	primal    float64 // ‖z₁−z₂‖²
	change    float64 // ‖z₂−z₂'‖², where z₂' is the z₂ of the previous iteration
	z1, z2    float64 // ‖z₁‖², ‖z₂‖²
	dual      float64 // ‖u‖²
	loss      float64 // Σ loss(y, ZW); only set by measure
	conjugate float64 // Σ loss*(y, g) for the subgradients g of the losses; only set by measure
}

// add adds the sums of addend to r.
func (r *residuals) add(addend residuals) {
	r.primal += addend.primal
	r.change += addend.change
	r.z1 += addend.z1
	r.z2 += addend.z2
	r.dual += addend.dual
	r.loss += addend.loss
	r.conjugate += addend.conjugate
}

// scratch is the temporary memory of one worker goroutine.
type scratch struct {
	out  [][]float64 // the C products of the blocks with a panel of rows, each t×rows
	sum  []float64   // sum of the vectors in out
	simd simd.Workspace
}

// vectors returns count zero vectors of the given size.
func vectors(count, size int) [][]float64 {
	v := make([][]float64, count)
	for i := range v {
		v[i] = make([]float64, size)
	}
	return v
}

// newIteration returns the initial state for ρ. All variables are zero.
func (a *admm) newIteration(rho float64) *iteration {
	nt, st := a.n*a.t, a.s*a.t
	v := vectors(6, st)
	s := &iteration{
		admm: a, rho: rho, y: make([]float64, nt), yd: make([]float64, nt), yj: vectors(a.Blocks, nt),
		x: v[0], xd: v[1], xj: v[2], xjd: v[3], g: v[4], c: v[5],
		partialSums: vectors(a.tasks, st), sums: make([]residuals, a.tasks), work: make([]scratch, accel.Threads()),
	}
	for i := range s.work {
		s.work[i].out, s.work[i].sum = vectors(a.Blocks, a.t*a.panel), make([]float64, a.t*a.panel)
	}
	return s
}

// blockVectors returns the part of a vector over the features that belongs to block j, as t rows.
func (a *admm) blockVectors(v []float64, j int) blas64.General {
	k := a.blockWidth(j)
	return blas64.General{Rows: a.t, Cols: k, Stride: k, Data: a.blockPart(v, j)}
}

// iterate makes one iteration: it computes the proximal points and projections, the averages, and the duals. It returns
// an error only if ctx ends; the state is then undefined.
func (s *iteration) iterate(ctx context.Context) (err error) {
	for k := range s.c {
		s.c[k] = s.x[k] - s.xjd[k] + s.g[k]
	}
	err = accel.ForEach(ctx, len(s.strips), func(_, task int) { // x_j = (I+Z_jᵀZ_j)⁻¹(x − x̃_j + Z_jᵀ(y_j+ỹ))
		j, r0 := s.strips[task].block, s.strips[task].firstRow
		k := s.blockWidth(j)
		rows, dst := min(inverseRows, k-r0), s.blockPart(s.xj, j)[r0:]
		for c := range s.t {
			clear(dst[c*k : c*k+rows])
		}
		simd.AddProduct(s.inverse[j][r0*k:], k, s.blockVectors(s.c, j),
			blas64.General{Rows: s.t, Cols: rows, Stride: k, Data: dst})
	})
	if err != nil {
		return err
	}
	// One pass over Z computes y_j = Z_jx_j, updates the outputs, and forms Z_jᵀ(y_j+ỹ) for the next iteration.
	if s.total, err = s.passOverZ(ctx, s.xj, s.g, s.updateOutputs); err == nil {
		s.updateWeights()
	}
	return err
}

// passOverZ processes Z in panels of rows. For each panel it sets the blocks of w.out to Z_jx_j (t×rows, from row r0
// on), calls body, which may change w.out and adds to sum, and adds Z_jᵀ times the new w.out to g_j. It returns the
// total of the sums. The results of parallel tasks are added in a fixed order.
func (s *iteration) passOverZ(ctx context.Context, x, g []float64,
	body func(w *scratch, r0, rows int, sum *residuals)) (total residuals, err error) {
	err = accel.ForEach(ctx, s.tasks, func(worker, task int) {
		w, partialSums := &s.work[worker], s.partialSums[task]
		clear(partialSums)
		s.sums[task] = residuals{}
		end := (task + 1) * s.n / s.tasks
		for r0 := task * s.n / s.tasks; r0 < end && ctx.Err() == nil; r0 += s.panel {
			rows := min(s.panel, end-r0)
			for j, out := range w.out {
				z := s.block(j, r0, r0+rows)
				clear(out)
				simd.AddProduct(z.Data, z.Stride, s.blockVectors(x, j),
					blas64.General{Rows: s.t, Cols: rows, Stride: rows, Data: out})
			}
			body(w, r0, rows, &s.sums[task])
			for j, out := range w.out {
				z := s.block(j, r0, r0+rows)
				simd.AddTransposeProduct(z.Data, z.Stride, s.blockVectors(partialSums, j),
					blas64.General{Rows: s.t, Cols: rows, Stride: rows, Data: out}, &w.simd)
			}
		}
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return total, err
	}
	clear(g)
	for task, partialSums := range s.partialSums {
		total.add(s.sums[task])
		floats.Add(g, partialSums)
	}
	return total, nil
}

// sumBlocks sets w.sum to the sum of the blocks of w.out.
func (w *scratch) sumBlocks() {
	copy(w.sum, w.out[0])
	for _, out := range w.out[1:] {
		floats.Add(w.sum, out)
	}
}

// updateOutputs updates y, y_j and ỹ in the rows r0 to r0+rows−1. On entry w.out contains the projections y_j, and on
// return y_j+ỹ. It adds the contribution of these rows to sum. The formulas are
//
//	y^½ = prox(y−ỹ),  δ = (y^½ − Σ_j y_j)/(C+1)
//	y ← y^½ − δ,  y_j ← y_j + δ,  ỹ ← ỹ + δ
func (s *iteration) updateOutputs(w *scratch, r0, rows int, sum *residuals) {
	w.sumBlocks()
	copies := float64(s.Blocks + 1)
	var local residuals
	for c := range s.t {
		offset, step := c*s.n+r0, w.sum[c*rows:(c+1)*rows] // Σ_j y_j, and then δ
		y, yd, target := s.y[offset:offset+rows], s.yd[offset:offset+rows], s.targets[offset:offset+rows]
		for i, blockSum := range step {
			previous := y[i]
			half := s.Loss.Prox(target[i], previous-yd[i], s.rho)
			delta := (half - blockSum) / copies
			mean := half - delta
			step[i], y[i] = delta, mean
			yd[i] += delta
			local.primal += copies * delta * delta
			local.dual += copies * yd[i] * yd[i]
			local.z1 += half * half
			local.z2 += mean * mean
			local.change += (mean - previous) * (mean - previous)
		}
		for j, blocks := range w.out {
			out, yj := blocks[c*rows:(c+1)*rows], s.yj[j][offset:offset+rows]
			for i, v := range out {
				previous, updated := yj[i], v+step[i]
				yj[i], out[i] = updated, updated+yd[i]
				local.z1 += v * v
				local.z2 += updated * updated
				local.change += (updated - previous) * (updated - previous)
			}
		}
	}
	sum.add(local)
}

// updateWeights updates the consensus weights x and the duals x̃ and x̃_j:
//
//	x^½ = ρ(x−x̃)/(λ+ρ)                  the proximal point of (λ/2)‖·‖²
//	x ← (x^½ + x_j)/2
//	x̃ ← x̃ + x^½ − x,  x̃_j ← x̃_j + x_j − x
func (s *iteration) updateWeights() {
	shrink := s.rho / (s.lambda + s.rho)
	sum := &s.total
	for k, previous := range s.x {
		half, projected := shrink*(previous-s.xd[k]), s.xj[k]
		mean := (half + projected) / 2
		s.xd[k] += half - mean
		s.xjd[k] += projected - mean
		sum.primal += (half-mean)*(half-mean) + (projected-mean)*(projected-mean)
		sum.z1 += half*half + projected*projected
		sum.dual += s.xd[k]*s.xd[k] + s.xjd[k]*s.xjd[k]
		sum.change += 2 * (mean - previous) * (mean - previous)
		sum.z2 += 2 * mean * mean
		s.x[k] = mean
	}
}

// measure sets the objective F(W) at the consensus weights, a lower bound on min F, and the relative gap between them.
// The dual function of the problem is
//
//	D(g) = −Σ loss*(y, g) − ‖Zᵀg‖_F²/(2λ),
//
// and weak duality states that D(g) ≤ min F for every g. measure takes multiples θg, 0 ≤ θ ≤ 1, of the subgradients
// g = ρ(v − prox(v)) of the losses at v = y−ỹ. The conjugate loss*(y, ·) is convex and 0 at 0, so that
// loss*(y, θg) ≤ θ·loss*(y, g), and therefore
//
//	D(θg) ≥ −θ·Σ loss*(y, g) − θ²‖Zᵀg‖_F²/(2λ).
//
// The lower bound is the maximum of the right side over θ. At the optimum it is attained at θ = 1. Far from the optimum
// D(g) may be negative, and the bound 0 at θ = 0 is better.
func (s *iteration) measure(ctx context.Context, res *Result) error {
	zg := make([]float64, len(s.x)) // Zᵀg
	sum, err := s.passOverZ(ctx, s.x, zg, func(w *scratch, r0, rows int, sum *residuals) {
		w.sumBlocks() // ZW
		for c := range s.t {
			for r := range rows {
				offset, position := c*s.n+r0+r, c*rows+r
				g := s.Loss.dualPoint(s.targets[offset], s.y[offset]-s.yd[offset], s.rho)
				sum.loss += s.Loss.Value(s.targets[offset], w.sum[position])
				sum.conjugate += s.Loss.Conjugate(s.targets[offset], g)
				w.sum[position] = g
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
	res.Dual = dualBound(sum.conjugate, floats.Dot(zg, zg)/s.lambda)
	if res.Gap = 0; !(res.Objective <= res.Dual) { // NaN if the objective or the bound is NaN
		res.Gap = (res.Objective - res.Dual) / res.Objective
	}
	return nil
}

// dualBound returns the maximum of −θc − θ²q/2 over 0 ≤ θ ≤ 1. q must not be negative.
func dualBound(c, q float64) float64 {
	theta := 1.0
	switch {
	case c >= 0: // also if q = 0
		theta = 0
	case -c < q:
		theta = -c / q
	}
	return -theta*c - theta*theta*q/2
}
