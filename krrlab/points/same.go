package points

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// SameHeld is the most bytes that Same takes for a point, its result included.
const SameHeld = 32

// Same returns of each point of all the sets, one after the other, the first that equals it: i where none before it
// does. Points are equal if all their numbers are, −0 and 0 being one and NaN equal to NaN, however they are stored.
func Same(sets ...Points) (same []int) {
	for _, x := range sets {
		n, _ := x.Dims()
		same = append(same, make([]int, n)...)
	}
	n, seed, hash := len(same), maphash.MakeSeed(), make([]uint64, len(same))
	// The context is never done, so ForEach gives no error.
	_ = accel.ForEach(context.Background(), (n+rowsAtOnce-1)/rowsAtOnce, func(_, b int) {
		var r rowKey
		for i := b * rowsAtOnce; i < min((b+1)*rowsAtOnce, n); i++ {
			hash[i] = maphash.Bytes(seed, r.of(sets, i))
		}
	})
	parts := uint64(accel.Threads())
	_ = accel.ForEach(context.Background(), int(parts), func(_, part int) {
		own := 0
		for _, h := range hash {
			if h%parts == uint64(part) {
				own++
			}
		}
		var a, b rowKey
		first := make([]uint32, 1<<bits.Len(uint(2*own))) // of equal points, from 1, at the hash or the next free place
		for i, h := range hash {
			for k := h / parts; h%parts == uint64(part); k++ {
				at := &first[k&uint64(len(first)-1)]
				if *at == 0 {
					*at = uint32(i) + 1
				}
				if j := int(*at) - 1; j == i || hash[j] == h && bytes.Equal(a.of(sets, i), b.of(sets, j)) {
					same[i] = j
					break
				}
			}
		}
	})
	return same
}

// rowKey makes keys of points, which are the same if and only if the points are equal.
type rowKey struct {
	key []byte
	row []float64
}

// of returns the key of point i of all the sets: its dimension, and the nonzeros with their places.
func (r *rowKey) of(sets []Points, i int) []byte {
	x := sets[0]
	n, d := x.Dims()
	for ; i >= n; n, d = x.Dims() {
		i, sets = i-n, sets[1:]
		x = sets[0]
	}
	r.key = binary.LittleEndian.AppendUint64(r.key[:0], uint64(d))
	add := func(j int, v float64) {
		switch {
		case v == 0:
			return
		case v != v:
			v = math.NaN()
		}
		r.key = binary.LittleEndian.AppendUint32(r.key, uint32(j))
		r.key = binary.LittleEndian.AppendUint64(r.key, math.Float64bits(v))
	}
	if c, ok := x.(*CSR); ok {
		col, val := c.Row(i)
		for k, j := range col {
			add(int(j), val[k])
		}
		return r.key
	}
	x.RowTo(buffer.Grow(&r.row, d), i)
	for j, v := range r.row {
		add(j, v)
	}
	return r.key
}

// Repeated returns how many points equal one before them.
func Repeated(same []int) (count int) {
	for i, first := range same {
		if first != i {
			count++
		}
	}
	return count
}
