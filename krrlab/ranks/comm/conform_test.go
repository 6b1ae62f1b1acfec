package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// checkConformance checks the requirements on every implementation of comm.Comm, for any number of ranks, which all
// call it at the same time. It returns the errors that this rank finds. The group can be used afterwards. Failures of
// peers and canceled contexts break a group: their tests are next to the implementations.
func checkConformance(ctx context.Context, c comm.Comm) error {
	var errs []error
	for _, check := range []struct {
		name string
		run  func(ctx context.Context, c comm.Comm) error
	}{
		{"ranks", checkRanks},
		{"all-reduce of int64", checkAllReduce},
		{"all-gather", checkAllGather},
		{"broadcast", checkBroadcast},
		{"traffic", checkTraffic},
		{"agree", checkAgree},
		{"fixed-point sums", checkFixedSums},
	} {
		if err := check.run(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("%s: rank %d of %d: %w", check.name, c.Rank(), c.Size(), err))
		}
	}
	return errors.Join(errs...)
}

// lengths are the lengths of the buffers that are tried: none, one, and more than a chunk with the lowered limit of
// UseSmallChunks.
var lengths = []int{0, 1, 2, 7, 1000, 70001}

// checkRanks checks that the ranks are 0, 1, …, p−1.
func checkRanks(ctx context.Context, c comm.Comm) error {
	if c.Size() < 1 || c.Rank() < 0 || c.Rank() >= c.Size() {
		return fmt.Errorf("rank %d, size %d", c.Rank(), c.Size())
	}
	seen := make([]int64, c.Size())
	seen[c.Rank()] = 1
	if err := c.AllReduceInt64(ctx, seen); err != nil {
		return err
	}
	for rank, n := range seen {
		if n != 1 {
			return fmt.Errorf("%d ranks say that they are %d", n, rank)
		}
	}
	return nil
}

// checkAllReduce checks sums of numbers that need more than the 53 bits of float64.
func checkAllReduce(ctx context.Context, c comm.Comm) error {
	ranks := int64(c.Size())
	for _, n := range lengths {
		x := make([]int64, n)
		for i := range x {
			x[i] = 1<<55 + int64(i) - int64(c.Rank())
		}
		if err := c.AllReduceInt64(ctx, x); err != nil {
			return err
		}
		for i, v := range x {
			if want := ranks*(1<<55+int64(i)) - ranks*(ranks-1)/2; v != want {
				return fmt.Errorf("number %d of %d is %d, want %d", i, n, v, want)
			}
		}
	}
	return nil
}

// checkAllGather checks blocks of different lengths; if there are several ranks, the block of rank 0 is empty.
func checkAllGather(ctx context.Context, c comm.Comm) error {
	for _, n := range lengths {
		counts, total := make([]int, c.Size()), 0
		for rank := range counts {
			counts[rank] = n * rank / 2 // rank 0 has none
			if c.Size() == 1 {
				counts[rank] = n
			}
			total += counts[rank]
		}
		x, start := make([]float64, total), 0
		for rank, count := range counts {
			for i := range count {
				if x[start+i] = math.NaN(); rank == c.Rank() {
					x[start+i] = float64(1e6*rank + i)
				}
			}
			start += count
		}
		if err := c.AllGather(ctx, x, counts); err != nil {
			return err
		}
		start = 0
		for rank, count := range counts {
			for i, v := range x[start : start+count] {
				if v != float64(1e6*rank+i) {
					return fmt.Errorf("number %d of %d of rank %d is %v", i, count, rank, v)
				}
			}
			start += count
		}
	}
	return nil
}

// checkBroadcast checks broadcasts from every rank.
func checkBroadcast(ctx context.Context, c comm.Comm) error {
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

// checkTraffic checks the counted bytes and calls.
func checkTraffic(ctx context.Context, c comm.Comm) error {
	if c.Size() == 1 { // a single process counts nothing
		return nil
	}
	before := c.Traffic()
	if err := c.AllReduceInt64(ctx, make([]int64, 100)); err != nil {
		return err
	}
	counts := make([]int, c.Size())
	for rank := range counts {
		counts[rank] = 10
	}
	if err := c.AllGather(ctx, make([]float64, 10*c.Size()), counts); err != nil {
		return err
	}
	if err := c.Broadcast(ctx, make([]byte, 5), 0); err != nil {
		return err
	}
	want := int64(8*100 + 8*10) // bytes of the two calls with numbers
	if c.Rank() == 0 {
		want += 5 // only the root of a broadcast contributes bytes
	}
	if difference := c.Traffic().Sub(before); difference.Bytes != want || difference.Calls != 3 ||
		difference.Seconds < 0 {
		return fmt.Errorf("%+v, want %d bytes in 3 calls", difference, want)
	}
	return nil
}

// checkAgree checks that an error of the last rank reaches all ranks.
func checkAgree(ctx context.Context, c comm.Comm) error {
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
	var rankErr *comm.RankError
	if !errors.As(err, &rankErr) || rankErr.Rank != last || !strings.Contains(err.Error(), "no such file") {
		return fmt.Errorf("rank %d's error arrives as %v", last, err)
	}
	return nil
}

// checkFixedSums adds the same terms on one rank and distributed over the ranks. The sums must be equal.
func checkFixedSums(ctx context.Context, c comm.Comm) error {
	const terms = 1000
	fixedPoint := comm.NewFixedPoint(terms)
	sum, want := []int64{0}, []int64{0}
	for i := range terms {
		v := []float64{math.Sin(float64(i))}
		fixedPoint.Add(want, v)
		if i%c.Size() == c.Rank() {
			fixedPoint.Add(sum, v)
		}
	}
	if err := c.AllReduceInt64(ctx, sum); err != nil {
		return err
	}
	if sum[0] != want[0] {
		return fmt.Errorf("the sum is %v, want that of one rank, %v", fixedPoint.Value(sum[0]), fixedPoint.Value(want[0]))
	}
	return nil
}
