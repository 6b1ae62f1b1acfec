package krrlab

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
)

// solve solves by the method that the configuration names.
func (l *Lab) solve(ctx context.Context) (*Solution, error) {
	start := time.Now()
	if l.cfg.Solver != Direct {
		if err := l.checkMemory(ctx); err != nil {
			return nil, err
		}
	}
	sol := l.newSolution()
	system := l.system()
	system.Owner = l.owner
	c, err := solve.Run(ctx, system, l.matrices, sol)
	if err == solve.ErrLate {
		return sol, err
	}
	if c == nil {
		return nil, err
	}
	sol.Model = l.model(c, sol, start)
	sol.SetTraining(l.given)
	sol.Seconds.Total = time.Since(start).Seconds()
	if r := sol.Ranks; r != nil { // what they have sent in all
		t := l.comm.Traffic()
		r.Bytes, r.Seconds = t.Bytes, t.Seconds
	}
	return sol, err
}

// adopt completes a solution that the Backend of a lab returned.
func (l *Lab) adopt(ctx context.Context, s *Solution) error {
	n, _, t := l.Dims()
	if rows, columns := s.Model.C.Dims(); rows != n || columns != t {
		return fmt.Errorf("krrlab: the backend returned coefficients %d×%d, want %d×%d", rows, columns, n, t)
	}
	if s.Status == pcg.Canceled && stage.Stopped(ctx) {
		s.Status = pcg.Stopped
	}
	s.System, s.Model = l.system(), l.model(s.Model.C, s, time.Now())
	s.SetTraining(l.given)
	return nil
}

// model returns the model with the coefficients C that were begun at a time.
func (l *Lab) model(c *mat.Dense, sol *Solution, begun time.Time) *model.Model {
	if l.weighted() {
		c = mat.DenseCopyOf(c)
		l.scaleRows(c)
	}
	d := l.given.Decided()
	return &model.Model{
		Kernel: l.cfg.Kernel, Lambda: l.cfg.Lambda, X: l.given.X, C: c, Weighted: l.weighted(), Labels: l.coding.Labels,
		Targets: l.given.Targets, Mean: l.coding.Mean, Scaling: l.given.Scaling, Columns: l.given.Columns,
		Error: sol.Error.Model(), Groups: d.Groups, Repeats: d.Repeats,
		Origin: model.Origin{
			Dataset: l.given.Name, Solver: l.cfg.Solver.String(), Method: sol.Method(), Status: sol.Status.String(),
			Tol:          l.cfg.Tol,
			TrueResidual: new(float64(sol.TrueResidual)), Seed: l.cfg.Seed, Created: begun.UTC().Format(time.RFC3339),
		},
	}
}

// newSolution returns a solution that says what is asked, and nothing of the answer.
func (l *Lab) newSolution() *Solution {
	c := l.cfg
	s := solve.NewSolution(l.header())
	s.Stop, s.MaxIter, s.Solver = c.Stop, c.MaxIter, c.Solver
	if !l.plain() {
		s.Precond = l.precondName()
	}
	if p := l.approximation(); p != nil {
		if s.LambdaP, s.S = Number(p.LambdaP), p.S; p.Features != nil {
			s.Features = p.String()
		} else if noFeatures(c.Kernel) {
			s.Reason = "the kernel has no random features"
		}
	}
	if c.Comm != nil {
		s.Ranks = &Ranks{Count: l.comm.Size()}
	}
	return s
}

var _ Stage = (*Solution)(nil)

// owner is the fingerprint of the data and of what in the configuration the answer
// depends on.
func (l *Lab) owner() (sum [sha256.Size]byte, err error) {
	c := l.cfg
	spec, err := kernel.ToSpec(l.cfg.Kernel)
	if err != nil { // two of them cannot be told apart
		return sum, fmt.Errorf("%w; or take no checkpoint", err)
	}
	if _, err := SpecOf(c.Precond, c.Kernel); err != nil {
		return sum, fmt.Errorf("the preconditioner %v is user-defined, and two of them cannot be told apart: take a "+
			"built-in one, or no checkpoint", c.Precond)
	}
	data := l.train.Fingerprint()
	text := fmt.Sprintf("%x %v λ=%x %v %v 1 τ=%x %v %d %v", data, c.Kernel, c.Lambda, c.Solver, c.Precond, c.Tol,
		c.Storage, c.Seed, c.Exact)
	if spec.Params != "" { // String need not have them
		text += fmt.Sprintf(" %s%s", spec.Name, spec.Params)
	}
	if r := l.approximation(); r != nil {
		text += fmt.Sprintf(" %s %d λp=%x %v", r.Method, r.S, r.LambdaP, r.Form)
		if r.Landmarks != nil {
			text += fmt.Sprint(" ", r.Landmarks)
		}
	}
	if c.Stop.Rule != bound.Residual {
		text += fmt.Sprintf(" stop %v", c.Stop)
	}
	return sha256.Sum256([]byte(text)), nil
}
