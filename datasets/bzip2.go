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

// A bzip2 stream has a 48-bit magic number before each block, and another one before the checksum at its end. They may
// begin at any bit of a byte.
const (
	bzipBlockMagic = 0x314159265359
	bzipEndMagic   = 0x177245385090
	bzipMagicBits  = 48
	bzipSumBits    = 32 // the checksum follows the magic number

	// maxBzipBlock is an upper bound of the bytes of a compressed block, whose content has at most 900,000 bytes. The
	// search for the end of a block stops there.
	maxBzipBlock = 1 << 22
)

// bzipMagicMask selects the bits of a magic number that are compared. It has all bits except in tests.
var bzipMagicMask uint64 = 1<<bzipMagicBits - 1

// errBzip2 is the error for a file that does not consist of complete streams.
var errBzip2 = errors.New("not bzip2")

// bzip2Reader unpacks a bzip2 file on all threads. Each block is turned into a separate stream and unpacked by
// compress/bzip2, which verifies it.
//
// If that fails, compress/bzip2 unpacks the whole file again from the start, so that content and errors are always
// those of that package. This also covers data that by chance contain a magic number, which happens with probability
// 2⁻⁴⁸ at each bit.
type bzip2Reader struct {
	file          *io.SectionReader
	r             *bufio.Reader // buffered reader of file
	buffer        []byte        // bytes read so far, from the byte in which the current magic number begins
	magicBit      int           // bit of buffer at which the current magic number begins
	magic         uint64        // current magic number; 0 before the first one
	level         byte          // level of the current stream, '1' to '9'
	allCut        bool          // the last section of the file has been cut
	sections      *pipeline[*bzip2Section]
	combinedSum   uint32       // checksum of the blocks of the current stream so far
	returnedBytes int64        // bytes unpacked from all blocks so far
	unpacked      bytes.Reader // unpacked content of the current block that was not read yet
	fallback      io.Reader    // reader of the whole file, used after a failure
}

// bzip2Section is a section of the file: a compressed block, or the end of a stream with the header of the next one.
// The first section of a file is the header of the first stream, which counts as an end with the checksum 0.
type bzip2Section struct {
	data             []byte
	firstBit, endBit int    // section of data, in bits: firstBit ≤ bit < endBit
	level            byte   // level of the stream, '1' to '9'
	isEnd            bool   // the section is the end of a stream
	sum              uint32 // checksum of the block, or at an end that of the stream
	unpacked         bytes.Buffer
	err              error // error of unpacking
}

// newBzip2Reader returns a reader of the unpacked content of a file of the given size.
func newBzip2Reader(file io.ReaderAt, size int64) io.Reader {
	z := &bzip2Reader{file: io.NewSectionReader(file, 0, size)}
	z.r = bufio.NewReaderSize(z.file, 1<<16)
	z.sections = &pipeline[*bzip2Section]{produce: z.cutSection, process: (*bzip2Section).unpack, limit: pipelineDepth}
	return z
}

// Read implements io.Reader.
func (z *bzip2Reader) Read(p []byte) (int, error) {
	for z.fallback == nil && z.unpacked.Len() == 0 {
		section, err := z.sections.get()
		switch {
		case err == io.EOF:
			return 0, err
		case err == nil && section.isEnd && section.sum == z.combinedSum:
			z.combinedSum = 0
		case err == nil && !section.isEnd && section.err == nil:
			z.combinedSum = (z.combinedSum<<1 | z.combinedSum>>31) ^ section.sum // by the definition of the format
			z.returnedBytes += int64(section.unpacked.Len())
			z.unpacked.Reset(section.unpacked.Bytes())
		default:
			z.fallback = bzip2.NewReader(io.NewSectionReader(z.file, 0, z.file.Size()))
			if _, err := io.CopyN(io.Discard, z.fallback, z.returnedBytes); err != nil {
				return 0, err
			}
		}
	}
	if z.fallback != nil {
		return z.fallback.Read(p)
	}
	return z.unpacked.Read(p)
}

