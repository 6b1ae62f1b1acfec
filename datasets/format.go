package datasets

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Format is a file format. Readers, the flag --format, its help and the messages take all facts about formats from
// these values.
type Format struct {
	Name    string   // name in ReadOptions.Format and ReadReport.Format: lower-case letters and digits
	Endings []string // endings of file names, such as ".csv"; they are removed from the name of a data set
	// IsText states that the content is UTF-8 text. A byte order mark is skipped, and binary content is an error.
	IsText bool
	// Answers describes where a file has its answers, such as "first in each line", for a format without columns that
	// options can name. It is "" for a table, whose columns have the names in its header or in Columns.
	Answers string
	// Options are the options after the name in --format that the format has: separator, header, comment (the fields of
	// ReadOptions with these names) and x (PointsArray). Others are refused, as they would have no effect. All formats
	// have dim.
	Options []string
	// Recognize reports whether a file has this format, and the reason, or "" if it is obvious. The format that was
	// registered last is tried first. If Recognize is nil, only ReadOptions.Format selects the format.
	Recognize func(s *Source) (reason string, ok bool)
	// Read reads the data according to the options, with Source.ReadDelimited or with a Table to which it adds rows.
	Read func(s *Source, options *ReadOptions) (*Dataset, error)

	isDefault bool // the format of text that no format recognizes
}

// formats are the registered formats, in the order of registration.
var formats struct {
	sync.RWMutex
	all []*Format
}

// formatOptions are the names that Format.Options may have.
var formatOptions = []string{"separator", "header", "comment", "x"}

// formatName matches valid names of formats.
var formatName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// RegisterFormat adds a file format. Call it in main or in an init function. It returns an error, and changes nothing,
// if the format has no Read function, if its name or one of its endings is already registered or is malformed, or if
// an option is unknown.
func RegisterFormat(f Format) error {
	fail := func(text string, args ...any) error {
		return fmt.Errorf("datasets: RegisterFormat(%q): "+text, append([]any{f.Name}, args...)...)
	}
	if !formatName.MatchString(f.Name) || f.Name == "auto" {
		return fail("want a name of lower-case letters and digits, other than auto")
	}
	if f.Read == nil {
		return fail("no function to read files")
	}
	for _, option := range f.Options {
		if !slices.Contains(formatOptions, option) {
			return fail("there is no option %q: want some of %s", option, strings.Join(formatOptions, ", "))
		}
	}
	for _, ending := range f.Endings {
		if len(ending) < 2 || ending[0] != '.' {
			return fail("the ending %q: want a dot and letters", ending)
		}
		if unpackedName("a"+ending) == "a" {
			return fail("the ending %q is that of a packed file", ending)
		}
	}
	formats.Lock()
	defer formats.Unlock()
	for _, other := range formats.all {
		if other.Name == f.Name {
			return fail("the name is taken")
		}
		for _, ending := range f.Endings {
			if slices.Contains(other.Endings, ending) {
				return fail("the ending %q is taken by the format %s", ending, other.Name)
			}
		}
	}
	formats.all = append(formats.all, &f)
	return nil
}

// register adds a format of this package.
func register(f Format) {
	if err := RegisterFormat(f); err != nil {
		panic(err)
	}
}

// registered returns the formats in the order of registration.
func registered() []*Format {
	formats.RLock()
	defer formats.RUnlock()
	return slices.Clone(formats.all)
}

// FormatName is the name of a format, or "auto".
type FormatName string

// Names returns "auto", the names of the registered formats, and those of the formats that a program can import.
func (FormatName) Names() []string {
	names := formatNames()
	for _, f := range unsupportedFormats {
		if f.format != "" && !slices.Contains(names, f.format) {
			names = append(names, f.format)
		}
	}
	return names
}

// formatNames returns "auto" and the names of the registered formats.
func formatNames() []string {
	names := []string{"auto"}
	for _, f := range registered() {
		names = append(names, f.Name)
	}
	slices.Sort(names[1:])
	return names
}

// unsupportedFormats are kinds of files that this package does not read. A file is of a kind if its content begins with
// start, in lower case for text. advice completes the sentence "the file is …". format is the name of a format that
// another package registers and the program does not import; "" if there is none.
var unsupportedFormats = []struct{ start, format, advice string }{
	{"PAR1", "parquet", "of the format parquet: to read it, the program has to import _ " +
		`"github.com/krrlab/lab/datasets/parquet"`},
	{"version https://git-lfs", "", "a pointer of Git LFS and not the data: get them by git lfs pull"},
	{"<!doctype html", "", "an HTML page, as of a download that failed: get the data themselves"},
	{"<html", "", "an HTML page, as of a download that failed: get the data themselves"},
	{"<?xml", "", "an XML file: save the table as CSV"},
	{"@relation", "", "an ARFF file of Weka: save the table as CSV; the lines after @data are the rows"},
	{"@attribute", "", "an ARFF file of Weka: save the table as CSV; the lines after @data are the rows"},
	{"{", "", "a JSON file: save the table as CSV"},
	{"[", "", "a JSON file: save the table as CSV"},
	{"%%matrixmarket", "", "a file of Matrix Market: save it as LIBSVM or CSV"},
}

// chooseFormat returns the format that the options name or, for "auto", the one that recognizes the content, and the
// reason.
func (s *Source) chooseFormat(name FormatName) (f *Format, reason string, err error) {
	head, candidates := s.Head(), registered()
	isBinary := bytes.IndexByte(head, 0) >= 0
	if _, err := s.r.Peek(1); err == io.EOF && s.arrays == nil && name == "auto" {
		return nil, "", s.fileFault("the file is empty")
	} else if err != nil && err != io.EOF {
		return nil, "", s.readError(0, err)
	}
	for _, f := range slices.Backward(candidates) {
		if f.Name == string(name) {
			return f, "--format", nil
		}
		if name == "auto" && f.Recognize != nil && !(f.IsText && isBinary) {
			if reason, ok := f.Recognize(s); ok {
				return f, reason, nil
			}
		}
	}
	start := bytes.TrimSpace(head)
	for bytes.HasPrefix(start, []byte("% ")) { // comments of ARFF
		_, start, _ = bytes.Cut(start, []byte("\n"))
	}
	start = bytes.ToLower(bytes.TrimSpace(start[:min(len(start), 64)]))
	for _, f := range unsupportedFormats {
		hasStart := bytes.HasPrefix(start, []byte(f.start)) || bytes.HasPrefix(head, []byte(f.start))
		if f.format == string(name) || name == "auto" && hasStart {
			return nil, "", s.fileFault("the file is %s", f.advice)
		}
	}
	return candidates[slices.IndexFunc(candidates, func(f *Format) bool { return f.isDefault })], "", nil
}
