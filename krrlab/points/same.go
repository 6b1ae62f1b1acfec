package points

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
)

// Same returns of each point of all the sets, one after the other, the first that equals it: i where none before it
// does. Points are equal if all their numbers are, −0 and 0 being one and NaN equal to NaN, however they are stored:
// they are told apart by the SHA-256 of their nonzeros.
func Same(sets ...Points) (same []int) {
	var keys [][sha256.Size]byte
	for _, x := range sets {
		n, _ := x.Dims()
		at := len(keys)
		keys = append(keys, make([][sha256.Size]byte, n)...)
		// The context is never done, so ForEach gives no error.
		_ = accel.ForEach(context.Background(), (n+rowsAtOnce-1)/rowsAtOnce, func(_, b int) {
			hashRows(keys[at:], x, b*rowsAtOnce, min((b+1)*rowsAtOnce, n))
		})
	}
	same = make([]int, len(keys))
	parts := accel.Threads()
	_ = accel.ForEach(context.Background(), parts, func(_, part int) {
		first := make(map[[sha256.Size]byte]int, len(keys)/parts)
		for i, h := range keys {
			if int(h[0])%parts != part {
				continue
			}
			at, seen := first[h]
			if !seen {
				at, first[h] = i, i
			}
			same[i] = at
		}
	})
	return same
}

// hashRows sets keys[i] to the SHA-256 of the nonzeros of rows from, …, to-1.
func hashRows(keys [][sha256.Size]byte, x Points, from, to int) {
	_, d := x.Dims()
	var key []byte
	var row []float64
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
	for i := from; i < to; i++ {
		key = binary.LittleEndian.AppendUint64(key[:0], uint64(d))
		if c, ok := x.(*CSR); ok {
			col, val := c.Row(i)
			for k, j := range col {
				add(int(j), val[k])
			}
		} else {
			x.RowTo(buffer.Grow(&row, d), i)
			for j, v := range row {
				add(j, v)
			}
		}
		keys[i] = sha256.Sum256(key)
	}
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
