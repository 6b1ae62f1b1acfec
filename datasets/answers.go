package datasets

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxGuessedClasses and minRowsPerClass decide whether answers are guessed to be classes. Distinct words are
	// classes if there are at most maxGuessedClasses of them, or if they have on average at least minRowsPerClass rows
	// each. Whole numbers are classes only if both conditions hold. A larger maxGuessedClasses takes more answers for
	// classes, and a larger minRowsPerClass takes fewer.
	maxGuessedClasses = 20
	minRowsPerClass   = 5
	// maxTarget is the largest absolute value of a regression target. Sums of squares of such numbers do not overflow.
	maxTarget = 1e100
	// maxIndexedTexts is the largest number of texts that answers.indexOf contains, which limits its memory. A larger
	// value stores fewer repeated texts.
	maxIndexedTexts = 4096
)

// answers collects the answers of a file as texts. setAnswers interprets them.
type answers struct {
	textIndices []int          // for each row, the index of its text in texts
	texts       []string       // distinct texts by first occurrence; beyond maxIndexedTexts texts they may repeat
	lines       []int          // for each text, the line of its first row, for errors; 0 if there are no lines
	indexOf     map[string]int // index in texts of the first maxIndexedTexts texts
}

// addRow appends the answer of a row, which stands in the given line. It returns an error if the memory budget is
// exceeded.
func (a *answers) addRow(source *Source, text string, line int) error {
	size := intGrowth // bytes of memory that the row needs
	k, ok := a.indexOf[text]
	if !ok {
		k, text = len(a.texts), strings.Clone(text)
		a.texts, a.lines = append(a.texts, text), append(a.lines, line)
		size += textGrowth + len(text)
		if a.indexOf == nil {
			a.indexOf = map[string]int{}
		}
		if k < maxIndexedTexts {
			a.indexOf[text] = k
		}
	}
	a.textIndices = append(a.textIndices, k)
	return source.reserve(size, len(a.textIndices)-1)
}

// errorAt returns an error about text k, with its line.
func (a *answers) errorAt(source *Source, k int, format string, args ...any) error {
	return source.Fault(a.lines[k], 0, "target: "+format, args...)
}

// setAnswers interprets the answers as classes or as numbers, and sets Task and the answers of d. task is "auto",
// "classification" or "regression". It returns an error at the first answer that does not suit the task.
func (d *Dataset) setAnswers(source *Source, a *answers, task string) error {
	if err := a.checkLabelSets(source, task); err != nil {
		return err
	}
	if task != "classification" {
		if n := a.replaceAmounts(); n > 0 {
			source.report.note("target: amounts in parentheses, in %d rows, are read as negative", n)
		}
	}
	values := make([]float64, len(a.texts))
	forms := answerForms{allWhole: true}
	for k, text := range a.texts {
		v, err := parseFinite(text)
		switch {
		case err == nil:
		case task == "regression" || text == "":
			return a.errorAt(source, k, "%v", err)
		case task == "auto" && !isWord(text):
			return a.errorAt(source, k, "%v; if it is a label, say --task classification", err)
		}
		values[k] = v
		forms.hasWords, forms.hasNumbers = forms.hasWords || err != nil, forms.hasNumbers || err == nil
		forms.allWhole = forms.allWhole && v == math.Trunc(v)
	}
	if task == "auto" {
		var err error
		if task, err = a.guessTask(source, forms); err != nil {
			return err
		}
	}
	if task == "classification" {
		d.Task = Classification
		d.setClasses(source.report, a)
		return nil
	}
	for k, v := range values {
		if math.Abs(v) > maxTarget {
			return a.errorAt(source, k, "%s is too large to be squared: give the target in another unit",
				quote(a.texts[k]))
		}
	}
	d.Task, d.Target = Regression, gather(values, a.textIndices)
	return nil
}

// labelSetPattern matches several class numbers of one row of a LIBSVM file, such as 1,3, or a number with a decimal
// comma.
var labelSetPattern = regexp.MustCompile(`^\d+(?:,\d+)+$`)

