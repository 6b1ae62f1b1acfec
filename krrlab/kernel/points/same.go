package points

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/krrlab/lab/krrlab/accel"
)

// SameHeld is the most bytes that Same takes for a point, its result included.
const FirstEqualBytes = 32

// Same returns for each point of all the sets, one after the other, the first that equals it: i where none before it
// does. Points are equal if all their numbers are, −0 and 0 being one and NaN equal to NaN, however they are stored.
func FirstEqual(sets ...Points) (same []int) { return FirstEqualColumns(0, math.MaxInt, sets...) }

// SameColumns is Same of columns lo, …, hi-1 of the points alone.
func FirstEqualColumns(lo, hi int, sets ...Points) (same []int) {
	for _, x := range sets {
		n, _ := x.Dims()
		same = append(same, make([]int, n)...)
	}
	n, seed, hash := len(same), maphash.MakeSeed(), make([]uint64, len(same))
	parts, keys := uint64(accel.Threads()), make([]rowKey, accel.Threads())
	for i := range keys {
		keys[i].lo, keys[i].hi = lo, hi
	}
	each(n, func(who, i int) bool {
		hash[i] = maphash.Bytes(seed, keys[who].of(sets, i))
		return true
	})
	accel.Each(int(parts), func(_, part int) {
		own := 0
		for _, h := range hash {
			if h%parts == uint64(part) {
				own++
			}
		}
		a, b := rowKey{lo: lo, hi: hi}, rowKey{lo: lo, hi: hi}
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
	lo, hi int // columns that count
	key    []byte
	row    []float64
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
	col, val := stored(x, i, &r.row)
	for k, v := range val {
		j := column(col, k)
		switch {
		case v == 0 || j < r.lo || j >= r.hi:
			continue
		case v != v:
			v = math.NaN()
		}
		r.key = binary.LittleEndian.AppendUint32(r.key, uint32(j))
		r.key = binary.LittleEndian.AppendUint64(r.key, math.Float64bits(v))
	}
	return r.key
}

// Repeated returns how many points equal one before them.
func CountRepeated(same []int) (count int) {
	for i, first := range same {
		if first != i {
			count++
		}
	}
	return count
}
