package datasets

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// The questions that an error on rows outside the fit answers.
const (
	NewRow   = "new row"   // the row is drawn as those of the fit, and may have the features of one
	NewCell  = "new cell"  // no row of the fit has its features
	NewGroup = "new group" // no row of the fit is of its group (ReadOptions.Groups)
	NewCopy  = "new copy"  // the row may be a copy of one of the fit
)

// Repeats says which rows of data belong to one group, and why. The rows of a group are on one side of every split,
// and are left out together.
type Repeats struct {
	Rule     string `json:"rule"`            // auto, together, apart (Dataset.Group) or groups (Dataset.GroupBy)
	Question string `json:"question"`        // that an error answers: NewRow, NewCell or NewGroup
	Other    string `json:"other,omitempty"` // a second question, whose answer may differ; "" if there is none
	Repeated int    `json:"repeated"`        // rows with the features of an earlier row
	Grouped  int    `json:"grouped"`         // rows in the group of an earlier row
	Why      string `json:"why,omitempty"`
}

// String says in one line what was decided; "" if no row has the features or the group of another.
func (r *Repeats) String() string {
	if r == nil || r.Repeated+r.Grouped == 0 {
		return ""
	}
	text := fmt.Sprintf("%d rows repeat the features of an earlier one: ", r.Repeated)
	switch {
	case r.Question == NewGroup:
		return text + "rows of one group stay together"
	case r.Question == NewCell:
		return text + "they stay together (--repeats together)"
	case r.Grouped > 0:
		return text + fmt.Sprintf("%d are copies and stay together, as %s", r.Grouped, r.Why)
	case r.Rule == "apart":
		return text + "they count as new rows (--repeats apart)"
	}
	return text + "they count as new rows, as " + r.Why
}

// OfQuestion names the rows that an error is of, by the question that it answers.
func OfQuestion(question string) string {
	return map[string]string{NewRow: "new rows", NewCell: "rows whose features are new",
		NewGroup: "rows of new groups", NewCopy: "rows whose copies the fit may have"}[question]
}

// Grouping is the groups of the rows of a data set.
type Grouping struct {
	Repeats
	First  []int // for each row the first row of its group
	Others []int // the same by the question Other; nil if there is none
}

// Grouping returns the groups of d's rows, by the rule auto if none was applied. cells has for each row the first row
// of equal features; nil stands for points.FirstEqual(d.X).
func (d *Dataset) Grouping(cells []int) *Grouping {
	n := d.Len()
	alone := make([]int, n)
	for i := range alone {
		alone[i] = i
	}
	d = d.decided(cells)
	g := &Grouping{Repeats: *d.Repeats, First: alone}
	if g.Repeated+g.Grouped == 0 {
		return g
	}
	if d.Groups != nil {
		g.First = firstOf(d.Groups)
	}
	if cells == nil {
		cells = points.FirstEqual(d.X)
	}
	g.Repeated, g.Grouped = points.CountRepeated(cells), points.CountRepeated(g.First)
	switch {
	case g.Question == NewRow && !slices.Equal(g.First, cells):
		g.Other, g.Others = NewCell, cells
	case g.Grouped > 0 && g.Question == NewRow:
		g.Other, g.Others = NewCopy, alone
	case g.Grouped > 0:
		g.Other, g.Others = NewRow, alone
	}
	return g
}

// Equal returns first as the groups of equal rows, or as those of rows that need not be equal (GroupBy).
func (g *Grouping) Equal(first []int) (equal, other []int) {
	if g.Question == NewGroup && points.CountRepeated(first) > 0 {
		return nil, first
	}
	return first, nil
}

// Group returns d with the groups of its rows by a rule:
//
//	auto      copies of a record are a group, as far as they can be told from independent rows of equal features
//	together  rows of equal features are a group
//	apart     each row is a group
//
// cells is as for Grouping. It returns an error for another rule.
func (d *Dataset) Group(rule string, cells []int) (*Dataset, error) {
	if err := known("rule for repeats", rule, []string{"auto", "together", "apart"}); err != nil {
		return nil, err
	}
	out := *d
	out.Groups, out.Repeats = group(rule, cells, d)
	out.unused = nil
	return &out, nil
}

