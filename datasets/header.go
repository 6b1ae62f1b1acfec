package datasets

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
)

// readFirstRow chooses the columns from the first record, and reports whether it is a header.
func (t *Table) readFirstRow(record []string, line int) (isHeader bool, err error) {
	var firstRow []string
	if t.hasRowNames {
		firstRow = []string{""}
		t.report.note("the first column, which the header does not name, is left out: row names")
	}
	for _, cell := range record {
		firstRow = append(firstRow, t.s.decodeText(strings.TrimSpace(cell)))
	}
	t.columns, t.weight, t.group = make([]tableColumn, len(firstRow)), -1, -1
	if t.hasRowNames {
		t.columns[0].role = "drop"
	}
	matched, err := t.matchByName(firstRow)
	named := matched
	if err == nil && !matched && t.o.Columns != nil {
		err = t.checkUnmatched(firstRow)
	}
	if err == nil && !matched {
		named, err = t.assignByOptions(firstRow)
		if t.o.TargetOptional && t.target >= 0 && !named {
			t.report.note("column %d is taken for the target, as at the fit: --target and --drop say otherwise",
				t.target+1)
		}
	}
	if err == nil {
		isHeader, err = t.isHeader(firstRow, named || t.hasRowNames)
	}
	if isHeader {
		t.header = firstRow
	}
	if err = cmp.Or(err, t.findCopied(firstRow)); err != nil {
		return false, t.s.Fault(line, 0, "%v", err)
	}
	t.noteRepeatedNames()
	for j := range t.columns {
		column := &t.columns[j]
		if column.role == "drop" {
			t.report.Dropped = append(t.report.Dropped, t.flagName(j))
			column.hashes = &columnHashes{seed: maphash.MakeSeed()}
		}
		t.hasCoders = t.hasCoders || column.coder != nil
	}
	if t.o.AnswersOnly {
		t.featureColumns = nil
	}
	if matched || t.o.AnswersOnly {
		return isHeader, nil
	}
	return isHeader, t.checkWidth(line)
}

// noteRepeatedNames notes the first name in the header that several columns have, if one of them is a feature.
func (t *Table) noteRepeatedNames() {
	count := map[string]int{}
	for _, name := range t.header {
		count[name]++
	}
	for _, name := range t.featureNames() {
		if count[name] > 1 && name != "" {
			t.report.note("several columns are named %s: rename them, as a model finds its columns by name",
				quote(name))
			return
		}
	}
}

// checkWidth returns an error if there are no features, or not as many as o.Dim says.
func (t *Table) checkWidth(line int) error {
	switch {
	case t.width() == 1 && t.target == 0:
		sep := t.report.separatorName()
		if sep != "" { // the table is read from text
			sep = ", with cells separated by a " + sep
		}
		return t.s.Fault(line, 0, "one column only%s: no features beside the target", sep)
	case len(t.featureColumns) == 0:
		return t.s.Fault(line, 0, "no column is left for a feature")
	case t.o.Dim > 0 && len(t.featureColumns) != t.o.Dim:
		targetNote := ""
		if t.target >= 0 {
			targetNote = fmt.Sprintf("; column %d is taken for the target", t.target+1)
		}
		return t.s.Fault(line, 0, "%s%s", t.o.dimMessage(len(t.featureColumns)), targetNote)
	}
	return nil
}

// modelName names the data whose features o.Columns are, for errors.
func (t *Table) modelName() string { return cmp.Or(t.o.DimSource, "the model") }

