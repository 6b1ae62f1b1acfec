package datasets

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
)

// LoadOptions are the options of Load. A nil pointer stands for the defaults.
type LoadOptions struct {
	Dirs  []string // folders to search, in order; default: Dirs()
	Scale string   // one of Scalings; default: the scaling of the registry
	N     int      // number of training rows to keep, the first ones; default: all
	// Memory is the memory budget for reading a file, in bytes. The default is that of ReadOptions.Memory.
	Memory int64
}

// TrainTest is a data set that is ready to use: the points are scaled, and the test labels match the training labels.
type TrainTest struct {
	Train, Test *Dataset // Test is nil if there are no test rows; the scaling is fitted on Train
	Info        *Info
	// Target and Drop are, for packed data, the options with the columns of the file from which the data were read. A
	// model stores them.
	Target string
	Drop   []string
}

// splitSeed is the seed of the random split of data sets that come in one file.
const splitSeed = 1

// Load loads or generates the data set with the given name: it reads the files, splits the rows into training and test
// rows, keeps the first o.N training rows, fits the scaling on these and applies it to both parts. It returns a
// *MissingFilesError if a file is not in any of the folders. If IsPacked(name), the data come from a folder that Pack
// wrote and are scaled already.
func Load(ctx context.Context, name string, o *LoadOptions) (*TrainTest, error) {
	opt := *cmp.Or(o, &LoadOptions{})
	if o = &opt; o.Dirs == nil {
		o.Dirs = Dirs()
	}
	if IsPacked(name) {
		return unpackFolder(name, o.N)
	}
	info, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	p := &TrainTest{Info: info}
	if info.BuiltIn() {
		data := info.generate(info)
		p.Train, p.Test = data.Slice(0, info.N), data.Slice(info.N, data.Len())
	} else {
		paths, missing := info.Find(o.Dirs)
		if len(missing) > 0 {
			return nil, &MissingFilesError{info, missing, o.Dirs}
		}
		if p.Train, p.Test, err = info.readFiles(ctx, paths, o); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.Train.Name, p.Test.Name = info.Name, info.Name
	p.Train.ReadReport, p.Test.ReadReport = nil, nil // the interpretation of the file is given by the registry
	if o.N > 0 {
		p.Train = p.Train.Head(o.N)
	}
	p.Train.Note = info.describeRows(p.Train.Len(), o.N)
	p.Train, p.Test, err = Scale(cmp.Or(o.Scale, info.Scale), p.Train, p.Test)
	return p, err
}

// describeRows describes n training rows, of which requested were requested (0 for all), if they are not the rows of
// the registry but fewer or more of them, or fewer than requested. The Note of the data set is appended.
func (i *Info) describeRows(n, requested int) (note string) {
	switch {
	case requested > n:
		note = fmt.Sprintf("all %d training rows: %d were asked for, and there are no more", n, requested)
	case n < i.N:
		note = fmt.Sprintf("the first %d of %d training rows", n, i.N)
	case n > i.N:
		note = fmt.Sprintf("%d rows and %d generated from them", i.N, n-i.N)
	}
	if note != "" && i.Note != "" {
		note += "; "
	}
	return note + i.Note
}

// readFiles reads the training and test rows from the files of the data set. If it has a single file, a fixed random
// 4/5 of the rows are training rows. If an endless data set has fewer rows than requested, the others are generated
// from them.
func (i *Info) readFiles(ctx context.Context, paths map[FileRole]string,
	o *LoadOptions) (train, test *Dataset, err error) {
	opt := ReadOptions{Task: i.Task.String(), Dim: i.D, Memory: o.Memory, Target: i.target}
	if paths[TestFile] == "" {
		data, err := ReadFile(ctx, paths[TrainFile], &opt)
		if err != nil {
			return nil, nil, err
		}
		if i.positiveClass != "" {
			data.oneVersusRest(i.positiveClass)
		}
		n := data.Len()
		order := rng.New(splitSeed).Sub("split").Perm(n)
		return data.Subset(order[:n*4/5]), data.Subset(order[n*4/5:]), nil
	}
	testOptions := opt
	if paths[TestLabels] != "" { // the answers of MNIST are in separate files
		testOptions.Target = ""
	}
	if opt.MaxRows = i.N; o.N > 0 {
		opt.MaxRows = min(o.N, i.N)
	}
	if train, err = ReadFile(ctx, paths[TrainFile], &opt); err == nil {
		test, err = ReadFile(ctx, paths[TestFile], &testOptions)
	}
	if err == nil && i.Endless && o.N > train.Len() {
		train.Name = "MNIST"
		if err := checkEndlessMemory(train, o.N, accel.AvailableMemory(o.Memory, 1)); err != nil {
			return nil, nil, err
		}
		train, err = generateEndless(ctx, train, endlessDeformation, endlessSeed, o.N)
	}
	return train, test, err
}

// oneVersusRest merges all classes but one: class 0 is "rest" and class 1 is the given label.
func (d *Dataset) oneVersusRest(positive string) {
	for i, c := range d.Class {
		d.Class[i] = 0
		if d.Labels[c] == positive {
			d.Class[i] = 1
		}
	}
	d.Labels = []string{"rest", positive}
}

// Describe returns task, number of classes, n, d and number of test rows as text.
func (i *Info) Describe() string {
	s := i.Task.String()
	if i.Classes > 0 {
		s += ", " + strconv.Itoa(i.Classes) + " classes"
	}
	return fmt.Sprintf("%s, n = %d, d = %d, %d test rows", s, i.N, i.D, i.TestN)
}

// String describes both data sets, one line for each.
func (p *TrainTest) String() string {
	out := fmt.Sprintf("%-8s %s\n%-8s %s\n", "training", p.Train.String(), "test", p.Test.String())
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}
