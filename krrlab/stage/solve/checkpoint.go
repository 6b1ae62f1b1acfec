package solve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// progress is the state of a solve at the start of a run of conjugate gradients, and the state of that run. Run 0
// computes an answer, and run 1 refines it. The names of the fields are part of the file format.
type progress struct {
	Run        int
	Answers    [][]float64 // answer of the previous run, n×t
	Iterations int
	History    []HistoryRow
	// K describes the storage of K. A resumed run must use the same one, although auto depends on memory and ranks.
	K gram.Choice
	// Arithmetic is the arithmetic of the iterations (Environment.MixedArithmetic if there are several).
	Arithmetic string

	State []byte // state of the run (pcg.State)
	At    int    // number of iterations that the run had done when State was taken
	// Tol is the tolerance that stop rule predictions accepted in an earlier run; 0: none.
	Tol   float64
	Noise *bound.Noise // estimate of the rule predictions; nil before the first one
	// Series is the state of a solve with a Fourier series, which has no Run and no State; nil for other solvers.
	Series *seriesProgress
}

// seriesProgress is the state of a solve with a Fourier series before a round of refinement.
type seriesProgress struct {
	Moments []float64 // moments of ΦᵀWΦ (fourier.NormalMatrix)
	B       []float64 // ΦᵀW^½R, modes×t
	C, R    []float64 // coefficients and their residuals, n×t; nil before the first round
}

// checkpoints saves and restores the state of one solve. A nil pointer does nothing.
type checkpoints struct {
	system         *System
	options        Checkpoint
	store          *checkpoint.Store // nil on all ranks but the first, as all ranks have the same state
	progress       progress
	watch          *bound.Monitor // has the estimate of the noise to save
	state          []byte         // state of the run to resume; nil if none is resumed
	savedAt        time.Time      // time of the last checkpoint
	savedIteration int            // iterations of the run at the last checkpoint
}

// Checkpoint sets where and how often a solve by conjugate gradients saves its state, and whether it resumes from a
// saved state.
//
// The state is that of the iteration and takes 27 to 45nt bytes. With a Fourier series it is saved after the first pass
// over the points and after each round of refinement, and takes the bytes of the moments and 16nt; EveryIter then means
// each of these times. Features and K are computed again from the data and the configuration. K gets the same storage
// and arithmetic as before, whatever the current memory limit; if it does not fit, the solve returns an error. A
// resumed solve returns the same coefficients as an uninterrupted one: bit for bit with the same BLAS and instruction
// set, on any number of ranks. With others the last digits differ, and Note and Environment.MixedArithmetic say so. The
// direct solver saves no state.
type Checkpoint struct {
	// Dir is the folder of the checkpoints, which is created if necessary. The host of the first rank must have access
	// to it, now and when the solve is resumed.
	Dir string `json:"dir"`
	// Every is the time between checkpoints. Default, if EveryIter is 0 too: a minute.
	Every     time.Duration `json:"every,omitempty"`
	EveryIter int           `json:"every_iterations,omitempty"` // iterations between checkpoints
	// Resume continues from the newest intact checkpoint in Dir of the same data and configuration. MaxIter, Memory,
	// Monitor and the ranks may differ. If there is no checkpoint at all, the solve starts from the beginning. Without
	// Resume, Dir must not have any checkpoints.
	Resume bool `json:"resume,omitempty"`
	// Note is called with messages about the resumed state and refused files. Default: nil, no messages.
	Note func(string) `json:"-"`
}

// HasState reports whether Dir has checkpoints.
func (k *Checkpoint) HasState() bool { return checkpoint.Exists(k.Dir) }