// matchByName finds the features that o.Columns names, in any order and among other columns. matched reports that they
// were found; it is false if none of them is there.
func (t *Table) matchByName(firstRow []string) (matched bool, err error) {
	names, coders := sourceColumns(t.o.Columns, t.o.ColumnCodings)
	if t.o.Space != nil && names != nil && t.o.Header == "no" {
		return false, t.unnamedCoordinates()
	}
	if len(names) == 0 {
		return false, nil
	}
	var missing, renamed []string
	index, available := newWordIndex(firstRow), nameList(firstRow)
	for k, name := range names {
		j, caseDiffers := index.find(name)
		switch {
		case j == ambiguous:
			return false, fmt.Errorf("several columns are named %s: rename them in all files, and fit again",
				quote(name))
		case j == notFound || t.columns[j].role != "":
			missing = append(missing, name)
			continue
		case caseDiffers:
			renamed = append(renamed, equalityNote(firstRow[j], name))
		}
		firstRow[j] = name
		t.featureColumns = append(t.featureColumns, j)
		t.columns[j].role, t.columns[j].coder = "feature", coders[k]
	}
	if len(missing) == len(names) {
		return false, nil
	}
	if missing != nil {
		return false, fmt.Errorf("the columns %s of %s are missing: there are %s", nameList(missing), t.modelName(),
			available)
	}
	if renamed != nil {
		t.report.note("columns taken as equal: %s", listed(renamed))
	}
	return true, t.matchOthers(firstRow, index)
}

