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
	opt     *Options
	monitor func(krrlab.Event) error

	train, test *datasets.Dataset
	info        Data        // description of the data
	loadSeconds float64     // time of reading the data
	lab         *krrlab.Lab // lab of the first case, whose matrices the other cases share
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

// provenance describes the data of a pair. It returns an error if a file does not have its known checksum.
func provenance(p *datasets.TrainTest, dirs []string) (Data, error) {
	d := Data{
		Name: p.Info.Name, Title: p.Info.Title, N: p.Train.Len(), TotalN: p.Info.N, D: p.Train.Dim(),
		T: datasets.Coding{Labels: p.Train.Labels}.Columns(), Note: p.Train.Note,
	}
	if p.Test != nil {
		d.TestN = p.Test.Len()
	}
	if p.Info.BuiltIn() {
		d.Source = p.Train.Source
	}
	paths, _ := p.Info.Find(dirs)
	for _, f := range p.Info.Files {
		name := paths[f.Role]
		hasChecksum, err := f.Verify(name)
		if err != nil {
			return d, err
		}
		d.Source = joinNotes(d.Source, filepath.Base(name))
		if hasChecksum {
			d.SHA256 = append(d.SHA256, f.SHA256)
		}
	}
	return d, nil
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
