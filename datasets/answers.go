package datasets

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// parseNumber is strconv.ParseFloat restricted to decimal numbers: hexadecimal numbers (0x10) and underscores (1_0) are
// syntax errors.
func parseNumber(text string) (float64, error) {
	if v, ok := parseShort(text); ok {
		return v, nil
	}
	if strings.ContainsAny(text, "xXpP_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// parseShort parses a number of at most 15 digits without an exponent; ok is false for any other text. The digits, as
// an integer below 10¹⁵ < 2⁵³, and a power of 10 below 10²³ are exact float64 numbers, so their quotient, rounded once,
// is the correctly rounded number (Clinger, PLDI 1990, DOI 10.1145/93542.93557).
func parseShort[T string | []byte](text T) (v float64, ok bool) {
	i, digits, point, mantissa := 0, 0, -1, int64(0)
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i = 1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			mantissa = 10*mantissa + int64(c-'0')
			digits++
		case c == '.' && point < 0:
			point = digits
		default:
			return 0, false
		}
	}
	if digits == 0 || digits > 15 {
		return 0, false
	}
	if v = float64(mantissa); point >= 0 {
		v /= math.Pow10(digits - point) // exact
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}

// isSyntaxError reports whether err, returned by parseNumber, says that the text does not have the form of a number.
func isSyntaxError(err error) bool { return errors.Is(err, strconv.ErrSyntax) }

// parseFinite parses a finite number. Its errors explain how to repair the cell.
func parseFinite(text string) (float64, error) {
	v, err := parseNumber(text)
	switch {
	case text == "":
		return 0, errors.New("the cell is empty; fill in or remove missing values")
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large for a float64", quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a number%s", quote(text), localForm(text))
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%s is not finite; fill in or remove missing values", quote(text))
	}
	return v, nil
}

const (
	// maxGuessedClasses and minRowsPerClass decide whether answers are guessed to be classes. Distinct words are
	// classes if there are at most maxGuessedClasses of them, or if they have on average at least minRowsPerClass rows
	// each. Whole numbers are classes only if both conditions hold. A larger maxGuessedClasses takes more answers for
	// classes, a larger minRowsPerClass fewer.
	maxGuessedClasses = 20
	minRowsPerClass   = 5
	// maxTarget is the largest absolute value of a regression target. Sums of squares of such numbers do not overflow.
	maxTarget = 1e100
)

// answers collects the answers of a file as texts. setAnswers interprets them.
type answers struct {
	codes  []int          // for each row, the index of its text in texts
	texts  []string       // distinct texts by first occurrence; beyond maxIndexed texts they may repeat
	lines  []int          // for each text, the line of its first row, for errors; 0 if there are no lines
	codeOf map[string]int // index in texts of the first maxIndexed texts
}

// addRow appends the answer of a row, which stands in the given line. It returns an error if the memory budget is
// exceeded.
func (a *answers) addRow(s *Source, text string, line int) error {
	const maxIndexed = 4096 // texts in codeOf, which limits its memory
	size := intGrowth
	k, ok := a.codeOf[text]
	if !ok {
		k, text = len(a.texts), strings.Clone(text)
		a.texts, a.lines = append(a.texts, text), append(a.lines, line)
		size += textGrowth + len(text)
		if a.codeOf == nil {
			a.codeOf = map[string]int{}
		}
		if k < maxIndexed {
			a.codeOf[text] = k
		}
	}
	a.codes = append(a.codes, k)
	return s.reserve(size, len(a.codes)-1)
}

// errorAt returns an error about text k, with its line.
func (a *answers) errorAt(s *Source, k int, format string, args ...any) error {
	return s.Fault(a.lines[k], 0, "target: "+format, args...)
}

// setAnswers interprets the answers as classes or as numbers, sets Task and the fields that belong to it, and returns
// an error at the first answer that does not suit the task. task is auto, classification or regression.
func (d *Dataset) setAnswers(s *Source, a *answers, task string) error {
	if err := a.checkLabelSets(s, task); err != nil {
		return err
	}
	if task != "classification" {
		if n := a.replaceAmounts(); n > 0 {
			s.report.note("target: amounts in parentheses, in %d rows, are read as negative", n)
		}
	}
	values := make([]float64, len(a.texts))
	forms := answerForms{allWhole: true}
	for k, text := range a.texts {
		v, err := parseFinite(text)
		switch {
		case err == nil:
		case task == "regression" || text == "":
			return a.errorAt(s, k, "%v", err)
		case task == "auto" && !isWord(text):
			return a.errorAt(s, k, "%v; if it is a label, say --task classification", err)
		}
		values[k] = v
		forms.hasWords, forms.hasNumbers = forms.hasWords || err != nil, forms.hasNumbers || err == nil
		forms.allWhole = forms.allWhole && v == math.Trunc(v)
	}
	if task == "auto" {
		var err error
		if task, err = a.guessTask(s, forms); err != nil {
			return err
		}
	}
	if task == "classification" {
		d.Task = Classification
		d.setClasses(s.report, a)
		return nil
	}
	for k, v := range values {
		if math.Abs(v) > maxTarget {
			return a.errorAt(s, k, "%s is too large to be squared: give the target in another unit", quote(a.texts[k]))
		}
	}
	d.Task, d.Target = Regression, gather(values, a.codes)
	return nil
}

