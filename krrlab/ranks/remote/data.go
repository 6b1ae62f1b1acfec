package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// data says where ranks find the training data: in a model file (package model) beside the jobs, which they share, of
// the points, with the targets as its coefficients. Weights are in a file of its name and weightsFile.
type data struct {
	Title    string `json:"title"`
	Source   string `json:"source,omitempty"`
	Note     string `json:"note,omitempty"`
	Sum      string `json:"fingerprint"` // of all numbers, Fingerprint: the name of the file
	Weighted bool   `json:"weighted,omitempty"`
	// datasets.Dataset.ClassWeights
	ClassWeights []float64 `json:"class_weights,omitempty"`
}

const weightsFile = ".weights.npy"

func (j *data) path(root string) string { return filepath.Join(root, filepath.Base(j.Sum)+".krr") }

// writeData writes the data into the folder, unless they are there.
func writeData(root string, d *datasets.Dataset) (data, error) {
	j := data{d.Name, d.Source, d.Note, fmt.Sprintf("%x", d.Fingerprint()), d.Weights != nil, d.ClassWeights}
	if _, err := os.Stat(j.path(root)); !errors.Is(err, fs.ErrNotExist) {
		return j, err
	}
	y, err := datasets.Coding{Labels: d.Labels}.Code(d)
	if err != nil {
		return j, err
	}
	if j.Weighted {
		err := atomicfile.Write(j.path(root)+weightsFile, func(w io.Writer) error {
			return npy.Write(w, d.Weights, d.Len())
		})
		if err != nil {
			return j, err
		}
	}
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: d.X, C: y, Labels: d.Labels, Targets: d.Targets,
		Mean: d.Mean, Scaling: d.Scaling, Columns: d.Columns, Groups: d.Groups, Repeats: d.Repeats}
	return j, m.Save(j.path(root))
}

// read returns the data from the folder.
func (j *data) read(root string) (*datasets.Dataset, error) {
	m, err := model.Load(j.path(root))
	if err != nil {
		return nil, fmt.Errorf("job data: %w", err)
	}
	d := &datasets.Dataset{Name: j.Title, Source: j.Source, Note: j.Note, Task: m.Task(), X: m.X, Labels: m.Labels,
		Targets: m.Targets, Mean: m.Mean, Scaling: m.Scaling, Columns: m.Columns, Groups: m.Groups, Repeats: m.Repeats,
		ClassWeights: j.ClassWeights}
	if d.Labels != nil {
		d.Class = m.Coding().Decode(m.C)
	} else {
		d.Target = mat.Col(nil, 0, m.C)
		for k := 1; k < m.C.RawMatrix().Cols; k++ {
			d.MoreTargets = append(d.MoreTargets, mat.Col(nil, k, m.C))
		}
	}
	if j.Weighted {
		f, err := os.Open(j.path(root) + weightsFile)
		if err != nil {
			return nil, fmt.Errorf("job data: %w", err)
		}
		defer f.Close()
		_, weights, err := npy.Read(f, 8*int64(d.Len()))
		if err != nil {
			return nil, fmt.Errorf("job data: %w", err)
		}
		d.Weights, _ = weights.([]float64)
	}
	if fmt.Sprintf("%x", d.Fingerprint()) != j.Sum {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job", d.Name)
	}
	return d, nil
}
