package krrlab

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/plan"
)

// progress is what is done of a solve when a run of conjugate gradients begins: run 0 … Repeat-1 is
// that with a preconditioner, run Repeat the refinement of their answer.
type progress struct {
	Run        int
	Answers    [][]float64 // n×t, of the runs before
	Iterations int
	History    []HistRow
	K          gram.Choice // how K was kept, with the storage auto a matter of memory and of ranks; zero in files that do not say it
}

// checkpoints keeps the state of one solve. A nil one does nothing.
type checkpoints struct {
	lab   *Lab
	o     Checkpoint
	store *checkpoint.Store // nil at ranks but the first, where states are the same
	now   progress
	state []byte // of the run to resume; nil if none is
	from  int    // that run
	last  time.Time
	iter  int // iterations at the last checkpoint
}

// openCheckpoints opens the folder and reads what is to be resumed into sol; kept is how K was kept when it was
// written, nil if nothing is resumed.
func (l *Lab) openCheckpoints(ctx context.Context, sol *Solution) (_ *checkpoints, kept *gram.Choice, err error) {
	if l.cfg.Checkpoint == nil {
		return nil, nil, nil
	}
	of, _ := l.base()
	if _, err := kernel.ToSpec(of); err != nil { // two of them cannot be told apart
		return nil, nil, fmt.Errorf("krrlab: checkpoint: %w; or take no checkpoint", err)
	}
	if _, err := SpecOf(l.cfg.Precond, l.cfg.Kernel); err != nil {
		return nil, nil, fmt.Errorf("krrlab: checkpoint: the preconditioner %v is user-defined, and two of them cannot be told apart: take a built-in one, or no checkpoint", l.cfg.Precond)
	}
	k := &checkpoints{lab: l, o: *l.cfg.Checkpoint, last: time.Now()}
	if k.o.Note == nil {
		k.o.Note = func(string) {}
	}
	if k.o.Every == 0 && k.o.EveryIter == 0 {
		k.o.Every = time.Minute
	}
	var found []byte
	if l.comm.Rank() == 0 {
		k.store, found, err = checkpoint.Begin(k.o.Dir, l.owner(), k.o.Resume, k.o.Note)
	}
	if err = comm.Agree(ctx, l.comm, err); err == nil {
		found, err = comm.Share(ctx, l.comm, found, 0)
	}
	if err != nil {
		k.close()
		return nil, nil, err
	}
	sol.store = k.store
	if len(found) == 0 {
		if l.plan != nil && k.store != nil { // the folder is this run's by now
			err = l.plan.Save(k.o.Dir)
		}
		if err = comm.Agree(ctx, l.comm, err); err != nil {
			k.close()
			return nil, nil, err
		}
		return k, kept, nil
	}
	if err = k.decode(found); err != nil {
		k.close()
		return nil, nil, fmt.Errorf("krrlab: the checkpoint in %s %w", k.o.Dir, err)
	}
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

// owner is the fingerprint of the data and of what in the configuration the answer
// depends on.
func (l *Lab) owner() [sha256.Size]byte {
	c := l.cfg
	data := l.train.Fingerprint()
	text := fmt.Sprintf("%x %v λ=%x %v %v %d τ=%x %v %d %v", data, c.Kernel, c.Lambda, c.Solver, c.Precond, c.Repeat, c.Tol, c.Storage, c.Seed, c.Exact)
	of, _ := l.base()
	if spec, err := kernel.ToSpec(of); err == nil && spec.Params != "" { // String need not have them
		text += fmt.Sprintf(" %s%s", spec.Name, spec.Params)
	}
	if r := l.approximation(); r != nil {
		text += fmt.Sprintf(" %s %d λp=%x %v", r.name, r.s, r.lambdaP, r.form)
	}
	if c.Start != nil {
		raw := c.Start.RawMatrix()
		h := sha256.New()
		for i := range raw.Rows {
			_ = binary.Write(h, binary.LittleEndian, raw.Data[i*raw.Stride:i*raw.Stride+raw.Cols]) // a hash takes all
		}
		text += fmt.Sprintf(" start %x", h.Sum(nil))
	}
	if c.Stop.Rule != bound.Residual {
		text += fmt.Sprintf(" stop %v", c.Stop)
	}
	return sha256.Sum256([]byte(text))
}

// decode takes up a state: the progress, and the state of pcg.
func (k *checkpoints) decode(b []byte) (err error) {
	k.state, err = checkpoint.Split(b, &k.now)
	k.from = k.now.Run
	return err
}

// answer returns the answer of a run that was done before the state that is resumed, nil if
// there is none.
func (k *checkpoints) answer(run int) *mat.Dense {
	if k == nil || k.state == nil || run >= k.from {
		return nil
	}
	n, _, t := k.lab.Dims()
	return mat.NewDense(n, t, k.now.Answers[run])
}

// refining reports whether the refinement is what is resumed.
func (k *checkpoints) refining() bool {
	return k != nil && k.state != nil && k.from == k.lab.cfg.Repeat
}

// begin settles the options of a run with K kept as it says, after those with the given answers.
func (k *checkpoints) begin(sol *Solution, kept gram.Choice, run int, answers []*mat.Dense, o *pcg.Options) {
	if k == nil {
		return
	}
	if k.state != nil && run == k.from {
		o.Resume, k.state = k.state, nil
		k.o.Note(fmt.Sprintf("resuming from the checkpoint in %s", k.o.Dir))
	} else {
		k.now = progress{Run: run, Iterations: sol.Iterations, History: sol.History}
		for _, a := range answers {
			k.now.Answers = append(k.now.Answers, a.RawMatrix().Data)
		}
	}
	k.now.K = kept
	k.iter = 0
	if k.store != nil {
		o.Checkpoint = k.save
	}
}

// save writes a state where one is due.
func (k *checkpoints) save(st *pcg.State) error {
	due := k.o.EveryIter > 0 && st.Iterations()-k.iter >= k.o.EveryIter || k.o.Every > 0 && time.Since(k.last) >= k.o.Every
	if !due {
		return nil
	}
	b, err := checkpoint.Join(k.now, st)
	if err == nil {
		err = k.store.Save(b)
	}
	if err != nil {
		return err
	}
	k.last, k.iter = time.Now(), st.Iterations()
	return nil
}

// Forget removes the checkpoints of a solution that is safe elsewhere.
func (s *Solution) Forget() error {
	if s.store == nil {
		return nil
	}
	return s.store.Clear(plan.ReportFile)
}
