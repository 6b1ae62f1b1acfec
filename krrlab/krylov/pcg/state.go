package pcg

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// State is the state of a solve between two iterations, the argument of Options.Checkpoint. It is valid until the next
// product with A.
type State struct{ s *solver }

// Iterations returns the number of completed iterations.
func (st *State) Iterations() int { return st.s.res.Iterations }

// saved is the encoded form of a State. Its field names are part of the encoding.
type saved struct {
	N, T, K        int
	Tol            float64 // tolerance of the solve; 0 in older files: that of the options
	Block          bool
	Cols           []int // solver.cols, the active columns
	Rho            []float64
	Target, Before []float64 // solver.target and solver.restartResidual
	RelRes         []float64
	Still          []int // solver.stagnantSteps
	Columns        []Column
	Iterations     int
	RestartsAt     []int
	History        [5][]float64 // tables of RelRes, Alpha, Beta, Decrease and ErrorBounds
	LambdaMin      float64
	Factor         float64   // Normalized.factor; 0 in older files
	Gamma          []float64 // bounds.gamma
	C, S           []float64 // block.c and block.s
	X, R, P        []float64 // X, n×t; R and P, n×K
	Kept, Last     []float64 // solver.xAtRestart and solver.endResiduals, n×t
}

// MarshalBinary encodes the state. A solve with the same A, M, B and options that receives the bytes as Options.Resume
// continues to the same result, bit for bit. The size is about 27nt bytes, and 9nt bytes more each with
// Options.LambdaMin and after a restart.
func (st *State) MarshalBinary() ([]byte, error) {
	s := st.s
	v := saved{
		N: s.n, T: s.t, K: len(s.cols), Tol: s.opt.Tol, Block: s.block != nil,
		Cols: s.cols, Rho: s.rho, Target: s.target, Before: s.restartResidual, RelRes: s.res.RelRes,
		Still: s.stagnantSteps, Columns: s.res.Columns, Iterations: s.res.Iterations,
		RestartsAt: s.res.History.Restarts, LambdaMin: s.opt.LambdaMin, Gamma: s.bounds.gamma, X: s.x.RawMatrix().Data,
	}
	if s.normalized != nil {
		v.Factor = s.normalized.factor
	}
	for i, h := range s.tables() {
		v.History[i] = h.data
	}
	if b := s.block; b != nil {
		v.K, v.C, v.S = b.k, b.c, b.s
	}
	v.R, v.P = s.buf[0][:s.n*v.K], s.buf[1][:s.n*v.K]
	if s.xAtRestart != nil {
		v.Kept = s.xAtRestart.RawMatrix().Data
	}
	if s.endResiduals != nil {
		v.Last = s.endResiduals.RawMatrix().Data
	}
	var w bytes.Buffer
	if err := gob.NewEncoder(&w).Encode(&v); err != nil {
		return nil, fmt.Errorf("pcg: state: %w", err)
	}
	return w.Bytes(), nil
}

// tables returns the tables whose rows saved.History contains.
func (s *solver) tables() []*table {
	return []*table{&s.relres, &s.alphas, &s.betas, &s.decreases, &s.bounds.history}
}

// restore sets the solver to the state in Options.Resume.
func (s *solver) restore() error {
	b, v := s.block, new(saved)
	if err := gob.NewDecoder(bytes.NewReader(s.opt.Resume)).Decode(v); err != nil {
		return fmt.Errorf("pcg: the state to resume: %w", err)
	}
	if v.N != s.n || v.T != s.t || v.Block != (b != nil) || v.LambdaMin != s.opt.LambdaMin {
		return fmt.Errorf("pcg: the state to resume is of %d×%d numbers in another kind of solve than this of %d×%d",
			v.N, v.T, s.n, s.t)
	}
	if v.Iterations >= s.opt.MaxIter {
		return fmt.Errorf("pcg: the state to resume has %d iterations, of at most %d", v.Iterations, s.opt.MaxIter)
	}
	if v.Tol > 0 { // it differs from that of the options after Iteration.Accept
		s.opt.Tol, s.res.Tol = v.Tol, v.Tol
	}
	copy(s.rho, v.Rho)
	copy(s.target, v.Target)
	copy(s.restartResidual, v.Before)
	copy(s.res.RelRes, v.RelRes)
	copy(s.stagnantSteps, v.Still)
	copy(s.res.Columns, v.Columns)
	s.cols = append(s.cols[:0], v.Cols...)
	s.res.Iterations, s.res.History.Restarts = v.Iterations, v.RestartsAt
	if s.normalized != nil {
		s.normalized.factor = v.Factor
		s.setMu()
	}
	copy(s.bounds.gamma, v.Gamma)
	for i, h := range s.tables() {
		h.data = append(h.data, v.History[i]...)
	}
	for k, row := range s.decreases.rows() {
		if len(v.RestartsAt) == 0 || k < v.RestartsAt[0] {
			for c, f := range row {
				s.totalDecrease[c] += f
			}
		}
	}
	copy(s.x.RawMatrix().Data, v.X)
	copy(s.buf[0], v.R)
	copy(s.buf[1], v.P)
	if v.Kept != nil {
		s.xAtRestart = mat.NewDense(s.n, s.t, v.Kept)
	}
	if s.endResiduals != nil {
		copy(s.endResiduals.RawMatrix().Data, v.Last)
	}
	s.resize(v.K)
	s.resumed = true
	if b != nil {
		b.k, b.width = v.K, v.K
		copy(b.c, v.C)
		copy(b.s, v.S)
	}
	return nil
}

// checkpoint calls Options.Checkpoint with the current state.
func (s *solver) checkpoint(ctx context.Context) error {
	if s.opt.Checkpoint == nil || !s.isActive() || ctx.Err() != nil {
		return nil
	}
	return s.opt.Checkpoint(&State{s})
}
