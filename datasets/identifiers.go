package datasets

import (
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// identifierName matches typical names of identifier columns: id, ID, customer_id, PassengerId.
var identifierName = regexp.MustCompile(`^(?i:id|uuid|guid)$|(?i:[ _.-]id)$|[a-z0-9](?:Id|ID)$`)

// isIdentifier reports whether a column probably identifies the rows and is not a feature. Its values, apart from
// missing ones, must be whole numbers. In addition its name must be that of an identifier, or it must have at least ten
// values that are all distinct and cover at least half of their range. Ten and one half are judgments.
func isIdentifier(name string, values iter.Seq[float64]) bool {
	hasIDName := identifierName.MatchString(name)
	// Most columns of whole numbers soon repeat one of their first 100 values. This test avoids areDistinct for them.
	firstValues := map[float64]bool{}
	lo, hi, count := math.Inf(1), math.Inf(-1), 0
	for v := range values {
		if math.IsNaN(v) {
			continue
		}
		if v != math.Trunc(v) || !hasIDName && firstValues[v] {
			return false
		}
		if !hasIDName && len(firstValues) < 100 {
			firstValues[v] = true
		}
		lo, hi, count = min(lo, v), max(hi, v), count+1
	}
	if hasIDName {
		return count > 0
	}
	return count >= 10 && hi-lo+1 <= 2*float64(count) && areDistinct(values, lo, hi)
}

// areDistinct reports whether whole numbers from lo to hi, apart from NaN, are all distinct. It needs hi−lo+1 bytes.
func areDistinct(values iter.Seq[float64], lo, hi float64) bool {
	occurs := make([]bool, int(hi-lo)+1)
	for v := range values {
		if math.IsNaN(v) {
			continue
		}
		if occurs[int(v-lo)] {
			return false
		}
		occurs[int(v-lo)] = true
	}
	return true
}

// identifiers returns the features that are probably identifiers, as --drop names them.
func (t *Table) identifiers() (names []string) {
	for k, j := range t.featureColumns {
		isNumeric := t.columns[j].coder == nil && t.columns[j].faults == nil && !t.isArray
		if name := t.flagName(j); isNumeric && isIdentifier(name, t.featureValues(k)) {
			names = append(names, name)
		}
	}
	return names
}

// IDHint returns a one-line warning that names the features that are probably identifiers, which do not help to predict
// other rows; "" if there are none.
func (d *Dataset) IDHint() string {
	x, ok := d.X.(*points.Dense)
	if !ok || d.Space != nil {
		return ""
	}
	var names, droppedNames []string
	for _, source := range d.SourceColumns() {
		j, name := source.FirstFeature, ""
		column := j
		if d.Columns != nil {
			name = d.Columns[j]
		}
		if source.Coding != nil || !isIdentifier(name, columnValues(x.Data, x.N, x.Stride, j)) {
			continue
		}
		if d.fileColumns != nil {
			column = d.fileColumns[j]
		}
		if names = append(names, d.featureName(j)); isIndex(name) || name == "" || slices.Index(d.Columns, name) != j {
			name = strconv.Itoa(column)
		}
		droppedNames = append(droppedNames, name)
	}
	if names == nil {
		return ""
	}
	return identifierText(names) + " by --drop " + safe.Shell(joinNames(droppedNames))
}

// identifierText is the warning about features that are probably identifiers.
func identifierText(names []string) string {
	verb := " look like identifiers"
	if len(names) == 1 {
		verb = " looks like an identifier"
	}
	return joinLimited(names) + verb + " (whole numbers that all differ, or the name): unless the numbers are times, " +
		"ranks or the like, leave them out"
}
