package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Category is a column of words or dates in a csv file that features are made of. Words are coded by one feature for each
// value: 1 where the column has the value, else 0 (one-hot). A missing word is a value like any other.
type Category struct {
	Column string   `json:"column"`           // a number or a name, as ReadOptions.Target
	Values []string `json:"values,omitempty"` // in the order of the features; nil: those found, sorted
	Dates  *Dates   `json:"dates,omitempty"`  // the column has dates, and no words
}

// suffixes returns what the names of the features end with, after the name of the column; none while they are not known.
func (k *Category) suffixes() (all []string) {
	if k.Dates != nil {
		return k.Dates.suffixes()
	}
	for _, v := range k.Values {
		all = append(all, "="+v)
	}
	return all
}

func isWords(k Category) bool { return k.Dates == nil }

// UnknownWords are words of a categorical column that have no feature, with the number of rows of each.
type UnknownWords struct {
	Column string
	Words  []LabelCount
}

// maxCategories is the most values of a column that are coded: more are hardly categories.
const maxCategories = 1000

// category is a Category while the file is read.
type category struct {
	Category
	code    map[string]int    // of the texts that were met
	index   *wordIndex        // of Values; nil while they are being found
	keys    map[string]int    // codes of the values found, by wordKey
	names   []string          // of the values found: their text, or the wordKey of several texts
	gap     int               // the only one of Values that stands for a missing cell, noPlace without one
	taken   map[string]string // texts that differ from the value that they are taken for
	unknown map[string]int    // rows of words that are not among Values
	known   bool              // a row has one of Values
	dates   *dateReader       // of a column of dates
}

// sources returns the columns of a file that features were made of, by the names of these, and the category where
// there is one.
func sources(columns []string, categories []Category) (names []string, words []*category) {
	for len(columns) > 0 {
		name, used := columns[0], 1
		var w *category
		for _, k := range categories {
			suffixes := k.suffixes()
			n := len(suffixes)
			if n == 0 || n > len(columns) {
				continue
			}
			base, ok := strings.CutSuffix(columns[0], suffixes[0])
			for i, suffix := range suffixes {
				ok = ok && columns[i] == base+suffix
			}
			if ok {
				name, used, w = base, n, newCategory(k)
				break
			}
		}
		names, words, columns = append(names, name), append(words, w), columns[used:]
	}
	return names, words
}

func newCategory(k Category) *category {
	w := &category{Category: k, code: map[string]int{}, keys: map[string]int{}, gap: noPlace,
		taken: map[string]string{}, unknown: map[string]int{}}
	if k.Dates != nil {
		w.dates = &dateReader{Dates: *k.Dates, fixed: k.Dates.Form != ""}
		w.Dates = &w.dates.Dates
	}
	if k.Values == nil {
		return w
	}
	w.index = newWordIndex(k.Values)
	for i, v := range k.Values {
		if isMissing(v) && w.gap == noPlace {
			w.gap = i
		} else if isMissing(v) {
			w.gap = severalPlaces
		}
	}
	return w
}

// of returns the number of a value, counted as they come where they are not known before; −1 for an unknown one. It is
// that of dateReader for dates.
func (w *category) of(text string) (float64, error) {
	if w.dates != nil {
		return w.dates.read(text)
	}
	i, ok := w.code[text]
	if !ok {
		if i = w.find(text); i == maxCategories {
			return 0, fmt.Errorf("the column has more than %d different values: leave it out by --drop", maxCategories)
		}
		if i >= 0 && len(w.code) < 2*maxCategories {
			w.code[strings.Clone(text)] = i
		}
	}
	if w.known = w.known || i >= 0; i < 0 && (w.unknown[text] > 0 || len(w.unknown) < maxCategories) {
		w.unknown[strings.Clone(text)]++
	}
	return float64(max(i, noPlace)), nil
}

// find returns the number of a text that was not met before.
func (w *category) find(text string) (i int) {
	if w.index == nil {
		key := wordKey(text)
		i, ok := w.keys[key]
		if !ok {
			i = len(w.names)
			w.keys[key], w.names = i, append(w.names, strings.Clone(text))
		} else if w.names[i] != text {
			w.taken[strings.Clone(text)] = key
			w.taken[w.names[i]] = key
			w.names[i] = key
		}
		return i
	}
	if i, _ = w.index.find(text); i < 0 && isMissing(text) {
		i = w.gap
	}
	if i >= 0 && w.Values[i] != text {
		w.taken[strings.Clone(text)] = w.Values[i]
	}
	return i
}

