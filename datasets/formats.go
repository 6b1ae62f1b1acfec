package datasets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
)

// maxColumn is the largest LIBSVM index accepted.
const maxColumn = math.MaxInt32 - 1

// libsvm reads lines "answer index:value …", indices from 1 and increasing; text after # is a comment, but at a line's
// start where that may be a row. If o.Target is "none" the answers may be missing. Points are sparse.
func (s *source) libsvm(o *ReadOptions) (*Dataset, error) {
	x := &points.CSR{Ptr: []int{0}}
	var a answers
	widest, err := s.libsvmRows(x, &a, o) // the line of the last feature
	if err != nil {
		return nil, err
	}
	if x.N = len(a.code); x.N == 0 {
		return nil, s.refuse("the file is empty: no rows")
	}
	if o.Dim > 0 && x.D > o.Dim {
		if o.DimOf == "" {
			return nil, s.fail(widest, 0, "%s", o.wrongDim(x.D))
		}
		return nil, s.fail(widest, 0,
			"%s; where the last features of sparse data are all zero, say --dim %d for both files", o.wrongDim(x.D),
			x.D)
	}
	if o.Dim > x.D {
		x.D, widest = o.Dim, 0
	}
	if need := vectorsHeld * 8 * float64(x.D); need > small && s.memory() > 0 && need > float64(s.memory()) {
		return nil, s.fail(widest, 0,
			"index %d: vectors of that length need %s, and %s of memory are available: "+
				"number the features without gaps",
			x.D, accel.Bytes(int64(need)), accel.Bytes(s.memory()))
	}
	if x.D == 0 {
		return nil, s.refuse("no row has a feature")
	}
	d := &Dataset{X: x}
	if o.Target == "none" {
		return d, nil
	}
	return d, s.answered(d, &a, o, nil)
}

// libsvmRows sets x to the rows, appends their answers to a, and returns the line of the last feature.
func (s *source) libsvmRows(x *points.CSR, a *answers, o *ReadOptions) (widest int, err error) {
	var col grown[int32]
	var val grown[float64]
	next, size := 1, 0
	whole := func([]byte) bool { return false }
	err = s.eachRow(1, whole, threadsAhead, func(b *block) {
		line := b.line
		for text := range bytes.Lines(b.text) {
			b.rows = append(b.rows, s.libsvmLine(b, text, line, o))
			line++
		}
	}, func(r *textRow) error {
		next = r.line + 1
		switch {
		case o.MaxRows > 0 && len(a.code) == o.MaxRows:
			return io.EOF
		case r.err != nil:
			return r.err
		}
		if r.d > x.D {
			x.D, widest = r.d, r.line
		}
		if r.cells == nil {
			s.reading.skip(r.line, 1)
			return nil
		}
		col.add(r.cols)
		val.add(r.nums)
		size += len(r.cols)
		x.Ptr = append(x.Ptr, size)
		if err := s.take((float64Growth+int32Growth)*len(r.cols)+intGrowth, len(a.code)); err != nil {
			return err
		}
		return a.add(s, s.text(r.cells[0]), r.line)
	})
	x.Col, x.Val = col.all(), val.all()
	if err != nil {
		err = s.failed(next, err)
	}
	return widest, err
}

// noLabel is what is wrong with a line of LIBSVM that begins with index:value.
const noLabel = "the line has no label: it begins with index:value. " +
	"A fit wants one in each line; to predict, say --target none"

// libsvmLine reads a line; its nonzeros are appended to those of b. The answer is empty where there is none.
func (s *source) libsvmLine(b *block, text []byte, line int, o *ReadOptions) (r textRow) {
	r.line = line
	fail := func(item int, format string, args ...any) textRow {
		r.err = s.fail(line, item, format, args...)
		return r
	}
	word, rest := cutWord(text)
	answer := string(word)
	switch {
	case len(word) == 0 || o.Comment != "" && o.Comment != "none" && bytes.HasPrefix(word, []byte(o.Comment)):
		return r
	case word[0] == '#' && o.Comment != "none":
		if second, _ := cutWord(rest); len(word) > 1 && (len(second) == 0 || isItem(second)) {
			return fail(1, "the line begins with # and may be a row: "+
				"say --comment # if it is a comment, --comment none if # begins a label")
		}
		return r
	case isItem(word) && word[0] != 'q':
		if rest, answer = text, ""; o.Target != "none" {
			return fail(1, "%s", noLabel)
		}
	}
	at, from := len(b.cells), len(b.nums)
	b.cells = append(b.cells, answer)
	text, _, _ = bytes.Cut(rest, []byte("#"))
	for item := 1 + min(1, len(answer)); ; item++ {
		if word, text = cutWord(text); len(word) == 0 {
			r.cells, r.nums, r.cols = b.cells[at:], b.nums[from:], b.cols[from:]
			return r
		}
		index, value, ok := bytes.Cut(word, []byte(":"))
		if !ok {
			return fail(item, "%s is not of the form index:value", quote(word))
		}
		col, err := strconv.Atoi(string(index))
		switch {
		case err == nil && col == 0:
			return fail(item,
				"index 0: LIBSVM counts features from 1, want indices from 1; add 1 to all of them "+
					"(in scikit-learn dump_svmlight_file(…, zero_based=False)); of a kernel matrix, see --kernel "+
					"precomputed")
		case err != nil || col < 1 || col > maxColumn:
			return fail(item, "index %s: want a whole number from 1 to %d", quote(index), maxColumn)
		case col <= r.d:
			return fail(item, "index %d after index %d: indices must increase", col, r.d)
		}
		v, ok := short(value)
		if !ok {
			if v, err = finite(string(value)); err != nil {
				return fail(item, "value of index %d: %v", col, err)
			}
		}
		if r.d = col; v != 0 {
			b.cols, b.nums = append(b.cols, int32(col-1)), append(b.nums, v)
		}
	}
}