// matchOthers finds the columns of the target, the groups, the further targets and the weights among those that are no
// features. All other columns are ignored. It returns an error if a feature is to be dropped.
func (t *Table) matchOthers(firstRow []string, index *wordIndex) (err error) {
	o := t.o
	if t.target = notFound; o.Target != "" && o.Target != "none" { // even if a column has this name
		t.target, _ = index.find(o.Target)
	}
	if t.target < 0 && !o.TargetOptional && o.Target != "none" {
		if t.target, _, err = findColumn(firstRow, cmp.Or(o.Target, "-1")); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if t.target >= 0 {
		if t.columns[t.target].role != "" {
			return fmt.Errorf("the target, column %d, is a feature of %s: name the target by --target", t.target,
				t.modelName())
		}
		t.columns[t.target].role = "target"
	}
	if o.Groups != "" {
		switch t.group, _, err = findColumn(firstRow, o.Groups); {
		case err == nil && !(o.TestPart && t.columns[t.group].role != ""):
			t.columns[t.group].role = "groups"
		case o.TestPart: // a file of test rows may lack the groups
			t.group = -1
		default:
			return fmt.Errorf("groups: %w", err)
		}
	}
	for _, name := range o.MoreTargets {
		j, _ := index.find(name)
		if j < 0 { // a file with answers has all targets
			t.target, t.moreTargets, t.moreAnswers = -1, nil, nil
			break
		}
		t.columns[j].role = "target"
		t.moreTargets, t.moreAnswers = append(t.moreTargets, j), append(t.moreAnswers, nil)
	}
	// A file may lack the weights.
	if j, _ := index.find(o.Weights); o.Weights != "" && j >= 0 && t.columns[j].role == "" {
		t.weight, t.columns[j].role = j, "weights"
	}
	for j, name := range firstRow {
		switch column, isDropped := &t.columns[j], slices.Contains(o.Drop, name); {
		case column.role == "feature" && isDropped && !isIndex(name):
			return fmt.Errorf("drop: the column %s is a feature of %s, which needs it", quote(name), t.modelName())
		case column.role != "":
		case isDropped:
			column.role = "drop"
		default:
			t.report.Ignored = append(t.report.Ignored, name)
		}
	}
	return nil
}

// unnamedCoordinates returns the error about a file without a header, where the coordinates have names.
func (t *Table) unnamedCoordinates() error {
	return fmt.Errorf("the coordinates of %s have names, %s, and a file without a header has none: write the names "+
		"of its columns above the rows", t.modelName(), nameList(t.o.Space.Columns))
}

// checkUnmatched returns an error if none of the names in o.Columns is in the first row, and either that row is a
// header, or there is no header but more columns than features. In the second case it is unknown which column has the
// answers, and this is not guessed. Coordinates with names always need a header.
func (t *Table) checkUnmatched(firstRow []string) error {
	isHeader, _, err := guessHeader(firstRow, t.nextRows, -1)
	switch {
	case t.o.Header == "yes" || t.o.Header == "auto" && isHeader && err == nil:
		return fmt.Errorf("none of the columns %s of %s is here: there are %s",
			nameList(t.o.Columns), t.modelName(), nameList(firstRow))
	case t.o.Space != nil && !t.o.Space.ByNumber:
		return t.unnamedCoordinates()
	case !t.o.TargetOptional:
		return nil
	}
	numbers := 0
	for _, column := range t.o.Drop {
		if isIndex(column) {
			numbers++
		}
	}
	if n := len(firstRow) - numbers; n > t.o.Dim {
		return fmt.Errorf("%d columns without a header, and %d features of %s: if column %d has the answers, "+
			"say --target %d; leave out by --drop what is no feature",
			len(firstRow), t.o.Dim, t.modelName(), len(firstRow), len(firstRow)-1)
	}
	return nil
}

// assignByOptions assigns the columns that the options name to their uses; the other columns are features. named
// reports whether a column was found by its name.
func (t *Table) assignByOptions(firstRow []string) (named bool, err error) {
	if err := t.splitTargets(firstRow); err != nil {
		return false, err
	}
	a := &columnAssignment{Table: t, firstRow: firstRow}
	a.assignDropped()
	if t.o.Weights != "" {
		t.weight = a.assign("weights", t.o.Weights)
	}
	if t.o.Groups != "" {
		t.group = a.assign("groups", t.o.Groups)
	}
	a.assignTargets()
	a.assignFeatures()
	return a.named, a.err
}

// columnAssignment assigns columns to the uses that options state.
type columnAssignment struct {
	*Table
	firstRow []string
	named    bool  // some column was found by its name
	err      error // first error
}

// assign assigns a column to a flag and returns its index, or -1 after an error.
func (a *columnAssignment) assign(flag, column string) int {
	j, byName, err := findColumn(a.firstRow, column)
	if err == nil && a.columns[j].role != "" && flag != "drop" {
		err = fmt.Errorf("column %d is in --%s too: each has one use, and --target names the target", j,
			a.columns[j].role)
	}
	if err != nil {
		a.err = cmp.Or(a.err, fmt.Errorf("%s: %w", flag, err))
		return -1
	}
	a.columns[j].role, a.named = flag, a.named || byName
	return j
}

// assignDropped assigns the columns of ReadOptions.Drop that the file has or must have.
func (a *columnAssignment) assignDropped() {
	o, width := a.o, len(a.firstRow)
	for _, column := range o.Drop {
		// With an optional target, the file may have the features alone, or lack a name.
		if o.TargetOptional && (width == o.Dim || !isIndex(column) && !slices.Contains(a.firstRow, column)) {
			continue
		}
		if column != o.Groups { // the option names the groups for other files, in which they are dropped
			a.assign("drop", column)
		}
	}
}

// assignTargets assigns the targets. The default is the last column, except if the remaining columns are just the
// features.
func (a *columnAssignment) assignTargets() {
	o, remaining := a.o, 0
	for _, column := range a.columns {
		if column.role == "" {
			remaining++
		}
	}
	if a.target = -1; o.Target != "none" && (remaining != o.Dim || o.Target != "" && !o.TargetOptional) {
		if a.target = a.assign("target", cmp.Or(o.Target, "-1")); a.target < 0 && o.TargetOptional && o.Dim > 0 {
			if a.err = fmt.Errorf("%s, and %w", o.dimMessage(remaining), a.err); o.Space != nil {
				a.err = a.misplacedCoordinates()
			}
		}
	}
	if a.target >= 0 {
		for _, name := range o.MoreTargets {
			a.moreTargets = append(a.moreTargets, a.assign("target", name))
			a.moreAnswers = append(a.moreAnswers, nil)
		}
	}
}

// misplacedCoordinates returns the error about a file without the target column, where the coordinates are found by
// their numbers. It is unknown which columns this file lacks, and so where the coordinates are.
func (a *columnAssignment) misplacedCoordinates() error {
	return fmt.Errorf("%d columns, and the file of the fit, without a header, had the coordinates in the columns %s and "+
		"the target in %s, counted from 0: give all columns as they were there, or the coordinates alone, or say "+
		"--target none if the coordinates are in these columns here too", len(a.firstRow),
		strings.Join(a.o.Space.Columns, ", "), a.o.Target)
}

// assignFeatures makes features of the coordinates, or without these of all remaining columns.
func (a *columnAssignment) assignFeatures() {
	o := a.o
	if o.Space != nil {
		columns := o.Space.Columns
		if o.Space.ByNumber {
			columns = o.Space.positions(len(a.firstRow))
		}
		for _, column := range columns {
			a.featureColumns = append(a.featureColumns, a.assign("space", column))
		}
	}
	for j := range a.columns {
		switch column := &a.columns[j]; {
		case column.role != "":
		case o.Space != nil:
			column.role = "drop"
		default:
			a.featureColumns = append(a.featureColumns, j)
		}
	}
	for _, k := range o.ColumnCodings {
		flag := map[bool]string{false: "categorical", true: "dates"}[k.Dates != nil]
		if j := a.assign(flag, k.Column); j >= 0 {
			a.columns[j].coder = newColumnCoder(k)
		}
	}
}

// splitTargets splits o.Target into several targets if it is not the name of a column but a list of names, separated by
// commas and quoted as in a csv file.
func (t *Table) splitTargets(firstRow []string) error {
	if !strings.Contains(t.o.Target, ",") || slices.Contains(firstRow, t.o.Target) {
		return nil
	}
	names, err := csv.NewReader(strings.NewReader(t.o.Target)).Read()
	if err != nil {
		return fmt.Errorf("target %s: %w", quote(t.o.Target), err)
	}
	if t.o.Target, t.o.MoreTargets = names[0], names[1:]; len(names) > 1 {
		if t.o.Task == "classification" {
			return fmt.Errorf("--target %s: several targets need --task regression", quoteIfLong(joinNames(names)))
		}
		t.o.Task = "regression"
	}
	return nil
}

// isHeader decides whether the first row is a header. named says that columns were found in it by their names.
func (t *Table) isHeader(firstRow []string, named bool) (bool, error) {
	isHeader, reason := named, "it has the names that are asked for"
	switch {
	case t.o.Header == "yes" || t.o.Header == "no":
		isHeader, reason = t.o.Header == "yes", "--format header"
	case !named:
		var err error
		if isHeader, reason, err = guessHeader(firstRow, t.nextRows, t.target); err != nil {
			return false, err
		}
	}
	t.report.Header = map[bool]string{true: "yes (", false: "no ("}[isHeader] + reason + ")"
	return isHeader, nil
}

// isIndex reports whether a column is given by its number.
func isIndex(column string) bool {
	_, err := strconv.Atoi(column)
	return err == nil
}

// findColumn returns the index of a column that is given by its number, counted from the end if it is negative, or by
// its name in the first row. named reports that it was given by its name.
func findColumn(firstRow []string, column string) (col int, named bool, err error) {
	width := len(firstRow)
	i, err := strconv.Atoi(column)
	if err != nil {
		i, caseDiffers := newWordIndex(firstRow).find(column)
		if i == notFound || caseDiffers {
			return 0, false, fmt.Errorf("no column is named %s: %s", quote(column), describeNames(firstRow))
		}
		if i == ambiguous {
			return 0, false, fmt.Errorf("several columns are named %s: say which by its number, counted from 0",
				quote(column))
		}
		return i, true, nil
	}
	if i < -width || i >= width {
		named := ""
		if j := slices.Index(firstRow, column); j >= 0 {
			named = fmt.Sprintf("; %q is in column %d", column, j)
		}
		return 0, false, fmt.Errorf("column %d: the rows have %d columns, 0 to %d%s", i, width, width-1, named)
	}
	return (i + width) % width, false, nil
}

// describeNames describes which names the first row has, for an error.
func describeNames(firstRow []string) string {
	names := slices.DeleteFunc(slices.Clone(firstRow), func(cell string) bool { return kindOf(cell) == numberCell })
	if len(names) == 0 {
		return "the first row has numbers only; give the column by its number, counted from 0"
	}
	return "there are " + nameList(names)
}
