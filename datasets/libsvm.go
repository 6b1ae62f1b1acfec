package datasets

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// maxColumn is the largest feature index, counted from 1, that is accepted: points.CSR has columns of the type int32.
const maxColumn = math.MaxInt32 - 1

func init() {
	register(Format{Name: "libsvm", Endings: []string{".libsvm", ".svm"}, IsText: true, Answers: "first in each line",
		Options: []string{"comment"}, Recognize: isLibsvm, Read: (*Source).readLibsvm})
}

// isLibsvm reports whether at least half of the lines with content consist of items index:value, after an optional
// label.
func isLibsvm(s *Source) (reason string, ok bool) {
	head := s.Head()
	itemLines, otherLines, lines := 0, 0, 0
	for line := range bytes.Lines(head) {
		if len(head) == windowBytes && !bytes.HasSuffix(line, []byte("\n")) && lines > 0 {
			break // the line is cut
		}
		lines++
		switch rowItems(line) {
		case -1:
			otherLines++
		case 0:
		default:
			itemLines++
		}
	}
	return "items index:value", itemLines > 0 && otherLines <= itemLines
}

// readLibsvm reads lines of the form "answer index:value …" with increasing indices from 1. Text after # is a comment.
// If options.Comment is set, the lines that begin with it are comments; with "none" no line is a comment, and # may
// begin an answer. Without options.Comment, a line that begins with # and may be a row is an error. If options.Target
// is "none", the answers may be missing. The points are sparse.
func (s *Source) readLibsvm(options *ReadOptions) (*Dataset, error) {
	x := &points.CSR{Ptr: []int{0}}
	var a answers
	widestLine, err := s.readLibsvmRows(x, &a, options) // widestLine is the line of the largest index
	if err != nil {
		return nil, err
	}
	if x.N = len(a.textIndices); x.N == 0 {
		return nil, s.fileFault("the file is empty: no rows")
	}
	if options.Dim > 0 && x.D > options.Dim {
		advice := ""
		if options.DimSource != "" {
			advice = fmt.Sprintf("; where the last features of sparse data are all zero, say --format dim=%d for "+
				"both files", x.D)
		}
		return nil, s.Fault(widestLine, 0, "%s%s", options.dimMessage(x.D), advice)
	}
	if options.Dim > x.D {
		x.D, widestLine = options.Dim, 0
	}
	if vectorBytes := denseVectors * 8 * int64(x.D); vectorBytes > minMemory { // 8 bytes for each float64
		if err := s.emptyBudget().Check(vectorBytes, fmt.Sprintf("index %d: vectors of that length", x.D),
			"number the features without gaps"); err != nil {
			return nil, s.Fault(widestLine, 0, "%v", err)
		}
	}
	if x.D == 0 {
		return nil, s.fileFault("no row has a feature")
	}
	d := &Dataset{X: x}
	if options.Target == "none" {
		return d, nil
	}
	return d, s.setAnswers(d, &a, options, nil)
}

// readLibsvmRows sets x to the rows and appends their answers to a. It returns the line of the largest index.
func (s *Source) readLibsvmRows(x *points.CSR, a *answers, options *ReadOptions) (widestLine int, err error) {
	var columns chunkedSlice[int32]
	var values chunkedSlice[float64]
	nextLine, entryCount := 1, 0
	neverInQuotes := func([]byte) bool { return false }
	err = s.eachRow(1, neverInQuotes, pipelineDepth, func(b *block) {
		line := b.line
		for text := range bytes.Lines(b.text) {
			b.rows = append(b.rows, s.parseLibsvmLine(b, text, line, options))
			line++
		}
	}, func(r *textRow) error {
		nextLine = r.line + 1
		switch {
		case len(a.textIndices) == options.MaxRows:
			return io.EOF
		case r.err != nil:
			return r.err
		}
		if r.maxIndex > x.D {
			x.D, widestLine = r.maxIndex, r.line
		}
		if r.cells == nil {
			s.report.addSkipped(r.line, 1)
			return nil
		}
		columns.appendAll(r.indices)
		values.appendAll(r.numbers)
		entryCount += len(r.indices)
		x.Ptr = append(x.Ptr, entryCount)
		if err := s.reserve((float64Growth+int32Growth)*len(r.indices)+intGrowth, len(a.textIndices)); err != nil {
			return err
		}
		return a.addRow(s, s.decodeText(r.cells[0]), r.line)
	})
	x.Col, x.Val = columns.concat(), values.concat()
	if err != nil {
		err = s.readError(nextLine, err)
	}
	return widestLine, err
}

