package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"

	"github.com/krrlab/lab/krrlab/points"
)

// Fingerprint returns a sha256 of the points and answers: equal for equal numbers in
// the same order and form, whatever they are called and wherever they come from.
func (d *Dataset) Fingerprint() [sha256.Size]byte {
	p := printer{h: sha256.New()}
	n, dim := d.X.Dims()
	fmt.Fprintf(p.h, "%d %d %v %q\n", n, dim, d.Task, d.Labels)
	switch x := d.X.(type) {
	case *points.CSR:
		for i := range n {
			lo, hi := x.Ptr[i], x.Ptr[i+1]
			p.word(uint64(hi - lo))
			for k := lo; k < hi; k++ {
				p.word(uint64(x.Col[k]))
				p.word(math.Float64bits(x.Val[k]))
			}
		}
	default:
		row := make([]float64, dim)
		for i := range n {
			x.RowTo(row, i)
			for _, v := range row {
				p.word(math.Float64bits(v))
			}
		}
	}
	for _, v := range d.Target {
		p.word(math.Float64bits(v))
	}
	for _, c := range d.Class {
		p.word(uint64(c))
	}
	p.flush()
	return [sha256.Size]byte(p.h.Sum(nil))
}

// printer writes words to a hash, many at a time.
type printer struct {
	h   hash.Hash
	buf []byte
}

func (p *printer) word(w uint64) {
	p.buf = binary.LittleEndian.AppendUint64(p.buf, w)
	if len(p.buf) >= 1<<15 {
		p.flush()
	}
}

func (p *printer) flush() {
	p.h.Write(p.buf)
	p.buf = p.buf[:0]
}
