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

// saved is the encoded form of a State. The names of the type and of its fields are part of the encoding, so they must
// not change.
type saved struct {
	N, T, K        int
	Tol            float64 // tolerance of the solve; older files have 0, which means the tolerance of the options
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
	for i, table := range s.tables() {
		v.History[i] = table.data
	}
	if block := s.block; block != nil {
		v.K, v.C, v.S = block.k, block.c, block.s
	}
	v.R, v.P = s.buf[0][:s.n*v.K], s.buf[1][:s.n*v.K]
	if s.xAtRestart != nil {
		v.Kept = s.xAtRestart.RawMatrix().Data
	}
	if s.endResiduals != nil {
		v.Last = s.endResiduals.RawMatrix().Data
	}
	var encoded bytes.Buffer
	if err := gob.NewEncoder(&encoded).Encode(&v); err != nil {
		return nil, fmt.Errorf("pcg: state: %w", err)
	}
	return encoded.Bytes(), nil
}

// tables returns the tables whose rows saved.History contains.
func (s *solver) tables() []*table {
	return []*table{&s.relRes, &s.alphas, &s.betas, &s.decreases, &s.bounds.history}
}

// restore sets the solver to the state in Options.Resume.
func (s *solver) restore() error {
	block, state := s.block, new(saved)
	if err := gob.NewDecoder(bytes.NewReader(s.opt.Resume)).Decode(state); err != nil {
		return fmt.Errorf("pcg: the state to resume: %w", err)
	}
	if state.N != s.n || state.T != s.t || state.Block != (block != nil) || state.LambdaMin != s.opt.LambdaMin {
		return fmt.Errorf("pcg: the state to resume is of %d×%d numbers in another kind of solve than this of %d×%d",
			state.N, state.T, s.n, s.t)
	}
	if state.Iterations >= s.opt.MaxIter {
		return fmt.Errorf("pcg: the state to resume has %d iterations, of at most %d", state.Iterations, s.opt.MaxIter)
	}
	if state.Tol > 0 { // after Iteration.Accept the tolerance differs from that of the options
		s.opt.Tol, s.res.Tol = state.Tol, state.Tol
	}
	copy(s.rho, state.Rho)
	copy(s.target, state.Target)
	copy(s.restartResidual, state.Before)
	copy(s.res.RelRes, state.RelRes)
	copy(s.stagnantSteps, state.Still)
	copy(s.res.Columns, state.Columns)
	s.cols = append(s.cols[:0], state.Cols...)
	s.res.Iterations, s.res.History.Restarts = state.Iterations, state.RestartsAt
	if s.normalized != nil {
		s.normalized.factor = state.Factor
		s.setMu()
	}
	copy(s.bounds.gamma, state.Gamma)
	for i, table := range s.tables() {
		table.data = append(table.data, state.History[i]...)
	}
	for k, row := range s.decreases.rows() {
		if len(state.RestartsAt) == 0 || k < state.RestartsAt[0] {
			for c, decrease := range row {
				s.totalDecrease[c] += decrease
			}
		}
	}
	copy(s.x.RawMatrix().Data, state.X)
	copy(s.buf[0], state.R)
	copy(s.buf[1], state.P)
	if state.Kept != nil {
		s.xAtRestart = mat.NewDense(s.n, s.t, state.Kept)
	}
	if s.endResiduals != nil {
		copy(s.endResiduals.RawMatrix().Data, state.Last)
	}
	s.resize(state.K)
	s.resumed = true
	if block != nil {
		block.k, block.width = state.K, state.K
		copy(block.c, state.C)
		copy(block.s, state.S)
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