// checkLabelSets looks for labels such as 1,3 in a file whose format has no columns (Format.Answers is set). With the
// task classification each set of labels is one class, and a note says so; otherwise such a label is an error.
func (a *answers) checkLabelSets(source *Source, task string) error {
	if source.format.Answers == "" {
		return nil
	}
	k := slices.IndexFunc(a.texts, labelSetPattern.MatchString)
	switch {
	case k < 0:
		return nil
	case task == "classification":
		source.report.note("labels such as %s are sets of labels, and each set is taken as one class",
			quote(a.texts[k]))
		return nil
	}
	return a.errorAt(source, k,
		"%s is a set of labels, or a number with a decimal comma: --task classification takes each "+
			"set as one class; a number has a decimal point", quote(a.texts[k]))
}

// answerForms describes the texts of a set of answers.
type answerForms struct {
	hasWords   bool // at least one answer is not a number
	hasNumbers bool // at least one answer is a number
	allWhole   bool // every number is whole
}

// guessTask chooses the task for answers of the given forms, or returns an error if the answers suit neither task.
func (a *answers) guessTask(source *Source, forms answerForms) (string, error) {
	n, rowCounts := len(a.textIndices), make([]int, len(a.texts)) // rowCounts[k] is the number of rows with text k
	for _, k := range a.textIndices {
		rowCounts[k]++
	}
	// rowsByText counts the rows of each distinct text. The count ends when there are too many texts for classes.
	rowsByText := map[string]int{}
	for k, text := range a.texts {
		if rowsByText[text] += rowCounts[k]; len(rowsByText) > max(maxGuessedClasses, n/minRowsPerClass) {
			break
		}
	}
	distinct := len(rowsByText)
	numbersAreClasses := forms.allWhole && distinct <= maxGuessedClasses && distinct*minRowsPerClass <= n
	switch {
	case !forms.hasWords && numbersAreClasses:
		return "classification", nil
	case !forms.hasWords:
		return "regression", nil
	}
	if forms.hasNumbers {
		// A word among numbers is a class if the numbers are classes themselves and the word occurs in minRowsPerClass
		// rows, does not stand for a missing value and is not a number in a local form.
		if i := slices.IndexFunc(a.texts, func(text string) bool {
			return isWord(text) && (!numbersAreClasses || isMissing(text) || rowsByText[text] < minRowsPerClass ||
				localFormAdvice(text) != "")
		}); i >= 0 {
			return "", a.errorAt(source, i,
				"%s is not a number, though others are: fill in or remove it, or say --task classification%s",
				quote(a.texts[i]), localFormAdvice(a.texts[i]))
		}
		return "classification", nil
	}
	if i := slices.IndexFunc(a.texts, func(text string) bool { return localFormAdvice(text) != "" }); i >= 0 {
		return "", a.errorAt(source, i, "%s is not a number%s; if the answers are classes, say --task classification",
			quote(a.texts[i]), localFormAdvice(a.texts[i]))
	}
	if distinct > maxGuessedClasses && distinct*minRowsPerClass > n {
		return "", a.errorAt(source, 0,
			"%s is not a number, and the %d rows have more than %d different words, too many to be classes: say "+
				"which column is the --target, or --task classification",
			quote(a.texts[0]), n, distinct-1)
	}
	return "classification", nil
}

// TaskHint returns a one-line warning that a guessed task may be wrong. It is meant for the task "auto", and does not
// check that the task was guessed. A few whole numbers that were taken for classes could be counts, and whole numbers
// that were taken for a regression could be class numbers. TaskHint returns "" for fewer than three distinct answers,
// for words, and for a regression with other numbers or with too many distinct ones. Numeric labels of a classification
// are assumed to be whole numbers, which they are if the task was guessed.
func (d *Dataset) TaskHint() string {
	n, classCount := d.Len(), len(d.Labels)
	if d.Task == Classification {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, label := range d.Labels {
			v, err := parseFinite(label)
			if err != nil {
				return ""
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		if classCount < 3 {
			return ""
		}
		return fmt.Sprintf("the answers, %d whole numbers from %g to %g, are taken for classes: if they are "+
			"numbers, such as counts, say --task regression", classCount, lo, hi)
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
