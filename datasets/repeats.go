package datasets

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// RowKind is a kind of rows outside the fit on which an error is measured. Errors on different kinds differ: rows of
// new groups, for instance, may be harder to predict than further rows of known groups.
type RowKind string

// The kinds of rows.
const (
	RowKindNew         RowKind = "new row"   // a row of the same distribution; its features may be those of a row of the fit
	RowKindNewFeatures RowKind = "new cell"  // a row whose features no row of the fit has
	RowKindNewGroup    RowKind = "new group" // a row of a group (ReadOptions.Groups) without rows in the fit
	RowKindCopy        RowKind = "new copy"  // a row that may be a copy of a row of the fit
)

// Description describes the rows in words; it is "" for an unknown kind.
func (k RowKind) Description() string {
	return map[RowKind]string{RowKindNew: "new rows", RowKindNewFeatures: "rows whose features are new",
		RowKindNewGroup: "rows of new groups", RowKindCopy: "rows whose copies the fit may have"}[k]
}

// Repeats describes which rows of a data set form groups, and why. The rows of a group are always in the same part of a
// split, and are left out together.
type Repeats struct {
	Rule         string  `json:"rule"`            // auto, together, apart (Dataset.GroupByRule) or groups (GroupBy)
	RowKind      RowKind `json:"question"`        // rows on which an error is measured: all kinds but RowKindCopy
	OtherRowKind RowKind `json:"other,omitempty"` // a second kind, whose error may differ; "" if there is none
	Repeated     int     `json:"repeated"`        // number of rows with the features of an earlier row
	Grouped      int     `json:"grouped"`         // number of rows in the group of an earlier row
	Reason       string  `json:"why,omitempty"`   // reason for the decision
}

// String describes the decision in one line; "" if no two rows have equal features or are in one group.
func (r *Repeats) String() string {
	if r == nil || r.Repeated+r.Grouped == 0 {
		return ""
	}
	text := fmt.Sprintf("%d rows repeat the features of an earlier one: ", r.Repeated)
	switch {
	case r.RowKind == RowKindNewGroup && r.Grouped > 0:
		return fmt.Sprintf("%d rows are in the group of an earlier one: rows of one group stay together", r.Grouped)
	case r.RowKind == RowKindNewGroup:
		return text + "they are of different groups"
	case r.RowKind == RowKindNewFeatures:
		return text + "they stay together (--repeats together)"
	case r.Grouped > 0:
		return text + fmt.Sprintf("%d are copies and stay together, as %s", r.Grouped, r.Reason)
	case r.Rule == "apart":
		return text + "they count as new rows (--repeats apart)"
	}
	return text + "they count as new rows, as " + r.Reason
}

// Grouping has the group of each row of a data set, and the reason for the groups. A group is identified by its first
// row.
type Grouping struct {
	Repeats
	FirstRow []int // for each row, the first row of its group
	// OtherFirstRow is the same for the groups that have to be left out together to measure an error on rows of the
	// kind OtherRowKind; nil if there is no such kind.
	OtherFirstRow []int
}

// Grouping returns the groups of the rows of d, which are formed by the rule auto if no rule was applied. firstEqual[i]
// is the first row with the features of row i; a nil firstEqual stands for points.FirstEqual(d.X).
func (d *Dataset) Grouping(firstEqual []int) *Grouping {
	n := d.Len()
	singletons := make([]int, n) // each row is its own group
	for i := range singletons {
		singletons[i] = i
	}
	d = d.WithGroups(firstEqual)
	g := &Grouping{Repeats: *d.Repeats, FirstRow: singletons}
	if g.Repeated+g.Grouped == 0 {
		return g
	}
	if d.Groups != nil {
		g.FirstRow = firstEqualIndex(d.Groups)
	}
	if firstEqual == nil {
		firstEqual = points.FirstEqual(d.X)
	}
	g.Repeated, g.Grouped = points.CountRepeated(firstEqual), points.CountRepeated(g.FirstRow)
	switch {
	case g.RowKind == RowKindNew && !slices.Equal(g.FirstRow, firstEqual): // some rows of equal features are no copies
		if g.Repeated < n-1 { // otherwise no row is left for the prediction of new features
			g.OtherRowKind, g.OtherFirstRow = RowKindNewFeatures, firstEqual
		}
	case g.Grouped > 0 && g.RowKind == RowKindNew: // all rows of equal features are copies
		g.OtherRowKind, g.OtherFirstRow = RowKindCopy, singletons
	case g.Grouped > 0: // RowKindNewFeatures or RowKindNewGroup
		g.OtherRowKind, g.OtherFirstRow = RowKindNew, singletons
	}
	return g
}

