package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// number parses a finite number.
func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
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
// number that is an answer: sums of the squares of more could overflow.
const (
	maxGuess     = 20
	rowsPerGuess = 5
	maxTarget    = 1e150
)

// answers are the answers of a file as they stand there.
type answers struct {
	text  []string
	lines []int             // the line of each, for errors; nil if there are none
	known map[string]string // of the first texts, so that one copy serves all rows
}

// add appends the answer of a line.
func (a *answers) add(s *source, text string, line int) error {
	const most = 4096
	size := answerGrowth
	own, ok := a.known[text]
	if !ok {
		own = strings.Clone(text)
		size += 16 + len(own)
		if a.known == nil {
			a.known = map[string]string{}
		}
		if len(a.known) < most {
			a.known[own] = own
		}
	}
	a.text, a.lines = append(a.text, own), append(a.lines, line)
	return s.take(size, len(a.text)-1)
}

// fail returns an error of answer i.
func (a *answers) fail(s *source, i int, format string, args ...any) error {
	line := 0
	if a.lines != nil {
		line = a.lines[i]
	}
	return s.fail(line, 0, "target: "+format, args...)
}

// setAnswers interprets the answers as classes or numbers.
func (d *Dataset) setAnswers(s *source, a *answers, task string) error {
	values := make([]float64, len(a.text))
	word, numbers, whole := -1, 0, true // word is the first answer that is no number
	for i, text := range a.text {
		v, err := number(text)
		if err != nil && (task == "regression" || text == "" || !isWord(text)) {
			return a.fail(s, i, "%v", err)
		}
		if err == nil {
			values[i] = v
			numbers++
			whole = whole && v == math.Trunc(v)
		} else if word < 0 {
			word = i
		}
	}
	if task == "auto" {
		var err error
		if task, err = a.guess(s, word >= 0, numbers > 0, whole); err != nil {
			return err
		}
	}
	if task == "regression" {
		for i, v := range values {
			if math.Abs(v) > maxTarget {
				return a.fail(s, i, "%s is too large to be squared: give the target in another unit", quote(a.text[i]))
			}
		}
		d.Task, d.Target = Regression, values
		return nil
	}
	d.Task = Classification
	if word < 0 { // 1, 1.0 and +1 are one class
		for i, v := range values {
			a.text[i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	d.setClasses(a.text)
	return nil
}

// guess tells the task of answers that are words, numbers, all of them whole, or both.
func (a *answers) guess(s *source, words, numbers, whole bool) (string, error) {
	n := len(a.text)
	count := map[string]int{} // until they are too many to be classes
	for _, text := range a.text {
		if count[text]++; len(count) > max(maxGuess, n/rowsPerGuess) {
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
		if i := a.strayWord(count, few); i >= 0 {
			return "", a.fail(s, i, "%s is not a number, though others are: fill in or remove it, or say --task classification%s",
				quote(a.text[i]), localForm(a.text[i]))
		}
		return "classification", nil
	}
	if i := slices.IndexFunc(a.text, func(t string) bool { return localForm(t) != "" }); i >= 0 {
		return "", a.fail(s, i, "%s is not a number%s; if the answers are classes, say --task classification", quote(a.text[i]), localForm(a.text[i]))
	}
	if k > maxGuess && k*rowsPerGuess > n {
		return "", a.fail(s, 0, "%s is not a number, and the %d rows have more than %d different words, too many to be classes: say which column is the --target, or --task classification",
			quote(a.text[0]), n, k-1)
	}
	return "classification", nil
}

// strayWord returns the first word among numbers that is no class beside them, -1 if there
// is none: any word if the numbers are not classes themselves, and else one that stands for
// a missing value, is a number in a local form or is in fewer than rowsPerGuess rows.
func (a *answers) strayWord(count map[string]int, few bool) int {
	return slices.IndexFunc(a.text, func(t string) bool {
		return isWord(t) && (!few || isMissing(t) || count[t] < rowsPerGuess || localForm(t) != "")
	})
}

// isWord reports whether the text has not the form of a number, finite or not.
func isWord(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return errors.Is(err, strconv.ErrSyntax)
}

// setClasses sets Labels, sorted, and Class.
func (d *Dataset) setClasses(answers []string) {
	index := map[string]int{}
	for _, a := range answers {
		index[a] = 0
	}
	d.Labels = slices.Collect(maps.Keys(index))
	sortLabels(d.Labels)
	for i, a := range d.Labels {
		index[a] = i
	}
	d.Class = make([]int, len(answers))
	for i, a := range answers {
		d.Class[i] = index[a]
	}
}

// sortLabels sorts by value if all labels are numbers, and as text otherwise.
func sortLabels(labels []string) {
	values := make(map[string]float64, len(labels))
	for _, l := range labels {
		v, err := strconv.ParseFloat(l, 64)
		if err != nil || math.IsNaN(v) {
			slices.Sort(labels)
			return
		}
		values[l] = v
	}
	slices.SortFunc(labels, func(a, b string) int { return cmp.Compare(values[a], values[b]) })
}
