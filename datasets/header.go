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

// missingWords are the cells that stand for a missing value, in lower case; their case is ignored. The first is the
// empty cell.
var missingWords = strings.Split(`|na|n/a|n.a.|null|(null)|none|missing|nan|nat|?|-|--|---|.|..|...|\n|<na>|`+
	`#n/a|#na|#n/a n/a|#null!|#div/0!|#value!|#ref!|#name?|#num!`, "|")

func isMissing(cell string) bool {
	return len(cell) < 12 && slices.Contains(missingWords, strings.ToLower(cell))
}

// readFirstRow chooses the columns from the first record, and reports whether it is a header.
func (c *Table) readFirstRow(record []string, line int) (isHeader bool, err error) {
	firstRow := make([]string, len(record))
	for j, cell := range record {
		firstRow[j] = c.s.decodeText(strings.TrimSpace(cell))
	}
	c.roleOf, c.unused = map[int]string{}, map[int]*unusedColumn{}
	if c.hasRowNames {
		firstRow, c.roleOf[0] = append([]string{""}, firstRow...), "drop"
		c.report.note("the first column, which the header does not name, is left out: row names")
	}
	c.width, c.weight, c.group, c.categories = len(firstRow), -1, -1, make([]*category, len(firstRow))
	matched, err := c.matchByName(firstRow)
	named := matched
	if err == nil && !matched && c.o.Columns != nil {
		err = c.checkUnmatched(firstRow)
	}
	if err == nil && !matched {
		named, err = c.assignByOptions(firstRow)
		if c.o.TargetOptional && c.target >= 0 && !named {
			c.report.note("column %d is taken for the target, as at the fit: --target and --drop say otherwise",
				c.target+1)
		}
	}
	if err == nil {
		isHeader, err = c.isHeader(firstRow, named || c.hasRowNames)
	}
	if isHeader {
		c.header = firstRow
	}
	if err = cmp.Or(err, c.findCopied(firstRow)); err != nil {
		return false, c.s.Fault(line, 0, "%v", err)
	}
	rowCount := map[string]int{}
	for _, name := range c.header {
		rowCount[name]++
	}
	for _, j := range c.featureColumns {
		if isHeader && rowCount[firstRow[j]] > 1 && firstRow[j] != "" {
			c.report.note("several columns are named %s: rename them, as a model finds its columns by name",
				quote(firstRow[j]))
			break
		}
	}
	for j := range firstRow {
		if c.roleOf[j] == "drop" {
			c.report.Dropped = append(c.report.Dropped, c.flagName(j))
			c.unused[j] = &unusedColumn{seed: maphash.MakeSeed()}
		}
		c.hasCategories = c.hasCategories || c.categories[j] != nil
	}
	if c.o.AnswersOnly {
		c.featureColumns = nil
	}
	if matched || c.o.AnswersOnly {
		return isHeader, nil
	}
	return isHeader, c.checkWidth(line)
}

// checkWidth returns an error if there are no features, or not as many as o.Dim says.
func (c *Table) checkWidth(line int) error {
	switch {
	case c.width == 1 && c.target == 0:
		sep := ""
		if c.report.Separator != "" { // the table is read from text
			sep = fmt.Sprintf(" (separator %s)", c.report.Separator)
		}
		return c.s.Fault(line, 0, "one column only%s: no features beside the target", sep)
	case len(c.featureColumns) == 0:
		return c.s.Fault(line, 0, "no column is left for a feature")
	case c.o.Dim > 0 && len(c.featureColumns) != c.o.Dim:
		targetNote := ""
		if c.target >= 0 {
			targetNote = fmt.Sprintf("; column %d is taken for the target", c.target+1)
		}
		return c.s.Fault(line, 0, "%s%s", c.o.dimMessage(len(c.featureColumns)), targetNote)
	}
	return nil
}

