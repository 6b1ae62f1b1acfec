package datasets

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxColumn is the largest LIBSVM index accepted.
const maxColumn = math.MaxInt32 - 1

func init() {
	register(Format{Name: "libsvm", Endings: []string{".libsvm", ".svm"}, IsText: true, Answers: "first in each line",
		Recognize: hasItems, Read: (*Source).libsvm})
}

// hasItems reports whether most lines have items index:value.
func hasItems(s *Source) (why string, ok bool) {
	head := s.Head()
	items, others, lines := 0, 0, 0
	for line := range bytes.Lines(head) {
		if len(head) == windowBytes && !bytes.HasSuffix(line, []byte("\n")) && lines > 0 {
			break // cut
		}
		lines++
		switch rowItems(line) {
		case -1:
			others++
		case 0:
		default:
			items++
		}
	}
	return "items index:value", items > 0 && others <= items
}

// libsvm reads lines "answer index:value …", indices from 1 and increasing; text after # is a comment, but at a line's
// start where that may be a row. If o.Target is "none" the answers may be missing. Points are sparse.
func (s *Source) libsvm(o *ReadOptions) (*Dataset, error) {
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
			return nil, s.Fault(widest, 0, "%s", o.wrongDim(x.D))
		}
		return nil, s.Fault(widest, 0,
			"%s; where the last features of sparse data are all zero, say --dim %d for both files", o.wrongDim(x.D),
			x.D)
	}
	if o.Dim > x.D {
		x.D, widest = o.Dim, 0
	}
	if need := vectorsHeld * 8 * float64(x.D); need > small && s.memory() > 0 && need > float64(s.memory()) {
		return nil, s.Fault(widest, 0,
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
func (s *Source) libsvmRows(x *points.CSR, a *answers, o *ReadOptions) (widest int, err error) {
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
func (s *Source) libsvmLine(b *block, text []byte, line int, o *ReadOptions) (r textRow) {
	r.line = line
	fail := func(item int, format string, args ...any) textRow {
		r.err = s.Fault(line, item, format, args...)
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

// rowItems returns how many items index:value a line of LIBSVM has, after its label or without one; 0 for a label alone
// and for lines without content, −1 where it is none.
func rowItems(line []byte) (items int) {
	words := bytes.Fields(line)
	for k, w := range words {
		if w[0] == '#' && (k > 0 || len(words) == 1 || !isItem(words[1])) {
			return items
		}
		if isItem(w) {
			items++
		} else if k > 0 {
			return -1
		}
	}
	if items == 0 && len(words) == 1 && bytes.ContainsAny(words[0], ",;|") {
		return -1
	}
	return items
}

// isItem reports whether a word is of the form index:value, or qid:number.
func isItem(w []byte) bool {
	index, value, ok := strings.Cut(string(w), ":")
	if _, err := strconv.Atoi(index); err != nil && index != "qid" || !ok {
		return false
	}
	return kindOf(value) != word && kindOf(value) != local
}
