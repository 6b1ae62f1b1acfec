package datasets

import (
	"errors"
	"fmt"
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
		return 0, fmt.Errorf("%q is too large for a float64", text)
	case err != nil:
		return 0, fmt.Errorf("%q is not a number%s", text, decimalComma(text))
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%q is not finite; fill in or remove missing values", text)
	}
	return v, nil
}

// decimalComma says how to write a number that has a comma.
func decimalComma(text string) string {
	point := strings.Replace(text, ",", ".", 1)
	if _, err := strconv.ParseFloat(point, 64); err != nil || point == text {
		return ""
	}
	return ": decimal comma? write " + point
}

// Classification is guessed for whole-numbered answers of at most maxGuess values,
// each taken by rowsPerGuess rows on average.
const (
	maxGuess     = 20
	rowsPerGuess = 5
)

// setAnswers interprets the answers as classes or numbers; lines[i] is the line that
// answer i stands in, for errors.
func (d *Dataset) setAnswers(s *source, answers []string, lines []int, task string) error {
	fail := func(i int, format string, args ...any) error {
		line := 0
		if lines != nil {
			line = lines[i]
		}
		return s.fail(line, 0, "target: "+format, args...)
	}
	values := make([]float64, len(answers))
	count := map[string]int{}
	word, numbers, whole := -1, 0, true // word is the first answer that is no number
	for i, a := range answers {
		count[a]++
		v, err := number(a)
		if err != nil && (task == "regression" || a == "" || !isWord(a)) {
			return fail(i, "%v", err)
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
		few := whole && len(count) <= maxGuess && len(count)*rowsPerGuess <= len(answers)
		if word >= 0 && numbers > 0 {
			if i := strayWord(answers, count, few); i >= 0 {
				return fail(i, "%q is not a number, though others are: fill in or remove it, or say --task classification%s",
					answers[i], decimalComma(answers[i]))
			}
		}
		task = "regression"
		if word >= 0 || few {
			task = "classification"
		}
	}
	if task == "regression" {
		d.Task, d.Target = Regression, values
		return nil
	}
	d.Task = Classification
	if word < 0 { // 1, 1.0 and +1 are one class
		for i, v := range values {
			answers[i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	d.setClasses(answers)
	return nil
}

// strayWord returns the first word among numbers that is no class beside them, -1 if there
// is none: any word if the numbers are not classes themselves, and else one that stands for
// a missing value or is in fewer than rowsPerGuess rows.
func strayWord(answers []string, count map[string]int, few bool) int {
	return slices.IndexFunc(answers, func(a string) bool {
		return isWord(a) && (!few || isMissing(a) || count[a] < rowsPerGuess)
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
	d.Labels = make([]string, 0, len(index))
	for a := range index {
		d.Labels = append(d.Labels, a)
	}
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
	slices.SortFunc(labels, func(a, b string) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
}
