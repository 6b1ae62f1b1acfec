package datasets

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
)

// Category is a column of words in a csv file, which is coded by one feature for each of its values: 1 where the column
// has the value, else 0 (one-hot). A missing cell is a value like any other.
type Category struct {
	Column string   `json:"column"`           // a number or a name, as ReadOptions.Target
	Values []string `json:"values,omitempty"` // in the order of the features; nil: those found, sorted
}

// maxCategories is the most values of a column that are coded: more are hardly categories.
const maxCategories = 1000

// category is a Category while the file is read.
type category struct {
	Category
	code map[string]int
}

// sources returns the columns of a file that features were made of, by the names of these, and the category where
// there is one.
func sources(columns []string, categories []Category) (names []string, words []*category) {
	for len(columns) > 0 {
		name, used := columns[0], 1
		var w *category
		for _, k := range categories {
			n := len(k.Values)
			if n == 0 || n > len(columns) {
				continue
			}
			base, ok := strings.CutSuffix(columns[0], "="+k.Values[0])
			for i, v := range k.Values {
				ok = ok && columns[i] == base+"="+v
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
	w := &category{k, map[string]int{}}
	for i, v := range k.Values {
		w.code[v] = i
	}
	return w
}

// of returns the number of a value, counted as they come where they are not known before; −1 for an unknown one.
func (w *category) of(value string) (int, error) {
	i, ok := w.code[value]
	if ok {
		return i, nil
	}
	if w.Values != nil {
		return -1, nil
	}
	i = len(w.code)
	if i == maxCategories {
		return 0, fmt.Errorf("the column has more than %d different values: leave it out by --drop", maxCategories)
	}
	w.code[strings.Clone(value)] = i
	return i, nil
}

// coded sets the points and names with a feature for each value of the categorical columns, whose numbers c.data has,
// and what d holds about them.
func (c *csvReader) coded(d *Dataset) error {
	if !c.wordy {
		return nil
	}
	wide, names := 0, []string{}
	add := func(name string) {
		wide, names = wide+1, append(names, name)
	}
	place := make([]map[float64]int, len(c.keep)) // the feature of each value of a column; nil for numbers
	start := make([]int, len(c.keep))
	for k, j := range c.keep {
		name := ""
		if d.Columns != nil {
			name = d.Columns[k]
		}
		w := c.words[j]
		if start[k] = wide; w == nil {
			add(name)
			continue
		}
		if w.Values == nil {
			w.Values = slices.Sorted(maps.Keys(w.code))
		}
		place[k] = map[float64]int{}
		for _, v := range w.Values {
			place[k][float64(w.code[v])] = wide
			add(name + "=" + v)
		}
	}
	if err := c.s.take(8*c.rows*wide, c.rows); err != nil {
		return err
	}
	x := points.NewDense(c.rows, wide, nil)
	for i := range c.rows {
		for k, v := range c.data[i*len(c.keep) : (i+1)*len(c.keep)] {
			switch {
			case place[k] == nil:
				x.Row(i)[start[k]] = v
			case v >= 0:
				x.Row(i)[place[k][v]] = 1
			default:
				d.Unknown++
			}
		}
	}
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
