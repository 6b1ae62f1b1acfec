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

// data describes the training data of a job. The points are in a model file (package model), with the encoded targets
// or classes in the place of its coefficients. The file is in the folder of all jobs, and jobs with the same data share
// it. Weights are in a second file, named after the first with the suffix weightsFile.
type data struct {
	Title       string `json:"title"`
	Source      string `json:"source,omitempty"`
	Note        string `json:"note,omitempty"`
	Fingerprint string `json:"fingerprint"`        // Dataset.Fingerprint in hexadecimal, also the name of the file
	Weighted    bool   `json:"weighted,omitempty"` // there is a second file with weights
	// ClassWeights are those of the dataset.
	ClassWeights []float64 `json:"class_weights,omitempty"`
}

// weightsFile is the suffix of the file with the weights.
const weightsFile = ".weights.npy"

// path returns the path of the model file in the folder of all jobs.
func (j *data) path(root string) string {
	return filepath.Join(root, filepath.Base(j.Fingerprint)+".krr")
}

// writeData writes the data to the folder root, unless they are already there, and returns their description.
func writeData(root string, d *datasets.Dataset) (data, error) {
	j := data{d.Name, d.Source, d.Note, fmt.Sprintf("%x", d.Fingerprint()), d.Weights != nil, d.ClassWeights}
	if _, err := os.Stat(j.path(root)); !errors.Is(err, fs.ErrNotExist) {
		return j, err
	}
	y, err := datasets.Coding{Labels: d.Labels}.Encode(d)
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
	// A model needs a kernel and λ, which readers of the data ignore.
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: d.X, C: y, Labels: d.Labels,
		Targets: d.TargetNames, Mean: d.Mean, Scaling: d.Scaling, Columns: d.Columns, Groups: d.Groups,
		Repeats: d.Repeats}
	return j, m.Save(j.path(root))
}

// read reads the data from the folder root. It returns an error if their fingerprint differs from that of the job.
func (j *data) read(root string) (*datasets.Dataset, error) {
	m, err := model.Load(j.path(root))
	if err != nil {
		return nil, fmt.Errorf("job data: %w", err)
	}
	d := &datasets.Dataset{Name: j.Title, Source: j.Source, Note: j.Note, Task: m.Task(), X: m.X, Labels: m.Labels,
		TargetNames: m.Targets, Mean: m.Mean, Scaling: m.Scaling, Columns: m.Columns, Groups: m.Groups,
		Repeats: m.Repeats, ClassWeights: j.ClassWeights}
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
	if fmt.Sprintf("%x", d.Fingerprint()) != j.Fingerprint {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job", d.Name)
	}
	return d, nil
}
