package comm

import (
	"runtime"
	"sync"
	"testing"
)

func TestShare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	mask := func(m int64) []int64 { return []int64{1, m, 0} }
	for _, c := range []struct {
		own   int64
		peers []int64
		want  int
	}{
		{0b1111, []int64{0b1111}, 4},
		{0b1111, []int64{0b1111, 0b1111}, 2},       // not bound
		{0b0011, []int64{0b0011, 0b1100}, 2},       // bound
		{0b0001, []int64{0b0001, 0b0001, 0b10}, 0}, // more ranks than processors: none for each
		{0b0111, []int64{0b0111, 0b0001, 0b10}, 2}, // 1/2 + 1/2 + 1
		{0b1111, []int64{0b1111, 0b1111, 0b1111}, 1},
	} {
		var peers [][]int64
		for _, p := range c.peers {
			peers = append(peers, mask(p))
		}
		if got := share(mask(c.own), peers); got != c.want {
			t.Errorf("%b among %b: %d processors, want %d", c.own, c.peers, got, c.want)
		}
	}
}

func TestLocate(t *testing.T) {
	var wg sync.WaitGroup
	for _, c := range Local(3, Options{}) {
		wg.Go(func() {
			n, err := Locate(t.Context(), c)
			if want := max(1, min(runtime.NumCPU(), runtime.GOMAXPROCS(0))/3); err != nil || n.Ranks != 3 ||
				n.CPUs != want {
				t.Errorf("%+v, %v, want %d processors", n, err, want)
			}
		})
	}
	wg.Wait()
}
