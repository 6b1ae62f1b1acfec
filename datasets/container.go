package datasets

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// opener returns a reader of the unpacked content of r.
type opener func(s *Source, r *bufio.Reader) (io.Reader, error)

// containers are the formats in which a file may be packed. A container is recognized by the first bytes of the file.
var containers = []struct {
	start, name, ext string
	open             opener
}{
	{gzipStart, "gzip", ".gz", ungzip},
	{"BZh", "bzip2", ".bz2", (*Source).unbzip2},
	{"\xfd7zXZ\x00", "xz", ".xz", unxz},
	{zstdStart, "zstd", ".zst", unzstd},
	{zipStart, "zip", ".zip", (*Source).unzip},
}

// unpackCommands are shell commands that unpack a file, by the name of the container. The two %s stand for the file and
// for its unpacked content.
var unpackCommands = map[string]string{"gzip": "gzip -dc %s > %s", "bzip2": "bzip2 -dc %s > %s", "xz": "xz -dc %s > %s",
	"zstd": "zstd -dc --long=31 %s > %s", "zip": "unzip %[1]s (or 7z x %[1]s)"}

const (
	gzipStart = "\x1f\x8b"
	zstdStart = "\x28\xb5\x2f\xfd"
	zipStart  = "PK\x03\x04"
	// maxNesting is the largest number of containers that may be nested in one another, a judgment. The content of a
	// deeper container is read as if it were not packed.
	maxNesting = 3
	// maxWindow is the largest window of zstd, and of LZMA in zip archives, that is accepted, in bytes. It is the limit
	// of the zstd program, and bounds the memory for unpacking. It does not apply to xz: the dictionary of LZMA2 has
	// the size that the file states, as the reader has no upper limit for it.
	maxWindow = 1 << 27
)

// errTrailing is the error for bytes after the packed data that do not belong to them.
var errTrailing = errors.New("bytes follow that are not packed data")

// unpack sets s.r to the unpacked content of r, and s.packed to the names of the containers it was packed in, the
// outermost first. It sets s.arrays for a zip archive of .npy files.
func (s *Source) unpack(r io.Reader) error {
	s.r = bufio.NewReaderSize(&cancelableReader{ctx: s.ctx, r: r}, 1<<18)
	for range maxNesting {
		head, _ := s.r.Peek(8)
		// A file of zstd may begin with a skippable frame, whose magic number is one of 0x184d2a50 … 0x184d2a5f.
		if len(head) > 4 && head[0]>>4 == 5 && string(head[1:4]) == "\x2a\x4d\x18" {
			head = []byte(zstdStart)
		}
		k := 0
		for k < len(containers) && !bytes.HasPrefix(head, []byte(containers[k].start)) {
			k++
		}
		if k == len(containers) {
			break
		}
		inner, err := containers[k].open(s, s.r)
		if inner == nil && err == nil { // an archive of arrays
			break
		}
		if s.packed = append(s.packed, containers[k].name); err != nil {
			return s.readError(0, err)
		}
		s.r = bufio.NewReaderSize(&cancelableReader{ctx: s.ctx, r: inner}, 1<<18)
	}
	return nil
}

// gzipMembers reads the members of a gzip file one after the other. Each may be followed by padding of zeros.
type gzipMembers struct {
	*gzip.Reader
	r *bufio.Reader
}

// ungzip unpacks all members of a gzip file.
func ungzip(_ *Source, r *bufio.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	if err == nil {
		z.Multistream(false)
	}
	return &gzipMembers{z, r}, err
}

// Read implements io.Reader.
func (g *gzipMembers) Read(p []byte) (int, error) {
	for {
		if n, err := g.Reader.Read(p); err != io.EOF {
			return n, err
		} else if n > 0 {
			return n, nil
		}
		nextByte, err := g.r.ReadByte()
		for ; err == nil && nextByte == 0; nextByte, err = g.r.ReadByte() {
		}
		if err != nil {
			return 0, err
		}
		g.r.UnreadByte()
		if head, _ := g.r.Peek(2); string(head) != gzipStart {
			return 0, errTrailing
		}
		if err := g.Reset(g.r); err != nil {
			return 0, err
		}
		g.Multistream(false)
	}
}

