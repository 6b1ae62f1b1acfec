package datasets

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
)

// Scalings are the scalings of features.
var Scalings = []string{"auto", "none", "unit", "standard", "pixel"}

// ParseError says where in a file something cannot be read, and why.
type ParseError struct {
	File   string
	Line   int // counted from 1; 0 if the error is of the file
	Column int // cell, or item of a LIBSVM line, counted from 1; 0 if it is of the line
	Reason string
	Flags  []string // of the command line that cure it, each with its value after it; nil where none do
}

func (e *ParseError) Error() string {
	s := safe.Name(e.File)
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Column > 0 {
		s += fmt.Sprintf(", column %d", e.Column)
	}
	if s += ": " + e.Reason; e.Flags != nil {
		s += "; add"
	}
	for _, word := range e.Flags {
		s += " " + safe.Shell(word)
	}
	return s
}

// ReadOptions say how to read a file. The zero value, and nil, mean the defaults.
type ReadOptions struct {
	// Format is by default decided by the file's first bytes and lines.
	Format FormatName `flag:"format" default:"auto" with:"train|in|test"`
	// Separator of the cells of a csv file: see ParseSeparator. Header is whether it has one. Comment is the character
	// that begins lines that are skipped wherever they are, or "none"; default: # before the first row. What is auto is
	// decided by the first rows; Dataset.Read says what, and why.
	Separator string `flag:"separator" default:"auto" with:"train|in|test"`
	Header    string `flag:"header" default:"auto" check:"one of auto yes no" with:"train|in|test"`
	Comment   string `flag:"comment" with:"train|in|test"`
	// Columns are the names of the features wanted, as those of Dataset.Columns: where the header has them, features
	// are found by their names, in this order, and other columns are left out.
	Columns []string
	// Target is the column of a csv file that holds the answers: an index from 0, one from the end (-1 is the last), a
	// name in the header, several names as in a line of csv (the others are More), or "none". Default: the last, or
	// none if Dim is set and the file has just Dim columns. Files of other formats have a separate place for their
	// answers: for them Target may be "none", and a column other than -1 is an error.
	Target string `flag:"target" with:"train|in|test"`
	// More are columns of a csv file with the answers of further targets, which are numbers, as in Target. If
	// TargetOptional is set, a file without Target has none of them.
	More []string
	// TargetOptional says that a csv file of just Dim columns has no answers, whatever
	// Target is, that answers which cannot be read are left out, and that files of other formats do not heed Target.
	TargetOptional bool
	// Task is auto, classification or regression. Auto is classification if the answers are words,
	// or whole numbers of at most 20 values, each of them taken by 5 rows on average;
	// regression otherwise. Words among numbers are classes too if numbers and words
	// together are such values and each word is in 5 rows at least and is none that
	// stands for a missing value (NA, ?, …); otherwise they are an error.
	Task string `flag:"task" default:"auto" check:"one of auto classification regression" with:"train"`
	// Drop are columns of a csv file that are no features and are left out, such as an
	// index: each a number or a name as in Target, counted in the file as it is. If
	// TargetOptional is set, a name that the header lacks is let be, and a file of just Dim
	// columns has nothing dropped.
	Drop []string `flag:"drop" with:"train|in"`
	// Repeats is the rule by which rows of equal features are grouped (Dataset.Group). Groups is the column of a csv
	// file, as in Target, whose equal values are a group (Dataset.GroupBy); it is no feature.
	Repeats string `flag:"repeats" default:"auto" check:"one of auto together apart"`
	Groups  string `flag:"groups" with:"train"`
	// Weights is the column of a csv file that holds the weights of the rows, as in Target; default: none.
	Weights string `flag:"weights" with:"train"`
	// Keep are columns of a csv file, as in Target, whose text becomes Dataset.Kept.
	Keep []string `flag:"keep" with:"in"`
	// Categorical are columns of words in a csv file that are coded by features of 0 and 1, and of dates that are coded as
	// Dates says; Dim counts these features.
	Categorical []Category
	// KeepMissing keeps missing cells of features in a csv file as NaN, for Impute; default: they are an error.
	KeepMissing bool
	// AnswersOnly reads no features of a csv file, so that X has dimension 0.
	AnswersOnly bool
	// Points is the array of an .npz file with the points; default: X, x_train, data and other usual names, or the only
	// matrix. TestPart says that x_test and y_test are taken where the file has them beside x_train and y_train.
	Points   string `flag:"x" with:"train|in|test"`
	TestPart bool
	// Dim is the number of features wanted: sparse files whose last features are
	// all zero get it, and any other number is an error. Default: as found.
	Dim int `flag:"dim" check:">=1" with:"train"`
	// DimOf says for the error whose number Dim is, such as the training file's name.
	DimOf string
	// MaxRows is the most rows read; default: all.
	MaxRows int `flag:"n" check:">=2" help:"use only the first N training rows"`
	// Memory is how many bytes the content may take while it is read, more is an error;
	// default: half of what the machine has available.
	Memory int64
}