// matchByName finds the features that o.Columns names, in any order and among other columns. matched reports that they
// were found; it is false if none of them is there.
func (c *Table) matchByName(firstRow []string) (matched bool, err error) {
	names, categories := sourceColumns(c.o.Columns, c.o.ColumnCodings)
	if c.o.Space != nil && names != nil && c.o.Header == "no" {
		return false, fmt.Errorf("the coordinates of %s have names, %s, and a file without a header has none",
			cmp.Or(c.o.DimSource, "the model"), nameList(names))
	}
	if len(names) == 0 {
		return false, nil
	}
	var missing, renamed []string
	index, used := newWordIndex(firstRow), map[int]bool{}
	available := nameList(firstRow)
	for k, name := range names {
		j, caseDiffers := index.find(name)
		switch {
		case j == ambiguous:
			return false, fmt.Errorf("several columns are named %s: rename them in all files, and fit again",
				quote(name))
		case j == notFound || used[j]:
			missing = append(missing, name)
			continue
		case caseDiffers:
			renamed = append(renamed, equalWords(firstRow[j], name))
		}
		firstRow[j] = name
		if c.featureColumns, used[j] = append(c.featureColumns, j), true; categories[k] != nil {
			c.categories[j] = categories[k]
		}
	}

	if len(missing) == len(names) {
		return false, nil
	}
	if missing != nil {
		return false, fmt.Errorf("the columns %s of %s are missing: there are %s",
			nameList(missing), cmp.Or(c.o.DimSource, "the model"), available)
	}
	if renamed != nil {
		c.report.note("columns taken as equal: %s", listed(renamed))
	}

	// The columns of the target, the groups, the further targets and the weights.
	if c.target = notFound; c.o.Target != "" && c.o.Target != "none" { // even if a column has this name
		c.target, _ = index.find(c.o.Target)
	}
	if c.target < 0 && !c.o.TargetOptional && c.o.Target != "none" {
		if c.target, _, err = findColumn(firstRow, cmp.Or(c.o.Target, "-1")); err != nil {
			return false, fmt.Errorf("target: %w", err)
		}
	}
	if used[c.target] {
		return false, fmt.Errorf("the target, column %d, is a feature of %s: name the target by --target",
			c.target, cmp.Or(c.o.DimSource, "the model"))
	}
	used[c.target] = true // without effect for notFound
	if c.o.Groups != "" {
		switch c.group, _, err = findColumn(firstRow, c.o.Groups); {
		case err == nil && !(c.o.TestPart && used[c.group]):
			used[c.group] = true
		case c.o.TestPart: // a file of test rows may lack the groups
			c.group = -1
		default:
			return false, fmt.Errorf("groups: %w", err)
		}
	}
	for _, name := range c.o.MoreTargets {
		j, _ := index.find(name)
		if j < 0 { // a file with answers has all targets
			c.target, c.moreTargets, c.moreAnswers = -1, nil, nil
			break
		}
		c.moreTargets, c.moreAnswers, used[j] = append(c.moreTargets, j), append(c.moreAnswers, nil), true
	}
	if j, _ := index.find(c.o.Weights); c.o.Weights != "" && j >= 0 && !used[j] { // a file may lack the weights
		c.weight, used[j] = j, true
	}

	for j, name := range firstRow {
		if !used[j] && slices.Contains(c.o.Drop, name) {
			c.roleOf[j] = "drop"
		} else if !used[j] {
			c.report.Ignored = append(c.report.Ignored, name)
		}
	}
	return true, nil
}

// checkUnmatched returns an error if none of the names in o.Columns is in the first row, and either that row is a
// header, or there is no header but more columns than features. In the second case it is unknown which column has the
// answers, and this is not guessed.
func (c *Table) checkUnmatched(firstRow []string) error {
	isHeader, _, err := guessHeader(firstRow, c.nextRows, -1)
	modelName := cmp.Or(c.o.DimSource, "the model")
	switch {
	case c.o.Header == "yes" || c.o.Header == "auto" && isHeader && err == nil:
		return fmt.Errorf("none of the columns %s of %s is here: there are %s",
			nameList(c.o.Columns), modelName, nameList(firstRow))
	case !c.o.TargetOptional:
		return nil
	}
	numbers := 0
	for _, column := range c.o.Drop {
		if isIndex(column) {
			numbers++
		}
	}
	if n := len(firstRow) - numbers; n > c.o.Dim {
		return fmt.Errorf("%d columns without a header, and %d features of %s: if column %d has the answers, "+
			"say --target %d; leave out by --drop what is no feature",
			len(firstRow), c.o.Dim, modelName, len(firstRow), len(firstRow)-1)
	}
	return nil
}

