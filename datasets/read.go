package datasets

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
)

// Scalings are the names of the scalings of features, for Scale.
var Scalings = []string{"auto", "none", "unit", "standard", "pixel"}

// ParseError is an error at a place in a file.
type ParseError struct {
	File   string
	Line   int // counted from 1; 0 if the error concerns the whole file
	Column int // cell, or item of a LIBSVM line, counted from 1; 0 for the whole line
	Reason string
	Flags  []string // command-line flags that repair the fault, each followed by its value; nil if none do
}

// Error returns the file, the place, the reason and the flags in one line.
func (e *ParseError) Error() string {
	text := safe.Name(e.File)
	if e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Column > 0 {
		text += fmt.Sprintf(", column %d", e.Column)
	}
	if text += ": " + e.Reason; e.Flags != nil {
		text += "; add"
	}
	for _, word := range e.Flags {
		text += " " + safe.Shell(word)
	}
	return text
}

// ReadOptions are the options for reading a file. The zero value and a nil pointer stand for the defaults.
type ReadOptions struct {
	// Format is the file format. If it is auto, the format is recognized by the first bytes and lines of the file.
	Format FormatName `flag:"format" default:"auto" with:"train|in|test"`
	// Separator is the separator of the cells of a csv file; see ParseSeparator. Header says whether the file has a
	// header. Comment is the character that begins comment lines, which are skipped everywhere, or "none"; by default #
	// begins comments before the first row. Values of auto are decided by the first rows, and Dataset.ReadReport
	// records the decision and its reason.
	Separator string `flag:"separator" in:"format" default:"auto" with:"train|in|test" empty:"a character, or blank for a blank"`
	Header    string `flag:"header" in:"format" default:"auto" check:"one of auto yes no" with:"train|in|test"`
	Comment   string `flag:"comment" in:"format" with:"train|in|test" empty:"one character, or none"`
	// Columns are the names of the wanted features, in the form of Dataset.Columns. If the header has these names, the
	// features are found by name and put into this order, and other columns are ignored.
	Columns []string
	// Target is the column of a csv file that has the answers: an index from 0, a negative index from the end (-1 is
	// the last column), a name in the header, several names as a line of csv (all but the first become MoreTargets), or
	// "none". The default is the last column, or none if Dim is set and the file has just Dim columns. Files of other
	// formats have a separate place for their answers; for them Target may be "none", and a column other than -1 is an
	// error.
	Target string `flag:"target" with:"train|in|test"`
	// MoreTargets are the columns of a csv file with the answers of the second and further targets, in the form of
	// Target. These answers are numbers. If TargetOptional is set and the file does not have Target, these columns are
	// not needed either.
	MoreTargets []string
	// TargetOptional states that the answers may be missing. Then a csv file with just Dim columns has no answers,
	// whatever Target is; answers that cannot be read are ignored; and Target is ignored for files of other formats.
	TargetOptional bool
	// Task is auto, classification or regression. With auto, the task is classification if the answers are words, or
	// whole numbers with at most 20 distinct values and at least 5 rows per value on average; otherwise it is
	// regression. Words among numbers are classes too if words and numbers together satisfy this condition, each word
	// occurs in at least 5 rows, and no word stands for a missing value (NA, ?, …); otherwise they are an error.
	Task string `flag:"task" default:"auto" check:"one of auto classification regression" with:"train"`
	// Drop are columns of a csv file that are not features, such as an index, and are ignored. Each is a number or a
	// name in the form of Target; numbers count all columns of the file. If TargetOptional is set, names that the
	// header does not have are ignored, and nothing is dropped from a file with just Dim columns.
	Drop []string `flag:"drop" with:"train|in"`
	// Repeats is the rule by which rows with equal features are grouped (Dataset.GroupByRule). Groups is the column of
	// a csv file, in the form of Target, whose equal values form groups (Dataset.GroupBy); it is not a feature.
	Repeats string `flag:"repeats" default:"auto" check:"one of auto together apart"`
	Groups  string `flag:"groups" with:"train|in"`
	// Weights is the column of a csv file with the weights of the rows, in the form of Target. The default is none.
	Weights string `flag:"weights" with:"train"`
	// Keep are the columns of a csv file, in the form of Target, whose text is copied to Dataset.CopiedColumns.
	Keep []string `flag:"keep" with:"in"`
	// ColumnCodings are the columns of a csv file that are coded by several features: columns of words by features of 0
	// and 1, and columns of dates as DateCoding describes. Dim counts these features.
	ColumnCodings []ColumnCoding
	// Space names the columns of a csv file that are coordinates and the only features (Space). Columns and Dim then
	// count the features of its projection; without a projection, it is chosen for the points of the file.
	Space *Space `flag:"space" with:"train" not:"drop|categorical|dates|impute"`
	// KeepMissing reads missing cells of features in a csv file as NaN, for Impute; otherwise they are an error.
	KeepMissing bool
	// AnswersOnly reads no features of a csv file, so that X has dimension 0.
	AnswersOnly bool
	// PointsArray is the array of an .npz file with the points. The default is X, x_train, data or another usual name,
	// or the only matrix. TestPart selects x_test and y_test if the file has them in addition to x_train and y_train.
	PointsArray string `flag:"x" in:"format" with:"train|in|test"`
	TestPart    bool
	// Dim is the wanted number of features; the default is the number in the file. A file with another number is an
	// error, except that sparse points whose last features are all zero get the dimension Dim.
	Dim int `flag:"dim" in:"format" check:">=1" with:"train"`
	// DimSource names the data whose number of features Dim is, such as the training file, for the error.
	DimSource string
	// MaxRows is the largest number of rows that are read; the default is all.
	MaxRows int `flag:"n" check:">=2" help:"use only the first N training rows"`
	// Memory is the memory budget for the content while it is read, in bytes; exceeding it is an error. The default is
	// half of the available memory of the machine.
	Memory int64
}

