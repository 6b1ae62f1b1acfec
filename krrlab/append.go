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
// The result takes over the matrices of this lab. For a stored K, Z and a sparse inverse, only the entries and rows of
// the new points are computed. The next stage computes the parts that cannot be extended, which are all parts on ranks
// and with a direct solver. Solution.Appended lists these parts with the reasons. The answers do not depend on the
// number of threads. Append frees the matrices of this lab (Free). Checkpoints are not configured for the result.
//
// Append returns an error if K is precomputed, there is a Backend, the columns or labels of rows do not match those of
// the lab, or sol is not a solution of this lab.
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
	extended, err := StartFrom(sol.Model.C, data, cfg)
	if err != nil {
		return nil, err
	}
	// Otherwise the eigenvalues of the two systems do not interlace.
	if extended.policy = l.policy; l.sameFactors(extended) {
		extended.startTrace = sol.Noise.TraceAfterAppend(float64(l.data.Len()) / float64(data.Len()))
	}
	if extended.appended.NewParts = nil; l.comm.Size() > 1 {
		extended.appended.NewParts = []string{"K and preconditioner, as they are distributed over ranks"}
	} else if !extended.Planning() {
		method.extendMatrices(ctx, extended)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.Free()
	return extended, nil
}

// StartFrom does the same as New, for a solve that starts from given coefficients c of the first rows of train, such as
// those of the model of an earlier fit, and from zeros for the other rows. It returns an error if c has more rows than
// train, or another number of columns than its targets have.
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
	if _, factors := points.SplitFactors(l.train.X); factors != nil { // converts c = W^½ĉ to ĉ
		for i, factor := range factors {
			floats.Scale(1/factor, l.start.RawRowView(i))
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

// matricesForMethod returns the K, Z and M that are kept for the problem. All labs of a problem share them (With), so Z
// and M may belong to the method of another lab; the result then does not contain them.
func (l *Lab) matricesForMethod() (shared sharedMatrices) {
	l.mu.Lock()
	shared = sharedMatrices{k: l.k.cached, z: l.z, m: l.m}
	l.mu.Unlock()
	var mKey, zSource any = l.cfg.Precond, nil
	if approx := l.approximation(); approx != nil {
		mKey, zSource = *approx, zKey(approx)
	} else if factored, ok := l.cfg.Precond.(stage.FactorPreconditioner); ok && factored.Factor() != nil {
		zSource = zKey(factored.Factor())
	}
	if zSource == nil || !reflect.DeepEqual(shared.z.key, []any{zSource, l.cfg.Seed}) {
		shared.z.free()
	}
	if !reflect.DeepEqual(shared.m.key, []any{mKey, l.cfg.Seed}) {
		shared.m.free()
	}
	return shared
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

// extendMatrices extends K, Z and M of the lab for out, which has additional rows, and lists the parts in out.appended.
// The stages of out compute the parts that cannot be extended.
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
	newBench := &bench{Lab: out}
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
			bytesNeeded := 4 * int64(z.D) * int64(out.data.Len()+z.N)
			if err := out.memory().Check(bytesNeeded, "Z with its old and new rows", ""); err != nil {
				return nil, err
			}
			if source == nil {
				return nil, fmt.Errorf("it is of a user-defined kind")
			}
			drawn, err := source.Extend(ctx, newBench, old.z.value)
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
		if woodbury, ok := old.m.value.(*precond.Woodbury); ok && out.z.key != nil {
			return woodbury.Extend(ctx, out.z.value.Z)
		}
		if extensible, ok := l.cfg.Precond.(stage.ExtensiblePreconditioner); ok {
			return extensible.Extend(ctx, newBench, old.m.value)
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
// a K formed anew would have. With a larger value, the iteration restarts more often; with a smaller one, K is formed
// anew more often.
const maxErrorGrowth = 2

// extendK returns old, the K of the lab, extended to the rows of out. It returns an error if the error of a storage
// that auto chose is larger than maxErrorGrowth allows.
func (l *Lab) extendK(ctx context.Context, out *Lab, old *gram.Matrix) (*gram.Matrix, error) {
	system, request := out.system(), kernelRequest{refined: out.cfg.Exact == AutoResidual}
	if fromKernel, ok := out.cfg.Precond.(stage.KernelPreconditioner); ok {
		request.extraBytes += fromKernel.MaxBytes(out.data.Len())
	}
	k, err := old.Extend(ctx, out.train.X, out.storageOptions(ctx, system, request))
	if err != nil {
		return nil, err
	}
	out.k.accuracy = system.StorageErrorBound()
	if storageError, limit := k.Choice().Error, maxErrorGrowth*out.k.accuracy; out.cfg.Storage == gram.Auto &&
		!(storageError <= limit) {
		return nil, fmt.Errorf("‖E‖₂ ≲ %.2g is above %.2g", storageError, limit)
	}
	return k, nil
}
