package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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
		return 0, fmt.Errorf("%q is not a number", text)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, fmt.Errorf("%q is not finite; fill in or remove missing values", text)
	}
	return v, nil
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
	place := func(i int) int {
		if lines == nil {
			return 0
		}
		return lines[i]
	}
	values := make([]float64, len(answers))
	numeric, whole := true, true
	for i, a := range answers {
		v, err := number(a)
		if err != nil {
			if task == "regression" || a == "" || errors.Is(parse(a), strconv.ErrRange) || isNotFinite(a) {
				return s.fail(place(i), 0, "target: %v", err)
			}
			numeric = false
			break
		}
		values[i] = v
		whole = whole && v == math.Trunc(v)
	}
	distinct := map[string]bool{}
	for _, a := range answers {
		distinct[a] = true
	}
	if task == "auto" {
		task = "regression"
		if !numeric || whole && len(distinct) <= maxGuess && len(distinct)*rowsPerGuess <= len(answers) {
			task = "classification"
		}
	}
	if task == "regression" {
		d.Task, d.Target = Regression, values
		return nil
	}
	d.Task = Classification
	if numeric { // 1, 1.0 and +1 are one class
		for i, v := range values {
			answers[i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	d.setClasses(answers)
	return nil
}

func parse(text string) error { _, err := strconv.ParseFloat(text, 64); return err }

func isNotFinite(text string) bool {
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && (math.IsNaN(v) || math.IsInf(v, 0))
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
