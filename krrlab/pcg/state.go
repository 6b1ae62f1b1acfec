package pcg

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// State is a solve between two iterations, what Options.Checkpoint sees. It is valid until the next
// product with A returns.
type State struct {
	s *solver
	b *block // nil for Solve
}

// Iterations returns how many iterations have been done.
func (st *State) Iterations() int { return st.s.res.Iterations }

// stateVersion is the version of what WriteTo writes.
const stateVersion = 4

// saved is a State but for its blocks of n rows: X, n×t, R, n×k, P, n×k, that of Kept, n×t, and with bounds the
// residuals of columns that have ended, n×t.
type saved struct {
	Version, N, T, K    int
	Block               bool
	Cols                []int // active columns
	Rho                 []float64
	Target, Before      []float64
	RelRes              []float64
	Still               []int
	Columns             []Column
	Iterations          int
	Restarts            int
	RestartsAt          []int
	Kept                bool         // X when columns were last restarted follows
	History             [5][]float64 // rows of RelRes, Alpha, Beta, Decrease and Error
	LambdaMin           float64
	Gamma               []float64 // of the upper bounds, see bounds
	C, S                []float64 // of a block solve
	Room                int
	Width               []int
	LanczosPi, LanczosS [][]float64
}

// WriteTo writes the state: a solve with the same A, M, B and options that Options.Resume
// gives it goes on to the same result, bit for bit. It takes some 24nt bytes, 8nt more
// with Options.LambdaMin, and after a restart.
func (st *State) WriteTo(w io.Writer) (int64, error) {
	s := st.s
	v := saved{
		Version: stateVersion, N: s.n, T: s.t, K: len(s.cols), Block: st.b != nil,
		Cols: s.cols, Rho: s.rho, Target: s.target, Before: s.before, RelRes: s.res.RelRes, Still: s.still,
		Columns: s.res.Columns, Iterations: s.res.Iterations, Restarts: s.restarts, RestartsAt: s.res.History.Restarts,
		Kept: s.kept != nil, LambdaMin: s.opt.LambdaMin, Gamma: s.bounds.gamma,
	}
	for i, h := range s.tables() {
		v.History[i] = slices.Concat(h.rows...)
	}
	if b := st.b; b != nil {
		v.K, v.C, v.S = b.k, b.c, b.s
		v.Room, v.Width, v.LanczosPi, v.LanczosS = b.lanczos.room, b.lanczos.width, b.lanczos.pi, b.lanczos.s
	}
	var head bytes.Buffer
	if err := gob.NewEncoder(&head).Encode(&v); err != nil {
		return 0, fmt.Errorf("pcg: state: %w", err)
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(head.Len()))
	count := &counter{w: w}
	for _, b := range [][]byte{length, head.Bytes()} {
		if _, err := count.Write(b); err != nil {
			return count.n, err
		}
	}
	for i, x := range [][]float64{s.x.RawMatrix().Data, s.buf[0], s.buf[1]} {
		n := s.n * v.K
		if i == 0 {
			n = s.n * s.t
		}
		if err := writeNumbers(count, x[:n]); err != nil {
			return count.n, err
		}
	}
	for _, x := range []*mat.Dense{s.kept, s.last} {
		if x != nil {
			if err := writeNumbers(count, x.RawMatrix().Data); err != nil {
				return count.n, err
			}
		}
	}
	return count.n, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// chunk is how many numbers are converted at a time.
const chunk = 1 << 13

func writeNumbers(w io.Writer, x []float64) error {
	buf := make([]byte, 0, 8*chunk)
	for len(x) > 0 {
		k := min(len(x), chunk)
		buf = buf[:0]
		for _, v := range x[:k] {
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		x = x[k:]
	}
	return nil
}

// tables returns what saved.History has the rows of.
func (s *solver) tables() []*table {
	return []*table{&s.relres, &s.alphas, &s.betas, &s.decreases, &s.bounds.all}
}

// take reads len(x) numbers from the front of data, which it returns the rest of.
func take(x []float64, data []byte) ([]byte, error) {
	if len(data) < 8*len(x) {
		return nil, fmt.Errorf("pcg: the state to resume is cut off")
	}
	for i := range x {
		x[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return data[8*len(x):], nil
}

// restore puts the solver where Options.Resume says it was.
func (s *solver) restore(b *block) error {
	v, data, err := readHead(s.opt.Resume)
	if err != nil {
		return err
	}
	for c := range s.t {
		s.scale[c], s.ynorm[c] = columnScale(s.b, c)
		if s.ynorm[c] == 0 {
			s.scale[c] = 1
		}
	}
	if v.N != s.n || v.T != s.t || v.Block != (b != nil) || v.LambdaMin != s.opt.LambdaMin {
		return fmt.Errorf("pcg: the state to resume is of %d×%d numbers in another kind of solve than this of %d×%d", v.N, v.T, s.n, s.t)
	}
	if v.Iterations >= s.opt.MaxIter {
		return fmt.Errorf("pcg: the state to resume has %d iterations, of at most %d", v.Iterations, s.opt.MaxIter)
	}
	copy(s.rho, v.Rho)
	copy(s.target, v.Target)
	copy(s.before, v.Before)
	copy(s.res.RelRes, v.RelRes)
	copy(s.still, v.Still)
	copy(s.res.Columns, v.Columns)
	s.cols = append(s.cols[:0], v.Cols...)
	s.res.Iterations, s.restarts, s.res.History.Restarts = v.Iterations, v.Restarts, v.RestartsAt
	copy(s.bounds.gamma, v.Gamma)
	for i, h := range s.tables() {
		for row := v.History[i]; len(row) >= s.t; row = row[s.t:] {
			copy(h.add(), row[:s.t])
		}
	}
	for k, row := range s.decreases.rows {
		if len(v.RestartsAt) == 0 || k < v.RestartsAt[0] {
			for c, f := range row {
				s.fallen[c] += f
			}
		}
	}
	if rows := s.bounds.all.rows; len(rows) > 0 {
		s.bounds.row = rows[len(rows)-1]
	}
	blocks := [][]float64{s.x.RawMatrix().Data, s.buf[0][:s.n*v.K], s.buf[1][:s.n*v.K]}
	if v.Kept {
		s.kept = mat.NewDense(s.n, s.t, nil)
		blocks = append(blocks, s.kept.RawMatrix().Data)
	}
	if s.last != nil {
		blocks = append(blocks, s.last.RawMatrix().Data)
	}
	for i, x := range blocks {
		if data, err = take(x, data); err != nil {
			return fmt.Errorf("%w in block %d", err, i)
		}
	}
	if len(data) > 0 {
		return fmt.Errorf("pcg: the state to resume is %d bytes too long", len(data))
	}
	s.resize(v.K)
	s.resumed = true
	if b != nil {
		b.resume(v)
	}
	return nil
}

func readHead(data []byte) (*saved, []byte, error) {
	if len(data) < 8 {
		return nil, nil, fmt.Errorf("pcg: the state to resume is cut off")
	}
	n := binary.LittleEndian.Uint64(data)
	if data = data[8:]; n > uint64(len(data)) {
		return nil, nil, fmt.Errorf("pcg: the state to resume is cut off")
	}
	v := new(saved)
	if err := gob.NewDecoder(bytes.NewReader(data[:n])).Decode(v); err != nil {
		return nil, nil, fmt.Errorf("pcg: the state to resume: %w", err)
	}
	if v.Version != stateVersion {
		return nil, nil, fmt.Errorf("pcg: the state to resume has version %d, want %d", v.Version, stateVersion)
	}
	return v, data[n:], nil
}

// resume is the rest of restore for a block solve.
func (s *block) resume(v *saved) {
	s.k, s.width = v.K, v.K
	copy(s.c, v.C)
	copy(s.s, v.S)
	l := &s.lanczos
	l.room, l.width, l.pi, l.s = v.Room, v.Width, v.LanczosPi, v.LanczosS
}

// checkpoint shows the state to Options.Checkpoint.
func (s *solver) checkpoint(ctx context.Context, b *block) error {
	if s.opt.Checkpoint == nil || len(s.cols) == 0 || ctx.Err() != nil {
		return nil
	}
	return s.opt.Checkpoint(&State{s, b})
}
