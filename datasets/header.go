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
		firstRow = append(firstRow, t.source.decodeText(strings.TrimSpace(cell)))
	}
	t.columns, t.weightColumn, t.groupColumn = make([]tableColumn, len(firstRow)), -1, -1
	if t.hasRowNames {
		t.columns[0].role = "drop"
	}
	isMatched, err := t.matchByName(firstRow)
	foundByName := isMatched
	if err == nil && !isMatched && t.options.Columns != nil {
		err = t.checkUnmatched(firstRow)
	}
	if err == nil && !isMatched {
		foundByName, err = t.assignByOptions(firstRow)
		if t.options.TargetOptional && t.targetColumn >= 0 && !foundByName {
			t.report.note("column %d is taken for the target, as at the fit: --target and --drop say otherwise",
				t.targetColumn+1)
		}
	}
	if err == nil {
		isHeader, err = t.isHeader(firstRow, foundByName || t.hasRowNames)
	}
	if isHeader {
		t.header = firstRow
	}
	if err = cmp.Or(err, t.findCopied(firstRow)); err != nil {
		return false, t.source.Fault(line, 0, "%v", err)
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
	if t.options.AnswersOnly {
		t.featureColumns = nil
	}
	if isMatched || t.options.AnswersOnly {
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

// checkWidth returns an error if there are no features, or if their number differs from t.options.Dim.
func (t *Table) checkWidth(line int) error {
	switch {
	case t.width() == 1 && t.targetColumn == 0:
		sep := t.report.separatorName()
		if sep != "" { // the table is read from text
			sep = ", with cells separated by a " + sep
		}
		return t.source.Fault(line, 0, "one column only%s: no features beside the target", sep)
	case len(t.featureColumns) == 0:
		return t.source.Fault(line, 0, "no column is left for a feature")
	case t.options.Dim > 0 && len(t.featureColumns) != t.options.Dim:
		targetNote := ""
		if t.targetColumn >= 0 {
			targetNote = fmt.Sprintf("; column %d is taken for the target", t.targetColumn+1)
		}
		return t.source.Fault(line, 0, "%s%s", t.options.dimMessage(len(t.featureColumns)), targetNote)
	}
	return nil
}

// modelName returns the name, for errors, of the data whose features t.options.Columns names.
func (t *Table) modelName() string { return cmp.Or(t.options.DimSource, "the model") }

// matchByName finds the features that t.options.Columns names, in any order and among other columns. isMatched reports
// that all features were found; it is false if none was found. If only some were found, it returns an error.
func (t *Table) matchByName(firstRow []string) (isMatched bool, err error) {
	names, coders := sourceColumns(t.options.Columns, t.options.ColumnCodings)
	if t.options.Space != nil && names != nil && t.options.Header == "no" {
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
		t.report.note("columns taken as equal: %s", joinLimited(renamed))
	}
	return true, t.matchOthers(firstRow, index)
}

// matchOthers finds the columns of the target, the groups, the further targets and the weights among those that are no
// features. All other columns are ignored. It returns an error if a feature is to be dropped.
func (t *Table) matchOthers(firstRow []string, index *wordIndex) (err error) {
	options := t.options
	if t.targetColumn = notFound; options.Target != "" && options.Target != "none" { // even if a column has this name
		t.targetColumn, _ = index.find(options.Target)
	}
	if t.targetColumn < 0 && !options.TargetOptional && options.Target != "none" {
		if t.targetColumn, _, err = findColumn(firstRow, cmp.Or(options.Target, "-1")); err != nil {
			return fmt.Errorf("target: %w", err)
		}
	}
	if t.targetColumn >= 0 {
		if t.columns[t.targetColumn].role != "" {
			return fmt.Errorf("the target, column %d, is a feature of %s: name the target by --target", t.targetColumn,
				t.modelName())
		}
		t.columns[t.targetColumn].role = "target"
	}
	if options.Groups != "" {
		switch t.groupColumn, _, err = findColumn(firstRow, options.Groups); {
		case err == nil && !(options.TestPart && t.columns[t.groupColumn].role != ""):
			t.columns[t.groupColumn].role = "groups"
		case options.TestPart: // a file of test rows may lack the groups
			t.groupColumn = -1
		default:
			return fmt.Errorf("groups: %w", err)
		}
	}
	for _, name := range options.MoreTargets {
		j, _ := index.find(name)
		if j < 0 { // a file with answers has all targets
			t.targetColumn, t.moreTargetColumns, t.moreAnswers = -1, nil, nil
			break
		}
		t.columns[j].role = "target"
		t.moreTargetColumns, t.moreAnswers = append(t.moreTargetColumns, j), append(t.moreAnswers, nil)
	}
	// A file may lack the weights.
	if j, _ := index.find(options.Weights); options.Weights != "" && j >= 0 && t.columns[j].role == "" {
		t.weightColumn, t.columns[j].role = j, "weights"
	}
	for j, name := range firstRow {
		switch column, isDropped := &t.columns[j], slices.Contains(options.Drop, name); {
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
		"of its columns above the rows", t.modelName(), nameList(t.options.Space.Columns))
}

// checkUnmatched is called if none of the names in t.options.Columns is in the first row. It returns an error if that
// row is a header, and if there is no header but more columns than features. In the second case it is unknown which
// column has the answers, and this is not guessed. Coordinates with names always need a header.
func (t *Table) checkUnmatched(firstRow []string) error {
	isHeader, _, err := guessHeader(firstRow, t.nextRows, -1)
	switch {
	case t.options.Header == "yes" || t.options.Header == "auto" && isHeader && err == nil:
		return fmt.Errorf("none of the columns %s of %s is here: there are %s",
			nameList(t.options.Columns), t.modelName(), nameList(firstRow))
	case t.options.Space != nil && !t.options.Space.ByNumber:
		return t.unnamedCoordinates()
	case !t.options.TargetOptional:
		return nil
	}
	droppedNumbers := 0
	for _, column := range t.options.Drop {
		if isIndex(column) {
			droppedNumbers++
		}
	}
	if n := len(firstRow) - droppedNumbers; n > t.options.Dim {
		return fmt.Errorf("%d columns without a header, and %d features of %s: if column %d has the answers, "+
			"say --target %d; leave out by --drop what is no feature",
			len(firstRow), t.options.Dim, t.modelName(), len(firstRow), len(firstRow)-1)
	}
	return nil
}

// assignByOptions assigns the columns that the options name to their uses; the other columns are features. foundByName
// reports whether the first row contains the name of a column in the options.
func (t *Table) assignByOptions(firstRow []string) (foundByName bool, err error) {
	if err := t.splitTargets(firstRow); err != nil {
		return false, err
	}
	a := &columnAssignment{Table: t, firstRow: firstRow}
	a.assignDropped()
	if t.options.Weights != "" {
		t.weightColumn = a.assign("weights", t.options.Weights)
	}
	if t.options.Groups != "" {
		t.groupColumn = a.assign("groups", t.options.Groups)
	}
	a.assignTargets()
	a.assignFeatures()
	return a.foundByName, a.err
}

// columnAssignment assigns columns to the uses that options state.
type columnAssignment struct {
	*Table
	firstRow    []string
	foundByName bool  // some column was found by its name
	err         error // first error
}

// assign assigns a column, given by its name or number, to the use that a flag states. It returns the index of the
// column, or -1 if it sets a.err.
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
	a.columns[j].role, a.foundByName = flag, a.foundByName || byName
	return j
}

// assignDropped assigns the columns of ReadOptions.Drop that the file has or must have.
func (a *columnAssignment) assignDropped() {
	options, width := a.options, len(a.firstRow)
	for _, column := range options.Drop {
		// With an optional target, the file may have the features alone, or lack a name.
		if options.TargetOptional && (width == options.Dim || !isIndex(column) &&
			!slices.Contains(a.firstRow, column)) {
			continue
		}
		if column != options.Groups { // the option names the groups for other files, in which they are dropped
			a.assign("drop", column)
		}
	}
}

// assignTargets assigns the targets. The default is the last column, except if the remaining columns are just the
// features.
func (a *columnAssignment) assignTargets() {
	options, remaining := a.options, 0
	for _, column := range a.columns {
		if column.role == "" {
			remaining++
		}
	}
	if a.targetColumn = -1; options.Target != "none" && (remaining != options.Dim || options.Target != "" &&
		!options.TargetOptional) {
		if a.targetColumn = a.assign("target", cmp.Or(options.Target, "-1")); a.targetColumn < 0 &&
			options.TargetOptional && options.Dim > 0 {
			if a.err = fmt.Errorf("%s, and %w", options.dimMessage(remaining), a.err); options.Space != nil {
				a.err = a.misplacedCoordinates()
			}
		}
	}
	if a.targetColumn >= 0 {
		for _, name := range options.MoreTargets {
			a.moreTargetColumns = append(a.moreTargetColumns, a.assign("target", name))
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
		strings.Join(a.options.Space.Columns, ", "), a.options.Target)
}

// assignFeatures makes features of the coordinates, or without these of all remaining columns.
func (a *columnAssignment) assignFeatures() {
	options := a.options
	if options.Space != nil {
		columns := options.Space.Columns
		if options.Space.ByNumber {
			columns = options.Space.positions(len(a.firstRow))
		}
		for _, column := range columns {
			a.featureColumns = append(a.featureColumns, a.assign("space", column))
		}
	}
	for j := range a.columns {
		switch column := &a.columns[j]; {
		case column.role != "":
		case options.Space != nil:
			column.role = "drop"
		default:
			a.featureColumns = append(a.featureColumns, j)
		}
	}
	for _, coding := range options.ColumnCodings {
		flag := map[bool]string{false: "categorical", true: "dates"}[coding.Dates != nil]
		if j := a.assign(flag, coding.Column); j >= 0 {
			a.columns[j].coder = newColumnCoder(coding)
		}
	}
}

// splitTargets splits t.options.Target into several targets if it is not the name of a column but a list of names,
// separated by commas and quoted as in a csv file. Several targets set the task to regression.
func (t *Table) splitTargets(firstRow []string) error {
	if !strings.Contains(t.options.Target, ",") || slices.Contains(firstRow, t.options.Target) {
		return nil
	}
	names, err := csv.NewReader(strings.NewReader(t.options.Target)).Read()
	if err != nil {
		return fmt.Errorf("target %s: %w", quote(t.options.Target), err)
	}
	if t.options.Target, t.options.MoreTargets = names[0], names[1:]; len(names) > 1 {
		if t.options.Task == "classification" {
			return fmt.Errorf("--target %s: several targets need --task regression", quoteIfLong(joinNames(names)))
		}
		t.options.Task = "regression"
	}
	return nil
}

// isHeader decides whether the first row is a header. foundByName says that this row contains names of columns that the
// options ask for.
func (t *Table) isHeader(firstRow []string, foundByName bool) (bool, error) {
	isHeader, reason := foundByName, "it has the names that are asked for"
	switch {
	case t.options.Header == "yes" || t.options.Header == "no":
		isHeader, reason = t.options.Header == "yes", "--format header"
	case !foundByName:
		var err error
		if isHeader, reason, err = guessHeader(firstRow, t.nextRows, t.targetColumn); err != nil {
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
// its name in the first row. isName reports that it was given by its name.
func findColumn(firstRow []string, column string) (index int, isName bool, err error) {
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
		hint := ""
		if j := slices.Index(firstRow, column); j >= 0 {
			hint = fmt.Sprintf("; %q is in column %d", column, j)
		}
		return 0, false, fmt.Errorf("column %d: the rows have %d columns, 0 to %d%s", i, width, width-1, hint)
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
