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
	for name, test := range map[string]struct {
		options   Checkpoint
		age       time.Duration // age of the first checkpoint
		wantSaved []int         // iterations whose state must be written
	}{
		"every third iteration":    {Checkpoint{EveryIter: 3}, 1000 * time.Hour, []int{3, 6, 9}},
		"every iteration":          {Checkpoint{EveryIter: 1}, 0, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"not yet an hour":          {Checkpoint{Every: time.Hour}, 0, nil},
		"an hour and more":         {Checkpoint{Every: time.Hour}, 2 * time.Hour, []int{1}},
		"whichever comes first":    {Checkpoint{Every: time.Hour, EveryIter: 4}, 2 * time.Hour, []int{1, 5, 9}},
		"neither is set, no state": {Checkpoint{}, 1000 * time.Hour, nil},
	} {
		system := newSystem(func(*System) {})
		matrices := testkit.Must(system.buildMatrices(t.Context(), nil, nil))
		saver := &checkpointer{system: system, bounds: new(bound.Monitor), options: test.options,
			savedAt: time.Now().Add(-test.age), store: testkit.Must(checkpoint.Open(t.TempDir(), [32]byte{}))}
		var saved []int
		_, err := pcg.Solve(t.Context(), matrices.A, matrices.M, system.Y, &pcg.Options{Tol: 1e-12, MaxIter: 10,
			Checkpoint: func(state *pcg.State) error {
				before := saver.savedIteration
				err := saver.save(state)
				if saver.savedIteration != before && saver.savedIteration == state.Iterations() {
					saved = append(saved, saver.savedIteration)
				}
				return err
			}})
		testkit.OK(t, err)
		testkit.Equal(t, len(saver.progress.State) > 0, test.wantSaved != nil, name, "a state is written")
		if saver.close(); !slices.Equal(saved, test.wantSaved) {
			t.Errorf("%s: states after iterations %v, want %v", name, saved, test.wantSaved)
		}
	}
}
