package points

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Same returns of each point of all the sets, one after the other, the first that equals it: i where none before it
// does. Points are equal if all their numbers are, −0 and 0 being one and NaN equal to NaN, however they are stored:
// they are told apart by the SHA-256 of their nonzeros.
func Same(sets ...Points) (same []int) {
	first := map[[sha256.Size]byte]int{}
	var row []float64
	var key []byte
	for _, x := range sets {
		n, d := x.Dims()
		for i := range n {
			key = binary.LittleEndian.AppendUint64(key[:0], uint64(d))
			add := func(j int, v float64) {
				switch {
				case v == 0:
					return
				case v != v:
					v = math.NaN()
				}
				key = binary.LittleEndian.AppendUint32(key, uint32(j))
				key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
			}
			if c, ok := x.(*CSR); ok {
				col, val := c.Row(i)
				for k, j := range col {
					add(int(j), val[k])
				}
			} else {
				row = append(row[:0], make([]float64, d)...)
				x.RowTo(row, i)
				for j, v := range row {
					add(j, v)
				}
			}
			h, at := sha256.Sum256(key), len(same)
			if _, seen := first[h]; !seen {
				first[h] = at
			}
			same = append(same, first[h])
		}
	}
	return same
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
