package datasets

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Source is the content of a file that a Format reads, unpacked.
type Source struct {
	ctx    context.Context
	name   string
	file   *os.File // nil for a stream
	r      *bufio.Reader
	packed []string    // the containers that it was in, the outermost first
	arrays []*zip.File // of an .npz file
	zipped *zip.File   // file of a zip archive that is being read
	// limit is how many bytes may be held, 0 if that is not known, which asked says when the
	// machine was asked; held is how many are.
	limit, held int64
	asked       bool
	format      *Format
	reading     *Reading
	latin       bool // some text is not UTF-8
}

func open(ctx context.Context, name string) (*Source, error) {
	f, err := os.Open(name)
	if err != nil && name == "-" {
		err = &os.PathError{Err: errors.New("want a file; /dev/stdin is what is piped in")}
	}
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err
		}
		return nil, fmt.Errorf("cannot read %s: %w", safe.Name(name), err)
	}
	s := &Source{ctx: ctx, name: name, file: f}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, fmt.Errorf("cannot read %s: it is a folder", safe.Name(name))
	}
	if err := s.unpack(f); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

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

// Fault returns an error at a line and a column, both counted from 1; 0 for the file or the line as a whole.
func (s *Source) Fault(line, column int, format string, args ...any) error {
	return &ParseError{File: s.name, Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// refuse returns an error that concerns the file as a whole.
func (s *Source) refuse(format string, args ...any) error { return s.Fault(0, 0, format, args...) }

func (s *Source) read(o *ReadOptions) (*Dataset, error) {
	opt, err := o.settled()
	if err != nil {
		return nil, err
	}
	if opt.Memory > 0 {
		s.limit = opt.Memory
	}
	if opt.Format == "auto" {
		if err := s.dropMark(); err != nil {
			return nil, err
		}
	}
	format, why, err := s.formatOf(opt.Format)
	if err != nil {
		return nil, err
	}
	if format.IsText {
		if err := s.checkText(); err != nil {
			return nil, err
		}
	}
	if why != "" {
		why = " (" + why + ")"
	}
	s.format = format
	s.reading = &Reading{File: s.name, Container: strings.Join(s.packed, ", "), Format: format.Name + why}
	if err := s.noColumn(&opt); err != nil {
		return nil, err
	}
	d, err := format.Read(s, &opt)
	if err != nil {
		return nil, err
	}
	if opt.Dim > 0 && d.Dim() != opt.Dim {
		return nil, s.refuse("%s", opt.wrongDim(d.Dim()))
	}
	if err := d.check(opt.KeepMissing); err != nil {
		return nil, s.refuse("%v", err)
	}
	d.Source = s.name
	d.Name, d.Read = baseName(s.name), s.reading
	if n := d.Len(); d.HasAnswers() && d.Dim() > 0 {
		// Beside the points and their answers, as they were read and as numbers, is held what counting equal rows takes.
		s.held = points.MemoryBytes(d.X) + 16*int64(n)
		if err := s.take(points.FirstEqualBytes*n, n-1); err != nil {
			return nil, err
		}
		if d.Groups != nil {
			d = d.GroupBy(d.Groups)
		} else if d, err = d.Group(opt.Repeats, nil); err != nil {
			return nil, err
		}
		d.Read.Repeats = d.Repeats
	}
	d.Read.count(d)
	return d, nil
}

// checkText skips a byte order mark, and refuses content that is no text.
func (s *Source) checkText() error {
	if err := s.dropMark(); err != nil {
		return err
	}
	if head, _ := s.r.Peek(1 << 12); bytes.IndexByte(head, 0) >= 0 {
		return s.refuse("the file is neither text nor of a known binary format: save the table as CSV in UTF-8, Parquet or .npz")
	}
	return nil
}

// dropMark skips the byte order mark of UTF-8, and refuses UTF-16.
func (s *Source) dropMark() error {
	head, _ := s.r.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, err := s.r.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return s.refuse("the text is UTF-16; save as UTF-8")
	}
	return nil
}

// noColumn refuses options that name columns if the format has none.
func (s *Source) noColumn(o *ReadOptions) error {
	if s.format.Answers == "" {
		return nil
	}
	if o.TargetOptional && o.Target != "none" {
		o.Target = ""
	}
	for _, f := range []struct {
		flag string
		used bool
	}{{"--weights", o.Weights != ""}, {"--groups", o.Groups != ""},
		{"--keep", len(o.Keep) > 0},
		{"--categorical", slices.ContainsFunc(o.Categorical, isWords) && !o.TargetOptional},
		{"--dates", len(o.Categorical) > 0 && !o.TargetOptional},
		{"--drop", len(o.Drop) > 0 && !o.TargetOptional},
		{"--target with several", len(o.More) > 0 && !o.TargetOptional}} {
		if f.used {
			return s.refuse("a file of format %s has no columns with names: %s is for csv files", s.format.Name, f.flag)
		}
	}
	if slices.Contains([]string{"", "-1", "none"}, o.Target) {
		return nil
	}
	return s.refuse("a file of format %s has its answers %s: --target %s is for csv files; leave it out", s.format.Name,
		s.format.Answers, safe.Name(o.Target))
}

// baseName is the file's name without folders and endings.
func baseName(name string) string {
	b := bareOf(filepath.Base(name))
	for _, f := range registered() {
		for _, ending := range f.Endings {
			b = strings.TrimSuffix(b, ending)
		}
	}
	return b
}
