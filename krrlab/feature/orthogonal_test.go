package feature

import "testing"

// TestNeed: a block of orthogonal frequencies takes more while it is drawn than W after it.
func TestNeed(t *testing.T) {
	for _, c := range []struct {
		d, s, threads int
		orthogonal    bool
		want          float64
	}{
		{1e5, 1e4, 8, false, 4e9},
		{1e5, 1e4, 1, true, 4e9 + 16e9},
		{1e5, 1e4, 8, true, 4e9 + 16e9}, // one block
		{1e4, 1e5, 4, true, 4e9 + 4*1.6e9},
		{1e4, 25e3, 4, true, 1e9 + 3*1.6e9}, // three
	} {
		if got := need(c.d, c.s, c.threads, c.orthogonal); got != c.want {
			t.Errorf("%+v: %g bytes", c, got)
		}
	}
}
