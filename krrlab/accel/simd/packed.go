package simd

import (
	"math"
	"math/bits"
)

// rowPacker packs the first entries of a row, as many as it can, rowUnpacker unpacks them. The tables are packed and
// unpacked.
type (
	rowPacker   func(n int, values *float32, mask *uint16, row *float32, least float32, dropped *float32, table *uint64) (done, kept int, sum float32)
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

// Pack32 packs a row of c numbers: those of |v| ≥ least, NaN and infinities are kept. Their bits are set in mask, bit
// b of word w for number 16w+b, their values are the first n of values, which must have room for c, in their order.
// For the others |v| is added to dropped, one number for each column, and sum is that of all of them. It panics if a
// slice is too short: mask has (c+15)/16 words. The bits and values are the same on every path.
func Pack32(values []float32, mask []uint16, row []float32, least float32, dropped []float32) (n int, sum float32) {
	done := 0
	if f := current().pack; f != nil && len(row) > 0 {
		_, _, _ = values[len(row)-1], mask[(len(row)-1)/16], dropped[len(row)-1]
		done, n, sum = f(len(row), &values[0], &mask[0], &row[0], least, &dropped[0], &packed[0])
		done = min(done, len(row))
	}
	rest, more := pack(values[n:], mask[done/16:], row[done:], least, dropped[done:])
	return n + rest, sum + more
}

// Pack64 is Pack32 in float64.
func Pack64(values []float64, mask []uint16, row []float64, least float64, dropped []float64) (n int, sum float64) {
	return pack(values, mask, row, least, dropped)
}

func pack[T number](values []T, mask []uint16, row []T, least T, dropped []T) (n int, sum T) {
	values, dropped = values[:len(row)], dropped[:len(row)]
	clear(mask[:(len(row)+15)/16])
	for j, v := range row {
		if size := max(v, -v); size < least {
			dropped[j] += size
			sum += size
			continue
		}
		mask[j/16] |= 1 << (j % 16)
		values[n] = v
		n++
	}
	return n, sum
}

// Unpack32 is the inverse of Pack32: it sets row, with 0 for what was dropped, and returns how many values it read. It
// panics if a slice is too short.
func Unpack32(row []float32, mask []uint16, values []float32) (n int) {
	done := 0
	if f := current().unpack; f != nil && len(row) > 0 && len(values) > 0 {
		_ = mask[(len(row)-1)/16]
		done, n = f(len(row), &row[0], &mask[0], &values[0], len(values), &unpacked[0])
		done = min(done, len(row))
	}
	return n + unpack(row[done:], mask[done/16:], values[n:])
}

// Unpack64 is Unpack32 in float64.
func Unpack64(row []float64, mask []uint16, values []float64) (n int) {
	return unpack(row, mask, values)
}

func unpack[T number](row []T, mask []uint16, values []T) (n int) {
	clear(row)
	for w := range (len(row) + 15) / 16 {
		for left := mask[w]; left != 0; left &= left - 1 {
			row[16*w+bits.TrailingZeros16(left)] = values[n]
			n++
		}
	}
	return n
}

// Candidates sets at to the places b, in ascending order, of the numbers with |row_b| at least own where before_b < place
// and at least floors_b elsewhere, and returns how many there are. It panics if a slice is shorter than row.
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
