package cli

import (
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// renamedRank is a user-defined low-rank preconditioner whose rank has the name columns in flags.
type renamedRank struct {
	Rank int `flag:"columns" check:">=0"`
	krrlab.RPCholesky
}

// WithDefaults fills in the defaults, with the rank of the flag columns if that is set.
func (r renamedRank) WithDefaults(d stage.Defaults) (stage.Preconditioner, error) {
	if r.Rank > 0 {
		r.S = r.Rank
	}
	p, err := r.RPCholesky.WithDefaults(d)
	r.RPCholesky = p.(krrlab.RPCholesky)
	return r, err
}

// TestSetPrecond checks that plan --nodes adds a rank to a preconditioner whose options do not determine one, whatever
// the names of these options are.
func TestSetPrecond(t *testing.T) {
	for text, want := range map[string]string{
		"rpcholesky": "rpcholesky features=9", "features lambda-p=0.5": "features lambda-p=0.5 features=9",
		"nystrom features=4": "nystrom features=4", "nystrom landmarks=3,1": "nystrom landmarks=3,1",
		"features sketch=features:16,srht:4": "features sketch=features:16,srht:4", "vecchia": "vecchia",
	} {
		candidate := cost.Candidate{Solver: cost.PCG}
		testkit.OK(t, setPrecond(&candidate, text, 100, 9))
		testkit.Equal(t, candidate.Recipe, want)
	}
	testkit.Equal(t, fixesRank(renamedRank{Rank: 5}, 100), true)
	testkit.Equal(t, fixesRank(renamedRank{}, 100), false)
}
