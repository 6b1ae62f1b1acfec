package datasets

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Source is the unpacked content of a file, from which a Format reads.
type Source struct {
	ctx    context.Context
	name   string
	file   *os.File      // nil for a stream
	r      *bufio.Reader // reader of the unpacked content
	packed []string      // names of the containers in which the content was packed, the outermost first
	arrays []*zip.File   // arrays of an .npz file
	zipped *zip.File     // file of the zip archive that is currently read

	memory       accel.Budget // for the content; without a limit if that is not known (yet)
	askedMachine bool         // memoryBudget has determined the available memory of the machine

	format        *Format     // format that was chosen
	report        *ReadReport // record of the decisions so far
	isWindows1252 bool        // some text is not UTF-8
}

// openSource opens a file and unpacks its containers.
func openSource(ctx context.Context, name string) (*Source, error) {
	file, err := os.Open(name)
	if err != nil && name == "-" { // the name of the standard input for many other programs
		err = &os.PathError{Err: errors.New("want a file; /dev/stdin is what is piped in")}
	}
	if err != nil {
		if parseErr, ok := errors.AsType[*os.PathError](err); ok {
			err = parseErr.Err
		}
		return nil, fmt.Errorf("cannot read %s: %w", safe.Name(name), err)
	}
	s := &Source{ctx: ctx, name: name, file: file}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("cannot read %s: it is a folder", safe.Name(name))
	}
	if err := s.unpack(file); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// close closes the file, if there is one.