// unbzip2 unpacks a regular file on all threads, and a stream on one.
func (s *Source) unbzip2(r *bufio.Reader) (io.Reader, error) {
	if file, size := s.regularFile(); file != nil {
		return newBzip2Reader(file, size), nil
	}
	return bzip2.NewReader(r), nil
}

// unzstd unpacks without goroutines. A decoder with goroutines would leave them behind if its content is not read to
// the end.
func unzstd(_ *Source, r *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
}

// unxz unpacks an xz file.
func unxz(_ *Source, r *bufio.Reader) (io.Reader, error) { return xz.NewReader(r) }

// zipMethods are the compression methods of zip archives that archive/zip does not support, by their numbers in section
// 4.4.5 of the specification (APPNOTE.TXT of PKWARE).
var zipMethods = map[uint16]opener{
	12: func(_ *Source, r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil },
	14: (*Source).unlzma, 93: unzstd, 95: unxz,
}

// unlzma unpacks a file of a zip archive that is compressed by LZMA. The data begin with two bytes of version, two
// bytes with the length of the properties, and five bytes of properties. The header of an LZMA file, which the reader
// expects, has the properties and the length of the unpacked content.
func (s *Source) unlzma(r *bufio.Reader) (io.Reader, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	head = binary.LittleEndian.AppendUint64(head[4:], s.zipped.UncompressedSize64)
	return lzma.ReaderConfig{DictCap: maxWindow}.NewReader(io.MultiReader(bytes.NewReader(head), r))
}

// unzip returns the content of the only file of an archive. For an archive of .npy files it sets s.arrays to them and
// returns nil.
func (s *Source) unzip(*bufio.Reader) (io.Reader, error) {
	content, size, err := s.ReaderAt()
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(content, size)
	if err != nil {
		return nil, err
	}
	for method, open := range zipMethods {
		archive.RegisterDecompressor(method, func(r io.Reader) io.ReadCloser {
			inner, err := open(s, bufio.NewReader(r))
			return io.NopCloser(&cancelableReader{ctx: s.ctx, r: inner, err: err})
		})
	}
	var names []string
	onlyArrays := true
	files := slices.DeleteFunc(archive.File, func(f *zip.File) bool {
		return strings.HasSuffix(f.Name, "/") || strings.HasPrefix(f.Name, "__MACOSX/") ||
			path.Base(f.Name) == ".DS_Store"
	})
	for _, f := range files {
		names = append(names, f.Name)
		onlyArrays = onlyArrays && strings.HasSuffix(f.Name, ".npy")
	}
	switch {
	case slices.Contains(names, "[Content_Types].xml"):
		return nil, s.fileFault("the file is an Excel workbook or another document of Office: save the table as CSV")
	case slices.Contains(names, "mimetype"):
		return nil, s.fileFault("the file is a document of LibreOffice (OpenDocument): open it, and save its " +
			"spreadsheet as CSV")
	case len(files) == 0:
		return nil, s.fileFault("the zip archive has no file")
	case files[0].Flags&1 != 0:
		return nil, s.fileFault("the zip archive is encrypted: unpack it by %s", s.unpackCommand("zip"))
	case onlyArrays:
		s.arrays = files
		return nil, nil
	case len(files) > 1:
		return nil, s.fileFault("the zip archive has %d files, %s: unpack it, and name one", len(files),
			quoteIfLong(strings.Join(names, ", ")))
	}
	s.zipped = files[0]
	return files[0].Open()
}

// ReaderAt returns the content for random access, and its size: the file itself, or the content of a stream read into
// memory.
func (s *Source) ReaderAt() (io.ReaderAt, int64, error) {
	if file, size := s.regularFile(); file != nil {
		return file, size, nil
	}
	content, err := s.readUpTo(math.MaxInt64)
	return bytes.NewReader(content), int64(len(content)), err
}