// GroupBy returns d with the groups whose numbers are given, one for each row.
func (d *Dataset) GroupBy(groups []int) *Dataset {
	out := *d
	out.Groups, out.unused = groups, nil
	out.Repeats = &Repeats{Rule: "groups", Question: NewGroup, Repeated: points.CountRepeated(points.FirstEqual(d.X)),
		Grouped: points.CountRepeated(firstOf(groups))}
	if out.Repeats.Grouped == 0 {
		out.Groups = nil
	}
	return &out
}

// Decided returns d, with its groups by the rule auto if neither a rule nor groups were given.
func (d *Dataset) Decided() *Dataset { return d.decided(nil) }

func (d *Dataset) decided(cells []int) *Dataset {
	switch {
	case d.Repeats != nil:
		return d
	case d.Groups != nil:
		return d.GroupBy(d.Groups)
	}
	d, _ = d.Group("auto", cells) // a known rule
	return d
}

// Overlap returns how many rows of d are in the group of a row of train or of an earlier row of d. The groups are those
// of the split if both are parts of one data set, else those of train's rule applied to both.
func (d *Dataset) Overlap(train *Dataset) int {
	if d.Repeats != nil && d.Repeats == train.Repeats {
		groups := slices.Concat(train.Groups, d.Groups)
		if len(groups) == 0 {
			return 0
		}
		return points.CountRepeated(firstOf(groups)) - points.CountRepeated(firstOf(train.Groups))
	}
	rule := "auto"
	if train.Repeats != nil && train.Repeats.Rule != "groups" {
		rule = train.Repeats.Rule
	}
	groups, _ := group(rule, nil, train, d)
	count := 0
	for i, first := range firstOf(groups) {
		if i >= train.Len() && first != i {
			count++
		}
	}
	return count
}

// The limits of the evidence for copies: see copies.
const (
	mostMixed   = 0.05 // share of repeated cells whose answers differ, up to which these are exceptions
	pinned      = 0.95 // share of the records that values tell apart, from which on they determine the record
	fewEach     = 8    // rows of a record on average, up to which a half of the features may determine it
	fewAlone    = 2    // the same for a single feature
	mostUsual   = 3    // rows up to which a record is no frequent value
	leastFactor = 8    // records that a common divisor of their counts needs
)

// group returns the group of each row of all sets by a rule, nil if each is alone, and what was decided.
func group(rule string, cells []int, sets ...*Dataset) ([]int, *Repeats) {
	if cells == nil {
		var x []points.Points
		for _, d := range sets {
			x = append(x, d.X)
		}
		cells = points.FirstEqual(x...)
	}
	r := &Repeats{Rule: rule, Question: NewRow, Repeated: points.CountRepeated(cells)}
	var groups []int
	switch {
	case r.Repeated == 0:
	case rule == "together":
		r.Question, groups = NewCell, cells
	case rule == "auto":
		groups, r.Why = copies(cells, sets)
	}
	r.Grouped = points.CountRepeated(groups)
	return groups, r
}

// copies returns the groups of rows that are copies of one record, nil if rows of equal features are independent, and
// the reason.
//
// A record is a row's features, answers and weight. Rows of one record are copies if its values are so rare that
// independent rows do not share them by chance: a part of them (the first or the last half of the features or, where
// answers of equal features differ, the answers; or a column that is no feature) tells nearly all records apart, and
// the records are not few. They are copies, too, if all records are there a multiple of g > 1 times, in groups of g.
func copies(cells []int, sets []*Dataset) (groups []int, why string) {
	answers := answersOf(sets)
	records := pairs(cells, answers)
	if points.CountRepeated(records) == 0 {
		return nil, "no two have equal answers"
	}
	n, dim := len(cells), sets[0].Dim()
	tells := func(part, records []int, few int) bool {
		count := n - points.CountRepeated(part)
		return float64(count) >= pinned*float64(n-points.CountRepeated(records)) && few*count >= n && !dominated(records)
	}
	half := func(lo, hi int) []int {
		var x []points.Points
		for _, d := range sets {
			x = append(x, d.X)
		}
		return points.FirstEqualColumns(lo, hi, x...)
	}
	differ := mixed(cells, records) > mostMixed
	switch {
	case differ && tells(answers, records, fewEach):
		return records, "their answers are equal, and rare"
	case differ:
	case dim == 1 && tells(cells, records, fewAlone),
		dim > 1 && (tells(half(0, dim/2), records, fewEach) || tells(half(dim-dim/2, dim), records, fewEach)):
		return records, "half of the features determine the others and the answers"
	}
	all := records
	for _, column := range sets[0].unused {
		all = pairs(all, firstOf(column))
	}
	for _, column := range sets[0].unused {
		if points.CountRepeated(all) > 0 && tells(firstOf(column), all, fewEach) {
			return all, "a column that is left out determines the record"
		}
	}
	if g := divisor(all); g > 1 {
		return parts(all, g), fmt.Sprintf("all records are there a multiple of %d times", g)
	}
	if differ {
		return nil, "answers of equal features differ"
	}
	return nil, "they have few values"
}

