package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Task is what is to be predicted.
type Task int

const (
	Regression     Task = iota // a number
	Classification             // one of several labels
)

func (t Task) String() string {
	if t == Classification {
		return "classification"
	}
	return "regression"
}

// Dataset is n points in R^d with their answers, if these are known: numbers, or classes.
type Dataset struct {
	Name   string
	Task   Task
	X      points.Points // n×d, raw or scaled by Scaling
	Target []float64     // regression: the answers
	// More are the answers of further targets of a regression, a list for each, and Targets the names of all of them;
	// nil for one target.
	More    [][]float64
	Targets []string
	Class   []int    // classification: the answers, indices into Labels
	Labels  []string // original labels, sorted by value if all are numbers, else as text
	Source  string   // file or generator
	Note    string   // what is special about the points: a subset, a stand-in
	Read    *Reading // what was decided of the file; nil where the points are of none
	// Columns are the names of the features in the file's header; nil without one.
	Columns []string
	// Kept are the cells of ReadOptions.Keep without blanks at their ends, a column each, below its name; nil of a
	// part of the points.
	Kept [][]string
	// Categories are the columns of words that features were made of; nil for none. Unknown are the words of them that
	// are none of the values asked for: their features are all 0.
	Categories []Category
	Unknown    []UnknownWords
	// Scaling is what X was scaled by; nil if X is raw, as read. Scale sets it, and what is made of
	// the points (Slice, Subset, Holdout) has it too.
	Scaling *Scaling
	// Mean is what a fit subtracts from the answers of a regression, by column; nil for zeros. Center sets it.
	// The answers themselves stay as they are.
	Mean []float64
	// Weights are how much the points count, in a fit and in scores, positive; nil for ones. A weight of 2 is as two equal
	// points.
	Weights []float64
	// ClassWeights multiply the weights of the points of each class in a fit, not in scores; nil for ones.
	ClassWeights []float64
	// Groups are the numbers of the groups of the rows, which stay together; nil: each row is alone. Repeats says how
	// they were chosen; nil: what splits or leaves out rows decides (Decided). Group and GroupBy set both.
	Groups  []int
	Repeats *Repeats

	fileColumns []int // the column of the file for each feature; nil where the points are of no table

	fill   []float64  // what Impute put for missing values
	oracle []float64  // built-in data: the best predictor's squared or 0/1 error on each point
	unused [][]uint64 // hashes of the cells of columns that are no features, for Group
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

// HasAnswers reports whether the answers are known.
func (d *Dataset) HasAnswers() bool { return d.Target != nil || d.Class != nil }

// CheckColumns returns an error if the features have names, names are given, those of the
// data called where, and the two are not the same in the same order.
func (d *Dataset) CheckColumns(names []string, where string) error {
	if d.Columns == nil || names == nil {
		return nil
	}
	if len(d.Columns) != len(names) {
		return &ParseError{File: d.Source, Reason: fmt.Sprintf("%d feature columns here, %d in %s", len(d.Columns),
			len(names), where)}
	}
	for j, name := range d.Columns {
		if name != names[j] {
			return &ParseError{File: d.Source,
				Reason: fmt.Sprintf("feature column %d is %q here, %q in %s: give both the same columns in the "+
					"same order",
					j+1, name, names[j], where)}
		}
	}
	return nil
}

// Slice returns points i, …, j-1 with their answers. Memory is shared.
func (d *Dataset) Slice(i, j int) *Dataset {
	return d.rows(d.X.Slice(i, j), between[float64](i, j), between[int](i, j))
}

// between returns what takes elements i, …, j-1.
func between[T any](i, j int) func(v []T) []T { return func(v []T) []T { return v[i:j] } }

// Head returns the first min(n, Len) points. Memory is shared.
func (d *Dataset) Head(n int) *Dataset { return d.Slice(0, min(n, d.Len())) }

// Subset returns copies of the points with the given indices, which must be in range,
// and their answers.
func (d *Dataset) Subset(index []int) *Dataset {
	return d.rows(points.Gather(d.X, index), chosen[float64](index), chosen[int](index))
}

// chosen returns what takes the elements with the given indices.
func chosen[T any](index []int) func(v []T) []T {
	return func(v []T) []T {
		out := make([]T, len(index))
		for k, i := range index {
			out[k] = v[i]
		}
		return out
	}
}

// rows returns the data of some of the points, x. numbers and integers select their entries of a list.
func (d *Dataset) rows(x points.Points, numbers func([]float64) []float64, integers func([]int) []int) *Dataset {
	s := *d
	s.X, s.Kept, s.More, s.unused = x, nil, nil, nil
	for _, y := range d.More {
		s.More = append(s.More, numbers(y))
	}
	for _, v := range []*[]float64{&s.Target, &s.Weights, &s.oracle} {
		if *v != nil {
			*v = numbers(*v)
		}
	}
	for _, v := range []*[]int{&s.Class, &s.Groups} {
		if *v != nil {
			*v = integers(*v)
		}
	}
	return &s
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// shownClasses is the number of classes that are named one by one.
const shownClasses = 10

// String describes the data set in one line: name, task, n, d, classes, scaling, source.
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
	case d.Class != nil && len(d.Labels) <= shownClasses:
		fmt.Fprintf(&b, ", classes %s", strings.Join(d.Labels, ", "))
	case d.Class != nil:
		fmt.Fprintf(&b, ", %d classes", len(d.Labels))
	}
	if d.Scaling != nil {
		b.WriteString(", scaled: " + d.Scaling.Kind)
	}
	if d.Read != nil {
		fmt.Fprintf(&b, "; read from %v", d.Read)
	} else if d.Source != "" && d.Source != d.Name {
		b.WriteString("; " + d.Source)
	}
	return b.String()
}