// SplitByKind returns firstRows as equalRows if all rows of a group have equal features, and as groups if they may have
// different features (GroupBy). The other result is nil. firstRows[i] is the first row of the group of row i.
func (g *Grouping) SplitByKind(firstRows []int) (equalRows, groups []int) {
	if g.RowKind == RowKindNewGroup && points.CountRepeated(firstRows) > 0 {
		return nil, firstRows
	}
	return firstRows, nil
}

// GroupByRule returns d with groups of its rows that are formed by a rule:
//
//	auto      copies of a record are a group, if they can be distinguished from independent rows of equal features
//	together  rows of equal features are a group
//	apart     each row is a group
//
// firstEqual is as in Grouping. GroupByRule returns an error for any other rule.
func (d *Dataset) GroupByRule(rule string, firstEqual []int) (*Dataset, error) {
	if err := requireOneOf("rule for repeats", rule, []string{"auto", "together", "apart"}); err != nil {
		return nil, err
	}
	out := *d
	out.Groups, out.Repeats = groupRows(rule, firstEqual, d)
	out.unusedHashes = nil
	return &out, nil
}

// GroupBy returns d with the given groups: groups[i] is the number of the group of row i.
func (d *Dataset) GroupBy(groups []int) *Dataset {
	out := *d
	out.Groups, out.unusedHashes = groups, nil
	out.Repeats = &Repeats{Rule: "groups", RowKind: RowKindNewGroup,
		Repeated: points.CountRepeated(points.FirstEqual(d.X)), Grouped: points.CountRepeated(firstEqualIndex(groups))}
	if out.Repeats.Grouped == 0 {
		out.Groups = nil
	}
	return &out
}

// WithGroups returns d, with groups formed by the rule auto if neither a rule nor groups were given. firstEqual is as
// in Grouping.
func (d *Dataset) WithGroups(firstEqual []int) *Dataset {
	switch {
	case d.Repeats != nil:
		return d
	case d.Groups != nil:
		return d.GroupBy(d.Groups)
	}
	d, _ = d.GroupByRule("auto", firstEqual) // auto is a known rule, so there is no error
	return d
}

// Overlap returns the number of rows of d that are in the group of a row of train or of an earlier row of d. If both
// are parts of one data set, the groups are those of the whole data set; otherwise they are formed by the rule of
// train.
func (d *Dataset) Overlap(train *Dataset) int {
	if d.Repeats != nil && d.Repeats == train.Repeats { // only parts of one data set share the pointer
		groups := slices.Concat(train.Groups, d.Groups)
		if len(groups) == 0 {
			return 0
		}
		return points.CountRepeated(firstEqualIndex(groups)) - points.CountRepeated(firstEqualIndex(train.Groups))
	}
	rule := "auto"
	if train.Repeats != nil && train.Repeats.Rule != "groups" {
		rule = train.Repeats.Rule
	}
	groups, _ := groupRows(rule, nil, train, d)
	count := 0
	for i, first := range firstEqualIndex(groups) {
		if i >= train.Len() && first != i {
			count++
		}
	}
	return count
}

// Limits of the evidence that rows are copies. They are judgments, checked by the tables of TestCopies. A record and
// a key are defined at findCopies.
const (
	// maxMixedShare is the largest share of the sets of rows with equal features that may have several records, so that
	// answers of equal features still count as equal.
	maxMixedShare = 0.05
	// minDistinctShare is the smallest ratio of the number of distinct keys to the number of records at which a key
	// determines the record. A larger value finds fewer copies.
	minDistinctShare = 0.95
	// maxRowsPerKey is the largest average number of rows with the same key at which a key determines the record. A
	// larger value finds more copies.
	maxRowsPerKey = 8
	// maxRowsPerValue is the same limit if the key is a single feature and there are no other features.
	maxRowsPerValue = 2
	// maxRareRows is the largest number of rows of a record that is never taken for a frequent value.
	maxRareRows = 3
	// minDivisorRecords is the smallest number of records for which a common divisor of their row counts is evidence.
	minDivisorRecords = 8
)

