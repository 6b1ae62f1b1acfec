package krrlab

import (
	"math"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// Report returns what is known of the solution as numbers. What happens after the solve
// (the test, the load before it) is the caller's to add.
func (s *Solution) Report() *Report {
	if s.remote != nil {
		r := *s.remote
		return &r
	}
	l := s.lab
	n, d, t := l.Dims()
	c := l.cfg
	spec, err := kernel.ToSpec(c.Kernel)
	if err != nil { // a user-defined kernel
		spec = kernel.Spec{Name: c.Kernel.String()}
	}
	blas := accel.InUse()
	if blas.Path != "" { // a report is read elsewhere too: the file's folder says nothing there
		blas.Path = filepath.Base(blas.Path)
	}
	r := &Report{
		Dataset: l.train.Name, Source: l.train.Source, Task: l.train.Task.String(), N: n, D: d, T: t,
		Kernel: spec, Lambda: c.Lambda, Tol: c.Tol, MaxIter: c.MaxIter, Solver: c.Solver.String(), Repeat: c.Repeat,
		Storage: s.Storage, Choice: s.Choice, KBound: Number(s.KBound), KBytes: s.KBytes,
		BLAS: blas.String(), Threads: accel.Threads(), Seed: c.Seed,
		Iterations: s.Iterations, Status: s.Status, TrueResidual: Number(s.WorstResidual()), ResidualKind: s.ResidualKind,
		Residuals: finiteOnly(s.TrueResidual), Kappa: Number(s.Kappa), StatDim: Number(s.StatDim),
		PeakBytes: accel.PeakRSS(), Seconds: s.Seconds, History: s.History,
	}
	if s.Rounding != nil {
		r.Rounding = Number(worst(s.Rounding))
	}
	r.Ranks = s.Ranks
	if s.SampledResidual != nil {
		r.SampledResidual, r.StorageResidual, r.SampledRows = Number(worst(s.SampledResidual)), Number(worst(s.StorageResidual)), s.SampledRows
	}
	if c.Precond != NoPrecond {
		r.Precond, r.LambdaP, r.S, r.Form = c.Precond.String(), &c.LambdaP, &c.Features, s.Form
		r.KappaBound = Number(s.KappaBound)
	}
	switch c.Precond {
	case RandomFeatures:
		r.Features = c.Map.String()
	case Nystrom, RPCholesky:
		r.S = &s.Rank
	}
	return r
}

// finiteOnly returns v, or nil if a number in it is not finite, which JSON cannot carry.
func finiteOnly(v []float64) []float64 {
	for _, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return v
}

// worst returns the largest of v, NaN if there is one.
func worst(v []float64) float64 {
	var w float64
	for _, x := range v {
		w = math.Max(w, x)
	}
	return w
}

// PredictOptions are model options that report the prediction's progress to the
// configuration's Monitor, and ask for no more accuracy than the solve's tolerance gives.
func (s *Solution) PredictOptions() *model.Options {
	return &model.Options{Progress: s.lab.watch("predict"), Accuracy: model.AccuracyFor(s.lab.cfg.Tol), Comm: s.lab.comm}
}
