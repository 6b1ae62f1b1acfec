package cli

import (
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// columns is a user-defined low-rank preconditioner, whose rank has a name of its own.
type columns struct {
	Rank int `flag:"columns" check:">=0"`
	krrlab.RPCholesky
}

func (c columns) WithDefaults(d stage.Defaults) (stage.Preconditioner, error) {
	if c.Rank > 0 {
		c.S = c.Rank
	}
	p, err := c.RPCholesky.WithDefaults(d)
	c.RPCholesky = p.(krrlab.RPCholesky)
	return c, err
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
	testkit.Equal(t, fixesRank(columns{Rank: 5}, 100), true)
	testkit.Equal(t, fixesRank(columns{}, 100), false)
}