// settle sets Values where they were to be found, and returns the place of each number among them.
func (w *category) settle() (place []int) {
	if w.index == nil {
		w.Values = slices.Sorted(slices.Values(w.names))
	}
	place = make([]int, max(len(w.names), len(w.Values)))
	for i := range place {
		place[i] = i
		if w.index == nil {
			place[i], _ = slices.BinarySearch(w.Values, w.names[i])
		}
	}
	return place
}

// report notes which texts are taken for others, and returns the words that are unknown, the most frequent first. It is
// an error if no row has a word that is known.
func (w *category) report(r *Reading, column string) (u UnknownWords, err error) {
	var taken []string
	for text, v := range w.taken {
		if norm.NFC.String(text) != norm.NFC.String(v) { // else they look the same
			taken = append(taken, equalWords(text, v))
		}
	}
	if slices.Sort(taken); taken != nil {
		r.note("words taken as equal in %s: %s", column, listed(taken))
	}
	u.Column = column
	for text, n := range w.unknown {
		u.Words = append(u.Words, LabelCount{text, n})
	}
	slices.SortFunc(u.Words, func(a, b LabelCount) int { return cmp.Or(b.Rows-a.Rows, strings.Compare(a.Label, b.Label)) })
	if u.Words == nil || w.known {
		return u, nil
	}
	return u, fmt.Errorf("no row has a word that the training data have in this column, in %v; they have %s: write the "+
		"words as there, or fit again with rows that have them", u, nameList(w.Values))
}

// String names the column, and its words with their rows.
func (u UnknownWords) String() string {
	var each []string
	for _, w := range u.Words {
		each = append(each, fmt.Sprintf("%s (%d)", quote(w.Label), w.Rows))
	}
	return fmt.Sprintf("%s: %s", u.Column, listed(each))
}

// settleColumn decides what is open about column j, the k-th of the features, notes what was taken for what, and returns
// the function that sets the features of a row by the number of its cell.
func (c *Table) settleColumn(d *Dataset, j, k int) (put func(row []float64, v float64), err error) {
	w := c.words[j]
	if w.dates != nil {
		err := w.dates.settle(func(each func(code float64)) {
			for i := range c.rows {
				if v := c.data[i*len(c.keep)+k]; !math.IsNaN(v) {
					each(v)
				}
			}
		})
		if err == nil && (!w.dates.fixed || w.dates.orderIsNew || w.dates.timesLeftOut) {
			c.read.note("%s: %v", c.name(j), w.dates)
		}
		return w.Dates.put, err
	}
	place := w.settle()
	u, err := w.report(c.read, c.name(j))
	if u.Words != nil {
		d.Unknown = append(d.Unknown, u)
	}
	return func(row []float64, v float64) {
		if v >= 0 {
			row[place[int(v)]] = 1
		}
	}, err
}

// coded sets the points and names with the features of the columns of words and dates, whose numbers c.data has, and
// what d holds about them.
func (c *Table) coded(d *Dataset) error {
	if !c.wordy {
		return nil
	}
	wide, names, fileColumns := 0, []string{}, []int{}
	add := func(name string, column int) {
		wide, names, fileColumns = wide+1, append(names, name), append(fileColumns, column)
	}
	put := make([]func(row []float64, v float64), len(c.keep)) // nil for numbers
	start := make([]int, len(c.keep))
	for k, j := range c.keep {
		name := ""
		if d.Columns != nil {
			name = d.Columns[k]
		}
		w := c.words[j]
		if start[k] = wide; w == nil {
			add(name, j)
			continue
		}
		var err error
		if put[k], err = c.settleColumn(d, j, k); err != nil {
			return c.cellFault(0, j, err)
		}
		for _, suffix := range w.suffixes() {
			add(name+suffix, j)
		}
	}
	if err := c.s.take(8*c.rows*wide, c.rows); err != nil {
		return err
	}
	x := points.NewDense(c.rows, wide, nil)
	for i := range c.rows {
		for k, v := range c.data[i*len(c.keep) : (i+1)*len(c.keep)] {
			if put[k] == nil {
				x.Row(i)[start[k]] = v
			} else {
				put[k](x.Row(i)[start[k]:], v)
			}
		}
	}
	d.fileColumns = fileColumns
	if d.X = x; d.Columns != nil {
		d.Columns = names
	}
	for _, k := range c.o.Categorical { // in the order they were given
		for _, w := range c.words {
			if w != nil && w.Column == k.Column {
				d.Categories = append(d.Categories, w.Category)
			}
		}
	}
	return nil
}