func (s *Source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// Head returns the first 64 kB of the content, or all of it if it is shorter.
func (s *Source) Head() []byte {
	head, _ := s.r.Peek(windowBytes)
	return head
}

// Reader returns the content as a stream.
func (s *Source) Reader() *bufio.Reader { return s.r }

// Fault returns a *ParseError at a line and a column, both counted from 1. They are 0 for an error of the whole file or
// line.
func (s *Source) Fault(line, column int, format string, args ...any) *ParseError {
	return &ParseError{File: s.name, Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// fileFault returns a *ParseError that concerns the whole file.
func (s *Source) fileFault(format string, args ...any) *ParseError {
	return s.Fault(0, 0, format, args...)
}

// readDataset chooses the format, reads the data set, projects its coordinates, checks it, and groups its equal rows.
func (s *Source) readDataset(options *ReadOptions) (*Dataset, error) {
	settings, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if settings.Memory > 0 {
		s.memory.Limit = settings.Memory
	}
	if settings.Format == "auto" {
		if err := s.skipByteOrderMark(); err != nil {
			return nil, err
		}
	}
	format, reason, err := s.chooseFormat(settings.Format)
	if err != nil {
		return nil, err
	}
	if format.IsText {
		if err := s.checkText(); err != nil {
			return nil, err
		}
	}
	if reason != "" {
		reason = " (" + reason + ")"
	}
	s.format = format
	s.report = &ReadReport{File: s.name, Container: strings.Join(s.packed, ", "), Format: format.Name + reason}
	if err := cmp.Or(s.rejectFormatOptions(&settings), s.rejectColumnOptions(&settings)); err != nil {
		return nil, err
	}

	d, err := format.Read(s, &settings)
	if err != nil {
		return nil, err
	}
	if settings.Space != nil && !settings.AnswersOnly {
		if d, err = settings.Space.project(d, s.report); err != nil {
			return nil, s.fileFault("%v", err)
		}
	}
	if settings.Dim > 0 && d.Dim() != settings.Dim {
		return nil, s.fileFault("%s", settings.dimMessage(d.Dim()))
	}
	d.Name, d.Source, d.ReadReport = baseName(s.name), s.name, s.report
	if err := d.check(missingValues(settings.KeepMissing)); err != nil {
		return nil, s.fileFault("%v", err)
	}
	if d.HasAnswers() && d.Dim() > 0 {
		if d, err = s.groupRows(d, settings.Repeats); err != nil {
			return nil, err
		}
	}
	s.report.countRows(d)
	return d, nil
}

// groupRows returns d with the groups of the file, or with those of the rule for repeats.
func (s *Source) groupRows(d *Dataset, rule string) (grouped *Dataset, err error) {
	n := d.Len()
	// Memory in use: the points, and each answer as a text and as a number. Counting equal rows needs more.
	s.memory.Used = points.MemoryBytes(d.X) + 16*int64(n)
	if err := s.reserve(points.FirstEqualBytes*n, n-1); err != nil {
		return nil, err
	}
	if d.Groups != nil {
		grouped = d.GroupBy(d.Groups)
	} else if grouped, err = d.GroupByRule(rule, nil); err != nil {
		return nil, err
	}
	s.report.Repeats = grouped.Repeats
	return grouped, nil
}

// checkText skips a byte order mark, and returns an error if the content is not text.
func (s *Source) checkText() error {
	if err := s.skipByteOrderMark(); err != nil {
		return err
	}
	if head, _ := s.r.Peek(1 << 12); bytes.IndexByte(head, 0) >= 0 {
		return s.fileFault("the file is neither text nor of a known binary format: save the table as CSV in UTF-8, " +
			"Parquet or .npz")
	}
	return nil
}

// skipByteOrderMark skips the byte order mark of UTF-8, and returns an error for UTF-16.
func (s *Source) skipByteOrderMark() error {
	head, _ := s.r.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, err := s.r.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return s.fileFault("the text is UTF-16; save as UTF-8")
	}
	return nil
}

// rejectFormatOptions returns an error if options of --format are set that the format does not have.
func (s *Source) rejectFormatOptions(options *ReadOptions) error {
	for k, isSet := range []bool{options.Separator != "auto", options.Header != "auto", options.Comment != "",
		options.PointsArray != ""} {
		if option := formatOptions[k]; isSet && !slices.Contains(s.format.Options, option) {
			others := "only dim"
			if s.format.Options != nil {
				others = strings.Join(s.format.Options, ", ") + " and dim"
			}
			return s.fileFault("a file of format %s does not have the option %s of --format: it has %s", s.format.Name,
				option, others)
		}
	}
	return nil
}

// rejectColumnOptions returns an error if options name columns, and the format has none (Format.Answers is set). An
// optional target is ignored.
func (s *Source) rejectColumnOptions(options *ReadOptions) error {
	if s.format.Answers == "" {
		return nil
	}
	if options.TargetOptional && options.Target != "none" {
		options.Target = ""
	}
	for _, option := range []struct {
		flag   string
		isUsed bool
	}{{"--weights", options.Weights != ""}, {"--groups", options.Groups != ""},
		{"--keep", len(options.Keep) > 0}, {"--space", options.Space != nil},
		{"--categorical", slices.ContainsFunc(options.ColumnCodings, isWords) && !options.TargetOptional},
		{"--dates", len(options.ColumnCodings) > 0 && !options.TargetOptional},
		{"--drop", len(options.Drop) > 0 && !options.TargetOptional},
		{"--target with several", len(options.MoreTargets) > 0 && !options.TargetOptional}} {
		if option.isUsed {
			return s.fileFault("a file of format %s has no columns with names: %s is for csv files", s.format.Name,
				option.flag)
		}
	}
	if slices.Contains([]string{"", "-1", "none"}, options.Target) {
		return nil
	}
	return s.fileFault("a file of format %s has its answers %s: --target %s is for csv files; leave it out",
		s.format.Name, s.format.Answers, safe.Name(options.Target))
}

// baseName returns the name of a file without folders and endings.
func baseName(name string) string {
	base := unpackedName(filepath.Base(name))
	for _, f := range registered() {
		for _, ending := range f.Endings {
			base = strings.TrimSuffix(base, ending)
		}
	}
	return base
}
