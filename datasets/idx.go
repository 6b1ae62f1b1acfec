package datasets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

func init() {
	register(Format{Name: "idx", Answers: "in a separate file", Recognize: func(s *Source) (why string, ok bool) {
		return "it begins with two zeros", bytes.HasPrefix(s.Head(), []byte{0, 0})
	}, Read: (*Source).idx})
}

// Magic numbers of MNIST's idx files: unsigned bytes in 3 and in 1 dimensions.
const (
	idxImages = 0x00000803
	idxLabels = 0x00000801
	maxSide   = 1 << 12 // pixels, of an image
)

// idx reads images, one point each, pixels in 0 … 255 as they are; and the labels from
// the file beside it, unless o.Target is "none".
func (s *Source) idx(o *ReadOptions) (*Dataset, error) {
	size, err := s.idxHeader(idxImages, 3)
	if err != nil {
		return nil, err
	}
	n, d := size[0], 0
	if max(size[1], size[2]) <= maxSide {
		d = size[1] * size[2]
	}
	if n == 0 || d == 0 {
		return nil, s.refuse("%d images of %d×%d pixels", n, size[1], size[2])
	}
	if o.MaxRows > 0 {
		n = min(n, o.MaxRows)
	}
	pixels, err := s.idxBytes(n, d, "images")
	if err != nil {
		return nil, err
	}
	out := &Dataset{X: points.NewBytes(n, d, 1, pixels)}
	if o.Target == "none" {
		return out, nil
	}
	labels, err := s.idxLabels(size[0], n)
	if err != nil {
		return nil, err
	}
	return out, s.answered(out, labels, o, nil)
}

func (s *Source) idxHeader(magic uint32, dims int) (size []int, err error) {
	head := make([]uint32, 1+dims)
	if err := binary.Read(s.r, binary.BigEndian, head[:1]); err != nil {
		return nil, s.failed(0, err)
	}
	if head[0] != magic {
		return nil, s.refuse("wrong magic number %#08x, want %#08x: not an idx file of %s", head[0], magic,
			map[uint32]string{idxImages: "images", idxLabels: "labels"}[magic])
	}
	if err := binary.Read(s.r, binary.BigEndian, head[1:]); err != nil {
		return nil, s.failed(0, err)
	}
	for _, v := range head[1:] {
		size = append(size, int(v))
	}
	return size, nil
}

// idxBytes reads n items of d bytes.
func (s *Source) idxBytes(n, d int, what string) ([]byte, error) {
	out, err := s.upTo(int64(n)*int64(d), byteGrowth)
	if err == nil && len(out) < n*d {
		err = s.refuse("the file is cut short: %d of %d %s; get it again", len(out)/d, n, what)
	}
	return out, err
}

// idxLabels reads the first n of the labels that belong to total images.
func (s *Source) idxLabels(total, n int) (*answers, error) {
	dir, base := filepath.Split(s.name)
	name := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if name == base || s.file == nil {
		return nil, s.refuse("an idx file of images must be named like train-images-idx3-ubyte, with train-labels-idx1-ubyte beside it")
	}
	var l *Source
	err := fs.ErrNotExist
	for k, names := 0, packings(name); errors.Is(err, fs.ErrNotExist) && k < len(names); k++ {
		l, err = open(s.ctx, filepath.Join(dir, names[k]))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.refuse("its labels are missing: put %s beside it", name)
	} else if err != nil {
		return nil, err
	}
	defer l.close()
	size, err := l.idxHeader(idxLabels, 1)
	if err != nil {
		return nil, err
	}
	if size[0] != total {
		return nil, l.refuse("%d labels for %d images", size[0], total)
	}
	raw, err := l.idxBytes(n, 1, "labels")
	if err != nil {
		return nil, err
	}
	labels := &answers{}
	for _, b := range raw {
		if err := labels.add(s, strconv.Itoa(int(b)), 0); err != nil {
			return nil, err
		}
	}
	return labels, nil
}