// Help has the texts of the options as flags.
func (ReadOptions) Help() map[string]string {
	return map[string]string{
		"format": "format of the files: " + strings.Join(formatNames(), ", "),
		"separator": "what separates the cells of a csv file: a character, or comma, semicolon, tab, pipe or " +
			"blank (auto: by the first rows)",
		"header":  "whether the first row of a csv file is a header: yes, no, or auto, by the first rows",
		"comment": "character that begins lines to be skipped, or none (default: # before the first row)",
		"target": "target column of a csv file: a number counted from 0, -1 for the last, or a header name; several, " +
			"separated by commas (quoted as in csv where a name has one), for a regression with several targets; " +
			"other formats have a separate place for it",
		"drop": "columns of a csv file that are not features, such as an index: names or numbers as for --target, " +
			"separated by commas",
		"task": "auto, classification or regression; auto takes as classes words, and whole numbers with at most " +
			"20 values, " +
			"each in 5 rows or more on average",
		"dim": "number of features of a libsvm file, if its last columns are all zero (default: its largest index)",
		"repeats": "rows of equal features: together or apart in splits and leave-one-out; auto keeps copies of a " +
			"record together",
		"groups": "column of a csv file, no feature, whose rows of equal values stay together in splits and " +
			"leave-one-out: a name or number",
		"x":       "array of an .npz file with the points (default: X, x_train, data …, or the only matrix)",
		"weights": "column of a csv file with the weights of the rows: 2 counts as two equal rows",
		"keep": "columns of a csv file --in, such as an id, that are copied to the output: names or numbers, " +
			"separated by " +
			"commas",
	}
}

// wrongDim says that there are d features, and not Dim.
func (o *ReadOptions) wrongDim(d int) string {
	whose := "want"
	if o.DimOf != "" {
		whose = safe.Name(o.DimOf) + " has"
	}
	return fmt.Sprintf("points have %d features, %s %d", d, whose, o.Dim)
}

// settled returns a copy with the defaults in place.
func (o *ReadOptions) settled() (ReadOptions, error) {
	s := *cmp.Or(o, &ReadOptions{})
	_, err := ParseSeparator(s.Separator)
	if e := schema.Settle(&s); e != nil {
		err = fmt.Errorf("datasets: %w", e)
	}
	if err == nil && s.Groups != "" && s.Repeats != "auto" {
		err = fmt.Errorf("groups %s and repeats %s: want one of the two", quote(s.Groups), s.Repeats)
	}
	if err == nil && s.Comment != "none" && utf8.RuneCountInString(s.Comment) > 1 {
		err = fmt.Errorf("comment %q: want one character, or none", s.Comment)
	}
	for _, k := range s.Categorical {
		if err == nil && k.Dates != nil {
			err = k.Dates.validate(k.Column)
		}
	}
	return s, err
}

// known returns an error unless a word is one of those that there are.
func known(what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("unknown %s %q: want one of %s", what, word, strings.Join(words, ", "))
}

// ReadFile reads a data set from a file, which may be packed with gzip, bzip2, xz, zstd, or zip if it is the one file
// there (known by its first bytes). MNIST's images want their labels in a file beside them, named with labels-idx1 in
// place of images-idx3. Errors are of type *ParseError where the content is at fault. When ctx ends first its error is
// returned, but a read that waits for the system, as of a pipe, is not ended.
func ReadFile(ctx context.Context, name string, o *ReadOptions) (*Dataset, error) {
	s, err := open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	d, err := s.read(o)
	if e := ctx.Err(); e != nil { // err may be of the end that it made
		return nil, e
	}
	return d, err
}

// Read is ReadFile for a stream; name stands in errors. MNIST's idx form, which takes
// two files, cannot be read so.
func Read(r io.Reader, name string, o *ReadOptions) (*Dataset, error) {
	s := &Source{ctx: context.Background(), name: name}
	if err := s.unpack(r); err != nil {
		return nil, err
	}
	return s.read(o)
}
