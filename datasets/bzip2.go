package datasets

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"io"
)

// What is before each block of a bzip2 stream, and before the checksum at its end: 48 bits, at any bit.
const (
	bzipBlock = 0x314159265359
	bzipEnd   = 0x177245385090
	bzipMark  = 48
	bzipHead  = bzipMark + 32 // bits of a mark and a checksum
	bzipLong  = 1 << 22       // bytes, more than a block takes
)

// bzipMask is which bits of a mark are looked at: all, but in tests.
var bzipMask uint64 = 1<<bzipMark - 1

func isMark(bits, mark uint64) bool { return (bits^mark)&bzipMask == 0 }

// bzip2s unpacks the blocks of a file on all threads, each made a stream of its own for compress/bzip2, which checks
// it. Content and errors are those of that package. What looks like the mark of a block within a block, one in 2⁴⁸ bits
// of any, is found out by the checksum: the block is then tried together with what follows.
type bzip2s struct {
	r      io.Reader
	in     []byte // what was read; the next block begins at bit at
	at     int
	end    error // of r
	begun  bool  // a stream has ended
	done   bool  // there is no block more
	level  byte  // of the stream, '1' to '9'; 0 between streams
	blocks *ahead[*bzip2Block]
	sum    uint32 // of the blocks of the stream so far
	out    bytes.Reader
	err    error // after out
}

// bzip2Block is bits of a file: a block, the end of a stream, or what is neither, to its end.
type bzip2Block struct {
	head     string // of the stream that is made of it
	in       []byte
	from, to int // bits of in
	sum      uint32
	end, bad bool
	out      []byte
	err      error
}

func newBzip2(r io.Reader) io.Reader {
	z := &bzip2s{r: r}
	z.blocks = &ahead[*bzip2Block]{next: z.next, most: threadsAhead, work: func(b *bzip2Block) {
		if !b.end {
			b.out, b.err = unbzip(!b.bad, b)
		}
	}}
	return z
}

// Read implements io.Reader.
func (z *bzip2s) Read(p []byte) (int, error) {
	for z.out.Len() == 0 {
		if z.err != nil {
			return 0, z.err
		}
		z.take()
	}
	return z.out.Read(p)
}

// take takes the next block.
func (z *bzip2s) take() {
	b, err := z.blocks.get()
	if err != nil {
		z.err = err
		return
	}
	if b.end {
		if b.sum != z.sum {
			z.err = bzip2.StructuralError("file checksum mismatch")
		}
		z.sum = 0
		return
	}
	const most = 4
	for parts := []*bzip2Block{b}; b.err != nil && !b.bad && len(parts) < most; {
		next, err := z.blocks.get()
		if err != nil || next.end {
			break
		}
		parts = append(parts, next)
		if b.out, b.err = unbzip(true, parts...); b.err != nil {
			b.out, err = unbzip(false, parts...)
			b.bad, b.err = next.bad, err
		}
	}
	z.sum = (z.sum<<1 | z.sum>>31) ^ b.sum
	z.out.Reset(b.out)
	if z.err = b.err; errors.Is(z.err, io.ErrUnexpectedEOF) && z.end != nil && z.end != io.EOF {
		z.err = z.end
	}
}

// next cuts off a block.
func (z *bzip2s) next() (*bzip2Block, error) {
	if z.done {
		return nil, io.ErrUnexpectedEOF // after the fault
	}
	z.in, z.at = bytes.Clone(z.in[z.at/8:]), z.at%8 // blocks keep what was
	for z.level == 0 {
		head := z.peek(4)
		switch {
		case len(head) == 0 && z.begun && z.end == io.EOF:
			return nil, io.EOF
		case len(head) < 4 || !bytes.HasPrefix(head, []byte("BZh")) || head[3] < '1' || head[3] > '9':
			return z.rest(), nil
		}
		z.level, z.at = head[3], z.at+32
	}
	if 8*len(z.peek(bzipHead/8+1))-z.at%8 < bzipHead {
		return z.rest(), nil
	}
	b := &bzip2Block{head: "BZh" + string(z.level), from: z.at, sum: uint32(bitsAt(z.in, z.at+bzipMark, 32))}
	switch mark := bitsAt(z.in, z.at, bzipMark); {
	case mark == bzipEnd:
		z.at, z.level, z.begun, b.end = (z.at+bzipHead+7)&^7, 0, true, true
		return b, nil
	case isMark(mark, bzipBlock):
		if b.to = z.find(z.at + bzipHead); b.to > 0 {
			b.in, z.at = z.in, b.to
			return b, nil
		}
	}
	return z.rest(), nil
}

// rest returns the rest of the file, or more than the block that it begins with, in which there is a fault.
func (z *bzip2s) rest() *bzip2Block {
	z.peek(bzipLong)
	z.done = true
	b := &bzip2Block{in: z.in, from: z.at, to: 8 * len(z.in), bad: true}
	if z.level != 0 {
		b.head = "BZh" + string(z.level)
	} else if z.begun { // a stream without blocks, for the words of what follows one
		b.head = "BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00"
	}
	return b
}

// peek returns n bytes from the next block on, fewer at the end.
func (z *bzip2s) peek(n int) []byte {
	for len(z.in)-z.at/8 < n && z.more() {
	}
	return z.in[z.at/8 : min(z.at/8+n, len(z.in))]
}

// more reads more of the file.
func (z *bzip2s) more() bool {
	if z.end != nil {
		return false
	}
	buf := make([]byte, 1<<16)
	var n int
	n, z.end = z.r.Read(buf)
	z.in = append(z.in, buf[:n]...)
	return true
}

// find returns the bit at which the first mark from one on begins; 0 if there is none.
func (z *bzip2s) find(from int) int {
	var last uint64
	for i := from / 8; i-from/8 < bzipLong; i++ {
		for i == len(z.in) {
			if !z.more() {
				return 0
			}
		}
		last = last<<8 | uint64(z.in[i])
		for k := 7; k >= 0; k-- {
			mark, at := last>>k, 8*(i+1)-k-bzipMark
			if at >= from && (isMark(mark, bzipBlock) || mark&(1<<bzipMark-1) == bzipEnd) {
				return at
			}
		}
	}
	return 0
}

func bitsAt(in []byte, at, n int) (v uint64) {
	for ; n > 0; at, n = at+1, n-1 {
		v = v<<1 | uint64(in[at/8]>>(7-at%8)&1)
	}
	return v
}

// unbzip unpacks a stream of the bits of some blocks as one; closed adds its end, with the checksum of the first.
func unbzip(closed bool, parts ...*bzip2Block) ([]byte, error) {
	b := parts[0]
	stream, held, bits := []byte(b.head), uint64(0), 0
	put := func(v uint64, n int) {
		for held, bits = held<<n|v, bits+n; bits >= 8; bits -= 8 {
			stream = append(stream, byte(held>>(bits-8)))
		}
	}
	for _, p := range parts {
		for at := p.from; at < p.to; {
			n := min(8-at%8, p.to-at)
			put(uint64(p.in[at/8]>>(8-at%8-n))&(1<<n-1), n)
			at += n
		}
	}
	if closed {
		put(bzipEnd, bzipMark)
		put(uint64(b.sum), 32)
		put(0, 7)
	}
	return io.ReadAll(bzip2.NewReader(bytes.NewReader(stream)))
}
