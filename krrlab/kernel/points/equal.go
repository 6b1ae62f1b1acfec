package points

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/krrlab/lab/krrlab/accel"
)

// FirstEqualBytes is the largest memory that FirstEqual needs per point in bytes, including its result.
const FirstEqualBytes = 32

// FirstEqual numbers the points of all sets consecutively and returns, for each point, the number of the first point
// that equals it: its own number if no earlier point does. Points are equal if they have the same dimension and all
// their coordinates are equal, regardless of the type in which they are stored. −0 equals 0, and NaN equals NaN.
// FirstEqual supports at most 2³²−1 points.
func FirstEqual(sets ...Points) (result []int) { return FirstEqualColumns(0, math.MaxInt, sets...) }

// FirstEqualColumns is FirstEqual with only the columns lo, …, hi-1 compared.
func FirstEqualColumns(lo, hi int, sets ...Points) (result []int) {
	for _, x := range sets {
		n, _ := x.Dims()
		result = append(result, make([]int, n)...)
	}

	n, seed, hashes := len(result), maphash.MakeSeed(), make([]uint64, len(result))
	partitions, keys := uint64(accel.Threads()), make([]keyBuilder, accel.Threads())
	for i := range keys {
		keys[i].lo, keys[i].hi = lo, hi
	}
	forEachPoint(n, func(thread, i int) bool {
		hashes[i] = maphash.Bytes(seed, keys[thread].keyOf(sets, i))
		return true
	})

	// Each thread handles the points whose hash modulo partitions is its partition, in its own hash table.
	accel.Each(int(partitions), func(_, partition int) {
		count := 0
		for _, h := range hashes {
			if h%partitions == uint64(partition) {
				count++
			}
		}
		keyA, keyB := keyBuilder{lo: lo, hi: hi}, keyBuilder{lo: lo, hi: hi}
		// The hash table uses linear probing. A slot has the number + 1 of the first of several equal points, or 0.
		table := make([]uint32, 1<<bits.Len(uint(2*count))) // at most half full
		for i, h := range hashes {
			for position := h / partitions; h%partitions == uint64(partition); position++ {
				slot := &table[position&uint64(len(table)-1)]
				if *slot == 0 {
					*slot = uint32(i) + 1
				}
				j := int(*slot) - 1
				if j == i || hashes[j] == h && bytes.Equal(keyA.keyOf(sets, i), keyB.keyOf(sets, j)) {
					result[i] = j
					break
				}
			}
		}
	})
	return result
}

// Hashes32 returns a 64-bit hash of each point after its numbers were rounded to float32. Points of the same dimension
// with equal rounded numbers have equal hashes, regardless of the type in which they are stored.
func Hashes32(x Points, seed maphash.Seed) []uint64 {
	n, _ := x.Dims()
	hashes, keys := make([]uint64, n), make([]keyBuilder, accel.Threads())
	for i := range keys {
		keys[i].hi, keys[i].rounds = math.MaxInt, true
	}
	forEachPoint(n, func(thread, i int) bool {
		hashes[i] = maphash.Bytes(seed, keys[thread].keyOf([]Points{x}, i))
		return true
	})
	return hashes
}

// keyBuilder computes keys of points. Two points have the same key if and only if they are equal: the comparison covers
// the columns lo, …, hi−1 and, if rounds is set, numbers rounded to float32.
type keyBuilder struct {
	lo, hi int       // range of the columns that are compared
	rounds bool      // numbers are rounded to float32
	key    []byte    // the last key
	row    []float64 // scratch memory for one point
}

// keyOf returns the key of point i of all sets: its dimension, and its nonzeros with their columns.
func (b *keyBuilder) keyOf(sets []Points, i int) []byte {
	x := sets[0]
	n, d := x.Dims()
	for ; i >= n; n, d = x.Dims() {
		i, sets = i-n, sets[1:]
		x = sets[0]
	}
	b.key = binary.LittleEndian.AppendUint64(b.key[:0], uint64(d))
	col, val := storedValues(x, i, &b.row)
	for k, v := range val {
		j := columnOf(col, k)
		if b.rounds {
			v = float64(float32(v))
		}
		switch {
		case v == 0 || j < b.lo || j >= b.hi:
			continue
		case v != v: // every NaN gets the same bits
			v = math.NaN()
		}
		b.key = binary.LittleEndian.AppendUint32(b.key, uint32(j))
		b.key = binary.LittleEndian.AppendUint64(b.key, math.Float64bits(v))
	}
	return b.key
}

// CountRepeated returns the number of points that equal an earlier one. Its argument is the result of FirstEqual.
func CountRepeated(firstEqual []int) (count int) {
	for i, equal := range firstEqual {
		if equal != i {
			count++
		}
	}
	return count
}
