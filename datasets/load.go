package datasets

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// LoadOptions say how to load a data set of the registry. Nil means the defaults.
type LoadOptions struct {
	Dirs  []string // folders to look in, in order; default: Dirs()
	Scale string   // one of Scalings; default: the registry's
	N     int      // first training rows to keep; default: all
	// Memory is how many bytes a file may take while it is read; default: as for ReadOptions.
	Memory int64
}

// Pair is a data set ready to use: scaled, the test labels in terms of the training labels.
type Pair struct {
	Train, Test *Dataset // Test is nil if there are no test rows; Scaling is fitted on Train
	Info        *Info
	// Target and Drop are columns of the file that packed data were read from, as the model keeps them.
	Target string
	Drop   []string
}

// splitSeed fixes the random split of sets that come in one file.
const splitSeed = 1

// Load loads the data set of that name from the folders, or generates it: reads its files, splits training from test
// rows, keeps the first o.N training rows, and scales both parts by what is fitted on these. It returns a *MissingError
// if a file is not there. A name for which IsPacked is a folder of Pack, whose data are scaled already.
func Load(ctx context.Context, name string, o *LoadOptions) (*Pair, error) {
	opt := *cmp.Or(o, &LoadOptions{})
	if o = &opt; o.Dirs == nil {
		o.Dirs = Dirs()
	}
	if IsPacked(name) {
		return unpack(name, o.N)
	}
	info, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	p := &Pair{Info: info}
	if info.BuiltIn() {
		all := info.generate(info)
		p.Train, p.Test = all.Slice(0, info.N), all.Slice(info.N, all.Len())
	} else {
		paths, missing := info.Find(o.Dirs)
		if len(missing) > 0 {
			return nil, &MissingError{info, missing, o.Dirs}
		}
		if p.Train, p.Test, err = info.read(ctx, paths, o); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.Train.Name, p.Test.Name = info.Name, info.Name
	p.Train.Read, p.Test.Read = nil, nil // the registry has decided
	if o.N > 0 {
		p.Train = p.Train.Head(o.N)
	}
	p.Train.Note = info.note(p.Train.Len(), o.N)
	p.Train, p.Test, err = Scale(cmp.Or(o.Scale, info.Scale), p.Train, p.Test)
	return p, err
}

// note says what is special about n training rows, of which asked were asked for, 0 for all: that they are not just the
// set's own but the first of them, or more, or fewer than were asked for, and Note.
func (i *Info) note(n, asked int) (note string) {
	switch {
	case asked > n:
		note = fmt.Sprintf("all %d training rows: %d were asked for, and there are no more", n, asked)
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

// read reads the training and the test rows from the files of the set. Of a set in one file a fixed random four fifths
// of the rows train; more rows than an endless set has are generated from them.
func (i *Info) read(ctx context.Context, paths map[Role]string, o *LoadOptions) (train, test *Dataset, err error) {
	opt := ReadOptions{Task: i.Task.String(), Dim: i.D, Memory: o.Memory, Target: i.target}
	if paths[TestFile] == "" {
		all, err := ReadFile(ctx, paths[TrainFile], &opt)
		if err != nil {
			return nil, nil, err
		}
		if i.one != "" {
			all.oneVersusRest(i.one)
		}
		n := all.Len()
		order := rng.New(splitSeed).Sub("split").Perm(n)
		return all.Subset(order[:n*4/5]), all.Subset(order[n*4/5:]), nil
	}
	tested := opt
	if paths[TestLabels] != "" { // MNIST's
		tested.Target = ""
	}
	if opt.MaxRows = i.N; o.N > 0 {
		opt.MaxRows = min(o.N, i.N)
	}
	if train, err = ReadFile(ctx, paths[TrainFile], &opt); err == nil {
		test, err = ReadFile(ctx, paths[TestFile], &tested)
	}
	if err == nil && i.Endless && o.N > train.Len() {
		train.Name = "MNIST"
		train, err = endless(ctx, train, endlessDeformation, endlessSeed, o.N)
	}
	return train, test, err
}

// oneVersusRest makes a task of two classes: "rest" and the one label.
func (d *Dataset) oneVersusRest(one string) {
	for i, c := range d.Class {
		d.Class[i] = 0
		if d.Labels[c] == one {
			d.Class[i] = 1
		}
	}
	d.Labels = []string{"rest", one}
}

// Describe returns the size of the set in words.
func (i *Info) Describe() string {
	s := i.Task.String()
	if i.Classes > 0 {
		s += ", " + strconv.Itoa(i.Classes) + " classes"
	}
	return fmt.Sprintf("%s, n = %d, d = %d, %d test rows", s, i.N, i.D, i.TestN)
}

// endlessDeformation is that of the registry's endless sets. It takes a digit about as far as
// MNIST8M's deformations do: the squared distance of a row to the nearest of MNIST's 60,000
// training digits, pixels in [0, 1], has over 1,000 rows the quartiles 15.6, 22.5 and 29.2;
// over 1,000 rows of MNIST8M they are 16.6, 21.7 and 26.4.
var endlessDeformation = deformation{Shift: 1, Rotate: 7.5, Alpha: 20, Sigma: 4}

// endlessSeed fixes the registry's endless sets.
const endlessSeed = 1

// endless returns the first rows of an unending sequence of labeled pictures made of n given ones, square, row by row,
// with values from 0 (the background) to 255, after the "infinite MNIST" of Loosli, Canu and Bottou (Training invariant
// support vector machines using selective sampling, in Large Scale Kernel Machines, 2007): rows 0 … n−1 are the given
// ones, and row i ≥ n is number i mod n of them under a deformation that is a function of the seed and i alone.
func endless(ctx context.Context, base *Dataset, by deformation, seed uint64, rows int) (*Dataset, error) {
	n, d := base.X.Dims()
	if need, has := 4*float64(rows)*float64(d), float64(accel.MemoryAvailable()); has > 0 && need > has {
		return nil, fmt.Errorf("%s: %d rows of %d numbers take %s, more than the machine has: take fewer", base.Name,
			rows, d, accel.Bytes(int64(need)))
	}
	x, out := points.NewDense32(rows, d, nil), *base
	out.X, out.Class = x, make([]int, rows)
	for i := range rows {
		out.Class[i] = base.Class[i%n]
	}
	points.Panel32To(base.X.Slice(0, min(n, rows)), x.Data, d)
	if rows > n {
		out.Source += fmt.Sprintf("; generated from %s: %v, seed %d", base.Name, by, seed)
	}
	return &out, by.rows(ctx, x, n, rng.New(seed).Sub("endless"), func(i int, picture []float32) {
		points.Panel32To(base.X.Slice(i%n, i%n+1), picture, d)
	})
}
