package feature

import (
	"testing"

	"github.com/krrlab/lab/krrlab/rng"
)

func draw(t *testing.T, f Dist, d, s int) Map {
	t.Helper()
	m, err := f.Sample(d, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return m
}