// regularFile returns the file and its size for random access. It returns nil if the source is a stream or packed.
func (s *Source) regularFile() (io.ReaderAt, int64) {
	if s.file != nil && len(s.packed) == 0 {
		if info, err := s.file.Stat(); err == nil && info.Mode().IsRegular() {
			return s.file, info.Size()
		}
	}
	return nil, 0
}

// cancelableReader reads from r until its context ends. After the first error it returns that error on every call.
type cancelableReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (c *cancelableReader) Read(p []byte) (n int, err error) {
	if c.err = cmp.Or(c.err, c.ctx.Err()); c.err == nil {
		n, c.err = c.r.Read(p)
	}
	return n, c.err
}

// readError converts an error from reading the stream into a *ParseError that explains it, at the given line or at 0
// for the file. Errors of the context, and those that are *ParseError already, are returned unchanged.
func (s *Source) readError(line int, err error) error {
	if parseErr, ok := errors.AsType[*ParseError](err); ok {
		return parseErr
	}
	if ctxErr := s.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	_, isSystemError := errors.AsType[*os.PathError](err)
	packing := "zip"
	if k := len(s.packed); k > 0 {
		packing = s.packed[k-1]
	}
	// Errors without a type are recognized by the texts of the packages that unpack.
	mentions := func(text string) bool { return !isSystemError && strings.Contains(err.Error(), text) }
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return s.Fault(line, 0, "the file is cut short; get it again")
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zstd.ErrCRCMismatch):
		return s.Fault(line, 0, "bad checksum: the file is damaged; get it again")
	case errors.Is(err, errTrailing), mentions("magic number mismatch"), mentions("continuation file"),
		mentions("header magic"):
		return s.Fault(line, 0, "bytes that are not packed data come after the %s data: if they are padding, unpack "+
			"the file by %s", packing, s.unpackCommand(packing))
	case mentions("dictionary") && packing == "zstd", mentions("bigger than current history"):
		return s.Fault(line, 0, "not supported: zstd data that need a dictionary (%v); unpack the file by zstd -D "+
			"DICTIONARY -d %s", err, safe.Shell(s.name))
	case errors.Is(err, zip.ErrAlgorithm), mentions("window size exceeded"), mentions("dictionary capacity"),
		mentions("unsupported filter"):
		return s.Fault(line, 0, "not supported: %v; unpack the file by %s", err, s.unpackCommand(packing))
	case len(s.packed) > 0 && !isSystemError:
		return s.Fault(line, 0, "damaged %s data (%s); get the file again", packing, safe.Name(err.Error()))
	}
	return s.Fault(line, 0, "%v", err)
}

// DamageError returns the error of the context if the context has ended, and err if it is a *ParseError. Otherwise it
// returns a *ParseError which says that the content, data of the named kind, is damaged.
func (s *Source) DamageError(kind string, err error) error {
	if _, isParseError := errors.AsType[*ParseError](err); isParseError || s.ctx.Err() != nil {
		return cmp.Or(s.ctx.Err(), err)
	}
	return s.fileFault("damaged %s data (%s); get the file again", kind, quoteIfLong(err.Error()))
}

// unpackCommand returns a shell command that unpacks the file.
func (s *Source) unpackCommand(packing string) string {
	target := strings.TrimSuffix(s.name, filepath.Ext(s.name))
	if target == s.name {
		target += ".csv"
	}
	return fmt.Sprintf(unpackCommands[packing], safe.Shell(s.name), safe.Shell(target))
}

// packedNames returns the names under which a file may be stored: the given name, the name without the endings of
// containers, and the latter with the ending of each container.
func packedNames(name string) []string {
	bare := unpackedName(name)
	names := []string{name, bare}
	for _, c := range containers {
		names = append(names, bare+c.ext)
	}
	return names
}

// unpackedName returns a file name without the endings of containers.
func unpackedName(name string) string {
	for _, c := range containers {
		name = strings.TrimSuffix(name, c.ext)
	}
	return name
}
