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
	register(Format{Name: "idx", Answers: "in a separate file", Recognize: func(s *Source) (reason string, ok bool) {
		return "it begins with two zeros", bytes.HasPrefix(s.Head(), []byte{0, 0})
	}, Read: (*Source).readIDX})
}

// Magic numbers of the idx format of MNIST: unsigned bytes in 3 dimensions and in 1.
const (
	idxImages = 0x00000803
	idxLabels = 0x00000801
)

// maxSide is the largest height or width of an image in pixels, a judgment that excludes damaged headers.
const maxSide = 1 << 12

// readIDX reads images, each as one point with pixels 0 … 255, and the labels from a second file in the same folder,
// unless o.Target is "none".
func (s *Source) readIDX(options *ReadOptions) (*Dataset, error) {
	sizes, err := s.idxHeader(idxImages, 3)
	if err != nil {
		return nil, err
	}
	n, d := min(sizes[0], options.MaxRows), 0
	if max(sizes[1], sizes[2]) <= maxSide {
		d = sizes[1] * sizes[2]
	}
	if n == 0 || d == 0 {
		return nil, s.fileFault("%d images of %d×%d pixels", n, sizes[1], sizes[2])
	}
	pixels, err := s.idxBytes(n, sizes[0], d, "images")
	if err != nil {
		return nil, err
	}
	out := &Dataset{X: points.NewBytes(n, d, 1, pixels)}
	if options.Target == "none" {
		return out, nil
	}
	labels, err := s.idxLabels(sizes[0], n)
	if err != nil {
		return nil, err
	}
	return out, s.setAnswers(out, labels, options, nil)
}

// idxHeader reads the magic number, which must be the given one, and returns the sizes of all dimensions.
func (s *Source) idxHeader(magic uint32, dims int) (sizes []int, err error) {
	header := make([]uint32, 1+dims)
	if err := binary.Read(s.r, binary.BigEndian, header[:1]); err != nil {
		return nil, s.readError(0, err)
	}
	if header[0] != magic {
		return nil, s.fileFault("wrong magic number %#08x, want %#08x: not an idx file of %s", header[0], magic,
			map[uint32]string{idxImages: "images", idxLabels: "labels"}[magic])
	}
	if err := binary.Read(s.r, binary.BigEndian, header[1:]); err != nil {
		return nil, s.readError(0, err)
	}
	for _, v := range header[1:] {
		sizes = append(sizes, int(v))
	}
	return sizes, nil
}

// idxBytes reads the first n of all total items, of d bytes each, or returns an error if there are fewer. If n is
// total, it also reads the rest of the content, because checksums are verified at its end.
func (s *Source) idxBytes(n, total, d int, items string) ([]byte, error) {
	out, err := s.readUpTo(int64(n) * int64(d))
	if err == nil && len(out) < n*d {
		err = s.fileFault("the file is cut short: %d of %d %s; get it again", len(out)/d, n, items)
	}
	if err == nil && n == total {
		err = s.readToEnd(s.r)
	}
	return out, err
}

// idxLabels reads the first n labels from the file with the labels of all total images.
func (s *Source) idxLabels(total, n int) (*answers, error) {
	dir, base := filepath.Split(s.name)
	name := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if name == base || s.file == nil {
		return nil, s.fileFault("an idx file of images must be named like train-images-idx3-ubyte, " +
			"with train-labels-idx1-ubyte beside it")
	}
	var labelFile *Source
	err := fs.ErrNotExist
	for k, names := 0, packedNames(name); errors.Is(err, fs.ErrNotExist) && k < len(names); k++ {
		labelFile, err = openSource(s.ctx, filepath.Join(dir, names[k]))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.fileFault("its labels are missing: put %s beside it", name)
	} else if err != nil {
		return nil, err
	}
	defer labelFile.close()
	sizes, err := labelFile.idxHeader(idxLabels, 1)
	if err != nil {
		return nil, err
	}
	if sizes[0] != total {
		return nil, labelFile.fileFault("%d labels for %d images", sizes[0], total)
	}
	raw, err := labelFile.idxBytes(n, total, 1, "labels")
	if err != nil {
		return nil, err
	}
	labels := &answers{}
	for _, b := range raw {
		if err := labels.addRow(s, strconv.Itoa(int(b)), 0); err != nil {
			return nil, err
		}
	}
	return labels, nil
}
