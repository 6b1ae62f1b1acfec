package solve

import (
	"slices"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestCheckpointDue calls save after each of ten iterations, with a first checkpoint of a given age, and compares the
// iterations whose state is written with those that are due: EveryIter iterations after the last one, or once Every has
// passed.
func TestCheckpointDue(t *testing.T) {
	for name, c := range map[string]struct {
		o    Checkpoint
		age  time.Duration
		want []int
	}{
		"every third iteration":    {Checkpoint{EveryIter: 3}, 1000 * time.Hour, []int{3, 6, 9}},
		"every iteration":          {Checkpoint{EveryIter: 1}, 0, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"not yet an hour":          {Checkpoint{Every: time.Hour}, 0, nil},
		"an hour and more":         {Checkpoint{Every: time.Hour}, 2 * time.Hour, []int{1}},
		"whichever comes first":    {Checkpoint{Every: time.Hour, EveryIter: 4}, 2 * time.Hour, []int{1, 5, 9}},
		"neither is set, no state": {Checkpoint{}, 1000 * time.Hour, nil},
	} {
		s := newSystem(func(*System) {})
		m := testkit.Must(s.source(t.Context(), nil, nil))
		k := &checkpoints{system: s, watch: new(bound.Monitor), options: c.o, savedAt: time.Now().Add(-c.age),
			store: testkit.Must(checkpoint.Open(t.TempDir(), [32]byte{}))}
		var got []int
		_, err := pcg.Solve(t.Context(), m.A, m.M, s.Y, &pcg.Options{Tol: 1e-12, MaxIter: 10,
			Checkpoint: func(st *pcg.State) error {
				before := k.savedIteration
				err := k.save(st)
				if k.savedIteration != before && k.savedIteration == st.Iterations() {
					got = append(got, k.savedIteration)
				}
				return err
			}})
		testkit.OK(t, err)
		testkit.Equal(t, len(k.progress.State) > 0, c.want != nil, name, "a state is written")
		if k.close(); !slices.Equal(got, c.want) {
			t.Errorf("%s: states after iterations %v, want %v", name, got, c.want)
		}
	}
}