// labelSet matches several class numbers of one row of a LIBSVM file, such as 1,3, or a number with a decimal comma.
var labelSet = regexp.MustCompile(`^\d+(?:,\d+)+$`)

// checkLabelSets looks for labels such as 1,3 in a file whose format has no columns. With the task classification each
// set of labels is one class, and a note says so; otherwise such a label is an error.
func (a *answers) checkLabelSets(s *Source, task string) error {
	if s.format.Answers == "" {
		return nil
	}
	k := slices.IndexFunc(a.texts, labelSet.MatchString)
	switch {
	case k < 0:
		return nil
	case task == "classification":
		s.report.note("labels such as %s are sets of labels, and each set is taken as one class", quote(a.texts[k]))
		return nil
	}
	return a.errorAt(s, k, "%s is a set of labels, or a number with a decimal comma: --task classification takes each "+
		"set as one class; a number has a decimal point", quote(a.texts[k]))
}

// answerForms describes the texts of a set of answers.
type answerForms struct {
	hasWords   bool // at least one answer is not a number
	hasNumbers bool // at least one answer is a number
	allWhole   bool // every number is whole
}

// guessTask chooses the task for answers of the given forms, or returns an error if the answers suit neither task.
func (a *answers) guessTask(s *Source, forms answerForms) (string, error) {
	n, rows := len(a.codes), make([]int, len(a.texts))
	for _, k := range a.codes {
		rows[k]++
	}
	count := map[string]int{} // rows of each text, until there are too many texts for classes
	for k, text := range a.texts {
		if count[text] += rows[k]; len(count) > max(maxGuessedClasses, n/minRowsPerClass) {
			break
		}
	}
	distinct := len(count)
	fewClasses := forms.allWhole && distinct <= maxGuessedClasses && distinct*minRowsPerClass <= n
	switch {
	case !forms.hasWords && fewClasses:
		return "classification", nil
	case !forms.hasWords:
		return "regression", nil
	}
	if forms.hasNumbers {
		// A word among numbers is a class if the numbers are classes themselves and the word occurs in minRowsPerClass
		// rows, does not stand for a missing value and is not a number in a local form.
		if i := slices.IndexFunc(a.texts, func(t string) bool {
			return isWord(t) && (!fewClasses || isMissing(t) || count[t] < minRowsPerClass || localForm(t) != "")
		}); i >= 0 {
			return "", a.errorAt(s, i,
				"%s is not a number, though others are: fill in or remove it, or say --task classification%s",
				quote(a.texts[i]), localForm(a.texts[i]))
		}
		return "classification", nil
	}
	if i := slices.IndexFunc(a.texts, func(t string) bool { return localForm(t) != "" }); i >= 0 {
		return "", a.errorAt(s, i, "%s is not a number%s; if the answers are classes, say --task classification",
			quote(a.texts[i]), localForm(a.texts[i]))
	}
	if distinct > maxGuessedClasses && distinct*minRowsPerClass > n {
		return "", a.errorAt(s, 0,
			"%s is not a number, and the %d rows have more than %d different words, too many to be classes: say "+
				"which column is the --target, or --task classification",
			quote(a.texts[0]), n, distinct-1)
	}
	return "classification", nil
}

// isWord reports whether the text does not have the form of a number, finite or not.
func isWord(text string) bool {
	_, err := parseNumber(text)
	return isSyntaxError(err)
}

// Weight returns the weight of point i, or 1 if there are no weights.
func (d *Dataset) Weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}

// allWeights returns Weights, or ones.
func (d *Dataset) allWeights() []float64 {
	if d.Weights == nil {
		return slices.Repeat([]float64{1}, d.Len())
	}
	return d.Weights
}

// rowsOfClasses returns the number of rows of each class.
func (d *Dataset) rowsOfClasses() []int {
	rows := make([]int, len(d.Labels))
	for _, c := range d.Class {
		rows[c]++
	}
	return rows
}

