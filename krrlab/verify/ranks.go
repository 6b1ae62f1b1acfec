package verify

import (
	"context"

	"github.com/krrlab/lab/krrlab/comm"
)

// holdOwn forms this rank's rows of K, whole ones, where all ranks have the memory for theirs.
func (m *Matrix) holdOwn(ctx context.Context, memory int64) error {
	size := m.comm.Size()
	own := ((m.N+group-1)/group + size - 1) / size * group // at most
	short := []int64{0}
	if 8*int64(own)*int64(m.N) > memory {
		short[0] = 1
	}
	if err := m.comm.AllReduceInt64(ctx, short); err != nil {
		return err
	}
	if short[0] > 0 {
		return nil
	}
	k := make([]float64, own*m.N)
	err := m.each(ctx, m.N, func(lo, hi int) {
		dst, z := make([][]float64, hi-lo), make([][]float64, hi-lo)
		for i := lo; i < hi; i++ {
			at := m.place(i)
			dst[i-lo], z[i-lo] = k[at*m.N:(at+1)*m.N], m.point(i)
		}
		m.values(dst, z)
		for i := lo; i < hi; i++ {
			dst[i-lo][i] = m.diag[i]
		}
	})
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	m.k, m.Stored = k, true
	return nil
}

// place returns where row i of K is kept: group g is group g/P of its rank.
func (m *Matrix) place(i int) int {
	return i/group/m.comm.Size()*group + i%group
}

// gather adds the lists over the ranks, of which one has each number and the others 0, unless
// err, or that of another rank, is not nil.
func (m *Matrix) gather(ctx context.Context, err error, lists ...[]float64) error {
	if err := comm.Agree(ctx, m.comm, err); err != nil {
		return err
	}
	for _, x := range lists {
		if err := m.comm.AllReduce(ctx, x); err != nil {
			return err
		}
	}
	return nil
}
