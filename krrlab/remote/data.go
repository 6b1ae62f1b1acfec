package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// data says where ranks find the training data: in a model file (package model) beside the jobs, which they share, of
// the points, with the targets as its coefficients.
type data struct {
	Title  string `json:"title"`
	Source string `json:"source,omitempty"`
	Note   string `json:"note,omitempty"`
	Sum    string `json:"fingerprint"` // of all numbers, Fingerprint: the name of the file
}

func (j *data) path(root string) string { return filepath.Join(root, filepath.Base(j.Sum)+".krr") }

// writeData writes the data into the folder, unless they are there.
func writeData(root string, d *datasets.Dataset) (data, error) {
	j := data{d.Name, d.Source, d.Note, fmt.Sprintf("%x", d.Fingerprint())}
	if _, err := os.Stat(j.path(root)); !errors.Is(err, fs.ErrNotExist) {
		return j, err
	}
	y, err := datasets.Coding{Labels: d.Labels}.Code(d)
	if err != nil {
		return j, err
	}
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: d.X, C: y, Labels: d.Labels, Targets: d.Targets,
		Mean: d.Mean, Scaling: d.Scaling, Columns: d.Columns}
	return j, m.Save(j.path(root))
}

// read returns the data from the folder.
func (j *data) read(root string) (*datasets.Dataset, error) {
	m, err := model.Load(j.path(root))
	if err != nil {
		return nil, fmt.Errorf("job data: %w", err)
	}
	d := &datasets.Dataset{Name: j.Title, Source: j.Source, Note: j.Note, Task: m.Task(), X: m.X, Labels: m.Labels,
		Targets: m.Targets, Mean: m.Mean, Scaling: m.Scaling, Columns: m.Columns}
	if d.Labels != nil {
		d.Class = m.Coding().Decode(m.C)
	} else {
		d.Target = mat.Col(nil, 0, m.C)
		for k := 1; k < m.C.RawMatrix().Cols; k++ {
			d.More = append(d.More, mat.Col(nil, k, m.C))
		}
	}
	if fmt.Sprintf("%x", d.Fingerprint()) != j.Sum {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job", d.Name)
	}
	return d, nil
}
