package krrlab

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// Shared keeps what the solves of one problem have in common, for labs that differ in
// tolerance, λ_p, features, seed or solver: K+λI, the features Z last drawn, their ZᵀZ, and
// the preconditioner last made of them. Each is formed by the first solve that needs it and
// reused by later solves with the same parameters; the answers have the bits that they
// have without it, unless an earlier solve asked for a more exact K. Seconds of a stage that
// was shared are those that it took when it was formed, so that a solve's seconds are what it takes alone, and Solution.Shared names it.
//
// The zero value is ready to use. A Shared belongs to the training data, kernel and λ of the first
// lab that uses it. Solves that share wait for each other; the direct solver, and solves on
// ranks, share nothing.
type Shared struct {
	mu     sync.Mutex
	solve  chan struct{} // full during a solve
	train  *datasets.Dataset
	kernel kernel.Kernel
	lambda float64

	k         *gram.Matrix
	kStorage  gram.Storage // asked for
	kAccuracy float64      // asked of ‖E‖₂
	kSeconds  float64

	z        *points.Dense32
	zKey     mapKey
	zSeconds float64

	g        *precond.Gram // of z
	gSeconds float64

	m        *precond.Woodbury // of z
	mForm    precond.Form      // asked for
	mSeconds float64
}

// mapKey says which features were drawn.
type mapKey struct {
	dist any
	s    int
	seed uint64
	rep  int
}

// bind settles which problem is shared, or refuses another.
func (s *Shared) bind(l *Lab) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.train == nil {
		s.train, s.kernel, s.lambda = l.train, l.cfg.Kernel, l.cfg.Lambda
	}
	switch {
	case s.train != l.train:
		return fmt.Errorf("krrlab: Shared holds the matrices of other training data (%s, %d points): take another for %s", s.train.Name, s.train.Len(), l.train.Name)
	case s.lambda != l.cfg.Lambda || !reflect.DeepEqual(s.kernel, l.cfg.Kernel):
		return fmt.Errorf("krrlab: Shared holds the matrices of %v, λ = %g: take another for %v, λ = %g", s.kernel, s.lambda, l.cfg.Kernel, l.cfg.Lambda)
	}
	return nil
}

// Forget gives back what is kept. What solves under way hold stays theirs.
func (s *Shared) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.k, s.z, s.g, s.m = nil, nil, nil, nil
}

// begin waits for other solves, as long as ctx lets it, and returns what ends this one.
func (s *Shared) begin(ctx context.Context) (end func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	s.mu.Lock()
	if s.solve == nil {
		s.solve = make(chan struct{}, 1)
	}
	s.mu.Unlock()
	select {
	case s.solve <- struct{}{}:
		return func() { <-s.solve }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// matrix returns K+λI, by form where what is kept is not of the storage or the accuracy
// that l asks for.
func (s *Shared) matrix(l *Lab, sol *Solution, form func() (*gram.Matrix, error)) (*gram.Matrix, error) {
	if s == nil {
		var a *gram.Matrix
		err := timed(&sol.Seconds.Kernel, func() (err error) { a, err = form(); return err })
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := l.accuracy()
	if s.k != nil && s.kStorage == l.cfg.Storage && (s.kAccuracy <= asked || s.k.Choice().Error <= asked) && sol.takes(s.k.Choice()) {
		sol.share("kernel")
		sol.Seconds.Kernel += s.kSeconds
		return s.k, nil
	}
	s.k = nil
	start := time.Now()
	a, err := form()
	if err != nil {
		return nil, err
	}
	s.k, s.kStorage, s.kAccuracy, s.kSeconds = a, l.cfg.Storage, asked, time.Since(start).Seconds()
	sol.Seconds.Kernel += s.kSeconds
	return a, nil
}

// takes reports whether K so kept is that of the state that is resumed, if one is.
func (s *Solution) takes(c gram.Choice) bool {
	return s.as == nil || s.as.Storage == c.Storage && s.as.Arithmetic == c.Arithmetic && s.as.Centred == c.Centred
}

// accuracy returns the bound of ‖E‖₂ that Gram asks for, or prefers.
func (l *Lab) accuracy() float64 {
	if l.exact() || l.refines() {
		return min(l.preferred(), l.cfg.Lambda/10)
	}
	return l.cfg.Lambda / 10
}

// features returns Z number rep of l.
func (s *Shared) features(ctx context.Context, l *Lab, sol *Solution, rep int) (*points.Dense32, error) {
	if s == nil {
		var z *points.Dense32
		err := timed(&sol.Seconds.Features, func() (err error) { z, err = l.Features(ctx, rep); return err })
		return z, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := mapKey{l.cfg.Map, l.cfg.Features, l.cfg.Seed, rep}
	if s.z != nil && reflect.DeepEqual(s.zKey, key) {
		sol.share("features")
		sol.Seconds.Features += s.zSeconds
		return s.z, nil
	}
	s.z, s.g, s.m = nil, nil, nil
	start := time.Now()
	z, err := l.Features(ctx, rep)
	if err != nil {
		return nil, err
	}
	s.z, s.zKey, s.zSeconds = z, key, time.Since(start).Seconds()
	sol.Seconds.Features += s.zSeconds
	return z, nil
}

// precond returns (ZZᵀ+λ_pI)⁻¹ for the features z.
func (s *Shared) precond(ctx context.Context, l *Lab, sol *Solution, z *points.Dense32) (*precond.Woodbury, error) {
	if s == nil {
		var m *precond.Woodbury
		err := timed(&sol.Seconds.Factor, func() (err error) { m, err = l.Precond(ctx, z); return err })
		return m, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if z != s.z { // landmarks
		var m *precond.Woodbury
		err := timed(&sol.Seconds.Factor, func() (err error) { m, err = l.Precond(ctx, z); return err })
		return m, err
	}
	if s.m != nil && s.m.LambdaP() == l.cfg.LambdaP && s.mForm == l.cfg.Form {
		sol.share("factor")
		sol.Seconds.Factor += s.gSeconds + s.mSeconds
		return s.m, nil
	}
	s.m = nil
	l.cfg.Monitor(Event{Stage: "factor"})
	if s.g != nil && s.g.Error() <= l.cfg.LambdaP/10 {
		sol.share("ZᵀZ")
	} else {
		s.g = nil
		start := time.Now()
		g, err := precond.NewGram(ctx, z, l.cfg.LambdaP)
		if err != nil {
			return nil, err
		}
		s.g, s.gSeconds = g, time.Since(start).Seconds()
	}
	start := time.Now()
	m, err := precond.NewFromGram(ctx, z, s.g, l.cfg.LambdaP, l.precondOptions())
	if err != nil {
		return nil, err
	}
	s.m, s.mForm, s.mSeconds = m, l.cfg.Form, time.Since(start).Seconds()
	sol.Seconds.Factor += s.gSeconds + s.mSeconds
	return m, nil
}

// share notes that a stage was taken from an earlier solve.
func (s *Solution) share(stage string) { s.Shared = append(s.Shared, stage) }
