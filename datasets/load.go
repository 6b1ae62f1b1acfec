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
// rows, keeps the first options.N training rows, fits the scaling on these and applies it to both parts. It returns a
// *MissingFilesError if a file is not in any of the folders. If IsPacked(name), the data come from a folder that Pack
// wrote and are scaled already.
func Load(ctx context.Context, name string, options *LoadOptions) (*TrainTest, error) {
	settings := *cmp.Or(options, &LoadOptions{})
	if options = &settings; options.Dirs == nil {
		options.Dirs = Dirs()
	}
	if IsPacked(name) {
		return unpackFolder(name, options.N)
	}
	info, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	data := &TrainTest{Info: info}
	if info.BuiltIn() {
		all := info.generate(info)
		data.Train, data.Test = all.Slice(0, info.N), all.Slice(info.N, all.Len())
	} else {
		paths, missing := info.Find(options.Dirs)
		if len(missing) > 0 {
			return nil, &MissingFilesError{info, missing, options.Dirs}
		}
		if data.Train, data.Test, err = info.readFiles(ctx, paths, options); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data.Train.Name, data.Test.Name = info.Name, info.Name
	data.Train.ReadReport, data.Test.ReadReport = nil, nil // the interpretation of the file is given by the registry
	if options.N > 0 {
		data.Train = data.Train.Head(options.N)
	}
	data.Train.Note = info.describeRows(data.Train.Len(), options.N)
	data.Train, data.Test, err = Scale(cmp.Or(options.Scale, info.Scale), data.Train, data.Test)
	return data, err
}

// describeRows describes n training rows if n differs from the number of rows in the registry or is smaller than
// requested, the number of rows that the user asked for (0 for all). The Note of the data set is appended.
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
	options *LoadOptions) (train, test *Dataset, err error) {
	trainOptions := ReadOptions{Task: i.Task.String(), Dim: i.D, Memory: options.Memory, Target: i.target}
	if paths[TestFile] == "" {
		data, err := ReadFile(ctx, paths[TrainFile], &trainOptions)
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
	testOptions := trainOptions
	if paths[TestLabels] != "" { // the answers of MNIST are in separate files
		testOptions.Target = ""
	}
	if trainOptions.MaxRows = i.N; options.N > 0 {
		trainOptions.MaxRows = min(options.N, i.N)
	}
	if train, err = ReadFile(ctx, paths[TrainFile], &trainOptions); err == nil {
		test, err = ReadFile(ctx, paths[TestFile], &testOptions)
	}
	if err == nil && i.Endless && options.N > train.Len() {
		train.Name = "MNIST"
		if err := checkEndlessMemory(train, options.N, accel.AvailableMemory(options.Memory, 1)); err != nil {
			return nil, nil, err
		}
		train, err = generateEndless(ctx, train, endlessDeformation, endlessSeed, options.N)
	}
	return train, test, err
}

// oneVersusRest merges all classes but one: class 0 is "rest" and class 1 is the given label.
func (d *Dataset) oneVersusRest(positiveClass string) {
	for i, class := range d.Class {
		d.Class[i] = 0
		if d.Labels[class] == positiveClass {
			d.Class[i] = 1
		}
	}
	d.Labels = []string{"rest", positiveClass}
}

// Describe returns task, number of classes, n, d and number of test rows as text.
func (i *Info) Describe() string {
	text := i.Task.String()
	if i.Classes > 0 {
		text += ", " + strconv.Itoa(i.Classes) + " classes"
	}
	return fmt.Sprintf("%s, n = %d, d = %d, %d test rows", text, i.N, i.D, i.TestN)
}

// String describes both data sets, one line for each.
func (p *TrainTest) String() string {
	out := fmt.Sprintf("%-8s %s\n%-8s %s\n", "training", p.Train.String(), "test", p.Test.String())
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}
