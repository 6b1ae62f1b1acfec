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

// progress is the content of a checkpoint: the results of a solve before a run of conjugate gradients, and the state of
// that run. Run 0 computes an answer, and run 1 refines it. The names of the fields are part of the file format.
type progress struct {
	Run        int
	Answers    [][]float64  // coefficients before run 1, n×t, as the only element; nil for run 0
	Iterations int          // iterations before the run
	History    []HistoryRow // history before the run
	// K describes the storage of K. A resumed run must use the same storage, although an automatic choice depends on
	// memory and ranks.
	K gram.Choice
	// Arithmetic is the arithmetic of the iterations (Environment.MixedArithmetic if there are several).
	Arithmetic string

	State []byte       // state of the run (pcg.State)
	At    int          // number of iterations that the run had done when State was saved
	Tol   float64      // tolerance that stop rule predictions accepted in an earlier run; 0: none
	Noise *bound.Noise // estimate of the noise by stop rule predictions; nil: not estimated yet
	// Series is the state of a solve with a Fourier series, which has no Run and no State; nil for other solvers.
	Series *seriesProgress
}

// seriesProgress is the state of a solve with a Fourier series before a round of refinement. Row i of Φ has the values
// of the modes at point i, W are the weights of the points, and R are the residuals.
type seriesProgress struct {
	Moments []float64 // moments of ΦᵀWΦ (fourier.NormalMatrix)
	B       []float64 // ΦᵀW^½R, modes×t
	C, R    []float64 // coefficients and residuals, n×t; nil before the first round
}

// checkpointer saves and restores the state of one solve. A nil pointer does nothing.
type checkpointer struct {
	system         *System
	options        Checkpoint
	store          *checkpoint.Store // nil on all ranks but rank 0, which saves for all, as their states are equal
	progress       progress
	bounds         *bound.Monitor // has the estimate of the noise to save
	state          []byte         // state of the run to resume; nil if none is resumed
	savedAt        time.Time      // time of the last checkpoint
	savedIteration int            // iterations of the run at the last checkpoint
}

// Checkpoint sets where and how often a solve by conjugate gradients saves its state, and whether it resumes from a
// saved state.
//
// A checkpoint has the state of the iteration, 27nt to 45nt bytes for n points and t right-hand sides. A solve with a
// Fourier series saves its state after the first pass over the points and after each round of refinement; each of these
// counts as EveryIter iterations, and the state takes 16nt bytes and the moments of the series.
//
// Features and K are computed again from the data and the configuration. K gets the same storage and arithmetic as
// before, whatever the current memory limit; if K does not fit, the solve returns an error. A resumed solve returns the
// same coefficients as an uninterrupted one, bit for bit, on any number of ranks, if the BLAS and the instruction set
// are the same. Otherwise the last digits differ, and Note and Environment.MixedArithmetic say so. The direct solver
// saves no state.
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
func (c *Checkpoint) HasState() bool { return checkpoint.Exists(c.Dir) }

