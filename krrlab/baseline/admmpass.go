package baseline

import (
	"context"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// panelFunc does its part of a pass with rows r0, …, r1-1 of a task; sum and part belong to it.
type panelFunc func(w *passScratch, task int, r0, r1 int, sum *residuals)

// pass calls body for all rows of Z, a panel at a time, and adds what the tasks have summed in
// their order: g[i] is the sum of the parts of row block i, unless g is nil, and the residuals
// that of all.
func (s *admmState) pass(ctx context.Context, g [][]float64, body panelFunc) (total residuals, err error) {
	a := s.a
	err = accel.ForEach(ctx, len(a.tasks), func(worker, q int) {
		k := a.tasks[q]
		clear(s.part[q])
		s.sums[q] = residuals{}
		for r0 := k.r0; r0 < k.r1 && ctx.Err() == nil; r0 += a.panel {
			body(&s.work[worker], q, r0, min(r0+a.panel, k.r1), &s.sums[q])
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return total, err
	}
	for i := range g {
		clear(g[i])
	}
	for q, k := range a.tasks {
		total.add(s.sums[q])
		if g == nil {
			continue
		}
		for e, v := range s.part[q] {
			g[k.i][e] += v
		}
	}
	return total, nil
}

// out returns the block j of the scratch, t×rows.
func (s *admmState) out(w *passScratch, j, rows int) []float64 {
	size := s.a.t * s.a.panel
	return w.out[j*size : j*size+s.a.t*rows]
}

// multiply sets block j of the scratch to Z_ij·x for rows r0, …, r1-1, x being a vector over the
// features.
func (s *admmState) multiply(w *passScratch, x []float64, j, r0, r1 int) []float64 {
	z, out := s.a.block(j, r0, r1), s.out(w, j, r1-r0)
	clear(out)
	simd.Forward(z.N, z.D, z.Data, z.Stride, s.a.colsOf(x, j), z.D, out, z.N, s.a.t)
	return out
}

// scatter adds Z_ijᵀ·v of rows r0, …, r1-1 to the part of a task, v being t×rows with stride ld.
func (s *admmState) scatter(w *passScratch, task, j, r0, r1 int, v []float64, ld int) {
	z := s.a.block(j, r0, r1)
	simd.Backward(z.N, z.D, z.Data, z.Stride, s.a.colsOf(s.part[task], j), z.D, v, ld, s.a.t, &w.simd)
}

// primalPanel sets y_ij = Z_ijx_ij, does the y-part, and adds Z_ijᵀ(y_ij+ỹ_i) to g_ij.
func (s *admmState) primalPanel(w *passScratch, task int, r0, r1 int, sum *residuals) {
	a := s.a
	i := a.tasks[task].i
	for j := range a.colBlocks() {
		s.multiply(w, s.xij[i], j, r0, r1)
	}
	s.exchange(w, i, r0, r1, sum)
	for j := range a.colBlocks() {
		s.scatter(w, task, j, r0, r1, s.out(w, j, r1-r0), r1-r0)
	}
}

// rightPanel sets w_ij = Z_ijc_ij − d, d = y_ij + ỹ_i.
func (s *admmState) rightPanel(w *passScratch, task int, r0, r1 int, _ *residuals) {
	a := s.a
	i := a.tasks[task].i
	for j := range a.colBlocks() {
		out := s.multiply(w, s.c[i], j, r0, r1)
		for c := range a.t {
			at := a.rowIndex(i, c, r0)
			for r := range r1 - r0 {
				s.w[j][at+r] = out[c*(r1-r0)+r] - s.yij[j][at+r] - s.yd[at+r]
			}
		}
	}
}

// dualPanel sets y_ij = w_ij + d, does the y-part, and adds Z_ijᵀw_ij to g_ij.
func (s *admmState) dualPanel(w *passScratch, task int, r0, r1 int, sum *residuals) {
	a := s.a
	i := a.tasks[task].i
	ni := a.rowAt[i+1] - a.rowAt[i]
	for j := range a.colBlocks() {
		out := s.out(w, j, r1-r0)
		for c := range a.t {
			at := a.rowIndex(i, c, r0)
			for r := range r1 - r0 {
				out[c*(r1-r0)+r] = s.w[j][at+r] + s.yij[j][at+r] + s.yd[at+r]
			}
		}
	}
	s.exchange(w, i, r0, r1, sum)
	for j := range a.colBlocks() {
		s.scatter(w, task, j, r0, r1, s.w[j][a.rowIndex(i, 0, r0):], ni)
	}
}

// exchange is the y-part of an iteration for rows r0, …, r1-1 of row block i, with y_ij of the
// projection in the scratch, where y_ij+ỹ_i is left:
//
//	y_i^½ = prox(y_i−ỹ_i),  δ = (y_i^½ − Σ_j y_ij)/(C+1)
//	y_i ← y_i^½ − δ,  y_ij ← y_ij + δ,  ỹ_i ← ỹ_i + δ
func (s *admmState) exchange(w *passScratch, i, r0, r1 int, sum *residuals) {
	a := s.a
	rows, blocks := r1-r0, a.colBlocks()
	copies := float64(blocks + 1)
	step := w.step[:rows] // Σ_j y_ij, and then δ
	var primal, dual, z1, z2, change float64
	for c := range a.t {
		at := a.rowIndex(i, c, r0)
		y, yd, target := s.y[at:at+rows], s.yd[at:at+rows], a.targets[at:at+rows]
		copy(step, s.out(w, 0, r1-r0)[c*rows:])
		for j := 1; j < blocks; j++ {
			for r, v := range s.out(w, j, rows)[c*rows : (c+1)*rows] {
				step[r] += v
			}
		}
		for r, fit := range step {
			old := y[r]
			half := a.loss.proxFrom(target[r], old-yd[r], s.rho, old)
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
			out, yij := s.out(w, j, rows)[c*rows:(c+1)*rows], s.yij[j][at:at+rows]
			for r, v := range out {
				old, next := yij[r], v+step[r]
				yij[r], out[r] = next, next+yd[r]
				z1 += v * v
				z2 += next * next
				change += (next - old) * (next - old)
			}
		}
	}
	sum.add(residuals{primal: primal, dual: dual, z1: z1, z2: z2, change: change})
}

// measurePanel adds the loss of ZW, W being the consensus x, and the conjugate at the
// subgradients u = ρ(v − prox(v)), v = y_i−ỹ_i; and Z_ijᵀu to the part of the task.
func (s *admmState) measurePanel(w *passScratch, task int, r0, r1 int, sum *residuals) {
	a := s.a
	i := a.tasks[task].i
	rows := r1 - r0
	first := s.multiply(w, s.x, 0, r0, r1)
	for j := 1; j < a.colBlocks(); j++ {
		for p, v := range s.multiply(w, s.x, j, r0, r1) {
			first[p] += v
		}
	}
	var loss, conj float64
	for c := range a.t {
		at := a.rowIndex(i, c, r0)
		for r := range rows {
			k, p := at+r, c*rows+r
			target, v := a.targets[k], s.y[at+r]-s.yd[at+r]
			loss += a.loss.Value(target, first[p])
			u := a.loss.dualPoint(target, v, a.loss.proxFrom(target, v, s.rho, s.y[k]), s.rho)
			conj += a.loss.Conjugate(target, u)
			first[p] = u
		}
	}
	sum.add(residuals{loss: loss, conj: conj})
	for j := range a.colBlocks() {
		s.scatter(w, task, j, r0, r1, first, rows)
	}
}
