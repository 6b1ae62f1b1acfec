package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// Append returns a lab of the lab's rows followed by those of rows, which may be raw or scaled as the lab's rows
// (datasets.Dataset.Append). sol must be a solution of this lab. Solve of the result starts from the coefficients of
// sol, with zeros for the new rows, and gives the answer of a fit of all rows, to its tolerance and with the same
// certificate. Kernel, λ, σ and the method that gave sol are kept; the mean of centered targets is that of all rows.
//
// The result takes over the matrices of this lab: it forms entries of a stored K, rows of Z and of a sparse inverse for
// the new rows only. Parts that cannot be extended are made anew by the next stage, as everything is on ranks and with
// a direct solver; Solution.Appended says which, and why. The answers do not depend on the number of threads. Append
// frees the matrices of this lab (Free). Checkpoints are not configured for the result.
//
// It is an error if K is precomputed, there is a Backend, rows does not fit, or sol is not of this lab.
func (l *Lab) Append(ctx context.Context, sol *Solution, rows *datasets.Dataset) (*Lab, error) {
	switch {
	case l.cfg.Backend != nil:
		return nil, fmt.Errorf("krrlab: no rows are appended with a Backend: it forms its matrices elsewhere")
	case kernel.AsPrecomputed(l.cfg.Kernel) != nil:
		return nil, fmt.Errorf("krrlab: no rows are appended to a precomputed K: give the K of all rows")
	case sol == nil || sol.Model == nil || sol.System == nil || sol.System.Train != l.train:
		return nil, fmt.Errorf("krrlab: the solution to append rows to is not one of this lab")
	}
	end, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	method := l
	if sol.Plan != nil {
		if method, err = l.labForPlan(sol.Plan); err != nil {
			return nil, err
		}
	}
	data, err := l.data.Append(rows)
	if err != nil {
		return nil, err
	}
	cfg := method.cfg
	cfg.Stop, cfg.Checkpoint = l.requested.stop, nil
	if cfg.openTol {
		cfg.Tol, cfg.openTol = 0, false
	}
	if unpreconditioned(cfg.Solver) && cfg.Solver != CG {
		cfg.Solver, cfg.Precond = l.requested.solver, l.requested.precond
	}
	out, err := StartFrom(sol.Model.C, data, cfg)
	if err != nil {
		return nil, err
	}
	if out.policy = l.policy; l.sameFactors(out) { // otherwise the eigenvalues of the two systems do not interlace
		out.startTrace = sol.Noise.TraceAfterAppend(float64(l.data.Len()) / float64(data.Len()))
	}
	if out.appended.NewParts = nil; l.comm.Size() > 1 {
		out.appended.NewParts = []string{"K and preconditioner, as they are distributed over ranks"}
	} else if !out.Planning() {
		method.extendMatrices(ctx, out)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.Free()
	return out, nil
}

// StartFrom is New for a solve that starts from coefficients c of the first rows of train, such as those of the model
// of an earlier fit, and from zeros for the other rows. It returns an error if c has more rows than train, or another
// number of columns than its targets have.
func StartFrom(c *mat.Dense, train *datasets.Dataset, cfg Config) (*Lab, error) {
	l, err := New(train, cfg)
	if err != nil {
		return nil, err
	}
	n, _, t := l.Dims()
	rows, columns := cmp.Or(c, &mat.Dense{}).Dims()
	if rows > n || columns != t {
		return nil, fmt.Errorf("krrlab: coefficients %d×%d to start from, for %d rows and %d columns", rows, columns, n,
			t)
	}
	l.start, l.appended = mat.NewDense(n, t, nil), &solve.Appended{Rows: n - rows,
		KeptParts: []string{startPart}, NewParts: []string{"K and preconditioner, as they are not stored"}}
	l.start.Slice(0, rows, 0, t).(*mat.Dense).Copy(c)
	if _, factors := points.SplitFactors(l.train.X); factors != nil { // from c = W^½ĉ to ĉ
		for i, f := range factors {
			floats.Scale(1/f, l.start.RawRowView(i))
		}
	}
	return l, nil
}

// sharedMatrices are the K, Z and M that a problem had at one time.
type sharedMatrices struct {
	k cached[*gram.Matrix]
	z cached[*stage.FeatureMatrix]
	m cached[pcg.Preconditioner]
}

// matricesForMethod returns the K, Z and M that are kept for the problem, but Z and M only if they belong to the method
// of this lab. All labs of a problem share them (With), so that they may belong to the method of another lab.
func (l *Lab) matricesForMethod() (s sharedMatrices) {
	l.mu.Lock()
	s = sharedMatrices{k: l.k.cached, z: l.z, m: l.m}
	l.mu.Unlock()
	var mKey, zSource any = l.cfg.Precond, nil
	if approx := l.approximation(); approx != nil {
		mKey, zSource = *approx, zKey(approx)
	} else if p, ok := l.cfg.Precond.(stage.FactorPreconditioner); ok && p.Factor() != nil {
		zSource = zKey(p.Factor())
	}
	if zSource == nil || !reflect.DeepEqual(s.z.key, []any{zSource, l.cfg.Seed}) {
		s.z.free()
	}
	if !reflect.DeepEqual(s.m.key, []any{mKey, l.cfg.Seed}) {
		s.m.free()
	}
	return s
}

// sameFactors reports whether the factors √w_i of weighted rows (points.SplitFactors) are the same for the rows of the
// lab and for the first rows of out. They are the same if neither has weights.
func (l *Lab) sameFactors(out *Lab) bool {
	_, old := points.SplitFactors(l.train.X)
	_, factors := points.SplitFactors(out.train.X)
	if old == nil || factors == nil {
		return old == nil && factors == nil
	}
	return slices.Equal(old, factors[:len(old)])
}

// extendMatrices extends K, Z and M of the lab for the rows of out, which has more, and adds the parts to
// out.appended. A part that cannot be extended is left to the stages of out.
func (l *Lab) extendMatrices(ctx context.Context, out *Lab) {
	report := func(name string, err error) {
		if err == nil {
			out.appended.KeptParts = append(out.appended.KeptParts, name)
		} else {
			out.appended.NewParts = append(out.appended.NewParts, fmt.Sprintf("%s: %v", name, err))
		}
	}
	var err error
	old := l.matricesForMethod()
	if old.k.key != nil {
		report("kernel matrix", extend(&out.k.cached, &old.k, func() (*gram.Matrix, error) {
			return l.extendK(ctx, out, old.k.value)
		}))
	}
	b := &bench{Lab: out}
	if !l.sameFactors(out) {
		if old.m.key != nil {
			report("preconditioner", fmt.Errorf("the weights of the earlier rows change"))
		}
		return
	}
	if old.z.key != nil {
		source, _ := old.z.key[0].(stage.Approximation).FeatureSource.(stage.ExtensibleSource)
		err = extend(&out.z, &old.z, func() (*stage.FeatureMatrix, error) {
			z := old.z.value.Z
			need := 4 * int64(z.D) * int64(out.data.Len()+z.N)
			if err := out.memory().Check(need, "Z with its old and new rows", ""); err != nil {
				return nil, err
			}
			if source == nil {
				return nil, fmt.Errorf("it is of a user-defined kind")
			}
			drawn, err := source.Extend(ctx, b, old.z.value)
			if err == nil {
				drawn.Text = old.z.value.Text
			}
			return drawn, err
		})
		report("rows of Z", err)
	}
	if old.m.key == nil || err != nil {
		return
	}
	report("preconditioner", extend(&out.m, &old.m, func() (pcg.Preconditioner, error) {
		if w, ok := old.m.value.(*precond.Woodbury); ok && out.z.key != nil {
			return w.Extend(ctx, out.z.value.Z)
		}
		if p, ok := l.cfg.Precond.(stage.ExtensiblePreconditioner); ok {
			return p.Extend(ctx, b, old.m.value)
		}
		return nil, fmt.Errorf("%s has no rule for more points", stage.NameOf(l.cfg.Precond))
	}))
}

// extend sets dst to the matrix that form computes, with the key of src, unless form returns an error.
func extend[T any](dst, src *cached[T], form func() (T, error)) error {
	start := time.Now()
	value, err := form()
	if err == nil {
		*dst = cached[T]{value: value, key: src.key, seconds: time.Since(start).Seconds(), dependsOnK: src.dependsOnK}
	}
	return err
}

// maxErrorGrowth is the largest storage error of an extended K in a storage that auto chose, in units of the error that
// a K formed anew would have. A larger value costs restarts of the iteration; a smaller one forms K anew more often.
const maxErrorGrowth = 2

// extendK returns old, the K of the lab, extended to the rows of out. It returns an error if the error of a storage
// that auto chose is larger than maxErrorGrowth allows.
func (l *Lab) extendK(ctx context.Context, out *Lab, old *gram.Matrix) (*gram.Matrix, error) {
	system, request := out.system(), kernelRequest{refined: out.cfg.Exact == AutoResidual}
	if p, ok := out.cfg.Precond.(stage.KernelPreconditioner); ok {
		request.extraBytes += p.MaxBytes(out.data.Len())
	}
	k, err := old.Extend(ctx, out.train.X, out.storageOptions(ctx, system, request))
	if err != nil {
		return nil, err
	}
	out.k.accuracy = system.StorageErrorBound()
	if e, limit := k.Choice().Error, maxErrorGrowth*out.k.accuracy; out.cfg.Storage == gram.Auto && !(e <= limit) {
		return nil, fmt.Errorf("‖E‖₂ ≲ %.2g is above %.2g", e, limit)
	}
	return k, nil
}
