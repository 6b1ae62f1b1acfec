package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Task says whether an answer is a number or a class.
type Task int

const (
	Regression     Task = iota // the answer is a number
	Classification             // the answer is one of several labels
)

// String returns "regression" or "classification".
func (t Task) String() string {
	if t == Classification {
		return "classification"
	}
	return "regression"
}

// Dataset is n points in R^d with their answers, if these are known. The answers are numbers or classes.
type Dataset struct {
	Name   string
	Task   Task
	X      points.Points // n×d; after Scale, the points scaled by Scaling
	Target []float64     // regression: the answers, of the first target if there are several
	// MoreTargets are the answers of the second and further targets of a regression, one list for each; nil for one
	// target.
	MoreTargets [][]float64
	TargetNames []string    // names of all targets of a regression; nil for one target
	Class       []int       // classification: the answers, as indices into Labels
	Labels      []string    // the labels as in the file, sorted by value if all are numbers, else as text
	Source      string      // file or generator
	Note        string      // remark about the points, such as that they are a subset or a stand-in
	ReadReport  *ReadReport // how the file was interpreted; nil if the points come from no file
	// Columns are the names of the features from the header of the file; nil without a header.
	Columns []string
	// CopiedColumns are the columns of ReadOptions.Keep. Each column is its name, followed by the trimmed cells of all
	// rows. It is nil in parts of a data set (Slice, Subset, Holdout).
	CopiedColumns [][]string
	// ColumnCodings are the columns of words or dates that are coded by several features, in the order of the features;
	// nil for none.
	ColumnCodings []ColumnCoding
	// UnknownWords lists the words in columns of ColumnCodings that have no feature, because they are not among the
	// Values of the column. Their features are all 0.
	UnknownWords []UnknownWords
	// Space describes the coordinates that the features were computed from; nil for other features.
	Space *Space
	// Scaling is the scaling that was applied to X; nil if X is raw, as read from the file. Scale sets it, and parts of
	// the data set (Slice, Subset, Holdout) have it too.
	Scaling *Scaling
	// Mean has the number that a fit subtracts from the answers of a regression, one for each target; nil for zeros.
	// Center sets it. The answers themselves are unchanged.
	Mean []float64
	// Weights are the positive weights of the points in a fit and in scores; nil for ones. A point of weight 2 counts
	// as two equal points.
	Weights []float64
	// ClassWeights are factors for the weights of the points of each class, in a fit but not in scores; nil for ones.
	ClassWeights       []float64
	hasBalancedWeights bool // ClassWeights are those of BalanceClasses, which depend on all rows
	// Groups are the group numbers of the rows; nil means that each row is its own group. Rows of one group stay
	// together in splits and in leave-one-out. Repeats says how the groups were chosen; if it is nil, they are chosen
	// when they are needed (WithGroups). Group and GroupBy set both fields.
	Groups  []int
	Repeats *Repeats

	fileColumns []int // file column of each feature; nil if the points come from no table

	imputed      []float64  // value of each feature that Impute wrote for missing values
	bestErrors   []float64  // built-in data: squared or 0/1 error of the best predictor on each point
	unusedHashes [][]uint64 // hashes of the cells of columns that are not features, for Group
}

// Check returns an error if d is nil or has no X, if a list of answers or groups does not have one element for each
// point, if a class has no label, if Task is unknown, or if d has classes and no numbers or vice versa against Task.
// Fits, predictions and Append call it.
func (d *Dataset) Check() error {
	if d == nil || d.X == nil {
		return errors.New("no points: the data set is nil; check the error of what loaded it")
	}
	n := d.Len()
	for j, target := range d.TargetColumns() {
		if len(target) != n && (j > 0 || target != nil) { // only the first target may be nil
			return fmt.Errorf("%s: %d numbers of target %d for %d points", d.Name, len(target), j, n)
		}
	}
	for i, class := range d.Class {
		if class < 0 || class >= len(d.Labels) {
			return fmt.Errorf("%s: the class of row %d (counted from 0) is %d, and there are %d labels", d.Name, i,
				class, len(d.Labels))
		}
	}
	onlyNumbers := d.Class == nil && d.Target != nil
	switch {
	case d.Task != Regression && d.Task != Classification, d.Task == Classification && onlyNumbers:
		return fmt.Errorf("%s: task %d: want Regression, with answers in Target, or Classification, in Class", d.Name,
			int(d.Task))
	case d.Class != nil && len(d.Class) != n || d.Groups != nil && len(d.Groups) != n:
		return fmt.Errorf("%s: %d classes and %d groups for %d points", d.Name, len(d.Class), len(d.Groups), n)
	}
	return nil
}

// Len returns the number n of points.
func (d *Dataset) Len() int {
	n, _ := d.X.Dims()
	return n
}

