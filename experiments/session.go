package experiments

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// session contains the data and the matrices that all cases with the same data set, n, kernel and λ share.
type session struct {
	opt     *Options                 // options of Run, with defaults
	monitor func(krrlab.Event) error // receives the progress of the current case

	train, test *datasets.Dataset // test is nil if the data set has no test rows
	info        Data              // description of the data
	loadSeconds float64           // time of reading the data
	lab         *krrlab.Lab       // lab of the first case, whose matrices the other cases share
}

// group identifies the cases that share a session: those with equal values of these fields.
type group struct {
	data   string
	n      int
	kernel kernel.Spec
	lambda float64
}

// groupOf returns the group of a case.
func groupOf(c Case) group { return group{c.Data, c.N, c.Kernel, c.Lambda} }

// openSession reads the data of a group and verifies the checksums of its files.
func openSession(ctx context.Context, g group, o *Options, monitor func(krrlab.Event) error) (*session, error) {
	s := &session{opt: o, monitor: monitor}
	monitor(krrlab.Event{Stage: stage.Load})
	start := time.Now()
	pair, err := datasets.Load(ctx, g.data, &datasets.LoadOptions{Dirs: o.Dirs, N: g.n})
	if err != nil {
		return s, err
	}
	s.train, s.test, s.loadSeconds = pair.Train, pair.Test, time.Since(start).Seconds()
	s.info, err = provenance(pair, o.Dirs)
	return s, err
}

// provenance describes the data of a pair of training and test sets. It returns an error if a file does not have its
// known checksum.
func provenance(pair *datasets.TrainTest, dirs []string) (Data, error) {
	description := Data{
		Name: pair.Info.Name, Title: pair.Info.Title, N: pair.Train.Len(), TotalN: pair.Info.N, D: pair.Train.Dim(),
		T: datasets.Coding{Labels: pair.Train.Labels}.Columns(), Note: pair.Train.Note,
	}
	if pair.Test != nil {
		description.TestN = pair.Test.Len()
	}
	if pair.Info.BuiltIn() {
		description.Source = pair.Train.Source
	}
	paths, _ := pair.Info.Find(dirs)
	for _, file := range pair.Info.Files {
		name := paths[file.Role]
		hasChecksum, err := file.Verify(name)
		if err != nil {
			return description, err
		}
		description.Source = joinNotes(description.Source, filepath.Base(name))
		if hasChecksum {
			description.SHA256 = append(description.SHA256, file.SHA256)
		}
	}
	return description, nil
}

// joinNotes joins two notes by a semicolon. Either of them may be empty.
func joinNotes(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// testRows returns the test rows of a case, or nil if it is not tested.
func (s *session) testRows(c Case) *datasets.Dataset {
	if c.CountOnly || s.test == nil {
		return nil
	}
	if c.TestN > 0 {
		return s.test.Head(c.TestN)
	}
	return s.test
}
