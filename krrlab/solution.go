package krrlab

import (
	"context"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/results"
	"github.com/krrlab/lab/krrlab/stage"
)

// Solution is the answer C of (K+λI)C = Y with all that is known of it (results.Solution): its fields and pictures, and
// what takes the lab it came of.
type Solution struct {
	results.Solution

	lab   *Lab
	store *checkpoint.Store // of checkpoints, at the first rank; nil if there are none
}

var _ Stage = (*Solution)(nil)

// newSolution returns a solution that says what is asked, and nothing of the answer.
func (l *Lab) newSolution() *Solution {
	c := l.cfg
	s := &Solution{Solution: results.NewSolution(l.header()), lab: l}
	s.Stop, s.MaxIter, s.Solver, s.Repeat = c.Stop, c.MaxIter, c.Solver, c.Repeat
	if !l.plain() {
		s.Precond = l.precondName()
	}
	if p := l.approximation(); p != nil {
		s.LambdaP, s.S = Number(p.lambdaP), p.s
	}
	switch p := c.Precond.(type) {
	case Features:
		s.Features = p.String()
	case Nystrom, RPCholesky:
		if noFeatures(c.Kernel) {
			s.Reason = "the kernel has no random features"
		}
	}
	return s
}

// finish fills in what is known at the end of the solve.
func (s *Solution) finish() {
	blas := accel.InUse()
	if blas.Path != "" { // a report is read elsewhere too: the file's folder says nothing there
		blas.Path = filepath.Base(blas.Path)
	}
	s.BLAS, s.Threads, s.PeakBytes = blas.String(), accel.Threads(), accel.PeakRSS()
	s.Settle()
}

// PredictOptions are model options that report the prediction's progress to the
// configuration's Monitor, and ask for no more accuracy than the solve's tolerance gives, or than labels that are to be
// settled need.
func (s *Solution) PredictOptions() *model.Options {
	o := s.lab.predictOptions()
	o.Progress, o.Comm = s.lab.watch(context.Background(), stage.Predict), s.lab.comm
	return o
}

// predictOptions are those of PredictOptions that say how accurate predictions are to be.
func (l *Lab) predictOptions() *model.Options {
	return &model.Options{Accuracy: model.AccuracyFor(l.cfg.Tol), Float64: l.cfg.Stop.Rule == bound.Labels}
}
