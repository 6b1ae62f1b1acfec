package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// wholeNumber matches texts that may say no more than the value of a whole number: digits, possibly with an exponent in
// the form of R.
var wholeNumber = regexp.MustCompile(`^[+-]?\d+(\.0*)?(e[+-]?\d+)?$`)

// maxExactWhole limits the absolute value of numbers that are compared by value. Whole numbers of up to 15 digits have
// distinct float64 values; larger numbers need not, and are compared as texts.
const maxExactWhole = 1e15

// wholeValue returns the value of a text that says no more than the value of a whole number. ok is false for other
// texts, such as 01, and for numbers of at least maxExactWhole in absolute value.
func wholeValue(text string) (v float64, ok bool) {
	if !wholeNumber.MatchString(text) {
		return 0, false
	}
	digits := strings.TrimLeft(text, "+-")
	v, err := parseNumber(text)
	isPadded := len(digits) > 1 && digits[0] == '0' && digits[1] != '.'
	return v, err == nil && math.Abs(v) < maxExactWhole && v == math.Trunc(v) && !isPadded
}

// setClasses sets Labels, sorted, and Class, and notes which texts were merged into one class. The label of a class is
// the text of all its rows. It is the wordKey of the class if these texts differ, or if all labels are numbers without
// further information (wholeValue).
func (d *Dataset) setClasses(r *ReadReport, a *answers) {
	set, classOf, allNumbers := newWordSet(), make([]int, len(a.texts)), true
	for k, text := range a.texts {
		classOf[k] = set.add(text)
		_, isNumber := wholeValue(text)
		allNumbers = allNumbers && isNumber
	}
	var merged []string
	for k, text := range a.texts {
		_, isNumber := wholeValue(text)
		if label := set.words[classOf[k]]; text != label && !(isNumber && !strings.ContainsAny(text, "eE")) {
			merged = append(merged, equalityNote(text, label)) // no note for 1, +1 and 1.0
		}
	}
	if merged != nil {
		r.note("labels taken as equal: %s", joinLimited(merged))
	}
	labels, index := set.words, map[string]int{}
	for k, label := range labels {
		if allNumbers {
			labels[k] = wordKey(label)
		}
	}
	d.Labels = slices.Clone(labels)
	sortLabels(d.Labels)
	for i, label := range d.Labels {
		index[label] = i
	}
	for k, code := range classOf {
		classOf[k] = index[labels[code]]
	}
	d.Class = gather(classOf, a.textIndices)
}

// sortLabels sorts labels by value if all of them are numbers, labels of equal value by text; otherwise it sorts all by
// text.
func sortLabels(labels []string) {
	values := make(map[string]float64, len(labels))
	for _, label := range labels {
		v, err := parseNumber(label)
		if err != nil || math.IsNaN(v) {
			slices.Sort(labels)
			return
		}
		values[label] = v
	}
	slices.SortFunc(labels, func(a, b string) int {
		return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b))
	})
}

// ClassIn returns for each label of d the index of the matching label in labels, or −1 if no label matches. A label
// matches the one with the same text; if there is none, the one that denotes the same number, boolean or Unicode text;
// and if there is none either, the only one that differs in case alone.
func (d *Dataset) ClassIn(labels []string) []int {
	index, indexIn := newWordIndex(labels), make([]int, len(d.Labels))
	for i, label := range d.Labels {
		indexIn[i], _ = index.find(label)
		indexIn[i] = max(indexIn[i], notFound)
	}
	return indexIn
}

// CheckLabels returns a one-line note about the labels of the rows of d that are not in labels, with the number of
// these rows, and about labels that differ from a label in labels in case only. The note is "" if there are none of
// either kind. CheckLabels returns an error if no row has a label in labels.
func (d *Dataset) CheckLabels(labels []string) (note string, err error) {
	index, unknownRows := newWordIndex(labels), 0
	var unknownLabels, equalPairs []string
	for class, rows := range d.rowsOfClasses() {
		i, caseDiffers := index.find(d.Labels[class])
		if caseDiffers {
			equalPairs = append(equalPairs, equalityNote(d.Labels[class], labels[i]))
		} else if i < 0 && rows > 0 {
			unknownLabels, unknownRows = append(unknownLabels, d.Labels[class]), unknownRows+rows
		}
	}
	if equalPairs != nil {
		note = fmt.Sprintf("%s: labels taken as equal: %s", d.Name, joinLimited(equalPairs))
	}
	if unknownRows == 0 {
		return note, nil
	}
	unknownNote := fmt.Sprintf("%s: the labels %s, of %d of %d rows, are not among the model's %s",
		d.Name, nameList(unknownLabels), unknownRows, len(d.Class), nameList(labels))
	if unknownRows == len(d.Class) {
		return "", errors.New(unknownNote)
	}
	if note != "" {
		note += "; "
	}
	return note + unknownNote + ", and count as errors", nil
}

// decodeText returns the text, decoded as Windows-1252 if it is not valid UTF-8. Windows-1252 is Latin-1 with printable
// characters, such as €, in place of most control codes. Distinct texts remain distinct.
func (s *Source) decodeText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	if !s.isWindows1252 {
		s.isWindows1252 = true
		s.report.note("text that is not UTF-8 is read as Latin-1 (Windows-1252)")
	}
	runes := make([]rune, len(text))
	for i := range runes {
		if runes[i] = charmap.Windows1252.DecodeByte(text[i]); runes[i] == utf8.RuneError {
			runes[i] = rune(text[i]) // one of five bytes that have no character, as in Latin-1
		}
	}
	return string(runes)
}

// rowsOfClasses returns the number of rows of each class.
func (d *Dataset) rowsOfClasses() []int {
	rows := make([]int, len(d.Labels))
	for _, class := range d.Class {
		rows[class]++
	}
	return rows
}

// MinorityClass returns the rarer class, 0 or 1, of a problem of two classes, and 1 in a tie. A point of weight 2
// counts as two points.
func (d *Dataset) MinorityClass() int {
	var total [2]float64
	for i, class := range d.Class {
		total[min(class, 1)] += d.Weight(i) // further classes count as class 1
	}
	if total[0] < total[1] {
		return 0
	}
	return 1
}

// WithoutUnusedLabels returns d without the labels that no point has.
func (d *Dataset) WithoutUnusedLabels() *Dataset {
	if d.Class == nil || d.hasAllLabels() {
		return d
	}
	out, newIndex := *d, make([]int, len(d.Labels))
	out.Labels = nil
	for class, rows := range d.rowsOfClasses() {
		if newIndex[class] = len(out.Labels); rows > 0 {
			out.Labels = append(out.Labels, d.Labels[class])
		}
	}
	out.Class = gather(newIndex, d.Class)
	return &out
}

// hasAllLabels reports whether each class has a point.
func (d *Dataset) hasAllLabels() bool { return !slices.Contains(d.rowsOfClasses(), 0) }
