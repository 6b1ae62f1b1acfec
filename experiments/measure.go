package experiments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Measure runs user-defined cases and returns their results, in their order; equal cases are run
// once. A result says itself how it ended. Nothing is written: o.Out is not used. If the context ends,
// the results of what was not reached are nil, and the error is the context's.
func Measure(ctx context.Context, cases []Case, o *Options) ([]*Result, error) {
	var opt Options
	if o != nil {
		opt = *o
	}
	opt.Out, opt.Resume = "", false
	p := &Plan{Experiment: &Experiment{ID: "own", Title: "User-defined cases"}}
	for _, c := range cases {
		p.Entries = append(p.Entries, Entry{Row: c.Data, Role: string(c.Method), Case: c})
	}
	_, err := Run(ctx, []*Plan{p}, &opt)
	out := make([]*Result, len(cases))
	for i := range out {
		out[i] = p.Entries[i].Result
	}
	return out, err
}

// resultsDir is where the project keeps reports, below its root.
var resultsDir = filepath.Join("experiments", "results")

// FindReport returns the report of an experiment that the project keeps: the file of that name in
// the folder experiments/results, looked for in the working directory and above it.
func FindReport(id string, s Scale) (*Report, error) {
	if _, err := Find(id); err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	name := (&Report{ID: id, Scale: s}).FileName()
	for {
		r, err := LoadReport(filepath.Join(dir, resultsDir, name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil, fmt.Errorf("experiments: no %s is kept yet in %s, here or above: krrlab reproduce %s --scale %s measures it", name, resultsDir, id, s)
		}
		dir = up
	}
}