// groupRows returns the group of each row of all sets by a rule, or nil if each row is its own group, and the
// description of the decision.
func groupRows(rule string, firstEqual []int, sets ...*Dataset) ([]int, *Repeats) {
	if firstEqual == nil {
		firstEqual = points.FirstEqual(pointsOf(sets)...)
	}
	r := &Repeats{Rule: rule, RowKind: RowKindNew, Repeated: points.CountRepeated(firstEqual)}
	var groups []int
	switch {
	case r.Repeated == 0:
	case rule == "together":
		r.RowKind, groups = RowKindNewFeatures, firstEqual
	case rule == "auto":
		groups, r.Reason = findCopies(firstEqual, sets)
	}
	r.Grouped = points.CountRepeated(groups)
	return groups, r
}

// pointsOf returns the points of each set.
func pointsOf(sets []*Dataset) (x []points.Points) {
	for _, d := range sets {
		x = append(x, d.X)
	}
	return x
}

// findCopies returns the groups of rows that are copies of one record, and the reason. The groups are nil if rows of
// equal features are independent.
//
// A record consists of the features, answers and weight of a row. A key is a part of these values, or a column that is
// not a feature. Rows of one record are taken for copies if its values are so rare that independent rows would not
// share them by chance, which is the case if some key determines the record: the key distinguishes nearly all records,
// and few rows share it. The keys are the first and the last half of the features, and the columns that are not
// features. If rows of equal features have different answers, the features cannot determine the record, and the key is
// the answers. Rows are also taken for copies if the number of rows of every record is a multiple of g > 1; then the
// groups have g rows each. firstEqual is the argument of Grouping.
func findCopies(firstEqual []int, sets []*Dataset) (groups []int, reason string) {
	answers := answersOf(sets)
	records := firstOfPairs(firstEqual, answers)
	if points.CountRepeated(records) == 0 {
		return nil, "no two have equal answers"
	}
	n, dim := len(firstEqual), sets[0].Dim()
	// determines reports whether a key determines the records. key[i] is the first row with the key of row i, and
	// maxRows is the largest accepted average number of rows with the same key.
	determinesRecords := func(key, records []int, maxRows int) bool {
		distinctKeys := n - points.CountRepeated(key)
		distinguishes := float64(distinctKeys) >= minDistinctShare*float64(n-points.CountRepeated(records))
		return distinguishes && maxRows*distinctKeys >= n && !hasDominantRecord(records)
	}
	// equalInColumns returns for each row the first row with equal features lo, …, hi−1.
	equalInColumns := func(lo, hi int) []int { return points.FirstEqualColumns(lo, hi, pointsOf(sets)...) }
	answersDiffer := mixedShare(firstEqual, records) > maxMixedShare
	switch {
	case answersDiffer && determinesRecords(answers, records, maxRowsPerKey):
		return records, "their answers are equal, and rare"
	case answersDiffer: // no part of the features determines the record
	case dim == 1 && determinesRecords(firstEqual, records, maxRowsPerValue),
		dim > 1 && (determinesRecords(equalInColumns(0, dim/2), records, maxRowsPerKey) ||
			determinesRecords(equalInColumns(dim-dim/2, dim), records, maxRowsPerKey)):
		return records, "half of the features determine the others and the answers"
	}
	// Rows that differ in a column that is not a feature are different records.
	extended := records
	for _, column := range sets[0].unusedHashes {
		extended = firstOfPairs(extended, firstEqualIndex(column))
	}
	for _, column := range sets[0].unusedHashes {
		if points.CountRepeated(extended) > 0 && determinesRecords(firstEqualIndex(column), extended, maxRowsPerKey) {
			return extended, "a column that is left out determines the record"
		}
	}
	if g := commonDivisor(extended); g > 1 {
		return splitGroups(extended, g), fmt.Sprintf("all records are there a multiple of %d times", g)
	}
	if answersDiffer {
		return nil, "answers of equal features differ"
	}
	return nil, "they have few values"
}

