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
	// ClassWeights are the weights of the classes of the dataset.
	ClassWeights []float64 `json:"class_weights,omitempty"`
}

// weightsFile is the suffix of the file with the weights.
const weightsFile = ".weights.npy"

// path returns the path of the model file in the folder of all jobs.
func (d *data) path(root string) string {
	return filepath.Join(root, filepath.Base(d.Fingerprint)+".krr")
}

// writeData writes the data to the folder root, unless they are already there, and returns their description.
func writeData(root string, train *datasets.Dataset) (data, error) {
	description := data{train.Name, train.Source, train.Note, fmt.Sprintf("%x", train.Fingerprint()),
		train.Weights != nil, train.ClassWeights}
	if _, err := os.Stat(description.path(root)); !errors.Is(err, fs.ErrNotExist) {
		return description, err
	}
	y, err := datasets.Coding{Labels: train.Labels}.Encode(train)
	if err != nil {
		return description, err
	}
	if description.Weighted {
		err := atomicfile.Write(description.path(root)+weightsFile, func(w io.Writer) error {
			return npy.Write(w, train.Weights, train.Len())
		})
		if err != nil {
			return description, err
		}
	}
	// A model file must have a kernel and λ; data.read ignores them.
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: train.X, C: y, Labels: train.Labels,
		Targets: train.TargetNames, Mean: train.Mean, Scaling: train.Scaling, Columns: train.Columns,
		Groups:  train.Groups,
		Repeats: train.Repeats}
	return description, m.Save(description.path(root))
}

// read reads the data from the folder root. It returns an error if their fingerprint differs from that of the job.
func (d *data) read(root string) (*datasets.Dataset, error) {
	m, err := model.Load(d.path(root))
	if err != nil {
		return nil, fmt.Errorf("job data: %w", err)
	}
	train := &datasets.Dataset{Name: d.Title, Source: d.Source, Note: d.Note, Task: m.Task(), X: m.X, Labels: m.Labels,
		TargetNames: m.Targets, Mean: m.Mean, Scaling: m.Scaling, Columns: m.Columns, Groups: m.Groups,
		Repeats: m.Repeats, ClassWeights: d.ClassWeights}
	if train.Labels != nil {
		train.Class = m.Coding().Decode(m.C)
	} else {
		train.Target = mat.Col(nil, 0, m.C)
		for k := 1; k < m.C.RawMatrix().Cols; k++ {
			train.MoreTargets = append(train.MoreTargets, mat.Col(nil, k, m.C))
		}
	}
	if d.Weighted {
		f, err := os.Open(d.path(root) + weightsFile)
		if err != nil {
			return nil, fmt.Errorf("job data: %w", err)
		}
		defer f.Close()
		_, weights, err := npy.Read(f, 8*int64(train.Len()))
		if err != nil {
			return nil, fmt.Errorf("job data: %w", err)
		}
		train.Weights, _ = weights.([]float64)
	}
	if fmt.Sprintf("%x", train.Fingerprint()) != d.Fingerprint {
		return nil, fmt.Errorf("the data read here, %s, are not those of the job", train.Name)
	}
	return train, nil
}