// Dim returns the dimension d of the points.
func (d *Dataset) Dim() int {
	_, dim := d.X.Dims()
	return dim
}

// TargetColumns returns the answers of a regression: one list of n numbers for each target.
func (d *Dataset) TargetColumns() [][]float64 { return append([][]float64{d.Target}, d.MoreTargets...) }

// HasAnswers reports whether the answers are known.
func (d *Dataset) HasAnswers() bool { return d.Target != nil || d.Class != nil }

// CheckColumns returns a *ParseError if the names of the features of d, in their order, differ from names. otherName is
// the name of the other data in the error message. If either list is nil, there is no error.
func (d *Dataset) CheckColumns(names []string, otherName string) error {
	if d.Columns == nil || names == nil {
		return nil
	}
	if len(d.Columns) != len(names) {
		return &ParseError{File: d.Source, Reason: fmt.Sprintf("%d feature columns here, %d in %s", len(d.Columns),
			len(names), otherName)}
	}
	for j, name := range d.Columns {
		if name != names[j] {
			return &ParseError{File: d.Source,
				Reason: fmt.Sprintf("feature column %d is %q here, %q in %s: give both the same columns in the "+
					"same order",
					j+1, name, names[j], otherName)}
		}
	}
	return nil
}

// Slice returns points i, …, j-1 with their answers. The result shares memory with d.
func (d *Dataset) Slice(i, j int) *Dataset {
	return d.selectRows(d.X.Slice(i, j), rowSelection{from: i, to: j})
}

// Head returns the first min(n, Len) points. The result shares memory with d.
func (d *Dataset) Head(n int) *Dataset { return d.Slice(0, min(n, d.Len())) }

// Subset returns copies of the points with the given indices, which must be in range, and of their answers.
func (d *Dataset) Subset(index []int) *Dataset {
	return d.selectRows(points.Gather(d.X, index), rowSelection{index: index})
}

// rowSelection is a list of rows: those of index, or if that is nil the rows from, …, to-1.
type rowSelection struct {
	index    []int
	from, to int
}

// selectFrom returns the elements of v that belong to the rows; nil for a nil v.
func selectFrom[T any](rows rowSelection, v []T) []T {
	switch {
	case v == nil:
		return nil
	case rows.index == nil:
		return v[rows.from:rows.to]
	}
	return gather(v, rows.index)
}

// gather returns copies of the elements of v with the given indices.
func gather[T any](v []T, index []int) []T {
	out := make([]T, len(index))
	for k, i := range index {
		out[k] = v[i]
	}
	return out
}

// selectRows returns the data set of a part of the rows, whose points are x.
func (d *Dataset) selectRows(x points.Points, rows rowSelection) *Dataset {
	selected := *d
	selected.X, selected.CopiedColumns, selected.MoreTargets, selected.unusedHashes = x, nil, nil, nil
	for _, y := range d.MoreTargets {
		selected.MoreTargets = append(selected.MoreTargets, selectFrom(rows, y))
	}
	selected.Target, selected.Class = selectFrom(rows, d.Target), selectFrom(rows, d.Class)
	selected.Weights, selected.Groups = selectFrom(rows, d.Weights), selectFrom(rows, d.Groups)
	selected.bestErrors = selectFrom(rows, d.bestErrors)
	return &selected
}

// maxShownClasses is the largest number of classes that a description names one by one.
const maxShownClasses = 10

// String describes the data set in one line: name, task, n, d, classes, scaling and source.
func (d *Dataset) String() string {
	if d == nil {
		return "none"
	}
	var b strings.Builder
	name := cmp.Or(d.Name, "data set")
	if d.X == nil {
		return name + ": no points"
	}
	n, dim := d.X.Dims()
	fmt.Fprintf(&b, "%s: %v, n = %d, d = %d", name, d.Task, n, dim)
	switch {
	case !d.HasAnswers():
		b.WriteString(", no answers")
	case d.Class != nil && len(d.Labels) <= maxShownClasses:
		fmt.Fprintf(&b, ", classes %s", strings.Join(d.Labels, ", "))
	case d.Class != nil:
		fmt.Fprintf(&b, ", %d classes", len(d.Labels))
	}
	if d.Scaling != nil {
		b.WriteString(", scaled: " + d.Scaling.Kind)
	}
	if d.ReadReport != nil {
		fmt.Fprintf(&b, "; read from %v", d.ReadReport)
	} else if d.Source != "" && d.Source != d.Name {
		b.WriteString("; " + d.Source)
	}
	return b.String()
}

// featureName names feature j in messages.
func (d *Dataset) featureName(j int) string {
	if d.Columns != nil {
		return quote(d.Columns[j])
	}
	return "feature " + strconv.Itoa(j)
}