// missingLabel is the error for a line that begins with an item index:value.
const missingLabel = "the line has no label: it begins with index:value. " +
	"A fit wants one in each line; to predict, say --target none"

// parseLibsvmLine parses a line and appends its nonzeros to those of b. The answer is "" if the line has none.
func (s *Source) parseLibsvmLine(b *block, text []byte, line int, options *ReadOptions) (r textRow) {
	r.line = line
	fail := func(item int, format string, args ...any) textRow {
		r.err = s.Fault(line, item, format, args...)
		return r
	}
	word, remainder := cutWord(text)
	answer := string(word)
	switch {
	case len(word) == 0,
		options.Comment != "" && options.Comment != "none" && bytes.HasPrefix(word, []byte(options.Comment)):
		return r
	case word[0] == '#' && options.Comment != "none":
		if second, _ := cutWord(remainder); len(word) > 1 && (len(second) == 0 || isItem(second)) {
			return fail(1, "the line begins with # and may be a row: "+
				"say --format comment=# if it is a comment, --format comment=none if # begins a label")
		}
		return r
	case isItem(word) && word[0] != 'q': // an item qid:number is no feature
		if remainder, answer = text, ""; options.Target != "none" {
			return fail(1, "%s", missingLabel)
		}
	}
	firstCell, firstNumber := len(b.cells), len(b.numbers)
	b.cells = append(b.cells, answer)
	text, _, _ = bytes.Cut(remainder, []byte("#"))
	for item := 1 + min(1, len(answer)); ; item++ { // an answer is item 1
		if word, text = cutWord(text); len(word) == 0 {
			r.cells, r.numbers, r.indices = b.cells[firstCell:], b.numbers[firstNumber:], b.indices[firstNumber:]
			return r
		}
		index, value, ok := bytes.Cut(word, []byte(":"))
		if !ok {
			return fail(item, "%s is not of the form index:value", quote(word))
		}
		column, err := strconv.Atoi(string(index))
		switch {
		case err == nil && column == 0:
			return fail(item,
				"index 0: LIBSVM counts features from 1, want indices from 1; add 1 to all of them "+
					"(in scikit-learn dump_svmlight_file(…, zero_based=False)); of a kernel matrix, see --kernel "+
					"precomputed")
		case err != nil || column < 1 || column > maxColumn:
			return fail(item, "index %s: want a whole number from 1 to %d", quote(index), maxColumn)
		case column <= r.maxIndex:
			return fail(item, "index %d after index %d: indices must increase", column, r.maxIndex)
		}
		v, ok := parseShort(value)
		if !ok {
			if v, err = parseFinite(string(value)); err != nil {
				return fail(item, "value of index %d: %v", column, err)
			}
		}
		if r.maxIndex = column; v != 0 {
			b.indices, b.numbers = append(b.indices, int32(column-1)), append(b.numbers, v)
		}
	}
}

// cutWord returns the first word of a line, and the text after this word.
func cutWord(line []byte) (word, remainder []byte) {
	i := 0
	for i < len(line) && line[i] <= ' ' {
		i++
	}
	j := i
	for j < len(line) && line[j] > ' ' {
		j++
	}
	return line[i:j], line[j:]
}

// rowItems returns the number of items index:value in a line of the LIBSVM format, after an optional label. It is 0 for
// a label alone and for lines without content, and −1 if the line does not have this format.
func rowItems(line []byte) (items int) {
	words := bytes.Fields(line)
	for k, word := range words {
		if word[0] == '#' && (k > 0 || len(words) == 1 || !isItem(words[1])) {
			return items
		}
		if isItem(word) {
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

// isItem reports whether a word has the form index:value or qid:number.
func isItem(word []byte) bool {
	index, value, ok := strings.Cut(string(word), ":")
	if _, err := strconv.Atoi(index); err != nil && index != "qid" || !ok {
		return false
	}
	return kindOf(value) != wordCell && kindOf(value) != localCell
}
