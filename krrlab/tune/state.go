package tune

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel"
)

// state is what is known of a search, in a file.
type state struct {
	file  string
	saved time.Time
	dirty bool
	owner [sha256.Size]byte // digest of the data and the options
	kept
}

// kept is the content of the file, in that of a checkpoint.
type kept struct {
	Losses  map[string]*Loss `json:"losses"`            // null where K+λI was not positive definite
	Lengths *Lengths         `json:"lengths,omitempty"` // if they were searched
}

// openState reads the file of the options, if there is one.
func openState(s *search) (*state, error) {
	st := &state{file: s.opt.State, kept: kept{Losses: map[string]*Loss{}}}
	if st.file == "" {
		return st, nil
	}
	opt := s.opt
	opt.Valid = nil
	opt.State, opt.ARD, opt.Points, opt.Gain = "", false, 0, 0 // may change
	js, err := json.Marshal(opt)
	if err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	h := sha256.New()
	h.Write(js)
	data := s.data.Train.Fingerprint()
	h.Write(data[:])
	if s.opt.Valid != nil {
		data = s.opt.Valid.Fingerprint()
		h.Write(data[:])
	}
	for _, l := range s.levels {
		fmt.Fprintln(h, l.name)
	}
	h.Sum(st.owner[:0])
	b, err := checkpoint.Read(st.file, st.owner)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &st.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("tune: the state of this search cannot be read, name another file, or remove it: %w",
			err)
	}
	return st, nil
}

func key(q int, shape []float64, k kernel.Kernel, lambda float64) string {
	if shape == nil {
		return fmt.Sprintf("%d %v %g", q, k, lambda)
	}
	return fmt.Sprintf("%d %v %v %g", q, k, shape, lambda)
}

// known returns the loss of an earlier run.
func (st *state) known(q int, shape []float64, k kernel.Kernel, lambda float64) (*Loss, bool) {
	l, ok := st.Losses[key(q, shape, k, lambda)]
	return l, ok
}

func (st *state) add(q int, shape []float64, k kernel.Kernel, lambda float64, l *Loss) {
	if st.file != "" {
		st.Losses[key(q, shape, k, lambda)], st.dirty = l, true
	}
}

// save writes the file, every few seconds, or now.
func (st *state) save(now bool) error {
	if st == nil || !st.dirty || !now && time.Since(st.saved) < 2*time.Second {
		return nil
	}
	st.saved, st.dirty = time.Now(), false
	b, err := json.Marshal(&st.kept)
	if err == nil {
		err = checkpoint.Write(st.file, st.owner, b)
	}
	return err
}
