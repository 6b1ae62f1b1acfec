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

// opener returns the content of a container.
type opener func(s *Source, r *bufio.Reader) (io.Reader, error)

// containers are the formats that a file may be packed in, recognized by its first bytes.
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

// unpackers are commands that unpack a file, with places for its name and that of the content.
var unpackers = map[string]string{"gzip": "gzip -dc %s > %s", "bzip2": "bzip2 -dc %s > %s", "xz": "xz -dc %s > %s",
	"zstd": "zstd -dc --long=31 %s > %s", "zip": "unzip %[1]s (or 7z x %[1]s)"}

const (
	gzipStart = "\x1f\x8b"
	zstdStart = "\x28\xb5\x2f\xfd"
	zipStart  = "PK\x03\x04"
	// maxPacked is how many containers may hold one another.
	maxPacked = 3
	// maxWindow is the largest window of zstd and LZMA that is read, in bytes: the limit of the program zstd.
	maxWindow = 1 << 27
)

// errTrailing is the error for bytes after the packed data that do not belong to them.
var errTrailing = errors.New("bytes follow that are not packed data")

// unpack sets s.r to the content of r, and s.packed to what that is packed in.
func (s *Source) unpack(r io.Reader) error {
	s.r = bufio.NewReaderSize(&watched{ctx: s.ctx, r: r}, 1<<18)
	for range maxPacked {
		head, _ := s.r.Peek(8)
		if len(head) > 4 && head[0]>>4 == 5 && string(head[1:4]) == "\x2a\x4d\x18" { // a skippable frame
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
			return s.failed(0, err)
		}
		s.r = bufio.NewReaderSize(&watched{ctx: s.ctx, r: inner}, 1<<18)
	}
	return nil
}

// gzipMembers reads the members of a gzip file one after the other. Zeros may follow each of them.
type gzipMembers struct {
	*gzip.Reader
	r *bufio.Reader
}

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
		next, err := g.r.ReadByte()
		for ; err == nil && next == 0; next, err = g.r.ReadByte() {
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

// unbzip2 unpacks a file on all threads.
func (s *Source) unbzip2(r *bufio.Reader) (io.Reader, error) {
	if file, size := s.regular(); file != nil {
		return newBzip2(file, size), nil
	}
	return bzip2.NewReader(r), nil
}

// unzstd unpacks without goroutines, which a reader that is not read to its end would leave behind.
func unzstd(_ *Source, r *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
}

func unxz(_ *Source, r *bufio.Reader) (io.Reader, error) { return xz.NewReader(r) }

// zipMethods are the methods of a zip archive that archive/zip does not have, by their numbers.
var zipMethods = map[uint16]opener{
	12: func(_ *Source, r *bufio.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil },
	14: (*Source).unlzma, 93: unzstd, 95: unxz,
}

// unlzma unpacks a file of a zip archive by LZMA: a version of two bytes, the length of the properties in two bytes,
// five bytes of properties, and the data.
func (s *Source) unlzma(r *bufio.Reader) (io.Reader, error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	head = binary.LittleEndian.AppendUint64(head[4:], s.zipped.UncompressedSize64)
	return lzma.ReaderConfig{DictCap: maxWindow}.NewReader(io.MultiReader(bytes.NewReader(head), r))
}

// unzip returns the one file of an archive; nil for one of .npy files, which becomes s.arrays.
func (s *Source) unzip(*bufio.Reader) (io.Reader, error) {
	r, size, err := s.ReaderAt()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, err
	}
	for method, open := range zipMethods {
		z.RegisterDecompressor(method, func(r io.Reader) io.ReadCloser {
			inner, err := open(s, bufio.NewReader(r))
			return io.NopCloser(&watched{ctx: s.ctx, r: inner, err: err})
		})
	}
	var names []string
	arrays := true
	files := slices.DeleteFunc(z.File, func(f *zip.File) bool {
		return strings.HasSuffix(f.Name, "/") || strings.HasPrefix(f.Name, "__MACOSX/") ||
			path.Base(f.Name) == ".DS_Store"
	})
	for _, f := range files {
		names = append(names, f.Name)
		arrays = arrays && strings.HasSuffix(f.Name, ".npy")
	}
	switch {
	case slices.Contains(names, "[Content_Types].xml"):
		return nil, s.refuse("the file is an Excel workbook or another document of Office: save the table as CSV")
	case slices.Contains(names, "mimetype"):
		return nil, s.refuse("the file is a document of LibreOffice (OpenDocument): open it, and save its " +
			"spreadsheet as CSV")
	case len(files) == 0:
		return nil, s.refuse("the zip archive has no file")
	case files[0].Flags&1 != 0:
		return nil, s.refuse("the zip archive is encrypted: unpack it by %s", s.unpacking("zip"))
	case arrays:
		s.arrays = files
		return nil, nil
	case len(files) > 1:
		return nil, s.refuse("the zip archive has %d files, %s: unpack it, and name one", len(files),
			plain(strings.Join(names, ", ")))
	}
	s.zipped = files[0]
	return files[0].Open()
}

