package solve

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestCheckpointDue gives save the state after each of ten iterations, with a clock that shows an age since the last
// checkpoint, and compares the iterations whose state is written with those that are due: EveryIter iterations after the
// last one, or once Every has passed.
func TestCheckpointDue(t *testing.T) {
	for name, c := range map[string]struct {
		o    Checkpoint
		age  time.Duration
		want []int
	}{
		"every third iteration":  {Checkpoint{EveryIter: 3}, 1000 * time.Hour, []int{3, 6, 9}},
		"every iteration":        {Checkpoint{EveryIter: 1}, 0, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"not yet an hour":        {Checkpoint{Every: time.Hour}, 0, nil},
		"an hour and more":       {Checkpoint{Every: time.Hour}, 2 * time.Hour, []int{1}},
		"whichever comes first":  {Checkpoint{Every: time.Hour, EveryIter: 4}, 2 * time.Hour, []int{1, 5, 9}},
		"neither, which is none": {Checkpoint{}, 1000 * time.Hour, nil},
	} {
		s := system(func(*System) {})
		m := testkit.Must(s.source(t.Context(), nil, nil))
		k := &checkpoints{task: s, o: c.o, last: time.Now().Add(-c.age),
			store: testkit.Must(checkpoint.Open(t.TempDir(), [32]byte{}))}
		var got []int
		_, err := pcg.Solve(t.Context(), m.A, m.M, s.Y, &pcg.Options{Tol: 1e-12, MaxIter: 10,
			Checkpoint: func(st *pcg.State) error {
				before := k.iter
				err := k.save(st)
				if k.iter != before && k.iter == st.Iterations() {
					got = append(got, k.iter)
				}
				return err
			}})
		testkit.OK(t, err)
		testkit.Equal(t, len(k.now.State) > 0, c.want != nil, name)
		if k.close(); !slices.Equal(got, c.want) {
			t.Errorf("%s: states after iterations %v, want %v", name, got, c.want)
		}
	}
}

// TestResume ends a solve after a quarter of its iterations, resumes it, and wants the coefficients, the history and the status of
// the solve that is not broken, bit for bit: also where the answer of a first run is being refined. Checkpoints are as far apart after a
// resumption as before it.
func TestResume(t *testing.T) {
	for name, change := range map[string]func(*System){
		"pcg":     func(s *System) {},
		"refined": func(s *System) { s.Policy.ExactWork, s.Storage, s.Tol = -1, gram.Float32, 1e-8 },
		"rows":    func(s *System) { s.Residual, s.Storage, s.Tol = StoredResidual, gram.Float32, 1e-4 },
	} {
		s := system(change)
		want := NewSolution(stage.Header{Tol: s.Tol})
		x := testkit.Must(Run(t.Context(), s, s.source, want))
		var notes int
		s.Owner = func() (sum [32]byte, err error) { return sum, nil }
		s.Checkpoint = &Checkpoint{Dir: t.TempDir(), EveryIter: 5, Note: func(string) { notes++ }}
		for round := 0; ; round++ {
			ctx, cancel := context.WithCancel(t.Context())
			seen := 0
			s.Monitor = func(e stage.Event) error {
				if seen++; seen > want.Iterations/4 {
					cancel()
				}
				return nil
			}
			sol := NewSolution(stage.Header{Tol: s.Tol})
			got, err := Run(ctx, s, s.source, sol)
			if cancel(); err != nil {
				if !errors.Is(err, context.Canceled) || sol.Status != pcg.Canceled || round > 5 {
					t.Fatalf("%s: %v, %v", name, sol.Status, err)
				}
				testkit.Equal(t, s.Checkpoint.Kept(), true, name)
				s.Checkpoint.Resume = true
				continue
			}
			if !mat.Equal(got, x) || sol.Iterations != want.Iterations || sol.Status != want.Status ||
				len(sol.History) != len(want.History) || notes != round || round == 0 {
				t.Errorf("%s, resumed %d times, with %d notes: %v after %d iterations", name, round, notes, sol.Status,
					sol.Iterations)
			}
			testkit.OK(t, sol.Forget())
			testkit.Equal(t, s.Checkpoint.Kept(), false, name)
			break
		}
	}
}