// MinorityClass returns the class, 0 or 1, that has fewer points in a problem of two classes, and 1 in a tie.
func (d *Dataset) MinorityClass() int {
	var count [2]int
	for _, c := range d.Class {
		count[min(c, 1)]++ // further classes count as class 1
	}
	if count[0] < count[1] {
		return 0
	}
	return 1
}

// FitWeights returns the weights of the points in a fit, the products of Weights and ClassWeights; nil stands for ones.
func (d *Dataset) FitWeights() []float64 {
	if d.ClassWeights == nil {
		return d.Weights
	}
	w := make([]float64, len(d.Class))
	for i, c := range d.Class {
		w[i] = d.ClassWeights[c] * d.Weight(i)
	}
	return w
}

// BalanceClasses returns d with ClassWeights n/(k·n_c), where k is the number of classes that have points and n_c the
// number of points of class c, so that all classes contribute equally to a fit. It returns an error for regression.
func (d *Dataset) BalanceClasses() (*Dataset, error) {
	if d.Class == nil {
		return nil, fmt.Errorf("%s: class weights need classes, and the answers are numbers", d.Name)
	}
	out, classes := *d, 0
	rows := d.rowsOfClasses()
	for _, n := range rows {
		classes += min(n, 1)
	}
	out.ClassWeights, out.balanced = make([]float64, len(rows)), true
	for c, n := range rows {
		if n > 0 {
			out.ClassWeights[c] = float64(len(d.Class)) / float64(classes*n)
		}
	}
	return &out, nil
}

// LabelWeight is the weight of the rows with a label.
type LabelWeight struct {
	Label  string
	Weight float64
}

// ParseClassWeights returns the weights of labels in a text such as "yes=10,no=0.5"; none for "", "none" and
// "balanced". It returns an error if a weight is not a positive number or a label occurs twice.
func ParseClassWeights(text string) (weights []LabelWeight, err error) {
	if text == "" || text == "none" || text == "balanced" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		k := strings.LastIndex(word, "=")
		w, err := strconv.ParseFloat(word[k+1:], 64)
		if k < 0 || err != nil || !(w > 0 && isFinite(w)) {
			return nil, fmt.Errorf("class weights %s: want none, balanced, or positive weights, such as yes=10,no=0.5",
				quote(text))
		}
		isLabel := func(l LabelWeight) bool { return l.Label == word[:k] }
		if slices.ContainsFunc(weights, isLabel) {
			return nil, fmt.Errorf("class weights: the label %s has two weights", quote(word[:k]))
		}
		weights = append(weights, LabelWeight{word[:k], w})
	}
	return weights, nil
}

// WeighClasses returns d with the ClassWeights that text names: "none", "balanced" for those of BalanceClasses, or the
// weights of some labels (ParseClassWeights); other labels have the weight 1. It returns an error if the text is
// invalid, no row has one of the labels, or the answers are numbers.
func (d *Dataset) WeighClasses(text string) (*Dataset, error) {
	weights, err := ParseClassWeights(text)
	if err != nil || text == "" || text == "none" {
		return d, err
	}
	out, err := d.BalanceClasses()
	if err != nil || text == "balanced" {
		return out, err
	}
	count, labels := d.rowsOfClasses(), newWordIndex(d.Labels)
	out.ClassWeights, out.balanced = slices.Repeat([]float64{1}, len(count)), false
	for _, l := range weights {
		c, _ := labels.find(l.Label)
		if c < 0 || count[c] == 0 {
			return nil, fmt.Errorf("class weights: no row has the label %s", quote(l.Label))
		}
		out.ClassWeights[c] = l.Weight
	}
	return out, nil
}

// Center returns d with Mean set to the mean of each target, weighted by Weights. A fit subtracts Mean from the
// targets, and its model adds it to the predictions, so that the ridge pulls f towards the mean and not towards 0. For
// classification d itself is returned.
func (d *Dataset) Center() *Dataset {
	if d.Target == nil {
		return d
	}
	out := *d
	out.Mean = nil
	for _, y := range d.TargetColumns() {
		mean := slices.Min(y)
		if mean < slices.Max(y) { // the mean of a constant target is exact, without rounding
			mean = stat.Mean(y, d.Weights)
		}
		out.Mean = append(out.Mean, mean)
	}
	return &out
}

// Coding converts answers into right-hand sides, and decision values back into answers.
//
// If Labels is nil the task is regression: the right-hand sides are the targets, one column each, minus Mean if that is
// not nil. Otherwise the coding is that of regularized least squares classification (RLSC; Rifkin, Yeo and Poggio
// 2003). Two labels give one column, −1 for Labels[0] and +1 for Labels[1]. More labels give one column for each label,
// +1 for the points that have it and −1 for the others.
type Coding struct {
	Labels []string
	Mean   []float64 // means of the columns; regression only
}

