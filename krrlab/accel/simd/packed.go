package simd

import (
	"math"
	"math/bits"
)

// rowPacker packs the first entries of a row, as many as it can, rowUnpacker unpacks them. The tables are packed and
// unpacked.
type (
	rowPacker func(n int, values *float32, mask *uint16, row *float32, least float32, dropped *float32,
		table *uint64) (done, kept int, sum float32)
	rowUnpacker func(n int, row *float32, mask *uint16, values *float32, length int, table *uint64) (done, read int)
)

// packed holds, for the bits of a byte, the places of the bits that are set in ascending order, a byte each; unpacked
// the number of bits set below each place, and 128 where it is not set itself.
var packed, unpacked = func() (to, from [256]uint64) {
	for b := range 256 {
		for place := range 8 {
			below := bits.OnesCount(uint(b & (1<<place - 1)))
			if b>>place&1 == 1 {
				to[b] |= uint64(place) << (8 * below)
				from[b] |= uint64(below) << (8 * place)
			} else {
				from[b] |= 128 << (8 * place)
			}
		}
	}
	return to, from
}()

// Pack packs a row of c numbers: those of |v| ≥ least, NaN and infinities are kept. Their bits are set in mask, bit
// b of word w for number 16w+b, their values are the first n of values, which must have room for c, in their order.
// For the others |v| is added to dropped, one number for each column, and sum is that of all of them. It panics if a
// slice is too short: mask has (c+15)/16 words. The bits and values are the same on every path.
func Pack[T number](values []T, mask []uint16, row []T, least T, dropped []T) (n int, sum T) {
	values, mask, dropped = values[:len(row)], mask[:(len(row)+15)/16], dropped[:len(row)]
	done := 0
	if row, single := any(row).([]float32); single && len(row) > 0 {
		if f := current().pack; f != nil {
			var part float32
			done, n, part = f(len(row), any(&values[0]).(*float32), &mask[0], &row[0], float32(least),
				any(&dropped[0]).(*float32), &packed[0])
			done, sum = min(done, len(row)), T(part)
		}
	}
	clear(mask[(done+15)/16:]) // done is a multiple of 16, or all
	var rest T
	for j := done; j < len(row); j++ {
		v := row[j]
		if size := max(v, -v); size < least {
			dropped[j] += size
			rest += size
			continue
		}
		mask[j/16] |= 1 << (j % 16)
		values[n] = v
		n++
	}
	return n, sum + rest
}

// Unpack is the inverse of Pack: it sets row, with 0 for what was dropped, and returns how many values it read. It
// panics if a slice is too short.
func Unpack[T number](row []T, mask []uint16, values []T) (n int) {
	mask, done := mask[:(len(row)+15)/16], 0
	if row, single := any(row).([]float32); single && len(row) > 0 && len(values) > 0 {
		if f := current().unpack; f != nil {
			done, n = f(len(row), &row[0], &mask[0], any(&values[0]).(*float32), len(values), &unpacked[0])
			done = min(done, len(row))
		}
	}
	clear(row[done:])
	for w := (done + 15) / 16; w < len(mask); w++ {
		for left := mask[w]; left != 0; left &= left - 1 {
			row[16*w+bits.TrailingZeros16(left)] = values[n]
			n++
		}
	}
	return n
}

// Candidates sets at to the places b, in ascending order, of the numbers with |row_b| at least own where before_b <
// place and at least floors_b elsewhere, and returns how many there are. It panics if a slice is shorter than row.
func Candidates(at []int32, row, floors []float32, before []int32, own float32, place int32) (n int) {
	at, floors, before = at[:len(row)], floors[:len(row)], before[:len(row)]
	done := vectors(len(row), 8)
	if done > 0 {
		n = candidates32AVX2(done, &at[0], &row[0], &floors[0], &before[0], own, place, &packed[0])
	}
	for b := done; b < len(row); b++ {
		floor := floors[b]
		if before[b] < place {
			floor = own
		}
		if float32(math.Abs(float64(row[b]))) >= floor {
			at[n] = int32(b)
			n++
		}
	}
	return n
}
