package datasets

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
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
	Asked       int // LoadOptions.N: the training rows asked for; 0 for all
}

// splitSeed fixes the random split of sets that come in one file.
const splitSeed = 1

// Load loads the data set of that name from the folders, or generates it: reads its files,
// splits training from test rows, keeps the first o.N training rows, and scales both parts
// by what is fitted on these. It returns a *MissingError if a file is not there.
func Load(ctx context.Context, name string, o *LoadOptions) (*Pair, error) {
	opt := *cmp.Or(o, &LoadOptions{})
	if o = &opt; o.Dirs == nil {
		o.Dirs = Dirs()
	}
	info, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	p := &Pair{Info: info, Asked: o.N}
	if info.BuiltIn() {
		all := info.generate(info)
		p.Train, p.Test = all.Slice(0, info.N), all.Slice(info.N, all.Len())
	} else {
		paths, missing := info.Find(o.Dirs)
		if len(missing) > 0 {
			return nil, &MissingError{info, missing, o.Dirs}
		}
		if p.Train, p.Test, err = info.load(ctx, info, paths, o); err != nil {
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
	p.Train.Note = p.Note()
	p.Train, p.Test, err = Scale(cmp.Or(o.Scale, info.Scale), p.Train, p.Test)
	return p, err
}

// Rows says which training rows the pair has where these are not just the set's own: the
// first of them, or more, or fewer than were asked for; "" otherwise.
func (p *Pair) Rows() string {
	switch n := p.Train.Len(); {
	case p.Asked > n:
		return fmt.Sprintf("all %d training rows: %d were asked for, and there are no more", n, p.Asked)
	case n < p.Info.N:
		return fmt.Sprintf("the first %d of %d training rows", n, p.Info.N)
	case n > p.Info.N:
		return fmt.Sprintf("%d rows and %d generated from them", p.Info.N, n-p.Info.N)
	}
	return ""
}

// Note says what is special about the pair: Rows and Info.Note.
func (p *Pair) Note() string {
	rows := p.Rows()
	if rows != "" && p.Info.Note != "" {
		rows += "; "
	}
	return rows + p.Info.Note
}

// rows is the most training rows to read: those asked for, or the set's own number.
func (i *Info) rows(o *LoadOptions) int {
	if o.N > 0 {
		return min(o.N, i.N)
	}
	return i.N
}

// options are the ReadOptions for a file of the set.
func (i *Info) options(o *LoadOptions) *ReadOptions {
	return &ReadOptions{Task: i.Task.String(), Dim: i.D, Memory: o.Memory}
}

// ownFiles loads a set with a training and a test file.
func ownFiles(ctx context.Context, i *Info, paths map[Role]string, o *LoadOptions) (train, test *Dataset, err error) {
	opt := i.options(o)
	opt.MaxRows = i.rows(o)
	if train, err = ReadFile(ctx, paths[TrainFile], opt); err != nil {
		return nil, nil, err
	}
	test, err = ReadFile(ctx, paths[TestFile], i.options(o))
	return train, test, err
}

// endless is ownFiles for MNIST, with more rows generated from the training rows (see Endless) if more are
// asked for.
func endless(ctx context.Context, i *Info, paths map[Role]string, o *LoadOptions) (train, test *Dataset, err error) {
	if train, test, err = ownFiles(ctx, i, paths, o); err != nil || o.N <= train.Len() {
		return train, test, err
	}
	train.Name = "MNIST"
	e, err := NewEndless(train, endlessDeformation, endlessSeed)
	if err != nil {
		return nil, nil, err
	}
	train, err = e.Slice(ctx, 0, o.N)
	return train, test, err
}

// firstColumn is ownFiles for tables whose first column has the answers.
func firstColumn(ctx context.Context, i *Info, paths map[Role]string, o *LoadOptions) (train, test *Dataset,
	err error) {
	table := func(path string, rows int) (*Dataset, error) {
		opt := i.options(o)
		opt.Target, opt.MaxRows = "0", rows
		return ReadFile(ctx, path, opt)
	}
	if train, err = table(paths[TrainFile], i.rows(o)); err != nil {
		return nil, nil, err
	}
	if paths[TestLabels] != "" { // MNIST's test file
		test, err = ReadFile(ctx, paths[TestFile], i.options(o))
	} else {
		test, err = table(paths[TestFile], 0)
	}
	return train, test, err
}

// oneFile returns a loader of a set in one file: a fixed random four fifths of its rows
// train. If one is not empty, the task is that class against the rest.
func oneFile(one string) loader {
	return func(ctx context.Context, i *Info, paths map[Role]string, o *LoadOptions) (train, test *Dataset, err error) {
		all, err := ReadFile(ctx, paths[TrainFile], i.options(o))
		if err != nil {
			return nil, nil, err
		}
		if one != "" {
			all.oneVersusRest(one)
		}
		n := all.Len()
		order := rng.New(splitSeed).Sub("split").Perm(n)
		k := n * 4 / 5
		return all.Subset(order[:k]), all.Subset(order[k:]), nil
	}
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
var endlessDeformation = Deformation{Shift: 1, Rotate: 7.5, Alpha: 20, Sigma: 4}

// endlessSeed fixes the registry's endless sets.
const endlessSeed = 1

// Endless is an unending sequence of labeled pictures made of n given ones, after the
// "infinite MNIST" of Loosli, Canu and Bottou (Training invariant support vector machines
// using selective sampling, in Large Scale Kernel Machines, 2007): rows 0 … n−1 are the
// given ones, and row i ≥ n is number i mod n of them under a deformation that is a function
// of the seed and i alone. So any slice can be made without the rows before it, and the
// first rows do not depend on how many follow.
type Endless struct {
	base *Dataset
	side int
	d    Deformation
	g    rng.Stream
	text string
}

// NewEndless returns the sequence made of the pictures of base, square, row by row, with
// values from 0 (the background) to 255.
func NewEndless(base *Dataset, d Deformation, seed uint64) (*Endless, error) {
	side := int(math.Round(math.Sqrt(float64(base.Dim()))))
	switch {
	case side*side != base.Dim():
		return nil, fmt.Errorf("%s: points of dimension %d are not square pictures", base.Name, base.Dim())
	case base.Class == nil:
		return nil, fmt.Errorf("%s: pictures without labels", base.Name)
	case !(d.Shift >= 0 && d.Rotate >= 0 && d.Alpha >= 0 && d.Sigma >= 0) ||
		math.IsInf(d.Shift+d.Rotate+d.Alpha+d.Sigma, 0):
		return nil, fmt.Errorf("%s: a deformation of %v: want numbers ≥ 0", base.Name, d)
	}
	return &Endless{base, side, d, rng.New(seed).Sub("endless"),
		fmt.Sprintf("generated from %s: %v, seed %d", base.Name, d, seed)}, nil
}

// Slice returns rows i, …, j−1 of the sequence. It panics if i < 0 or j < i.
func (e *Endless) Slice(ctx context.Context, i, j int) (*Dataset, error) {
	if i < 0 || j < i {
		panic(fmt.Sprintf("datasets: rows %d to %d of an endless sequence", i, j))
	}
	n, d := e.base.X.Dims()
	if need, has := 4*float64(j-i)*float64(d), float64(accel.MemoryAvailable()); has > 0 && need > has {
		return nil, fmt.Errorf("%s: %d rows of %d numbers take %s, more than the machine has: take fewer", e.base.Name,
			j-i, d, accel.Bytes(int64(need)))
	}
	x := points.NewDense32(j-i, d, nil)
	out := &Dataset{Name: e.base.Name, Task: Classification, X: x, Class: make([]int, j-i), Labels: e.base.Labels,
		Source: e.base.Source, Scaling: e.base.Scaling}
	if j > n {
		out.Source += "; " + e.text
	}
	const block = 64
	err := accel.ForEach(ctx, (j-i+block-1)/block, func(_, b int) {
		f, src, row := newDeformer(e.d, e.side), make([]float32, d), make([]float64, d)
		for k := b * block; k < min((b+1)*block, j-i); k++ {
			from := (i + k) % n
			out.Class[k] = e.base.Class[from]
			e.base.X.RowTo(row, from)
			for c, v := range row {
				src[c] = float32(v)
			}
			if i+k < n {
				copy(x.Row(k), src)
				continue
			}
			f.apply(x.Row(k), src, e.g.Sub("row", uint64(i+k)))
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
