package datasets

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
)

// Magic numbers of MNIST's idx files: unsigned bytes in 3 and in 1 dimensions.
const (
	idxImages = 0x00000803
	idxLabels = 0x00000801
	maxSide   = 1 << 12 // pixels, of an image
)

// idx reads images, one point each, pixels in 0 … 255 as they are; and the labels from
// the file beside it, unless o.Target is "none".
func (s *source) idx(o *ReadOptions) (*Dataset, error) {
	size, err := s.idxHeader(idxImages, 3)
	if err != nil {
		return nil, err
	}
	n, d := size[0], 0
	if max(size[1], size[2]) <= maxSide {
		d = size[1] * size[2]
	}
	if n == 0 || d == 0 {
		return nil, s.fail(0, 0, "%d images of %d×%d pixels", n, size[1], size[2])
	}
	if o.MaxRows > 0 {
		n = min(n, o.MaxRows)
	}
	pixels, err := s.idxBytes(n, d, "images")
	if err != nil {
		return nil, err
	}
	x := points.NewDense32(n, d, nil)
	for i, b := range pixels {
		x.Data[i] = float32(b)
	}
	out := &Dataset{X: x}
	if o.Target == "none" {
		return out, nil
	}
	labels, err := s.idxLabels(size[0], n)
	if err != nil {
		return nil, err
	}
	return out, out.setAnswers(s, &answers{text: labels}, o.Task)
}

// idxHeader reads the magic number and the dimensions.
func (s *source) idxHeader(magic uint32, dims int) ([]int, error) {
	head := make([]byte, 4+4*dims)
	if _, err := io.ReadFull(s.r, head[:4]); err != nil {
		return nil, s.failed(0, err)
	}
	if m := binary.BigEndian.Uint32(head); m != magic {
		return nil, s.fail(0, 0, "wrong magic number %#08x, want %#08x: not an idx file of %s", m, magic,
			map[uint32]string{idxImages: "images", idxLabels: "labels"}[magic])
	}
	if _, err := io.ReadFull(s.r, head[4:]); err != nil {
		return nil, s.failed(0, err)
	}
	size := make([]int, dims)
	for i := range size {
		size[i] = int(binary.BigEndian.Uint32(head[4+4*i:]))
	}
	return size, nil
}

// idxBytes reads n items of d bytes. Memory grows with what is read, not with what the
// header claims.
func (s *source) idxBytes(n, d int, what string) ([]byte, error) {
	const chunk = 1 << 20
	var out []byte
	for len(out) < n*d {
		k := min(n*d-len(out), max(chunk, len(out)/2))
		at := len(out)
		if err := s.take((byteGrowth+4)*k, at/d); err != nil { // a pixel is a byte, and then a float32
			return nil, err
		}
		out = append(out, make([]byte, k)...)
		if m, err := io.ReadFull(s.r, out[at:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, s.fail(0, 0, "the file is cut short: %d of %d %s; get it again", (at+m)/d, n, what)
			}
			return nil, s.failed(0, err)
		}
	}
	return out, nil
}

// idxLabels reads the first n of the labels that belong to total images.
func (s *source) idxLabels(total, n int) ([]string, error) {
	dir, base := filepath.Split(s.name)
	name := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if name == base || s.file == nil {
		return nil, s.fail(0, 0, "an idx file of images must be named like train-images-idx3-ubyte, with train-labels-idx1-ubyte beside it")
	}
	bare := bareOf(name)
	var l *source
	for _, ext := range []string{"", ".gz", ".bz2"} {
		var err error
		if l, err = open(s.ctx, filepath.Join(dir, bare+ext)); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if l == nil {
		return nil, s.fail(0, 0, "its labels are missing: put %s beside it", name)
	}
	defer l.close()
	size, err := l.idxHeader(idxLabels, 1)
	if err != nil {
		return nil, err
	}
	if size[0] != total {
		return nil, l.fail(0, 0, "%d labels for %d images", size[0], total)
	}
	raw, err := l.idxBytes(n, 1, "labels")
	if err != nil {
		return nil, err
	}
	labels := make([]string, n)
	for i, b := range raw {
		labels[i] = strconv.Itoa(int(b))
	}
	return labels, nil
}