// hasDominantRecord reports whether a single frequent record, such as one of zeros, accounts for most of the repeated
// rows.
func hasDominantRecord(records []int) bool {
	largest := slices.Max(groupSizes(records))
	return largest > maxRareRows && 2*(largest-1) > points.CountRepeated(records)
}

// mixedShare returns the share of mixed sets. A set consists of several rows with equal features; it is mixed if it has
// several records.
func mixedShare(firstEqual, records []int) float64 {
	rows, recordCount := groupSizes(firstEqual), make([]int, len(firstEqual))
	for i, first := range records {
		if first == i {
			recordCount[firstEqual[i]]++
		}
	}
	var repeatedSets, mixedSets float64
	for first, count := range rows {
		if count > 1 {
			repeatedSets++
		}
		if recordCount[first] > 1 {
			mixedSets++
		}
	}
	return mixedSets / max(repeatedSets, 1)
}

// commonDivisor returns the greatest common divisor of the numbers of rows of the records, or 1 if there are few
// records.
func commonDivisor(records []int) (g int) {
	if len(records)-points.CountRepeated(records) < minDivisorRecords {
		return 1
	}
	for _, b := range groupSizes(records) { // by Euclid's algorithm, with gcd(0, b) = b
		for a := g; ; a, b = b, a%b {
			if b == 0 {
				g = a
				break
			}
		}
	}
	return g
}

// splitGroups splits each group into groups of g consecutive rows of the group.
func splitGroups(groups []int, g int) []int {
	out, count, currentFirst := make([]int, len(groups)), make([]int, len(groups)), make([]int, len(groups))
	for i, first := range groups {
		if count[first]%g == 0 {
			currentFirst[first] = i
		}
		count[first]++
		out[i] = currentFirst[first]
	}
	return out
}

// groupSizes returns the number of rows of each group, at the index of its first row; other entries are 0.
func groupSizes(firstRows []int) []int {
	sizes := make([]int, len(firstRows))
	for _, first := range firstRows {
		sizes[first]++
	}
	return sizes
}

// firstEqualIndex returns for each value the index of the first value that is equal to it.
func firstEqualIndex[T comparable](values []T) []int {
	firstIndex, out := map[T]int{}, make([]int, len(values))
	for i, v := range values {
		if _, exists := firstIndex[v]; !exists {
			firstIndex[v] = i
		}
		out[i] = firstIndex[v]
	}
	return out
}

// firstOfPairs returns for each row the first row that is equal to it in both a and b.
func firstOfPairs(a, b []int) []int {
	combined := make([][2]int, len(a))
	for i := range a {
		combined[i] = [2]int{a[i], b[i]}
	}
	return firstEqualIndex(combined)
}

// answersOf returns for each row of the sets the first row with equal answers and weight. Answers and weights that some
// of the sets lack are not compared.
func answersOf(sets []*Dataset) []int {
	var weights, classes []float64
	targets, rows := map[int][]float64{}, 0
	for _, d := range sets {
		rows += d.Len()
		weights = append(weights, d.Weights...)
		classIn := d.ClassIn(sets[0].Labels)
		for _, class := range d.Class {
			classOfFirst := classIn[class]
			if classOfFirst < 0 { // a label that the first set lacks gets a number that no label of the first set has
				classOfFirst = -1 - class
			}
			classes = append(classes, float64(classOfFirst))
		}
		for j, y := range d.TargetColumns() {
			targets[j] = append(targets[j], y...)
		}
	}
	out := make([]int, rows)
	for _, values := range append(slices.Collect(maps.Values(targets)), classes, weights) {
		if len(values) == len(out) {
			out = firstOfPairs(out, firstEqualIndex(values))
		}
	}
	return out
}

// columnHashes hashes the cells of a column that is not a feature, and detects whether they are consecutive numbers,
// which merely count the rows.
type columnHashes struct {
	seed         maphash.Seed
	values       []uint64 // hash of each cell
	previous     float64  // number in the previous cell
	isNotCounter bool     // the cells are not consecutive numbers n, n+1, n+2, …
}

// add adds the cell of the next row.
func (h *columnHashes) add(text string) {
	v, err := parseNumber(text)
	h.isNotCounter = h.isNotCounter || err != nil || len(h.values) > 0 && v != h.previous+1
	h.previous = v
	h.values = append(h.values, maphash.String(h.seed, text))
}
