package datasets

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
)

// What is before each block of a bzip2 stream, and before the checksum at its end: 48 bits, at any bit.
const (
	bzipBlock = 0x314159265359
	bzipEnd   = 0x177245385090
	bzipMark  = 48
	bzipSum   = 32      // bits of the checksum after it
	bzipLong  = 1 << 22 // bytes, more than a block takes
)

// bzipMask is which bits of a mark are looked at: all, but in tests.
var bzipMask uint64 = 1<<bzipMark - 1

// errBzip2 is of a file that is not made of whole streams.
var errBzip2 = errors.New("not bzip2")

// bzip2s unpacks the blocks of a file on all threads, each made a stream of its own for compress/bzip2, which checks
// it. Where that fails, as by one in 2⁴⁸ bits that only looks like the mark of a block, compress/bzip2 has the file
// again, so that content and errors are those of that package.
type bzip2s struct {
	file   *io.SectionReader
	r      *bufio.Reader // of it
	in     []byte        // what was read from the byte on in which the last mark begins
	from   int           // the bit where it does
	mark   uint64        // the mark; 0 before the first
	level  byte          // of the stream, '1' to '9'
	done   bool          // the last stream has ended
	blocks *ahead[*bzip2Block]
	sum    uint32 // of the blocks of the stream so far
	given  int64  // bytes of out
	out    bytes.Reader
	serial io.Reader // after a failure
}

// bzip2Block is bits of a file: a block, or the end of a stream.
type bzip2Block struct {
	in       []byte
	from, to int // bits of in
	level    byte
	end      bool
	sum      uint32
	out      bytes.Buffer
	err      error
}

func newBzip2(file io.ReaderAt, size int64) io.Reader {
	z := &bzip2s{file: io.NewSectionReader(file, 0, size)}
	z.r = bufio.NewReaderSize(z.file, 1<<16)
	z.blocks = &ahead[*bzip2Block]{next: z.next, work: (*bzip2Block).unpack, most: threadsAhead}
	return z
}

// Read implements io.Reader.
func (z *bzip2s) Read(p []byte) (int, error) {
	for z.serial == nil && z.out.Len() == 0 {
		b, err := z.blocks.get()
		switch {
		case err == io.EOF:
			return 0, err
		case err == nil && b.end && b.sum == z.sum:
			z.sum = 0
		case err == nil && !b.end && b.err == nil:
			z.sum = (z.sum<<1 | z.sum>>31) ^ b.sum
			z.given += int64(b.out.Len())
			z.out.Reset(b.out.Bytes())
		default:
			z.serial = bzip2.NewReader(io.NewSectionReader(z.file, 0, z.file.Size()))
			if _, err := io.CopyN(io.Discard, z.serial, z.given); err != nil {
				return 0, err
			}
		}
	}
	if z.serial != nil {
		return z.serial.Read(p)
	}
	return z.out.Read(p)
}

// next cuts off a block, or what is between the blocks of two streams.
func (z *bzip2s) next() (*bzip2Block, error) {
	if z.done {
		return nil, io.EOF
	}
	b := &bzip2Block{level: z.level, from: z.from, end: z.mark != bzipBlock}
	after := b.from
	if z.mark != 0 {
		after += bzipMark + bzipSum
	}
	b.to, z.mark = z.find()
	b.in, z.from = z.in, b.to%8
	z.in = bytes.Clone(b.in[b.to/8:])
	if after > b.to || !b.end && z.mark == 0 {
		return nil, errBzip2
	}
	if !b.end {
		return b, nil
	}
	head := b.in[(after+7)/8:]
	head = head[:max(0, len(head)-len(z.in))]
	switch z.done = z.mark == 0; {
	case z.done && len(head) == 0 && after > b.from:
	case !z.done && z.from == 0 && streamHead.Match(head):
		z.level = head[3]
	default:
		return nil, errBzip2
	}
	return b, nil
}

// streamHead is what a stream begins with.
var streamHead = regexp.MustCompile(`^BZh[1-9]$`)

// find reads on to the next mark, and returns the bit of z.in at which it begins; the end and 0 if there is none.
func (z *bzip2s) find() (at int, mark uint64) {
	var last uint64
	for i := 0; i < bzipLong; i++ {
		if i == len(z.in) {
			c, err := z.r.ReadByte()
			if err != nil {
				break
			}
			z.in = append(z.in, c)
		}
		last = last<<8 | uint64(z.in[i])
		for k := 7; k >= 0; k-- {
			for _, mark := range [2]uint64{bzipBlock, bzipEnd} {
				if at := 8*(i+1) - k - bzipMark; (last>>k^mark)&bzipMask == 0 && (at > z.from || z.mark == 0 && at == 0) {
					return at, mark
				}
			}
		}
	}
	return 8 * len(z.in), 0
}

// unpack unpacks a stream of the bits of the block and of an end, with its checksum.
func (b *bzip2Block) unpack() {
	stream, held, bits := append([]byte("BZh"), b.level), uint64(0), 0
	put := func(v uint64, n int) {
		for held, bits = held<<n|v, bits+n; bits >= 8; bits -= 8 {
			stream = append(stream, byte(held>>(bits-8)))
		}
	}
	for at := b.from; at < b.to; {
		n := min(8-at%8, b.to-at)
		put(uint64(b.in[at/8]>>(8-at%8-n))&(1<<n-1), n)
		at += n
	}
	if len(stream) >= 14 {
		b.sum = binary.BigEndian.Uint32(stream[10:])
	}
	if b.end {
		return
	}
	put(bzipEnd, bzipMark)
	put(uint64(b.sum), bzipSum)
	put(0, 7)
	_, b.err = b.out.ReadFrom(bzip2.NewReader(bytes.NewReader(stream)))
}
