package datasets

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/krrlab/lab/krrlab/safe"
)

// containers are what a file may be packed in, by its first bytes.
var containers = []struct {
	start, name, ext string
	open             func(s *source, r *bufio.Reader) (io.Reader, error)
}{
	{"\x1f\x8b", "gzip", ".gz", func(_ *source, r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"BZh", "bzip2", ".bz2", (*source).unbzip2},
	{"\xfd7zXZ\x00", "xz", ".xz", func(_ *source, r *bufio.Reader) (io.Reader, error) { return xz.NewReader(r) }},
	{"\x28\xb5\x2f\xfd", "zstd", ".zst", unzstd},
	{zipStart, "zip", ".zip", (*source).unzip},
}

const (
	zipStart = "PK\x03\x04"
	// maxPacked is how many containers may hold one another.
	maxPacked = 3
	// zstdWindow is the most memory that unpacking takes: what the program zstd takes at most by default.
	zstdWindow = 1 << 27
)

// unpack sets s.r to the content of r, and s.packed to what that is packed in.
func (s *source) unpack(r io.Reader) error {
	s.r = bufio.NewReaderSize(&watched{ctx: s.ctx, r: r}, 1<<18)
	for range maxPacked {
		head, _ := s.r.Peek(8)
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

// unbzip2 unpacks a file on all threads.
func (s *source) unbzip2(r *bufio.Reader) (io.Reader, error) {
	if file, size := s.regular(); file != nil {
		return newBzip2(file, size), nil
	}
	return bzip2.NewReader(r), nil
}

// unzstd unpacks without goroutines, which a reader that is not read to its end would leave behind.
func unzstd(_ *source, r *bufio.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
}

// unzip returns the one file of an archive; nil for one of .npy files, which becomes s.arrays.
func (s *source) unzip(*bufio.Reader) (io.Reader, error) {
	r, size, err := s.random()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, err
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
		return nil, s.fail(0, 0, "the file is an Excel workbook or another document of Office: save the table as CSV")
	case len(files) == 0:
		return nil, s.fail(0, 0, "the zip archive has no file")
	case files[0].Flags&1 != 0:
		return nil, s.fail(0, 0, "the zip archive is encrypted: unpack it")
	case arrays:
		s.arrays = files
		return nil, nil
	case len(files) > 1:
		return nil, s.fail(0, 0, "the zip archive has %d files, %s: unpack it, and name one", len(files),
			plain(strings.Join(names, ", ")))
	}
	return files[0].Open()
}

// random returns the content for reading anywhere: the file itself, or what the stream gives, in memory.
func (s *source) random() (io.ReaderAt, int64, error) {
	if file, size := s.regular(); file != nil {
		return file, size, nil
	}
	all, err := s.upTo(math.MaxInt64, byteGrowth)
	return bytes.NewReader(all), int64(len(all)), err
}

// regular returns the file and its size for reading anywhere; nil for a stream, and within a container.
func (s *source) regular() (io.ReaderAt, int64) {
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
func (s *source) failed(line int, err error) error {
	if ours, ok := errors.AsType[*ParseError](err); ok {
		return ours
	}
	if e := s.ctx.Err(); e != nil {
		return e
	}
	_, system := errors.AsType[*os.PathError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return s.fail(line, 0, "the file is cut short; get it again")
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zip.ErrChecksum) || errors.Is(err, zstd.ErrCRCMismatch):
		return s.fail(line, 0, "bad checksum: the file is damaged; get it again")
	case len(s.packed) > 0 && !system:
		return s.fail(line, 0, "damaged %s data (%s); get the file again", s.packed[len(s.packed)-1],
			safe.Name(fmt.Sprint(err)))
	}
	return s.fail(line, 0, "%v", err)
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