func (p *Pair) String() string {
	out := fmt.Sprintf("%-8s %s\n%-8s %s\n", "training", p.Train.String(), "test", p.Test.String())
	if p.Info != nil && p.Info.Note != "" {
		out += fmt.Sprintf("%-8s %s\n", "note", p.Info.Note)
	}
	return out
}

// alikeRatio is the largest ratio of two features' spreads at which they are alike: pixels of MNIST and USPS come
// to 1.9, tables of measured quantities to 4.8 and more.
const alikeRatio = 3

// hintWidth is the most features of sparse points that AutoScaling looks at.
const hintWidth = 1 << 20

// AutoScaling returns the kind that Scale takes for "auto": "none" for bytes, for sparse points, most of whose
// entries are zero, and where the spreads of the features are alike, as of scaled ones and of indicators; "standard"
// otherwise. It says why where they differ. Two features' spreads are alike if their standard deviations or their
// ranges are within a factor of 3, so that features on one scale of which some are rarely set (pixels, indicators)
// are let be, as is the tenth of the features that varies least.
func (d *Dataset) AutoScaling() (kind, why string) {
	c, sparse := d.X.(*points.CSR)
	_, bytes := d.X.(*points.Bytes)
	if bytes || sparse && c.D > hintWidth {
		return "none", ""
	}
	if why = d.spread(); why == "" {
		return "none", ""
	}
	if sparse && c.NNZ() <= c.N*c.D/2 {
		return "none", "most entries are zero; " + why + ": try --scale unit, which keeps zeros"
	}
	return "standard", why
}

// spread says how much the spreads of the features differ; "" if they are alike.
func (d *Dataset) spread() string {
	lo, hi := ranges(d.X)
	mean, sd := moments(d.X)
	var varies []int
	for j, s := range sd {
		if s > roundedMean*math.Abs(mean[j]) {
			varies = append(varies, j)
		}
	}
	if len(varies) < 2 {
		return ""
	}
	width := make([]float64, len(sd))
	for j := range width {
		width[j] = hi[j] - lo[j]
	}
	least, most := extremes(varies, sd)
	narrow, wide := extremes(varies, width)
	ratio := sd[most] / sd[least]
	if min(ratio, width[wide]/width[narrow]) <= alikeRatio {
		return ""
	}
	format := "%.2g"
	if ratio >= 99.5 && ratio < 1e6 { // not 1.1e+02
		format = "%.0f"
	}
	return fmt.Sprintf("the spreads of the features differ by a factor of "+format+
		" (standard deviation %.3g of %s, %.3g of %s)",
		ratio, sd[most], d.feature(most), sd[least], d.feature(least))
}

// extremes returns the features whose v is the least, a tenth of them set aside, and the largest.
func extremes(features []int, v []float64) (least, most int) {
	order := slices.Clone(features)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	return order[len(order)/10], order[len(order)-1]
}

// feature names feature j for a reader.
func (d *Dataset) feature(j int) string {
	if d.Columns != nil {
		return quote(d.Columns[j])
	}
	return "feature " + strconv.Itoa(j)
}

// TaskHint says in one line that the task of answers that are whole numbers, three at least, was guessed: few of them
// may be counts, and many numbers of classes; "" for words and other numbers.
func (d *Dataset) TaskHint() string {
	n, k := d.Len(), len(d.Labels)
	if d.Task == Classification {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, l := range d.Labels {
			v, err := strconv.ParseFloat(l, 64)
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
		if values[v] = true; v != math.Trunc(v) || len(values)*rowsPerGuess > n {
			return ""
		}
	}
	if len(values) < 3 {
		return ""
	}
	return fmt.Sprintf("the answers, %d whole numbers, are taken for a regression: if they stand for classes, say "+
		"--task classification", len(values))
}