// assignByOptions assigns the columns that the options name to their uses; the other columns are features. named
// reports whether a column was found by its name.
func (c *Table) assignByOptions(firstRow []string) (named bool, err error) {
	claim := func(flag, column string) int {
		j, byName, e := findColumn(firstRow, column)
		if e == nil && c.roleOf[j] != "" && flag != "drop" {
			e = fmt.Errorf("column %d is in --%s too: each has one use, and --target names the target", j, c.roleOf[j])
		}
		if e != nil {
			err = cmp.Or(err, fmt.Errorf("%s: %w", flag, e))
			return -1
		}
		c.roleOf[j], named = flag, named || byName
		return j
	}
	o := c.o
	if err := c.splitTargets(firstRow); err != nil {
		return false, err
	}
	for _, column := range o.Drop {
		if o.TargetOptional && (len(firstRow) == o.Dim || !isIndex(column) && !slices.Contains(firstRow, column)) {
			continue // the file has the features alone, or the name may be missing
		}
		if column == o.Groups {
			continue // the option names it for other files, in which it is dropped
		}
		claim("drop", column)
	}
	if o.Weights != "" {
		c.weight = claim("weights", o.Weights)
	}
	if o.Groups != "" {
		c.group = claim("groups", o.Groups)
	}

	// The default target is the last column, except if the remaining columns are just the features.
	remaining := len(firstRow) - len(c.roleOf)
	if c.target = -1; o.Target != "none" && (remaining != o.Dim || o.Target != "" && !o.TargetOptional) {
		if c.target = claim("target", cmp.Or(o.Target, "-1")); c.target < 0 && o.TargetOptional && o.Dim > 0 {
			err = fmt.Errorf("%s, and %w", o.dimMessage(remaining), err)
		}
	}
	if c.target >= 0 {
		for _, name := range o.MoreTargets {
			c.moreTargets, c.moreAnswers = append(c.moreTargets, claim("target", name)), append(c.moreAnswers, nil)
		}
	}

	// The remaining columns are features, or only the coordinates are.
	if o.Space != nil {
		columns := o.Space.Columns
		if o.Space.ByNumber {
			columns = o.Space.positions(len(firstRow))
		}
		for _, column := range columns {
			c.featureColumns = append(c.featureColumns, claim("space", column))
		}
	}
	for j := range firstRow {
		if c.roleOf[j] == "" && o.Space != nil {
			c.roleOf[j] = "drop"
		} else if c.roleOf[j] == "" {
			c.featureColumns = append(c.featureColumns, j)
		}
	}
	for _, k := range o.ColumnCodings {
		flag := map[bool]string{false: "categorical", true: "dates"}[k.Dates != nil]
		if j := claim(flag, k.Column); j >= 0 {
			c.categories[j] = newCategory(k)
		}
	}
	return named, err
}

// splitTargets splits o.Target into several targets if it is not the name of a column but a list of names, separated by
// commas and quoted as in a csv file.
func (c *Table) splitTargets(firstRow []string) error {
	if !strings.Contains(c.o.Target, ",") || slices.Contains(firstRow, c.o.Target) {
		return nil
	}
	names, err := csv.NewReader(strings.NewReader(c.o.Target)).Read()
	if err != nil {
		return fmt.Errorf("target %s: %w", quote(c.o.Target), err)
	}
	if c.o.Target, c.o.MoreTargets = names[0], names[1:]; len(names) > 1 {
		if c.o.Task == "classification" {
			return fmt.Errorf("--target %s: several targets need --task regression", quoteIfLong(joinNames(names)))
		}
		c.o.Task = "regression"
	}
	return nil
}

// isHeader decides whether the first row is a header. named says that columns were found in it by their names.
func (c *Table) isHeader(firstRow []string, named bool) (bool, error) {
	isHeader, reason := named, "it has the names that are asked for"
	switch {
	case c.o.Header == "yes" || c.o.Header == "no":
		isHeader, reason = c.o.Header == "yes", "--header"
	case !named:
		var err error
		if isHeader, reason, err = guessHeader(firstRow, c.nextRows, c.target); err != nil {
			return false, err
		}
	}
	c.report.Header = map[bool]string{true: "yes (", false: "no ("}[isHeader] + reason + ")"
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
