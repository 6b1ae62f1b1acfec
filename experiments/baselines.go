package experiments

import (
	"context"
	"fmt"
	"maps"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage"
)

// featureMap returns the random features of a competing method. They are those that the preconditioner krrlab.Features
// has for the same kernel, seed and S.
func (s *session) featureMap(c Case) (feature.Map, error) {
	k, err := kernel.FromSpec(c.Kernel)
	if err != nil {
		return nil, err
	}
	distribution, err := feature.For(k)
	if err != nil {
		return nil, err
	}
	return distribution.Sample(s.train.Dim(), c.S, rng.New(c.Seed).Sub("features", 0))
}

// finiteValues removes the values that JSON cannot represent (NaN and infinities) from the map, and returns the map.
func finiteValues(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(_ string, x float64) bool { return !krrlab.Number(x).Known() })
	return values
}

// rhoGrid contains the values of ρ that ADMM chooses from. On the first rows of MNIST, 0.03 to 0.1 is best for the
// hinge loss; on all rows a larger ρ is.
var rhoGrid = []float64{0.03, 0.1, 0.3, 1, 3}

// rhoTrialIterations is the number of iterations with each ρ in rhoGrid before the best one is chosen. Ten iterations
// are too few to find the best ρ on MNIST.
const rhoTrialIterations = 30

// baseline runs the competing method of a case, random features or ADMM, on the training points and tests it.
// Result.Values contains "objective"; for random features also "residual"; for ADMM also "gap", the chosen ρ as "rho",
// the objective "objective@ρ" for each ρ of the grid, and "tune_seconds", the time of choosing ρ, which is not part of
// any stage.
func (s *session) baseline(ctx context.Context, c Case) (*Result, error) {
	var coding datasets.Coding
	if s.train.Task == datasets.Classification {
		coding.Labels = s.train.Labels
	}
	y, err := coding.EncodeForFit(s.train)
	if err != nil {
		return nil, err
	}
	features, err := s.featureMap(c)
	if err != nil {
		return nil, err
	}
	memory := accel.Budget{Limit: s.opt.Memory, Used: points.MemoryBytes(s.train.X)}
	options := baseline.Options{Memory: memory, Progress: func(name string, completed, total int) {
		const unknown = -1 // the baselines do not predict their time
		s.monitor(krrlab.Event{Stage: stage.Name(name), Done: completed, Total: total, Remaining: unknown})
	}}
	var fit *baseline.Result
	values := map[string]float64{}
	if c.Method == RandomFeatures {
		if fit, err = baseline.RandomFeatures(ctx, features, s.train.X, c.Lambda, y, &options); err != nil {
			return nil, err
		}
		values["residual"] = fit.Residual
	} else {
		fit, err = baseline.ADMM(ctx, features, s.train.X, c.Lambda, y, &baseline.ADMMOptions{Options: options,
			Loss: c.Loss, RhoGrid: rhoGrid, TrialIterations: rhoTrialIterations, Tol: c.Tol, MaxIter: c.MaxIter})
		if err != nil {
			return nil, err
		}
		values["rho"], values["gap"], values["tune_seconds"] = fit.Rho, fit.Gap, fit.Seconds.Rho
		for i, rho := range rhoGrid {
			values[fmt.Sprintf("objective@%g", rho)] = fit.RhoObjectives[i]
		}
	}
	values["objective"] = fit.Objective
	r := s.newResult(c)
	r.Status, r.Converged, r.Iterations = Status(fit.Status.String()), fit.Status == pcg.Converged, fit.Iterations
	r.Seconds.Load, r.Seconds.Features = s.loadSeconds, fit.Seconds.Features
	r.Seconds.Factor, r.Seconds.Solve = fit.Seconds.Factor, fit.Seconds.Solve
	r.Values = finiteValues(values)
	return r, s.addScores(c, r, func(test *datasets.Dataset) (*model.Score, error) {
		outputs, err := fit.Predict(ctx, test.X)
		if err != nil {
			return nil, err
		}
		prediction := &model.Prediction{Labels: coding.Labels, Decision: outputs}
		if coding.Labels != nil {
			prediction.Class = coding.Decode(outputs)
		} else {
			prediction.Value = mat.Col(nil, 0, outputs)
		}
		return prediction.Score(test), nil
	})
}