// Help returns the help texts of the flags.
func (ReadOptions) Help() map[string]string {
	return map[string]string{
		"format": "format of the files: " + strings.Join(formatNames(), ", ") + "; options after it, such as " +
			"'csv separator=; header=no comment=%' (separator may be a word such as tab or blank), x=NAME for the " +
			"array of " +
			"an .npz file, dim=D for a libsvm file (default: found by the first rows)",
		"target": "column of a csv file to predict: a name, or a number from 0, -1 for the last; several for several " +
			"targets, separated by commas",
		"drop":    "columns of a csv file that are not features, such as an index, separated by commas",
		"task":    "classification, regression, or auto: words, and few whole numbers, are classes",
		"repeats": "rows of equal features in splits and leave-one-out: together, apart, or auto: copies together",
		"groups": "column of a csv file, no feature, whose rows of equal values stay together in splits and " +
			"leave-one-out",
		"space": "columns of a csv file that are coordinates, such as lon,lat, and the only features; longitude and " +
			"latitude, recognized by name, become kilometers",
		"weights": "column of a csv file with the weights of the rows: 2 counts as two equal rows",
		"keep":    "columns of a csv file --in, such as an id, that are copied to the output, separated by commas",
	}
}

// dimMessage is the error text if the points have d features and not Dim.
func (options *ReadOptions) dimMessage(d int) string {
	owner := "want"
	if options.DimSource != "" {
		owner = safe.Name(options.DimSource) + " has"
	}
	return fmt.Sprintf("points have %d features, %s %d", d, owner, options.Dim)
}

// withDefaults returns a copy of the options with the defaults filled in, or an error if an option is invalid.
func (options *ReadOptions) withDefaults() (ReadOptions, error) {
	settings := *cmp.Or(options, &ReadOptions{})
	_, err := ParseSeparator(settings.Separator)
	if completeErr := schema.Complete(&settings); completeErr != nil {
		err = fmt.Errorf("datasets: %w", completeErr)
	}
	settings.MaxRows = cmp.Or(settings.MaxRows, math.MaxInt)
	if err == nil && settings.Groups != "" && settings.Repeats != "auto" {
		err = fmt.Errorf("groups %s and repeats %s: want one of the two", quote(settings.Groups), settings.Repeats)
	}
	if err == nil && settings.Comment != "none" && utf8.RuneCountInString(settings.Comment) > 1 {
		err = fmt.Errorf("comment %q: want one character, or none", settings.Comment)
	}
	for _, coding := range settings.ColumnCodings {
		if err == nil && coding.Dates != nil {
			err = coding.Dates.validate(coding.Column)
		}
	}
	return settings, err
}

// ReadFile reads a data set from a file. The file may be packed with gzip, bzip2, xz or zstd, or be the only file in a
// zip archive; this is recognized by its first bytes. For images in the format of MNIST, the labels are read from a
// file in the same folder whose name has labels-idx1 instead of images-idx3.
//
// If the content is faulty, the error is a *ParseError. If ctx ends first, ReadFile returns ctx.Err(), but it does not
// interrupt a read that waits for the operating system, such as a read from a pipe.
func ReadFile(ctx context.Context, name string, options *ReadOptions) (*Dataset, error) {
	s, err := openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	d, err := s.readDataset(options)
	if ctxErr := ctx.Err(); ctxErr != nil { // err may be a consequence of the end of ctx
		return nil, ctxErr
	}
	return d, err
}

// Read reads a data set from a stream, as ReadFile does from a file; name identifies the stream in errors. The idx
// format of MNIST, which needs two files, is not supported.
func Read(r io.Reader, name string, options *ReadOptions) (*Dataset, error) {
	s := &Source{ctx: context.Background(), name: name}
	if err := s.unpack(r); err != nil {
		return nil, err
	}
	return s.readDataset(options)
}