// openCheckpoints opens the folder of checkpoints, on the first rank, and reads the state to resume on all ranks. It
// sets the iterations and the history of sol from that state, and otherwise saves the plan in the folder. It also
// returns the storage of K when the state was written, or nil if nothing is resumed. Everything is nil if t has no
// Checkpoint.
func openCheckpoints(ctx context.Context, t *System, sol *Solution) (_ *checkpoints, storage *gram.Choice, err error) {
	if t.Checkpoint == nil {
		return nil, nil, nil
	}
	owner, err := t.Fingerprint()
	if err != nil {
		return nil, nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	k := &checkpoints{system: t, options: *t.Checkpoint, savedAt: time.Now()}
	if k.options.Note == nil {
		k.options.Note = func(string) {}
	}
	if k.options.Every == 0 && k.options.EveryIter == 0 {
		k.options.Every = time.Minute
	}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	var state []byte
	if t.Comm.Rank() == 0 {
		k.store, state, err = checkpoint.Begin(k.options.Dir, owner, k.options.Resume, k.options.Note)
	}
	if err = comm.Agree(ctx, t.Comm, err); err == nil {
		state, err = comm.BroadcastBytes(ctx, t.Comm, state, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if sol.store = k.store; len(state) == 0 { // nothing to resume
		if t.Plan != nil && k.store != nil { // this run owns the folder now
			err = t.Plan.Save(k.options.Dir)
		}
		return k, nil, comm.Agree(ctx, t.Comm, err)
	}
	if err = gob.NewDecoder(bytes.NewReader(state)).Decode(&k.progress); err != nil {
		return nil, nil, fmt.Errorf("krrlab: the checkpoint in %s cannot be read: %w", k.options.Dir, err)
	}
	k.state = k.progress.State
	sol.Iterations, sol.History = k.progress.Iterations, k.progress.History
	if saved := k.progress.Arithmetic; saved != "" && saved != arithmetic() { // "" in checkpoints of older versions
		if sol.MixedArithmetic = saved; !strings.HasSuffix(saved, arithmetic()) {
			sol.MixedArithmetic += ", then " + arithmetic()
		}
		k.progress.Arithmetic = sol.MixedArithmetic
	}
	if saved := k.progress.K; saved.Storage != gram.Auto {
		storage = &saved
	}
	return k, storage, nil
}

// close releases the folder for other runs.
func (k *checkpoints) close() {
	if k != nil && k.store != nil {
		k.store.Close()
	}
}

// restore sets the estimate of the noise of a resumed solve, and its tolerance if stop rule predictions accepted one.
func (k *checkpoints) restore(s *run) {
	if k == nil {
		return
	}
	k.watch = &s.bounds
	s.bounds.Noise = k.progress.Noise
	if k.progress.Tol > 0 {
		s.setTolerance(k.progress.Tol, k.progress.Noise)
	}
}

// answer returns the answer whose refinement is resumed, or nil if there is none.
func (k *checkpoints) answer() *mat.Dense {
	if k == nil || k.state == nil || len(k.progress.Answers) == 0 {
		return nil
	}
	n, t := k.system.Y.Dims()
	return mat.NewDense(n, t, k.progress.Answers[0])
}

// configure sets the options o of a run for resuming and saving. storage is the storage of K, and refined is the answer
// to refine, or nil for the first run. The state is resumed by the first call only; a later run starts anew.
func (k *checkpoints) configure(sol *Solution, storage gram.Choice, refined *mat.Dense, o *pcg.Options) {
	if k == nil {
		return
	}
	if k.state != nil {
		o.Resume, k.state, k.savedIteration = k.state, nil, k.progress.At
		k.noteResumed(sol)
	} else {
		k.progress = progress{Iterations: sol.Iterations, History: sol.History,
			Arithmetic: cmp.Or(sol.MixedArithmetic, arithmetic())}
		k.savedIteration = 0
		if sol.Noise != nil {
			k.progress.Tol = sol.Tol
		}
		if refined != nil {
			k.progress.Run, k.progress.Answers = 1, [][]float64{refined.RawMatrix().Data}
		}
	}
	k.progress.K = storage
	if k.store != nil {
		o.Checkpoint = k.save
	}
}

// noteResumed calls Note with the folder from which sol is resumed, and with the arithmetic if there are several.
func (k *checkpoints) noteResumed(sol *Solution) {
	text := fmt.Sprintf("resuming from the checkpoint in %s", k.options.Dir)
	if sol.MixedArithmetic != "" {
		text += fmt.Sprintf("; the iterations are computed with %s, so that the last digits differ from those of an "+
			"uninterrupted run", sol.MixedArithmetic)
	}
	k.options.Note(text)
}

// save writes the state of the run if a checkpoint is due.
func (k *checkpoints) save(st *pcg.State) error {
	due := k.options.EveryIter > 0 && st.Iterations()-k.savedIteration >= k.options.EveryIter || k.timeIsUp()
	if !due {
		return nil
	}
	var err error
	k.progress.At, k.progress.Noise = st.Iterations(), k.watch.Noise
	if k.progress.State, err = st.MarshalBinary(); err == nil {
		err = k.write()
	}
	return err
}

// timeIsUp reports whether the time between checkpoints has passed.
func (k *checkpoints) timeIsUp() bool {
	return k.options.Every > 0 && time.Since(k.savedAt) >= k.options.Every
}

// write writes k.progress.
func (k *checkpoints) write() error {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(k.progress)
	if err == nil {
		err = k.store.Save(b.Bytes())
	}
	if err != nil {
		return err
	}
	k.savedAt, k.savedIteration = time.Now(), k.progress.At
	return nil
}

// savedSeries returns the state from which sol, a solve with a Fourier series, is resumed, or nil if none is resumed.
func (k *checkpoints) savedSeries(sol *Solution) *seriesProgress {
	if k == nil || k.progress.Series == nil {
		return nil
	}
	k.noteResumed(sol)
	return k.progress.Series
}

// saveSeries writes the state of a solve with a Fourier series, whose iterations and history are those of sol, if a
// checkpoint is due. All ranks call it.
func (k *checkpoints) saveSeries(ctx context.Context, sol *Solution, state *seriesProgress) error {
	if k == nil {
		return nil
	}
	var err error
	if k.store != nil && (k.options.EveryIter > 0 || k.timeIsUp()) {
		k.progress = progress{Iterations: sol.Iterations, History: sol.History, Series: state,
			Arithmetic: cmp.Or(sol.MixedArithmetic, arithmetic())}
		err = k.write()
	}
	return comm.Agree(ctx, k.system.Comm, err)
}

// clear removes the checkpoints of a method that failed, because another method cannot resume from them.
func (k *checkpoints) clear() error {
	if k == nil || k.store == nil {
		return nil
	}
	return k.store.Clear()
}
