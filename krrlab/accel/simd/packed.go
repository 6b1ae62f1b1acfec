package simd

import (
	"math"
	"math/bits"
)

type (
	// rowPacker is an assembly routine that packs the first entries of a row of n, as PackRow does; it may leave a
	// remainder. It returns the number of entries that it processed, the number of stored values, and the sum of the
	// dropped magnitudes. Its table is packOrder.
	rowPacker func(n int, values *float32, mask *uint16, row *float32, cutoff float32, dropped *float32,
		table *uint64) (processed, valueCount int, droppedSum float32)
	// rowUnpacker is an assembly routine that unpacks the first entries of a row of n, as UnpackRow does. It returns
	// the number of entries that it processed and the number of values that it read. Its table is unpackOrder.
	rowUnpacker func(n int, row *float32, mask *uint16, values *float32, length int,
		table *uint64) (processed, valueCount int)
)

// packOrder holds, for each value of a byte, the positions of its set bits in ascending order, one byte each.
// unpackOrder holds, for each position, the number of set bits below it, or 128 if the bit at the position is not set.
var packOrder, unpackOrder = func() (pack, unpack [256]uint64) {
	for b := range 256 {
		for position := range 8 {
			lowerBits := bits.OnesCount(uint(b & (1<<position - 1)))
			if b>>position&1 == 1 {
				pack[b] |= uint64(position) << (8 * lowerBits)
				unpack[b] |= uint64(lowerBits) << (8 * position)
			} else {
				unpack[b] |= 128 << (8 * position)
			}
		}
	}
	return pack, unpack
}()

// PackRow packs a row of c = len(row) numbers. It keeps the numbers with |v| ≥ cutoff, NaN and infinities, and drops
// the others. For each number 16w+b that is kept, bit b of mask[w] is set. The n kept numbers are stored in values, in
// the order of the row; values needs space for c numbers, and mask for (c+15)/16 words. For each dropped number, |v| is
// added to the element of dropped for its column, and droppedSum is the sum of these |v|. PackRow panics if a slice is
// too short. The bits and values are the same with every instruction set.
func PackRow[T number](values []T, mask []uint16, row []T, cutoff T, dropped []T) (n int, droppedSum T) {
	words := (len(row) + 15) / 16
	values, mask, dropped = prefix(values, len(row)), prefix(mask, words), prefix(dropped, len(row))
	processed := 0
	if row, isFloat32 := any(row).([]float32); isFloat32 && len(row) > 0 {
		if pack := current().pack; pack != nil {
			var vectorSum float32
			processed, n, vectorSum = pack(len(row), any(&values[0]).(*float32), &mask[0], &row[0], float32(cutoff),
				any(&dropped[0]).(*float32), &packOrder[0])
			processed, droppedSum = min(processed, len(row)), T(vectorSum)
		}
	}
	clear(mask[(processed+15)/16:]) // processed is a multiple of 16 or the length of row
	var tailSum T
	for j := processed; j < len(row); j++ {
		v := row[j]
		if magnitude := max(v, -v); magnitude < cutoff {
			dropped[j] += magnitude
			tailSum += magnitude
			continue
		}
		mask[j/16] |= 1 << (j % 16)
		values[n] = v
		n++
	}
	return n, droppedSum + tailSum
}

// UnpackRow is the inverse of PackRow. It sets row, with 0 for each dropped number, and returns the number of values
// that it read. It panics if a slice is too short.
func UnpackRow[T number](row []T, mask []uint16, values []T) (n int) {
	mask, processed := prefix(mask, (len(row)+15)/16), 0
	if row, isFloat32 := any(row).([]float32); isFloat32 && len(row) > 0 && len(values) > 0 {
		if unpack := current().unpack; unpack != nil {
			processed, n = unpack(len(row), &row[0], &mask[0], any(&values[0]).(*float32), len(values), &unpackOrder[0])
			processed = min(processed, len(row))
		}
	}
	clear(row[processed:])
	for word := (processed + 15) / 16; word < len(mask); word++ {
		for remainingBits := mask[word]; remainingBits != 0; remainingBits &= remainingBits - 1 {
			row[16*word+bits.TrailingZeros16(remainingBits)] = values[n]
			n++
		}
	}
	return n
}

// SelectMagnitudes finds the numbers of row whose magnitudes reach their thresholds. The threshold of row_b is
// rowThreshold if positions_b < rowPosition, and thresholds_b otherwise. SelectMagnitudes stores the indices b with
// |row_b| at least its threshold in indices, in ascending order, and returns their number. It panics if a slice is
// shorter than row.
func SelectMagnitudes(indices []int32, row, thresholds []float32, positions []int32, rowThreshold float32,
	rowPosition int32) (n int) {
	indices, thresholds, positions = prefix(indices, len(row)), prefix(thresholds, len(row)), prefix(positions,
		len(row))
	processed := assemblyCount(len(row), 8)
	if processed > 0 {
		n = selectMagnitudes32AVX2(processed, &indices[0], &row[0], &thresholds[0], &positions[0], rowThreshold,
			rowPosition, &packOrder[0])
	}
	for b := processed; b < len(row); b++ {
		threshold := thresholds[b]
		if positions[b] < rowPosition {
			threshold = rowThreshold
		}
		if float32(math.Abs(float64(row[b]))) >= threshold {
			indices[n] = int32(b)
			n++
		}
	}
	return n
}
