package datasets

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/npy"
)

// strangers are files that are not read, by what they begin with, in lower case, and what to do.
var strangers = []struct{ start, what string }{
	{"version https://git-lfs", "a pointer of Git LFS and not the data: get them by git lfs pull"},
	{"<!doctype html", "an HTML page, as of a download that failed: get the data themselves"},
	{"<html", "an HTML page, as of a download that failed: get the data themselves"},
	{"<?xml", "an XML file: save the table as CSV"},
	{"@relation", "an ARFF file of Weka: save the table as CSV; the lines after @data are the rows"},
	{"@attribute", "an ARFF file of Weka: save the table as CSV; the lines after @data are the rows"},
	{"{", "a JSON file: save the table as CSV"},
	{"[", "a JSON file: save the table as CSV"},
	{"%%matrixmarket", "a file of Matrix Market: save it as LIBSVM or CSV"},
}

// sniff tells the format by the first bytes, idx's two zeros, and by lines of items index:value, LIBSVM's.
func (s *source) sniff() (format, why string, err error) {
	if s.arrays != nil {
		return "npy", "", nil
	}
	head, err := s.r.Peek(windowBytes)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return "", "", s.failed(0, err)
		}
		return "", "", s.refuse("the file is empty")
	}
	if bytes.HasPrefix(head, []byte{0, 0}) {
		return "idx", "it begins with two zeros", nil
	}
	if bytes.HasPrefix(head, []byte(npy.Magic)) {
		return "npy", "", nil
	}
	if bytes.HasPrefix(head, []byte(parquetStart)) {
		return "parquet", "", nil
	}
	start := bytes.TrimSpace(head)
	for bytes.HasPrefix(start, []byte("% ")) { // comments of ARFF
		_, start, _ = bytes.Cut(start, []byte("\n"))
	}
	start = bytes.ToLower(bytes.TrimSpace(start[:min(len(start), 64)]))
	for _, f := range strangers {
		if bytes.HasPrefix(start, []byte(f.start)) {
			return "", "", s.refuse("the file is %s", f.what)
		}
	}
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
	if items == 0 || others > items {
		return "csv", "", nil
	}
	return "libsvm", "items index:value", nil
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