// dominated reports whether one frequent record makes up most of the repeats, such as that of zeros.
func dominated(records []int) bool {
	most := slices.Max(counts(records))
	return most > mostUsual && 2*(most-1) > points.CountRepeated(records)
}

// mixed returns the share of cells of several rows that have several records.
func mixed(cells, records []int) float64 {
	rows, kinds := counts(cells), make([]int, len(cells))
	for i, first := range records {
		if first == i {
			kinds[cells[i]]++
		}
	}
	var several, differ float64
	for c, count := range rows {
		if count > 1 {
			several++
		}
		if kinds[c] > 1 {
			differ++
		}
	}
	return differ / max(several, 1)
}

// divisor returns the greatest common divisor of the numbers of rows of the records, 1 if the records are few.
func divisor(records []int) (g int) {
	if len(records)-points.CountRepeated(records) < leastFactor {
		return 1
	}
	for _, b := range counts(records) {
		for a := g; ; a, b = b, a%b {
			if b == 0 {
				g = a
				break
			}
		}
	}
	return g
}

// parts divides each group into groups of g rows.
func parts(groups []int, g int) []int {
	out, seen, first := make([]int, len(groups)), make([]int, len(groups)), make([]int, len(groups))
	for i, k := range groups {
		if seen[k]%g == 0 {
			first[k] = i
		}
		seen[k]++
		out[i] = first[k]
	}
	return out
}

// counts returns the number of rows of each group, in the place of its first row.
func counts(first []int) []int {
	out := make([]int, len(first))
	for _, f := range first {
		out[f]++
	}
	return out
}

// firstOf returns for each value the place of the first that equals it.
func firstOf[T comparable](values []T) []int {
	at, out := map[T]int{}, make([]int, len(values))
	for i, v := range values {
		if _, seen := at[v]; !seen {
			at[v] = i
		}
		out[i] = at[v]
	}
	return out
}

// pairs returns for each row the first row that is equal to it in a and in b.
func pairs(a, b []int) []int {
	both := make([][2]int, len(a))
	for i := range a {
		both[i] = [2]int{a[i], b[i]}
	}
	return firstOf(both)
}

// answersOf returns for each row of the sets the first row of equal answers and weight.
func answersOf(sets []*Dataset) []int {
	var columns [][]float64
	add := func(j int, v []float64) {
		if j == len(columns) {
			columns = append(columns, nil)
		}
		columns[j] = append(columns[j], v...)
	}
	for _, d := range sets {
		j, class := 0, make([]float64, len(d.Class))
		at := d.ClassIn(sets[0].Labels)
		for i, c := range d.Class {
			if class[i] = float64(at[c]); at[c] < 0 {
				class[i] = -1 - float64(c)
			}
		}
		for _, v := range append([][]float64{class, d.Target, d.Weights}, d.More...) {
			if v != nil && len(v) == d.Len() {
				add(j, v)
				j++
			}
		}
	}
	rows := 0
	for _, d := range sets {
		rows += d.Len()
	}
	out := make([]int, rows)
	for _, v := range columns {
		out = pairs(out, firstOf(v))
	}
	return out
}

// unusedColumn hashes the cells of a column that is no feature, unless they merely count the rows.
type unusedColumn struct {
	seed   maphash.Seed
	hashes []uint64
	before float64
	varies bool // the cells do not count the rows
}

func (u *unusedColumn) add(text string) {
	v, err := parse(text)
	u.varies = u.varies || err != nil || len(u.hashes) > 0 && v != u.before+1
	u.before = v
	u.hashes = append(u.hashes, maphash.String(u.seed, text))
}
