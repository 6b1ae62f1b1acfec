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

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/safe"
)

// parse is strconv.ParseFloat of decimal numbers: neither 0x10 nor 1_0 is one.
func parse(text string) (float64, error) {
	if v, ok := short(text); ok {
		return v, nil
	}
	if strings.ContainsAny(text, "xXpP_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64)
}

// short is parse of a number of up to 15 digits without an exponent: they and a power of 10 below 10²³ are float64s, so
// that their quotient, rounded once, is the number (Clinger, PLDI 1990, DOI 10.1145/93542.93557).
func short[T string | []byte](text T) (v float64, ok bool) {
	i, digits, point, whole := 0, 0, -1, int64(0)
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i = 1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			whole = 10*whole + int64(c-'0')
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
	if v = float64(whole); point >= 0 {
		v /= powers[digits-point]
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}

// powers are those of 10.
var powers = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// isSyntax reports whether the text that parse was given has not the form of a number.
func isSyntax(err error) bool { return errors.Is(err, strconv.ErrSyntax) }

// finite parses a finite number.
func finite(text string) (float64, error) {
	v, err := parse(text)
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

// Classification is guessed for answers of at most maxGuess values, and for more if each is
// taken by rowsPerGuess rows on average; whole numbers must be both. maxTarget is the largest
// number that is an answer (krrlab.New).
const (
	maxGuess     = 20
	rowsPerGuess = 5
	maxTarget    = 1e100
)

// answers are the answers of a file as they stand there.
type answers struct {
	code  []int    // of each row: which of the texts it has
	texts []string // in the order of their first rows; the same one twice only where there are very many
	lines []int    // of these rows, for errors; 0: none
	known map[string]int
}

func (a *answers) add(s *Source, text string, line int) error {
	const most = 4096
	size := intGrowth
	k, ok := a.known[text]
	if !ok {
		k, text = len(a.texts), strings.Clone(text)
		a.texts, a.lines = append(a.texts, text), append(a.lines, line)
		size += textGrowth + len(text)
		if a.known == nil {
			a.known = map[string]int{}
		}
		if k < most {
			a.known[text] = k
		}
	}
	a.code = append(a.code, k)
	return s.take(size, len(a.code)-1)
}

// fail returns an error about a text.
func (a *answers) fail(s *Source, k int, format string, args ...any) error {
	return s.Fault(a.lines[k], 0, "target: "+format, args...)
}

// setAnswers interprets the answers as classes or numbers.
func (d *Dataset) setAnswers(s *Source, a *answers, task string) error {
	if err := a.labelSets(s, task); err != nil {
		return err
	}
	if task != "classification" {
		if n := a.amounts(); n > 0 {
			s.reading.note("target: amounts in parentheses, in %d rows, are read as negative", n)
		}
	}
	values := make([]float64, len(a.texts))
	words, numbers, whole := false, false, true
	for k, text := range a.texts {
		v, err := finite(text)
		switch {
		case err == nil:
		case task == "regression" || text == "":
			return a.fail(s, k, "%v", err)
		case task == "auto" && !isWord(text):
			return a.fail(s, k, "%v; if it is a label, say --task classification", err)
		}
		values[k], words, numbers, whole = v, words || err != nil, numbers || err == nil, whole && v == math.Trunc(v)
	}
	if task == "auto" {
		var err error
		if task, err = a.guess(s, words, numbers, whole); err != nil {
			return err
		}
	}
	if task == "classification" {
		d.Task = Classification
		d.setClasses(s.reading, a)
		return nil
	}
	for k, v := range values {
		if math.Abs(v) > maxTarget {
			return a.fail(s, k, "%s is too large to be squared: give the target in another unit", quote(a.texts[k]))
		}
	}
	d.Task, d.Target = Regression, chosen[float64](a.code)(values)
	return nil
}

// labelSet matches several classes of one row in a LIBSVM file, or a number with a decimal comma.
var labelSet = regexp.MustCompile(`^\d+(?:,\d+)+$`)

// labelSets looks for labels such as 1,3 in a file without columns. They are classes only if the task says so, which is noted.
func (a *answers) labelSets(s *Source, task string) error {
	if s.format.Answers == "" {
		return nil
	}
	k := slices.IndexFunc(a.texts, labelSet.MatchString)
	switch {
	case k < 0:
		return nil
	case task == "classification":
		s.reading.note("labels such as %s are sets of labels, and each set is taken as one class", quote(a.texts[k]))
		return nil
	}
	return a.fail(s, k, "%s is a set of labels, or a number with a decimal comma: --task classification takes each set as "+
		"one class; a number has a decimal point", quote(a.texts[k]))
}

// guess tells the task of answers that are words, numbers, all of them whole, or both.
func (a *answers) guess(s *Source, words, numbers, whole bool) (string, error) {
	n, rows := len(a.code), make([]int, len(a.texts))
	for _, k := range a.code {
		rows[k]++
	}
	count := map[string]int{} // until they are too many to be classes
	for k, text := range a.texts {
		if count[text] += rows[k]; len(count) > max(maxGuess, n/rowsPerGuess) {
			break
		}
	}
	k := len(count)
	few := whole && k <= maxGuess && k*rowsPerGuess <= n
	switch {
	case !words && few:
		return "classification", nil
	case !words:
		return "regression", nil
	}
	if numbers {
		// A word among numbers is a class if they are classes themselves, and it is in as many rows, does not stand for
		// a missing value and is no number in a local form.
		if i := slices.IndexFunc(a.texts, func(t string) bool {
			return isWord(t) && (!few || isMissing(t) || count[t] < rowsPerGuess || localForm(t) != "")
		}); i >= 0 {
			return "", a.fail(s, i,
				"%s is not a number, though others are: fill in or remove it, or say --task classification%s",
				quote(a.texts[i]), localForm(a.texts[i]))
		}
		return "classification", nil
	}
	if i := slices.IndexFunc(a.texts, func(t string) bool { return localForm(t) != "" }); i >= 0 {
		return "", a.fail(s, i, "%s is not a number%s; if the answers are classes, say --task classification",
			quote(a.texts[i]), localForm(a.texts[i]))
	}
	if k > maxGuess && k*rowsPerGuess > n {
		return "", a.fail(s, 0,
			"%s is not a number, and the %d rows have more than %d different words, too many to be classes: say "+
				"which column is the --target, or --task classification",
			quote(a.texts[0]), n, k-1)
	}
	return "classification", nil
}

// isWord reports whether the text has not the form of a number, finite or not.
func isWord(text string) bool {
	_, err := parse(text)
	return isSyntax(err)
}

// Weight returns the weight of point i, 1 without weights.
func (d *Dataset) Weight(i int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[i]
}

// Rarer returns which of two classes has fewer points, the second of equals.
func (d *Dataset) Rarer() int {
	var count [2]int
	for _, c := range d.Class {
		count[min(c, 1)]++
	}
	if count[0] < count[1] {
		return 0
	}
	return 1
}

// FitWeights returns the weights of the points in a fit, Weights times ClassWeights; nil for ones.
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

// Balance returns d with the ClassWeights n/(k·n_c), of k classes and n_c points of class c, so that all classes count
// alike in a fit. It returns an error for regression.
func (d *Dataset) Balance() (*Dataset, error) {
	if d.Class == nil {
		return nil, fmt.Errorf("%s: class weights need classes, and the answers are numbers", d.Name)
	}
	out, count := *d, make([]float64, len(d.Labels))
	k := 0.0
	for _, c := range d.Class {
		if count[c]++; count[c] == 1 {
			k++
		}
	}
	out.ClassWeights = make([]float64, len(d.Labels))
	for c, n := range count {
		if n > 0 {
			out.ClassWeights[c] = float64(len(d.Class)) / (k * n)
		}
	}
	return &out, nil
}

// Center returns d with the mean of its answers, weighted by Weights, as Mean, which a fit takes off them and its
// model adds to what it predicts: the ridge then holds f near the mean, not near 0. Classes are not centered: d is
// returned.
func (d *Dataset) Center() *Dataset {
	if d.Target == nil {
		return d
	}
	out := *d
	out.Mean = nil
	for _, y := range append([][]float64{d.Target}, d.More...) {
		mean := slices.Min(y)
		if mean < slices.Max(y) { // a constant is its mean, not a rounding from it
			mean = stat.Mean(y, d.Weights)
		}
		out.Mean = append(out.Mean, mean)
	}
	return &out
}

// Coding turns answers into right-hand sides and decision values into answers. Nil Labels
// are those of regression: the answers themselves, in a column for each target, less Mean if that is not nil.
// Otherwise it is that of regularized least squares classification (RLSC; Rifkin, Yeo and Poggio 2003): with two
// labels one column, −1 for Labels[0] and +1 for Labels[1]; with more one column for each label, +1 for the points
// that have it and −1 for the others.
type Coding struct {
	Labels []string
	Mean   []float64 // of the columns, of regression only
}

// Columns returns the number t of right-hand sides.
func (c Coding) Columns() int {
	if len(c.Labels) > 2 {
		return len(c.Labels)
	}
	return 1
}

// Encode returns Code for a fit: it is an error if the points are of one class only.
func (c Coding) Encode(d *Dataset) (*mat.Dense, error) {
	y, err := c.Code(d)
	if err != nil || c.Labels == nil {
		return y, err
	}
	at := d.ClassIn(c.Labels)
	if !slices.ContainsFunc(d.Class, func(k int) bool { return at[k] != at[d.Class[0]] }) {
		return nil, fmt.Errorf("%s: the rows are of one class only (%q); classification wants at least two", d.Name,
			d.Labels[d.Class[0]])
	}
	return y, nil
}

// Code returns Y, n×t. It returns an error if d has no answers, a label that is not among c's, or a target that is
// not finite or whose square overflows.
func (c Coding) Code(d *Dataset) (*mat.Dense, error) {
	n := d.Len()
	if c.Labels == nil {
		if d.Target == nil {
			return nil, fmt.Errorf("%s: no numbers to fit", d.Name)
		}
		t := 1 + len(d.More)
		if c.Mean != nil && len(c.Mean) != t {
			return nil, fmt.Errorf("%s: %d targets, and means of %d", d.Name, t, len(c.Mean))
		}
		y := mat.NewDense(n, t, nil)
		for j, target := range append([][]float64{d.Target}, d.More...) {
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

// Decode returns the index into Labels for each row of F, m×t.
func (c Coding) Decode(f *mat.Dense) []int {
	m, _ := f.Dims()
	class := make([]int, m)
	for i := range class {
		class[i] = Label(f.RawRowView(i))
	}
	return class
}

// Label returns the class that a row of decision values stands for: of one value its sign, of several the largest,
// the first of equals.
func Label(f []float64) (best int) {
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

// Margin returns f_j − max_{k≠j} f_k, by how much class j is ahead of all others; of two classes with the one value f
// of the second, that of −f and f.
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

// maxQuoted is the most bytes of a text from outside that an error repeats.
const maxQuoted = 80

// quote returns the text in quotes, what does not print escaped, a long one cut.
func quote[T string | []byte](text T) string {
	if len(text) <= maxQuoted {
		return strconv.Quote(string(text))
	}
	k := maxQuoted
	for k > maxQuoted-utf8.UTFMax && !utf8.RuneStart(text[k]) {
		k--
	}
	return strconv.Quote(string(text[:k])) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}

// plain is safe.Name for a name from a file, cut like a quote if it is long.
func plain(text string) string {
	if len(text) > maxQuoted {
		return quote(text)
	}
	return safe.Name(text)
}