// Columns returns the number t of right-hand sides.
func (c Coding) Columns() int {
	if len(c.Labels) > 2 {
		return len(c.Labels)
	}
	return 1
}

// EncodeForFit returns Encode(d) for a fit. In addition to the errors of Encode, points of only one class are an error.
func (c Coding) EncodeForFit(d *Dataset) (*mat.Dense, error) {
	y, err := c.Encode(d)
	if err != nil || c.Labels == nil {
		return y, err
	}
	columnOf := d.ClassIn(c.Labels)
	if !slices.ContainsFunc(d.Class, func(k int) bool { return columnOf[k] != columnOf[d.Class[0]] }) {
		return nil, fmt.Errorf("%s: the rows are of one class only (%q); classification needs at least two", d.Name,
			d.Labels[d.Class[0]])
	}
	return y, nil
}

// Encode returns the right-hand sides Y, n×t. It returns an error if d has no answers, a label that is not in c.Labels,
// or a target that is not finite or whose square overflows.
func (c Coding) Encode(d *Dataset) (*mat.Dense, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	n := d.Len()
	if c.Labels == nil {
		if d.Target == nil {
			return nil, fmt.Errorf("%s: no numbers to fit", d.Name)
		}
		t := 1 + len(d.MoreTargets)
		if c.Mean != nil && (len(c.Mean) != t || !isFinite(floats.Sum(c.Mean))) {
			return nil, fmt.Errorf("%s: %d targets, and the means %v: want a finite one of each", d.Name, t, c.Mean)
		}
		y := mat.NewDense(n, t, nil)
		for j, target := range d.TargetColumns() {
			for i, v := range target {
				if !(math.Abs(v) <= maxTarget) {
					return nil,
						fmt.Errorf("%s: the target of row %d (counted from 0) is %g, which cannot be squared: "+
							"give it in another unit", d.Name, i, v)
				}
				if c.Mean != nil {
					v -= c.Mean[j]
				}
				y.Set(i, j, v)
			}
		}
		return y, nil
	}
	if d.Class == nil {
		return nil, fmt.Errorf("%s: no classes to fit", d.Name)
	}
	column := d.ClassIn(c.Labels)
	y := mat.NewDense(n, c.Columns(), nil)
	for i, k := range d.Class {
		j := column[k]
		if j < 0 {
			return nil, fmt.Errorf("%s: label %q of point %d is not among %q", d.Name, d.Labels[k], i, c.Labels)
		}
		row := y.RawRowView(i)
		if len(row) == 1 {
			row[0] = float64(2*j - 1)
			continue
		}
		for l := range row {
			row[l] = -1
		}
		row[j] = 1
	}
	return y, nil
}

// Decode returns the predicted class, an index into Labels, for each row of the decision values f, m×t.
func (c Coding) Decode(f *mat.Dense) []int {
	m, _ := f.Dims()
	class := make([]int, m)
	for i := range class {
		class[i] = PredictedClass(f.RawRowView(i))
	}
	return class
}

// PredictedClass returns the class that a row of decision values predicts: by the sign of a single value, otherwise the
// index of the largest value, the smallest such index in a tie.
func PredictedClass(f []float64) (best int) {
	if len(f) == 1 && f[0] > 0 {
		return 1
	}
	for j, v := range f {
		if v > f[best] {
			best = j
		}
	}
	return best
}

// Margin returns f_j − max_{k≠j} f_k, the lead of class j over all others. With two classes f has one value, the
// decision value of the second class, and the decision values of the classes are −f and f.
func Margin(f []float64, j int) float64 {
	if len(f) == 1 {
		return 2 * f[0] * float64(2*j-1)
	}
	rival := math.Inf(-1)
	for k, v := range f {
		if k != j {
			rival = max(rival, v)
		}
	}
	return f[j] - rival
}

// maxQuotedBytes is the largest number of bytes of a text from a file or user that a message repeats.
const maxQuotedBytes = 80

// quote returns the text in quotes, with unprintable characters escaped and at most maxQuotedBytes bytes of it.
func quote[T string | []byte](text T) string {
	if len(text) <= maxQuotedBytes {
		return strconv.Quote(string(text))
	}
	k := maxQuotedBytes
	for k > maxQuotedBytes-utf8.UTFMax && !utf8.RuneStart(text[k]) {
		k--
	}
	return strconv.Quote(string(text[:k])) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}

// quoteIfLong returns safe.Name of a name from a file, or the shortened quote if the name is long.
func quoteIfLong(text string) string {
	if len(text) > maxQuotedBytes {
		return quote(text)
	}
	return safe.Name(text)
}