// cutSection returns the section of the file up to the next magic number: a compressed block, or the end of a stream
// and the header of the next one.
func (z *bzip2Reader) cutSection() (*bzip2Section, error) {
	if z.allCut {
		return nil, io.EOF
	}
	section := &bzip2Section{level: z.level, firstBit: z.magicBit, isEnd: z.magic != bzipBlockMagic}
	contentBit := section.firstBit
	if z.magic != 0 {
		contentBit += bzipMagicBits + bzipSumBits
	}
	section.endBit, z.magic = z.findMagic()
	section.data, z.magicBit = z.buffer, section.endBit%8
	z.buffer = bytes.Clone(section.data[section.endBit/8:])
	if contentBit > section.endBit || !section.isEnd && z.magic == 0 {
		return nil, errBzip2
	}
	if !section.isEnd {
		return section, nil
	}
	header := section.data[(contentBit+7)/8:]
	header = header[:max(0, len(header)-len(z.buffer))]
	switch z.allCut = z.magic == 0; {
	case z.allCut && len(header) == 0 && contentBit > section.firstBit: // nothing follows the last checksum
	case !z.allCut && z.magicBit == 0 && bzipStreamHeader.Match(header): // the next stream begins at a whole byte
		z.level = header[3]
	default:
		return nil, errBzip2
	}
	return section, nil
}

// bzipStreamHeader matches the header of a stream.
var bzipStreamHeader = regexp.MustCompile(`^BZh[1-9]$`)

// findMagic reads on to the next magic number after the current one and returns the bit of z.buffer at which it begins.
// If there is none within maxBzipBlock bytes it returns the end of z.buffer and magic = 0.
func (z *bzip2Reader) findMagic() (bit int, magic uint64) {
	var recentBits uint64
	for i := 0; i < maxBzipBlock; i++ {
		if i == len(z.buffer) {
			c, err := z.r.ReadByte()
			if err != nil {
				break
			}
			z.buffer = append(z.buffer, c)
		}
		recentBits = recentBits<<8 | uint64(z.buffer[i])
		for k := 7; k >= 0; k-- {
			for _, candidate := range [2]uint64{bzipBlockMagic, bzipEndMagic} {
				firstBit := 8*(i+1) - k - bzipMagicBits
				isNew := firstBit > z.magicBit || z.magic == 0 && firstBit == 0
				if (recentBits>>k^candidate)&bzipMagicMask == 0 && isNew {
					return firstBit, candidate
				}
			}
		}
	}
	return 8 * len(z.buffer), 0
}

// unpack sets s.sum. If s is a block, it also builds a complete stream from a header, the bits of the block, an end and
// the checksum, and unpacks this stream.
func (s *bzip2Section) unpack() {
	stream, buffered, bufferedBits := append([]byte("BZh"), s.level), uint64(0), 0
	appendBits := func(v uint64, n int) { // n ≤ 48; fewer than 8 bits remain buffered
		buffered, bufferedBits = buffered<<n|v, bufferedBits+n
		for ; bufferedBits >= 8; bufferedBits -= 8 {
			stream = append(stream, byte(buffered>>(bufferedBits-8)))
		}
	}
	for bit := s.firstBit; bit < s.endBit; {
		n := min(8-bit%8, s.endBit-bit)
		appendBits(uint64(s.data[bit/8]>>(8-bit%8-n))&(1<<n-1), n)
		bit += n
	}
	if len(stream) >= 14 { // 4 bytes of header, 6 of magic number and 4 of checksum
		s.sum = binary.BigEndian.Uint32(stream[10:])
	}
	if s.isEnd {
		return
	}
	appendBits(bzipEndMagic, bzipMagicBits)
	appendBits(uint64(s.sum), bzipSumBits)
	appendBits(0, 7) // completes the last byte
	_, s.err = s.unpacked.ReadFrom(bzip2.NewReader(bytes.NewReader(stream)))
}
