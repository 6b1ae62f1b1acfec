package krrlab

import (
	"fmt"
	"reflect"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// Lab is a problem and a method, and their stages. It holds the training data, the configuration and
// the matrices that stages have formed, and is safe for concurrent use: stages of one problem wait for
// each other.
type Lab struct {
	*problem
	cfg Config // with defaults in place
	// n²d up to which AutoResidual recomputes K in any case, and where it must.
	cheap, dear float64
}

// New checks the data and the configuration and codes the targets: ±1 in one column
// for two classes, one column per class for more, the values themselves for
// regression. The points are taken as they are; scale them before (package
// datasets).
func New(train *datasets.Dataset, cfg Config) (*Lab, error) {
	if train == nil || train.X == nil {
		return nil, fmt.Errorf("krrlab: no training points: the data set is nil; check the error of what loaded it")
	}
	n := train.Len()
	if n < 2 {
		return nil, fmt.Errorf("krrlab: %d training point: want at least 2", n)
	}
	if train.Dim() < 1 {
		return nil, fmt.Errorf("krrlab: the training points have dimension 0: want at least 1 feature")
	}
	p := &problem{train: train, comm: comm.OrAlone(cfg.Comm), busy: make(chan struct{}, 1)}
	if train.Task == datasets.Classification {
		p.coding.Labels = train.Labels
	}
	var err error
	if p.y, err = p.coding.Encode(train); err != nil {
		return nil, err
	}
	return p.lab(cfg)
}

// With returns a lab of the same problem (data, kernel, λ and ranks) with another method: change is
// given the configuration with its defaults in place. The labs share K, and Z and M where they are the
// same.
func (l *Lab) With(change func(*Config)) (*Lab, error) {
	cfg := l.cfg
	change(&cfg)
	if cfg.Lambda != l.cfg.Lambda || !reflect.DeepEqual(cfg.Kernel, l.cfg.Kernel) || cfg.Comm != l.cfg.Comm {
		return nil, fmt.Errorf("krrlab: another kernel, λ or ranks is another problem: make a Lab of it by New")
	}
	return l.problem.lab(cfg)
}

// lab returns a lab of the problem.
func (p *problem) lab(cfg Config) (*Lab, error) {
	l := &Lab{problem: p, cheap: exactWork, dear: refineWork}
	n, _, t := l.Dims()
	if cfg.Backend != nil && cfg.Kernel != nil { // before what a user-defined kernel has no default of
		if err := cfg.Backend.Check(&cfg); err != nil {
			return nil, err
		}
	}
	var err error
	if l.cfg, err = cfg.withDefaults(n, t); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.labs++
	return l, nil
}

// Config returns the configuration with its defaults in place.
func (l *Lab) Config() Config { return l.cfg }

// Dims returns the number n of training points, their dimension d and the number t
// of right-hand sides.
func (l *Lab) Dims() (n, d, t int) {
	_, t = l.y.Dims()
	return l.train.Len(), l.train.Dim(), t
}

// Train returns the training data. They must not be changed.
func (l *Lab) Train() *datasets.Dataset { return l.train }

// Targets returns the coded targets Y, n×t. It must not be changed.
func (l *Lab) Targets() *mat.Dense { return l.y }

// featureRows returns the rows of Z that are this rank's; all without ranks.
func (l *Lab) featureRows() (lo, hi int) {
	return comm.Rows(l.train.Len(), precond.RankRows, l.comm.Rank(), l.comm.Size())
}

// watch returns a progress function that reports a stage's share and the time left.
func (l *Lab) watch(stage string) func(done, total int) {
	start := time.Now()
	return func(done, total int) {
		e := Event{Stage: stage, Done: done, Total: total, Remaining: -1}
		if done > 0 {
			e.Remaining = time.Duration(float64(time.Since(start)) * float64(total-done) / float64(done))
		}
		l.cfg.Monitor(e)
	}
}

// pointBytes returns the memory that points take.
func pointBytes(x points.Points) int64 {
	n, d := x.Dims()
	switch x := x.(type) {
	case *points.CSR:
		return 12*int64(x.NNZ()) + 8*int64(n)
	case *points.Dense32:
		return 4 * int64(n) * int64(d)
	}
	return 8 * int64(n) * int64(d)
}
