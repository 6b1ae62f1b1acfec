package solve

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// progress is what is done of a solve when a run of conjugate gradients begins: run 0, or run 1, the refinement of its
// answer.
type progress struct {
	Run        int
	Answers    [][]float64 // n×t, of the run before
	Iterations int
	History    []HistRow
	K          gram.Choice // how K was kept, with the storage auto a matter of memory and of ranks
	State      []byte      // of the run (pcg.State)
	At         int         // number of iterations of the run at State
}

// checkpoints keeps the state of one solve. A nil one does nothing.
type checkpoints struct {
	task  *System
	o     Checkpoint
	store *checkpoint.Store // nil at ranks but the first, where states are the same
	now   progress
	state []byte // of the run to resume; nil if none is
	last  time.Time
	iter  int // iterations at the last checkpoint
}

// Checkpoint says where and how often a solve by conjugate gradients keeps its state, and
// whether it continues from one. The state is that of the iteration, 27 to 45nt bytes; features and
// K are a function of the data and the configuration and are formed again, K as it was stored and
// computed before, whatever the memory allows now: where that does not fit, it is an error. A
// solve that is resumed gives the coefficients of an unbroken one, bit for bit with the same
// BLAS, and on any number of ranks. The direct solver keeps no state.
type Checkpoint struct {
	// Dir is made if it is not there; the host of the first rank must see it, in this run and when it is resumed.
	Dir       string        `json:"dir"`
	Every     time.Duration `json:"every,omitempty"`            // between two; default, if EveryIter is 0 too: a minute
	EveryIter int           `json:"every_iterations,omitempty"` // or as many iterations
	// Resume continues from the newest checkpoint in Dir that is whole and of the same data and
	// configuration (MaxIter, Memory, Monitor and the ranks may differ), and begins if there is
	// none at all. Without it Dir must have none.
	Resume bool         `json:"resume,omitempty"`
	Note   func(string) `json:"-"` // told what is resumed, and which files are refused; nil is silent
}

// HasState reports whether there are checkpoints in Dir.
func (k *Checkpoint) HasState() bool { return checkpoint.Kept(k.Dir) }

// openCheckpoints opens the folder and reads what is to be resumed into sol; kept is how K was kept when it was
// written, nil if nothing is resumed.
func openCheckpoints(ctx context.Context, t *System, sol *Solution) (_ *checkpoints, kept *gram.Choice, err error) {
	if t.Checkpoint == nil {
		return nil, nil, nil
	}
	owner, err := t.Owner()
	if err != nil {
		return nil, nil, fmt.Errorf("krrlab: checkpoint: %w", err)
	}
	k := &checkpoints{task: t, o: *t.Checkpoint, last: time.Now()}
	if k.o.Note == nil {
		k.o.Note = func(string) {}
	}
	if k.o.Every == 0 && k.o.EveryIter == 0 {
		k.o.Every = time.Minute
	}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	var found []byte
	if t.Comm.Rank() == 0 {
		k.store, found, err = checkpoint.Begin(k.o.Dir, owner, k.o.Resume, k.o.Note)
	}
	if err = comm.Agree(ctx, t.Comm, err); err == nil {
		found, err = comm.Share(ctx, t.Comm, found, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if sol.store = k.store; len(found) == 0 {
		if t.Plan != nil && k.store != nil { // the folder is this run's by now
			err = t.Plan.Save(k.o.Dir)
		}
		return k, nil, comm.Agree(ctx, t.Comm, err)
	}
	if err = gob.NewDecoder(bytes.NewReader(found)).Decode(&k.now); err != nil {
		return nil, nil, fmt.Errorf("krrlab: the checkpoint in %s cannot be read: %w", k.o.Dir, err)
	}
	k.state = k.now.State
	sol.Iterations, sol.History = k.now.Iterations, k.now.History
	if was := k.now.K; was.Storage != gram.Auto {
		kept = &was
	}
	return k, kept, nil
}

// close lets other runs have the folder.
func (k *checkpoints) close() {
	if k != nil && k.store != nil {
		k.store.Close()
	}
}

// answer returns the answer whose refinement is resumed, nil if there is none.
func (k *checkpoints) answer() *mat.Dense {
	if k == nil || k.state == nil || len(k.now.Answers) == 0 {
		return nil
	}
	n, t := k.task.Y.Dims()
	return mat.NewDense(n, t, k.now.Answers[0])
}

// begin settles the options of a run with K kept as it says, nil or the answer that is refined.
func (k *checkpoints) begin(sol *Solution, kept gram.Choice, refined *mat.Dense, o *pcg.Options) {
	if k == nil {
		return
	}
	if k.state != nil {
		o.Resume, k.state, k.iter = k.state, nil, k.now.At
		k.o.Note(fmt.Sprintf("resuming from the checkpoint in %s", k.o.Dir))
	} else {
		k.now, k.iter = progress{Iterations: sol.Iterations, History: sol.History}, 0
		if refined != nil {
			k.now.Run, k.now.Answers = 1, [][]float64{refined.RawMatrix().Data}
		}
	}
	k.now.K = kept
	if k.store != nil {
		o.Checkpoint = k.save
	}
}

// save writes a state where one is due.
func (k *checkpoints) save(st *pcg.State) error {
	due := k.o.EveryIter > 0 && st.Iterations()-k.iter >= k.o.EveryIter ||
		k.o.Every > 0 && time.Since(k.last) >= k.o.Every
	if !due {
		return nil
	}
	var b bytes.Buffer
	var err error
	k.now.At = st.Iterations()
	if k.now.State, err = st.MarshalBinary(); err == nil {
		err = gob.NewEncoder(&b).Encode(k.now)
	}
	if err == nil {
		err = k.store.Save(b.Bytes())
	}
	if err != nil {
		return err
	}
	k.last, k.iter = time.Now(), k.now.At
	return nil
}