// cutWord returns the first word of b and what follows it.
func cutWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	j := i
	for j < len(b) && b[j] > ' ' {
		j++
	}
	return b[i:j], b[j:]
}

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

func (s *source) idxHeader(magic uint32, dims int) (size []int, err error) {
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
func (s *source) idxBytes(n, d int, what string) ([]byte, error) {
	out, err := s.upTo(int64(n)*int64(d), byteGrowth)
	if err == nil && len(out) < n*d {
		err = s.refuse("the file is cut short: %d of %d %s; get it again", len(out)/d, n, what)
	}
	return out, err
}

// upTo reads most bytes, or fewer to the end. Memory grows with what is read, not with what a header claims: growth
// bytes for each.
func (s *source) upTo(most int64, growth int) ([]byte, error) {
	const chunk = 1 << 20
	var all bytes.Buffer
	for {
		n, err := io.CopyN(&all, s.r, min(chunk, most-int64(all.Len())))
		switch {
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return all.Bytes(), nil
		case err == nil:
			err = s.take(growth*int(n), 0)
		}
		if err != nil {
			return nil, s.failed(0, err)
		}
	}
}

// idxLabels reads the first n of the labels that belong to total images.
func (s *source) idxLabels(total, n int) (*answers, error) {
	dir, base := filepath.Split(s.name)
	name := strings.NewReplacer("images-idx3", "labels-idx1", "images.idx3", "labels.idx1").Replace(base)
	if name == base || s.file == nil {
		return nil, s.refuse("an idx file of images must be named like train-images-idx3-ubyte, with train-labels-idx1-ubyte beside it")
	}
	var l *source
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

// What an item takes while a slice of them grows: itself, the spare room of a quarter, and the copy
// that is grown from.
const (
	float64Growth = 8 * 9 / 4
	int32Growth   = 4 * 9 / 4
	intGrowth     = 8 * 9 / 4
	byteGrowth    = 3
	textGrowth    = (16 + 8) * 9 / 4 // a string and its line
)

// lineShare is the part of the memory that one line may take as text; its cells take some
// fifteen times as much.
const lineShare = 32

// vectorsHeld is the number of dense vectors, as long as a point has features, that are held beside
// sparse points: their mean, a scaling, rows that are read.
const vectorsHeld = 6

// small is how many bytes are always there; the machine is not asked about fewer.
const small = 1 << 24

// memory returns how many bytes the content may take: those of the options, or half of what the
// machine has, as garbage and the solve want some; 0 if that is not known.
func (s *source) memory() int64 {
	if !s.asked && s.limit == 0 {
		if s.limit = (accel.MemoryAvailable() + 1) / 2; s.limit > 0 { // upwards: 0 is unknown, not used up
			s.limit += s.held
		}
	}
	s.asked = true
	return s.limit
}

// take counts bytes that are held, of which rows were read before, and returns an error if they
// are more than the limit.
func (s *source) take(bytes, rows int) error {
	if s.held += int64(bytes); s.held <= s.limit || s.limit == 0 && s.held <= small {
		return nil
	}
	if limit := s.memory(); limit == 0 || s.held <= limit {
		return nil
	}
	return s.refuse("reading more than %d rows takes more than %s, the memory there is for it: read fewer by --n, or allow "+
		"more by --memory",
		rows, accel.Bytes(s.limit))
}

// checkLine returns an error if a line of that length is too long: if it takes more than a part of
// the memory.
func (s *source) checkLine(line int, bytes int64) error {
	if bytes <= small/lineShare {
		return nil
	}
	limit := int64(1 << 30)
	if m := s.memory(); m > 0 {
		limit = m / lineShare
	}
	if bytes <= limit {
		return nil
	}
	return s.fail(line, 0, "the line is longer than %s, more than there is memory for: is it a file of this format?",
		accel.Bytes(limit))
}
