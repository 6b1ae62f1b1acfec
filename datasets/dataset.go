package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Task says whether an answer is a number or a class.
type Task int

const (
	Regression     Task = iota // the answer is a number
	Classification             // the answer is one of several labels
)

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
	X      points.Points // n×d, raw or scaled by Scaling
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
	// Categories are the columns of words or dates that are coded by several features, in the order of the features;
	// nil for none.
	ColumnCodings []ColumnCoding
	// Unknown lists the words of Categories that have no feature, because they are not among the category's Values.
	// Their features are all 0.
	UnknownWords []UnknownWords
	// Space says which coordinates the features were computed from; nil for other features.
	Space *Space
	// Scaling is the scaling that was applied to X; nil if X is raw, as read from the file. Scale sets it, and parts of
	// the data set (Slice, Subset, Holdout) have it too.
	Scaling *Scaling
	// Mean is the number that a fit subtracts from the answers of a regression, one for each target; nil for zeros.
	// Center sets it. The answers themselves are unchanged.
	Mean []float64
	// Weights are the positive weights of the points in a fit and in scores; nil for ones. A point of weight 2 counts
	// as two equal points.
	Weights []float64
	// ClassWeights are factors for the weights of the points of each class, in a fit but not in scores; nil for ones.
	ClassWeights []float64
	balanced     bool // ClassWeights are those of BalanceClasses, which depend on all rows
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
// point, if a class has no label, or if Task is unknown or the kind of the answers is not that of Task. Fits,
// predictions and Append call it.
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
	for i, k := range d.Class {
		if k < 0 || k >= len(d.Labels) {
			return fmt.Errorf("%s: the class of row %d (counted from 0) is %d, and there are %d labels", d.Name, i, k,
				len(d.Labels))
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

// CheckColumns returns an error if the names of d's features differ from names, including their order. otherName
// is the name of the other data in the error message. If either list is nil, there is no error.
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
	s := *d
	s.X, s.CopiedColumns, s.MoreTargets, s.unusedHashes = x, nil, nil, nil
	for _, y := range d.MoreTargets {
		s.MoreTargets = append(s.MoreTargets, selectFrom(rows, y))
	}
	s.Target, s.Class = selectFrom(rows, d.Target), selectFrom(rows, d.Class)
	s.Weights, s.Groups = selectFrom(rows, d.Weights), selectFrom(rows, d.Groups)
	s.bestErrors = selectFrom(rows, d.bestErrors)
	return &s
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

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

func (p *TrainTest) String() string {
	out := fmt.Sprintf("%-8s %s\n%-8s %s\n", "training", p.Train.String(), "test", p.Test.String())
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}

// maxSimilarRatio is the largest ratio of the spreads of two features that still count as similar. The ratio is 1.9 for
// the pixels of MNIST and USPS, and at least 4.8 for tables of measured quantities. A larger value scales fewer data
// sets.
const maxSimilarRatio = 3

// maxHintFeatures is the largest number of features of sparse points for which AutoScaling compares spreads.
const maxHintFeatures = 1 << 20

// AutoScaling returns the kind of scaling that Scale uses for "auto", and the reason if the spreads of the features
// differ. The kind is "none" for bytes, for features that were computed from coordinates (Space), for sparse points
// with mostly zero entries or very many features, and if the spreads of the features are similar, as those of scaled
// features and of indicators are. Otherwise it is "standard".
//
// Two features have similar spreads if their standard deviations or their ranges differ at most by a factor of 3.
// Pixels and indicators that are rarely nonzero have small standard deviations, but equal ranges, and are therefore not
// scaled. A tenth of the features at most is ignored: those that vary least, if nine of ten rows have their smallest
// value, or their largest one. Pixels at the edge do, and a feature in a smaller unit does not.
func (d *Dataset) AutoScaling() (kind, reason string) {
	c, sparse := d.X.(*points.CSR)
	_, bytes := d.X.(*points.Bytes)
	if d.Space != nil || bytes || sparse && c.D > maxHintFeatures {
		return "none", ""
	}
	if reason = d.describeSpread(); reason == "" {
		return "none", ""
	}
	if sparse && c.NNZ() <= c.N*c.D/2 {
		return "none", "most entries are zero; " + reason + ": try --scale unit, which keeps zeros"
	}
	return "standard", reason
}

// describeSpread describes how much the spreads of the features differ; "" if they are similar.
func (d *Dataset) describeSpread() string {
	lo, hi := FeatureRanges(d.X)
	mean, sd := featureMoments(d.X)
	width := floats.SubTo(make([]float64, len(sd)), hi, lo)
	var varies []int
	for j, s := range sd { // s is 0 also if its square underflows
		if width[j] > 0 && (s == 0 || s > roundingTolerance*math.Abs(mean[j])) {
			varies = append(varies, j)
		}
	}
	if len(varies) < 2 {
		return ""
	}
	rare := rarelyVaries(d.X, lo, hi)
	smallest, largest := extremes(varies, sd, rare)
	narrow, wide := extremes(varies, width, rare)
	ratio := sd[largest] / sd[smallest]
	if min(ratio, width[wide]/width[narrow]) <= maxSimilarRatio {
		return ""
	}
	format := "%.2g"
	if ratio >= 99.5 && ratio < 1e6 { // not 1.1e+02
		format = "%.0f"
	}
	return fmt.Sprintf("the spreads of the features differ by a factor of "+format+
		" (standard deviation %.3g of %s, %.3g of %s)",
		ratio, sd[largest], d.featureName(largest), sd[smallest], d.featureName(smallest))
}

// rarelyVaries reports for each feature, whose range is lo to hi, whether at least nine of ten rows have one of its
// ends.
func rarelyVaries(x points.Points, lo, hi []float64) []bool {
	n, d := x.Dims()
	lowest, highest, rare := make([]int, d), make([]int, d), make([]bool, d)
	visitRows(x, func(row []float64) {
		for j, v := range row {
			if v == lo[j] {
				lowest[j]++
			}
			if v == hi[j] {
				highest[j]++
			}
		}
	})
	for j := range rare {
		rare[j] = 10*max(lowest[j], highest[j]) >= 9*n
	}
	return rare
}

// extremes returns the features with the smallest and the largest v. It ignores the first features in the order of v,
// a tenth at most, as long as they are rare.
func extremes(features []int, v []float64, rare []bool) (smallest, largest int) {
	order := slices.Clone(features)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	ignored := 0
	for ignored < len(order)/10 && rare[order[ignored]] {
		ignored++
	}
	return order[ignored], order[len(order)-1]
}

// featureName names feature j in messages.
func (d *Dataset) featureName(j int) string {
	if d.Columns != nil {
		return quote(d.Columns[j])
	}
	return "feature " + strconv.Itoa(j)
}

// TaskHint returns a one-line warning that the task, which the caller has guessed, may be wrong: a few whole numbers
// that were taken for classes could be counts, and whole numbers that were taken for a regression could be class
// numbers. It returns "" for fewer than three distinct answers, for words, and for a regression with other numbers or
// with too many distinct ones. The numeric labels of a classification are assumed to be whole, as those of a guessed
// one are.
func (d *Dataset) TaskHint() string {
	n, k := d.Len(), len(d.Labels)
	if d.Task == Classification {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, l := range d.Labels {
			v, err := parseFinite(l)
			if err != nil {
				return ""
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		if k < 3 {
			return ""
		}
		return fmt.Sprintf("the answers, %d whole numbers from %g to %g, are taken for classes: if they are "+
			"numbers, such as counts, say --task regression", k, lo, hi)
	}
	values := map[float64]bool{}
	for _, v := range d.Target {
		if values[v] = true; v != math.Trunc(v) || len(values)*minRowsPerClass > n {
			return ""
		}
	}
	if len(values) < 3 {
		return ""
	}
	return fmt.Sprintf("the answers, %d whole numbers, are taken for a regression: if they stand for classes, say "+
		"--task classification", len(values))
}
