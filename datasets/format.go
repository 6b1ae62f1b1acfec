package datasets

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
)

// Format is a file format. Reading, the flag --format, its help and the messages know formats by these values alone.
type Format struct {
	Name    string   // in ReadOptions.Format and Reading.Format: small letters and digits
	Endings []string // of file names, such as ".csv", which the name of a data set does not have
	// IsText says that the content is UTF-8: a byte order mark is skipped, and other content is refused.
	IsText bool
	// Answers says where a file has its answers if it has no columns that options can name, such as "first in each
	// line"; "" for a table, whose columns are those of its Columns or of its header.
	Answers string
	// Recognize reports whether a file is of the format, and why, "" where that is plain. The format that was
	// registered last is asked first. Nil: only ReadOptions.Format selects the format.
	Recognize func(s *Source) (why string, ok bool)
	// Read reads the data as the options say: by Source.Delimited, or by a Table that it adds rows to.
	Read func(s *Source, o *ReadOptions) (*Dataset, error)

	isDefault bool // reads text that no format recognizes
}

// formats holds the formats in the order of their registration.
var formats struct {
	sync.RWMutex
	all []*Format
}

var formatName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// RegisterFormat adds a format to those that are read. Call it in main or init. It returns an error, and changes
// nothing, if the format has no reader, or if its name or one of its endings is taken or not in the form of one.
func RegisterFormat(f Format) error {
	fail := func(text string, args ...any) error {
		return fmt.Errorf("datasets: RegisterFormat(%q): "+text, append([]any{f.Name}, args...)...)
	}
	if !formatName.MatchString(f.Name) || f.Name == "auto" {
		return fail("want a name of small letters and digits, other than auto")
	}
	if f.Read == nil {
		return fail("no function to read files")
	}
	for _, ending := range f.Endings {
		if len(ending) < 2 || ending[0] != '.' {
			return fail("the ending %q: want a dot and letters", ending)
		}
		if bareOf("a"+ending) == "a" {
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

// registered returns the formats in the order of their registration.
func registered() []*Format {
	formats.RLock()
	defer formats.RUnlock()
	return slices.Clone(formats.all)
}

// FormatName is the name of a format, or "auto".
type FormatName string

// Names returns auto, the names of the formats that the program has, and of those that it may import.
func (FormatName) Names() []string {
	names := formatNames()
	for _, f := range strangers {
		if f.format != "" && !slices.Contains(names, f.format) {
			names = append(names, f.format)
		}
	}
	return names
}

// formatNames returns auto and the names of the formats that the program has.
func formatNames() []string {
	names := []string{"auto"}
	for _, f := range registered() {
		names = append(names, f.Name)
	}
	slices.Sort(names[1:])
	return names
}

// strangers are files that are not read, by what they begin with, texts in lower case, and what to do. A format is the name of
// one that a package registers which the program does not import.
var strangers = []struct{ start, format, what string }{
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

// formatOf returns the format that the options name, or that recognizes the content, and why it is that.
func (s *Source) formatOf(name FormatName) (f *Format, why string, err error) {
	head, all := s.Head(), registered()
	isBinary := bytes.IndexByte(head, 0) >= 0
	if _, err := s.r.Peek(1); err == io.EOF && s.arrays == nil && name == "auto" {
		return nil, "", s.refuse("the file is empty")
	} else if err != nil && err != io.EOF {
		return nil, "", s.failed(0, err)
	}
	for _, f := range slices.Backward(all) {
		if f.Name == string(name) {
			return f, "--format", nil
		}
		if name == "auto" && f.Recognize != nil && !(f.IsText && isBinary) {
			if why, ok := f.Recognize(s); ok {
				return f, why, nil
			}
		}
	}
	start := bytes.TrimSpace(head)
	for bytes.HasPrefix(start, []byte("% ")) { // comments of ARFF
		_, start, _ = bytes.Cut(start, []byte("\n"))
	}
	start = bytes.ToLower(bytes.TrimSpace(start[:min(len(start), 64)]))
	for _, f := range strangers {
		begins := bytes.HasPrefix(start, []byte(f.start)) || bytes.HasPrefix(head, []byte(f.start))
		if f.format == string(name) || name == "auto" && begins {
			return nil, "", s.refuse("the file is %s", f.what)
		}
	}
	return all[slices.IndexFunc(all, func(f *Format) bool { return f.isDefault })], "", nil
}
