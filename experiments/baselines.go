package experiments

import (
	"context"
	"fmt"
	"maps"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// features returns the features of a case, the same as those of the preconditioner of that seed.
func (s *session) features(c Case) (feature.Map, error) {
	k, err := kernel.FromSpec(c.Kernel)
	if err != nil {
		return nil, err
	}
	dist, err := feature.For(k)
	if err != nil {
		return nil, err
	}
	return dist.Sample(s.train.Dim(), c.S, rng.New(c.Seed).Sub("features", 0))
}

// room returns the memory that a baseline may take beside the points.
func (s *session) room() int64 {
	if s.opt.Memory <= 0 {
		return 0
	}
	n, d := s.train.X.Dims()
	return max(1, s.opt.Memory-8*int64(n)*int64(d))
}

// finite returns the values that JSON can carry.
func finite(v map[string]float64) map[string]float64 {
	maps.DeleteFunc(v, func(_ string, x float64) bool { return !krrlab.Number(x).Known() })
	return v
}

// rhoGrid is the grid that ADMM's ρ is chosen from, and rhoTrial the iterations
// each is given. On MNIST's first rows 0.03 to 0.1 is best for the hinge loss, on all of them more; ten iterations
// are too few to see it.
var rhoGrid = []float64{0.03, 0.1, 0.3, 1, 3}

const rhoTrial = 30

// baseline runs the random features method or ADMM. Values: "objective", and "residual" of the former; of ADMM "gap",
// "rho", the ρ chosen, "objective@ρ" for each of the grid, and "tune_seconds" of choosing it, which are in no stage.
func (s *session) baseline(ctx context.Context, c Case) (*Result, error) {
	var coding datasets.Coding
	if s.train.Task == datasets.Classification {
		coding.Labels = s.train.Labels
	}
	y, err := coding.Encode(s.train)
	if err != nil {
		return nil, err
	}
	m, err := s.features(c)
	if err != nil {
		return nil, err
	}
	o := baseline.Options{Memory: s.room(), Progress: func(name string, done, total int) {
		s.monitor(krrlab.Event{Stage: stage.Name(name), Done: done, Total: total, Remaining: -1})
	}}
	var fit *baseline.Result
	values := map[string]float64{}
	if c.Method == RandomFeatures {
		if fit, err = baseline.RandomFeatures(ctx, m, s.train.X, c.Lambda, y, &o); err != nil {
			return nil, err
		}
		values["residual"] = fit.Residual
	} else {
		if fit, err = baseline.ADMM(ctx, m, s.train.X, c.Lambda, y, &baseline.ADMMOptions{Options: o, Loss: c.Loss,
			Rho: rhoGrid, Trial: rhoTrial, Tol: c.Tol, MaxIter: c.MaxIter}); err != nil {
			return nil, err
		}
		values["rho"], values["gap"], values["tune_seconds"] = fit.Rho, fit.Gap, fit.Seconds.Rho
		for i, rho := range rhoGrid {
			values[fmt.Sprintf("objective@%g", rho)] = fit.Tried[i]
		}
	}
	values["objective"] = fit.Objective
	r := s.begin(c)
	r.Status, r.Converged, r.Iterations = Status(fit.Status.String()), fit.Status == pcg.Converged, fit.Iterations
	r.Seconds.Load, r.Seconds.Features, r.Seconds.Factor, r.Seconds.Solve = s.load, fit.Seconds.Features,
		fit.Seconds.Factor, fit.Seconds.Solve
	r.Values = finite(values)
	return r, s.judge(c, r, func(test *datasets.Dataset) (*model.Score, error) {
		f, err := fit.Predict(ctx, test.X)
		if err != nil {
			return nil, err
		}
		p := &model.Prediction{Labels: coding.Labels, Decision: f}
		if coding.Labels != nil {
			p.Class = coding.Decode(f)
		} else {
			p.Value = mat.Col(nil, 0, f)
		}
		return p.Score(test), nil
	})
}