// ReaderAt returns the content for reading anywhere: the file itself, or what the stream gives, in memory.
func (s *Source) ReaderAt() (io.ReaderAt, int64, error) {
	if file, size := s.regular(); file != nil {
		return file, size, nil
	}
	all, err := s.upTo(math.MaxInt64, byteGrowth)
	return bytes.NewReader(all), int64(len(all)), err
}

// regular returns the file and its size for reading anywhere; nil for a stream, and within a container.
func (s *Source) regular() (io.ReaderAt, int64) {
	if s.file != nil && len(s.packed) == 0 {
		if st, err := s.file.Stat(); err == nil && st.Mode().IsRegular() {
			return s.file, st.Size()
		}
	}
	return nil, 0
}

// watched ends a reader with its context, and with its first error.
type watched struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (w *watched) Read(p []byte) (n int, err error) {
	if w.err = cmp.Or(w.err, w.ctx.Err()); w.err == nil {
		n, w.err = w.r.Read(p)
	}
	return n, w.err
}

// failed says in words what reading the stream failed of.
func (s *Source) failed(line int, err error) error {
	if ours, ok := errors.AsType[*ParseError](err); ok {
		return ours
	}
	if e := s.ctx.Err(); e != nil {
		return e
	}
	_, system := errors.AsType[*os.PathError](err)
	packing := "zip"
	if k := len(s.packed); k > 0 {
		packing = s.packed[k-1]
	}
	says := func(text string) bool { return !system && strings.Contains(err.Error(), text) }
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return s.Fault(line, 0, "the file is cut short; get it again")
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zstd.ErrCRCMismatch):
		return s.Fault(line, 0, "bad checksum: the file is damaged; get it again")
	case errors.Is(err, errTrailing), says("magic number mismatch"), says("continuation file"), says("header magic"):
		return s.Fault(line, 0, "bytes that are not packed data come after the %s data: if they are padding, unpack the "+
			"file by %s", packing, s.unpacking(packing))
	case says("dictionary") && packing == "zstd", says("bigger than current history"):
		return s.Fault(line, 0, "not supported: zstd data that need a dictionary (%v); unpack the file by zstd -D "+
			"DICTIONARY -d %s", err, safe.Shell(s.name))
	case errors.Is(err, zip.ErrAlgorithm), says("window size exceeded"), says("dictionary capacity"),
		says("unsupported filter"):
		return s.Fault(line, 0, "not supported: %v; unpack the file by %s", err, s.unpacking(packing))
	case len(s.packed) > 0 && !system:
		return s.Fault(line, 0, "damaged %s data (%s); get the file again", packing, safe.Name(err.Error()))
	}
	return s.Fault(line, 0, "%v", err)
}

// Damaged returns err if it is a *ParseError or of the context, and otherwise the error that the content, which is of the
// kind named, is damaged.
func (s *Source) Damaged(kind string, err error) error {
	if _, ours := errors.AsType[*ParseError](err); ours || s.ctx.Err() != nil {
		return cmp.Or(s.ctx.Err(), err)
	}
	return s.refuse("damaged %s data (%s); get the file again", kind, plain(err.Error()))
}

// unpacking returns a command that unpacks the file.
func (s *Source) unpacking(packing string) string {
	to := strings.TrimSuffix(s.name, filepath.Ext(s.name))
	if to == s.name {
		to += ".csv"
	}
	return fmt.Sprintf(unpackers[packing], safe.Shell(s.name), safe.Shell(to))
}

// packings returns a file's name, and the names that it has in no packing and in each.
func packings(name string) []string {
	bare := bareOf(name)
	names := []string{name, bare}
	for _, c := range containers {
		names = append(names, bare+c.ext)
	}
	return names
}

// bareOf returns a name without its packing.
func bareOf(name string) string {
	for _, c := range containers {
		name = strings.TrimSuffix(name, c.ext)
	}
	return name
}
