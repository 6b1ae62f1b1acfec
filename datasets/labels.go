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
)

// decimal are the numbers of which nothing but the value is read: digits, perhaps an exponent as R writes it.
var decimal = regexp.MustCompile(`^[+-]?\d+(\.0*)?(e[+-]?\d+)?$`)

// maxWhole is the first whole number that not every text of which is told apart by its value: 15 digits are.
const maxWhole = 1e15

// value returns the number that is all that a label says; ok is false where it says more.
func value(text string) (v float64, ok bool) {
	if !decimal.MatchString(text) {
		return 0, false
	}
	digits := strings.TrimLeft(text, "+-")
	v, err := parse(text)
	padded := len(digits) > 1 && digits[0] == '0' && digits[1] != '.'
	return v, err == nil && math.Abs(v) < maxWhole && v == math.Trunc(v) && !padded
}

// setClasses sets Labels, sorted, and Class, and notes which texts are one class. A class has the name that all its rows
// have, or its wordKey if they differ or the labels are all numbers that say nothing but their value.
func (d *Dataset) setClasses(r *Reading, a *answers) {
	name, index, plain := map[string]string{}, map[string]int{}, true
	var merged []string
	for _, text := range a.texts {
		k := wordKey(text)
		_, number := value(text)
		plain = plain && number
		if was := name[k]; was == "" {
			name[k] = text
		} else if was != text {
			if !number || strings.ContainsAny(was+text, "eE") { // nobody asks about 1, +1 and 1.0
				other := text
				if text == k {
					other = was
				}
				merged = append(merged, equalWords(other, k))
			}
			name[k] = k
		}
	}
	if merged != nil {
		r.note("labels taken as equal: %s", listed(merged))
	}
	for k, l := range name {
		if plain {
			l = k
		}
		d.Labels = append(d.Labels, l)
	}
	sortLabels(d.Labels)
	for i, l := range d.Labels {
		index[wordKey(l)] = i
	}
	class := make([]int, len(a.texts))
	for k, text := range a.texts {
		class[k] = index[wordKey(text)]
	}
	d.Class = chosen[int](a.code)(class)
}

// sortLabels sorts by value if all labels are numbers, those of one value by text, and as text otherwise.
func sortLabels(labels []string) {
	values := make(map[string]float64, len(labels))
	for _, l := range labels {
		v, err := parse(l)
		if err != nil || math.IsNaN(v) {
			slices.Sort(labels)
			return
		}
		values[l] = v
	}
	slices.SortFunc(labels, func(a, b string) int {
		return cmp.Or(cmp.Compare(values[a], values[b]), cmp.Compare(a, b))
	})
}

// ClassIn returns for each label of d its place among others, that of the same text, else of the same number, boolean or
// Unicode text, else of the only one that differs in upper and lower case alone, and −1 where there is none.
func (d *Dataset) ClassIn(labels []string) []int {
	index, at := newWordIndex(labels), make([]int, len(d.Labels))
	for i, l := range d.Labels {
		at[i], _ = index.find(l)
		at[i] = max(at[i], noPlace)
	}
	return at
}

// KnownLabels says in one line which labels of d's rows are not among others, in how many rows, and which are taken for
// one that differs in upper and lower case; "" if all are the same. It is an error if not one of the rows has a label
// that is among them.
func (d *Dataset) KnownLabels(labels []string) (note string, err error) {
	index, rows, count := newWordIndex(labels), 0, make([]int, len(d.Labels))
	for _, c := range d.Class {
		count[c]++
	}
	var names, taken []string
	for c, n := range count {
		i, caseDiffers := index.find(d.Labels[c])
		if caseDiffers {
			taken = append(taken, equalWords(d.Labels[c], labels[i]))
		} else if i < 0 && n > 0 {
			names, rows = append(names, d.Labels[c]), rows+n
		}
	}
	if taken != nil {
		note = fmt.Sprintf("%s: labels taken as equal: %s", d.Name, listed(taken))
	}
	if rows == 0 {
		return note, nil
	}
	unknownNote := fmt.Sprintf("%s: the labels %s, of %d of %d rows, are not among the model's %s",
		d.Name, nameList(names), rows, len(d.Class), nameList(labels))
	if rows == len(d.Class) {
		return "", errors.New(unknownNote)
	}
	if note != "" {
		note += "; "
	}
	return note + unknownNote + ", and count as errors", nil
}

// nameList returns names in quotes, as listed does.
func nameList(names []string) string {
	return listed(quoted(names))
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = quote(name)
	}
	return out
}

// listed returns the items of a list, those beyond twenty counted.
func listed(items []string) string {
	const most = 20
	if n := len(items) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), n)
	}
	return strings.Join(items, ", ")
}

// text returns a text that is not UTF-8 as Latin-1, in which every byte is a letter, so that no two become one.
func (s *Source) text(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	if !s.latin {
		s.latin = true
		s.reading.note("text that is not UTF-8 is read as Latin-1")
	}
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}
