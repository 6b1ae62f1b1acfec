package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// conform runs what every implementation of comm.Comm must do, on any number of ranks, all of which call it at once. It
// returns what is wrong as that rank sees it, nil if nothing is; the group is usable after it. Failures of peers and
// the end of a context break a group: those tests lie beside the implementations.
func conform(ctx context.Context, c comm.Comm) error {
	var all []error
	for _, k := range []struct {
		name string
		run  func(ctx context.Context, c comm.Comm) error
	}{
		{"ranks", ranks},
		{"all-reduce of int64", allReduceInt64},
		{"all-gather", allGather},
		{"broadcast", broadcast},
		{"traffic", traffic},
		{"agree", agree},
		{"fixed-point sums", fixed},
	} {
		if err := k.run(ctx, c); err != nil {
			all = append(all, fmt.Errorf("%s: rank %d of %d: %w", k.name, c.Rank(), c.Size(), err))
		}
	}
	return errors.Join(all...)
}

// lengths are those of the buffers tried, with none, one, and more than a chunk of a
// lowered limit.
var lengths = []int{0, 1, 2, 7, 1000, 70001}

func ranks(ctx context.Context, c comm.Comm) error {
	if c.Size() < 1 || c.Rank() < 0 || c.Rank() >= c.Size() {
		return fmt.Errorf("rank %d, size %d", c.Rank(), c.Size())
	}
	seen := make([]int64, c.Size())
	seen[c.Rank()] = 1
	if err := c.AllReduceInt64(ctx, seen); err != nil {
		return err
	}
	for r, n := range seen {
		if n != 1 {
			return fmt.Errorf("%d ranks say that they are %d", n, r)
		}
	}
	return nil
}

func allReduceInt64(ctx context.Context, c comm.Comm) error {
	p := int64(c.Size())
	for _, n := range lengths {
		x := make([]int64, n)
		for i := range x { // beyond float64's 53 bits
			x[i] = 1<<55 + int64(i) - int64(c.Rank())
		}
		if err := c.AllReduceInt64(ctx, x); err != nil {
			return err
		}
		for i, v := range x {
			if want := p*(1<<55+int64(i)) - p*(p-1)/2; v != want {
				return fmt.Errorf("number %d of %d is %d, want %d", i, n, v, want)
			}
		}
	}
	return nil
}

func allGather(ctx context.Context, c comm.Comm) error {
	for _, n := range lengths {
		counts, sum := make([]int, c.Size()), 0
		for r := range counts {
			counts[r] = n * r / 2 // rank 0 has none
			if c.Size() == 1 {
				counts[r] = n
			}
			sum += counts[r]
		}
		x, at := make([]float64, sum), 0
		for r, m := range counts {
			for i := range m {
				if x[at+i] = math.NaN(); r == c.Rank() {
					x[at+i] = float64(1e6*r + i)
				}
			}
			at += m
		}
		if err := c.AllGather(ctx, x, counts); err != nil {
			return err
		}
		at = 0
		for r, m := range counts {
			for i, v := range x[at : at+m] {
				if v != float64(1e6*r+i) {
					return fmt.Errorf("number %d of %d of rank %d is %v", i, m, r, v)
				}
			}
			at += m
		}
	}
	return nil
}

func broadcast(ctx context.Context, c comm.Comm) error {
	for root := range c.Size() {
		for _, n := range lengths {
			x := make([]byte, n)
			for i := range x {
				if root == c.Rank() {
					x[i] = byte(i*7 + root)
				}
			}
			if err := c.Broadcast(ctx, x, root); err != nil {
				return err
			}
			for i, v := range x {
				if v != byte(i*7+root) {
					return fmt.Errorf("byte %d of %d from %d is %d", i, n, root, v)
				}
			}
		}
	}
	return nil
}

func traffic(ctx context.Context, c comm.Comm) error {
	if c.Size() == 1 { // Alone counts nothing
		return nil
	}
	before := c.Traffic()
	if err := c.AllReduceInt64(ctx, make([]int64, 100)); err != nil {
		return err
	}
	counts := make([]int, c.Size())
	for r := range counts {
		counts[r] = 10
	}
	if err := c.AllGather(ctx, make([]float64, 10*c.Size()), counts); err != nil {
		return err
	}
	if err := c.Broadcast(ctx, make([]byte, 5), 0); err != nil {
		return err
	}
	want := int64(800 + 80)
	if c.Rank() == 0 {
		want += 5
	}
	if d := c.Traffic().Sub(before); d.Bytes != want || d.Calls != 3 || d.Seconds < 0 {
		return fmt.Errorf("%+v, want %d bytes in 3 calls", d, want)
	}
	return nil
}

func agree(ctx context.Context, c comm.Comm) error {
	if err := comm.Agree(ctx, c, nil); err != nil {
		return fmt.Errorf("an error from nothing: %w", err)
	}
	if c.Size() == 1 {
		return nil
	}
	var err error
	last := c.Size() - 1
	if c.Rank() == last {
		err = errors.New("no such file")
	}
	err = comm.Agree(ctx, c, err)
	var e *comm.RankError
	if !errors.As(err, &e) || e.Rank != last || !strings.Contains(err.Error(), "no such file") {
		return fmt.Errorf("rank %d's error arrives as %v", last, err)
	}
	return nil
}

// fixed adds the same terms, dealt in two ways.
func fixed(ctx context.Context, c comm.Comm) error {
	const m = 1000
	f := comm.FixedFor(m)
	sum, want := []int64{0}, []int64{0}
	for i := range m {
		v := []float64{math.Sin(float64(i))}
		f.Add(want, v)
		if i%c.Size() == c.Rank() {
			f.Add(sum, v)
		}
	}
	if err := c.AllReduceInt64(ctx, sum); err != nil {
		return err
	}
	if sum[0] != want[0] {
		return fmt.Errorf("%v, alone %v", f.Value(sum[0]), f.Value(want[0]))
	}
	return nil
}