// openCheckpoints opens the folder of checkpoints, on rank 0, and gives the state to resume to all ranks. It sets the
// iterations and the history of sol from that state. If there is none, it saves the plan in the folder. It also returns
// the storage of K when the state was written, or nil if nothing is resumed. If the system has no Checkpoint, it
// returns nil and does nothing.
func openCheckpoints(ctx context.Context, system *System, sol *Solution) (_ *checkpointer, storage *gram.Choice,
	err error) {
	if system.Checkpoint == nil {
		return nil, nil, nil
	}
	fingerprint, err := system.Fingerprint()
	if err != nil {
		return nil, nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	c := &checkpointer{system: system, options: *system.Checkpoint, savedAt: time.Now()}
	if c.options.Note == nil {
		c.options.Note = func(string) {}
	}
	if c.options.Every == 0 && c.options.EveryIter == 0 {
		c.options.Every = time.Minute
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	var state []byte
	if system.Comm.Rank() == 0 {
		c.store, state, err = checkpoint.Begin(c.options.Dir, fingerprint, c.options.Resume, c.options.Note)
	}
	if err = comm.Agree(ctx, system.Comm, err); err == nil {
		state, err = comm.BroadcastBytes(ctx, system.Comm, state, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if sol.store = c.store; len(state) == 0 { // nothing to resume
		if system.Plan != nil && c.store != nil { // this run owns the folder now
			err = system.Plan.Save(c.options.Dir)
		}
		return c, nil, comm.Agree(ctx, system.Comm, err)
	}
	if err = gob.NewDecoder(bytes.NewReader(state)).Decode(&c.progress); err != nil {
		return nil, nil, fmt.Errorf("krrlab: the checkpoint in %s cannot be read: %w", c.options.Dir, err)
	}
	c.state = c.progress.State
	sol.Iterations, sol.History = c.progress.Iterations, c.progress.History
	if saved := c.progress.Arithmetic; saved != "" && saved != arithmetic() { // "" in checkpoints of older versions
		if sol.MixedArithmetic = saved; !strings.HasSuffix(saved, arithmetic()) {
			sol.MixedArithmetic += ", then " + arithmetic()
		}
		c.progress.Arithmetic = sol.MixedArithmetic
	}
	if saved := c.progress.K; saved.Storage != gram.Auto {
		storage = &saved
	}
	return c, storage, nil
}

// close releases the folder for other runs.
func (c *checkpointer) close() {
	if c != nil && c.store != nil {
		c.store.Close()
	}
}

// restore sets the estimate of the noise of a resumed solve, and its tolerance if stop rule predictions accepted one.
func (c *checkpointer) restore(r *run) {
	if c == nil {
		return
	}
	c.bounds = &r.bounds
	r.bounds.Noise = c.progress.Noise
	if c.progress.Tol > 0 {
		r.setTolerance(c.progress.Tol, c.progress.Noise)
	}
}

// answer returns the answer whose refinement is resumed, or nil if there is none.
func (c *checkpointer) answer() *mat.Dense {
	if c == nil || c.state == nil || len(c.progress.Answers) == 0 {
		return nil
	}
	n, t := c.system.Y.Dims()
	return mat.NewDense(n, t, c.progress.Answers[0])
}

// configure sets the options of a run for resuming and saving. storage is the storage of K, and answer has the
// coefficients that the run refines, or is nil for the first run. Only the first call resumes a state; a later run
// starts anew.
func (c *checkpointer) configure(sol *Solution, storage gram.Choice, answer *mat.Dense, options *pcg.Options) {
	if c == nil {
		return
	}
	if c.state != nil {
		options.Resume, c.state, c.savedIteration = c.state, nil, c.progress.At
		c.noteResumed(sol)
	} else {
		c.progress = progress{Iterations: sol.Iterations, History: sol.History,
			Arithmetic: cmp.Or(sol.MixedArithmetic, arithmetic())}
		c.savedIteration = 0
		if sol.Noise != nil {
			c.progress.Tol = sol.Tol
		}
		if answer != nil {
			c.progress.Run, c.progress.Answers = 1, [][]float64{answer.RawMatrix().Data}
		}
	}
	c.progress.K = storage
	if c.store != nil {
		options.Checkpoint = c.save
	}
}

// noteResumed calls Note with the folder from which sol is resumed, and with the arithmetics of its iterations if they
// differ.
func (c *checkpointer) noteResumed(sol *Solution) {
	text := fmt.Sprintf("resuming from the checkpoint in %s", c.options.Dir)
	if sol.MixedArithmetic != "" {
		text += fmt.Sprintf("; the iterations are computed with %s, so that the last digits differ from those of an "+
			"uninterrupted run", sol.MixedArithmetic)
	}
	c.options.Note(text)
}

// save writes the state of the run if a checkpoint is due.
func (c *checkpointer) save(state *pcg.State) error {
	due := c.options.EveryIter > 0 && state.Iterations()-c.savedIteration >= c.options.EveryIter || c.timeIsUp()
	if !due {
		return nil
	}
	var err error
	c.progress.At, c.progress.Noise = state.Iterations(), c.bounds.Noise
	if c.progress.State, err = state.MarshalBinary(); err == nil {
		err = c.write()
	}
	return err
}

// timeIsUp reports whether the time between checkpoints has passed.
func (c *checkpointer) timeIsUp() bool {
	return c.options.Every > 0 && time.Since(c.savedAt) >= c.options.Every
}

// write writes c.progress to the folder of checkpoints.
func (c *checkpointer) write() error {
	var buffer bytes.Buffer
	err := gob.NewEncoder(&buffer).Encode(c.progress)
	if err == nil {
		err = c.store.Save(buffer.Bytes())
	}
	if err != nil {
		return err
	}
	c.savedAt, c.savedIteration = time.Now(), c.progress.At
	return nil
}

// savedSeries returns the state from which sol, a solve with a Fourier series, is resumed, or nil if none is resumed.
func (c *checkpointer) savedSeries(sol *Solution) *seriesProgress {
	if c == nil || c.progress.Series == nil {
		return nil
	}
	c.noteResumed(sol)
	return c.progress.Series
}

// saveSeries writes the state of a solve with a Fourier series, whose iterations and history are those of sol, if a
// checkpoint is due. All ranks call it.
func (c *checkpointer) saveSeries(ctx context.Context, sol *Solution, state *seriesProgress) error {
	if c == nil {
		return nil
	}
	var err error
	if c.store != nil && (c.options.EveryIter > 0 || c.timeIsUp()) {
		c.progress = progress{Iterations: sol.Iterations, History: sol.History, Series: state,
			Arithmetic: cmp.Or(sol.MixedArithmetic, arithmetic())}
		err = c.write()
	}
	return comm.Agree(ctx, c.system.Comm, err)
}

// clear removes the checkpoints of a method that failed, because another method cannot resume from them.
func (c *checkpointer) clear() error {
	if c == nil || c.store == nil {
		return nil
	}
	return c.store.Clear()
}
