package datasets

import (
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// identifierName matches names that people give to columns of identifiers: id, ID, customer_id, PassengerId.
var identifierName = regexp.MustCompile(`^(?i:id|uuid|guid)$|(?i:[ _.-]id)$|[a-z0-9](?:Id|ID)$`)

// isIdentifier reports whether a column looks like one that numbers the rows, as no feature does: its values are whole
// numbers, missing ones aside, and its name is that of an identifier, or at least ten values all differ and fill at
// least half of their range.
func isIdentifier(name string, n int, at func(i int) float64) bool {
	named := identifierName.MatchString(name)
	first, lo, hi, count := map[float64]bool{}, math.Inf(1), math.Inf(-1), 0
	for i := range n {
		v := at(i)
		if math.IsNaN(v) {
			continue
		}
		if v != math.Trunc(v) || !named && first[v] {
			return false
		}
		if len(first) < 100 { // most columns of whole numbers repeat one soon
			first[v] = true
		}
		lo, hi, count = min(lo, v), max(hi, v), count+1
	}
	switch {
	case named || count < 10:
		return named && count > 0
	case hi-lo+1 > 2*float64(count):
		return false
	}
	seen := make([]bool, int(hi-lo)+1)
	for i := range n {
		v := at(i)
		if math.IsNaN(v) {
			continue
		}
		if seen[int(v-lo)] {
			return false
		}
		seen[int(v-lo)] = true
	}
	return true
}

// identifiers returns the features that look like identifiers, as --drop takes them.
func (c *Table) identifiers() (names []string) {
	for k, j := range c.keep {
		at := func(i int) float64 { return c.data[i*len(c.keep)+k] }
		if name := c.flagName(j); c.words[j] == nil && c.faults[j] == nil && !c.matrix && isIdentifier(name, c.rows, at) {
			names = append(names, name)
		}
	}
	return names
}

// IDHint says in one line which features look like identifiers of rows, which help to predict none but these; "" if
// none does.
func (d *Dataset) IDHint() string {
	x, ok := d.X.(*points.Dense)
	if !ok {
		return ""
	}
	var names, drop []string
	for j := range x.D {
		name, column := "", j
		if d.Columns != nil {
			name = d.Columns[j]
		}
		if !isIdentifier(name, x.N, func(i int) float64 { return x.Row(i)[j] }) {
			continue
		}
		if d.fileColumns != nil {
			column = d.fileColumns[j]
		}
		if names = append(names, d.feature(j)); isIndex(name) || name == "" || slices.Index(d.Columns, name) != j {
			name = strconv.Itoa(column)
		}
		drop = append(drop, name)
	}
	if names == nil {
		return ""
	}
	return identifierText(names) + " by --drop " + safe.Shell(joinNames(drop))
}

// identifierText says what features that look like identifiers may be.
func identifierText(names []string) string {
	verb := " look like identifiers"
	if len(names) == 1 {
		verb = " looks like an identifier"
	}
	return listed(names) + verb + " (whole numbers that all differ, or the name): unless the numbers are times, ranks or " +
		"the like, leave them out"
}
