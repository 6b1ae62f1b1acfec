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

// missingWords are cells that stand for a missing value, in any case.
var missingWords = []string{
	"", "na", "n/a", "n.a.", "null", "(null)", "none", "missing", "nan", "nat", "?", "-", "--", "---", ".", "..",
	"...", `\n`,
	"<na>", "#n/a", "#na", "#n/a n/a", "#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!",
}

func isMissing(cell string) bool {
	return len(cell) < 12 && slices.Contains(missingWords, strings.ToLower(cell))
}

// begin looks at the first record and reports whether it is a header.
func (c *Table) begin(record []string, line int) (header bool, err error) {
	first := make([]string, len(record))
	for j, cell := range record {
		first[j] = c.s.text(strings.TrimSpace(cell))
	}
	c.role, c.unused = map[int]string{}, map[int]*unusedColumn{}
	if c.names {
		first, c.role[0] = append([]string{""}, first...), "drop"
		c.read.note("the first column, which the header does not name, is left out: row names")
	}
	c.width, c.weight, c.group, c.words = len(first), -1, -1, make([]*category, len(first))
	named, matched, err := c.byName(first)
	if err == nil && !matched && c.o.Columns != nil {
		err = c.unnamed(first)
	}
	if err == nil && !matched {
		named, err = c.byPlace(first)
		if c.o.TargetOptional && c.target >= 0 && !named {
			c.read.note("column %d is taken for the target, as at the fit: --target and --drop say otherwise",
				c.target+1)
		}
	}
	if err == nil {
		header, err = c.isHeader(first, named || c.names)
	}
	if header {
		c.header = first
	}
	if err = cmp.Or(err, c.copy(first)); err != nil {
		return false, c.s.Fault(line, 0, "%v", err)
	}
	count := map[string]int{}
	for _, name := range c.header {
		count[name]++
	}
	for _, j := range c.keep {
		if header && count[first[j]] > 1 && first[j] != "" {
			c.read.note("several columns are named %s: rename them, as a model finds its columns by name", quote(first[j]))
			break
		}
	}
	for j := range first {
		if c.role[j] == "drop" {
			c.read.Dropped = append(c.read.Dropped, c.flagName(j))
			c.unused[j] = &unusedColumn{seed: maphash.MakeSeed()}
		}
		c.wordy = c.wordy || c.words[j] != nil
	}
	if c.o.AnswersOnly {
		c.keep = nil
	}
	return header, c.checkWidth(line, matched)
}

// checkWidth returns an error if the columns cannot be what is wanted.
func (c *Table) checkWidth(line int, matched bool) error {
	switch {
	case c.o.AnswersOnly || matched:
		return nil
	case c.width == 1 && c.target == 0:
		sep := ""
		if c.read.Separator != "" { // of text
			sep = fmt.Sprintf(" (separator %s)", c.read.Separator)
		}
		return c.s.Fault(line, 0, "one column only%s: no features beside the target", sep)
	case len(c.keep) == 0:
		return c.s.Fault(line, 0, "no column is left for a feature")
	case c.o.Dim > 0 && len(c.keep) != c.o.Dim:
		beside := ""
		if c.target >= 0 {
			beside = fmt.Sprintf("; column %d is taken for the target", c.target+1)
		}
		return c.s.Fault(line, 0, "%s%s", c.o.wrongDim(len(c.keep)), beside)
	}
	return nil
}

// byName finds the features that the options name, in whatever order and among whatever others; matched is false if
// there are none of them.
func (c *Table) byName(first []string) (named, matched bool, err error) {
	names, words := sources(c.o.Columns, c.o.Categorical)
	if len(names) == 0 {
		return false, false, nil
	}
	var missing, renamed []string
	index, taken := newWordIndex(first), map[int]bool{}
	there := nameList(first)
	for k, name := range names {
		j, caseDiffers := index.find(name)
		switch {
		case j == severalPlaces:
			return false, false, fmt.Errorf("several columns are named %s: rename them in all files, and fit again",
				quote(name))
		case j == noPlace || taken[j]:
			missing = append(missing, name)
			continue
		case caseDiffers:
			renamed = append(renamed, equalWords(first[j], name))
		}
		first[j] = name
		if c.keep, taken[j] = append(c.keep, j), true; words[k] != nil {
			c.words[j] = words[k]
		}
	}
	if len(missing) == len(names) {
		return false, false, nil
	}
	if missing != nil {
		return false, false, fmt.Errorf("the columns %s of %s are missing: there are %s",
			nameList(missing), cmp.Or(c.o.DimOf, "the model"), there)
	}
	if renamed != nil {
		c.read.note("columns taken as equal: %s", listed(renamed))
	}
	if c.target, _ = index.find(c.o.Target); c.target < 0 && !c.o.TargetOptional && c.o.Target != "none" {
		if c.target, _, err = findColumn(first, cmp.Or(c.o.Target, "-1")); err != nil {
			return false, false, fmt.Errorf("target: %w", err)
		}
	}
	if taken[c.target] {
		return false, false, fmt.Errorf("the target, column %d, is a feature of %s: name the target by --target",
			c.target, cmp.Or(c.o.DimOf, "the model"))
	}
	taken[c.target] = true
	if c.o.Groups != "" {
		if c.group, _, err = findColumn(first, c.o.Groups); err != nil {
			return false, false, fmt.Errorf("groups: %w", err)
		}
		taken[c.group] = true
	}
	for _, name := range c.o.More {
		j, _ := index.find(name)
		if j < 0 { // several targets are there together or not at all
			c.target, c.more, c.others = -1, nil, nil
			break
		}
		c.more, c.others, taken[j] = append(c.more, j), append(c.others, nil), true
	}
	if j, _ := index.find(c.o.Weights); c.o.Weights != "" && j >= 0 && !taken[j] { // none is needed
		c.weight, taken[j] = j, true
	}
	for j, name := range first {
		if !taken[j] && slices.Contains(c.o.Drop, name) {
			c.role[j] = "drop"
		} else if !taken[j] {
			c.read.Ignored = append(c.read.Ignored, name)
		}
	}
	return true, true, nil
}

// unnamed returns an error if none of the names that the options have for the features is in the first row, and it is a
// header of others, or there is none and more columns than features: which of them has the answers is not guessed.
func (c *Table) unnamed(first []string) error {
	header, _, err := headed(first, c.rest, -1)
	of := cmp.Or(c.o.DimOf, "the model")
	switch {
	case c.o.Header == "yes" || c.o.Header == "auto" && header && err == nil:
		return fmt.Errorf("none of the columns %s of %s is here: there are %s",
			nameList(c.o.Columns), of, nameList(first))
	case !c.o.TargetOptional:
		return nil
	}
	numbers := 0
	for _, column := range c.o.Drop {
		if isIndex(column) {
			numbers++
		}
	}
	if n := len(first) - numbers; n > c.o.Dim {
		return fmt.Errorf("%d columns without a header, and %d features of %s: if column %d has the answers, "+
			"say --target %d; leave out by --drop what is no feature",
			len(first), c.o.Dim, of, len(first), len(first)-1)
	}
	return nil
}

// byPlace finds the columns that the options name, the others being features; named reports whether one was found by
// its name.
func (c *Table) byPlace(first []string) (named bool, err error) {
	claim := func(flag, column string) int {
		j, byName, e := findColumn(first, column)
		if e == nil && c.role[j] != "" && flag != "drop" {
			e = fmt.Errorf("column %d is in --%s too: each has one use, and --target names the target", j, c.role[j])
		}
		if e != nil {
			err = cmp.Or(err, fmt.Errorf("%s: %w", flag, e))
			return -1
		}
		c.role[j], named = flag, named || byName
		return j
	}
	o := c.o
	if err := c.severalTargets(first); err != nil {
		return false, err
	}
	for _, column := range o.Drop {
		if o.TargetOptional && (len(first) == o.Dim || !isIndex(column) && !slices.Contains(first, column)) {
			continue // the features alone, or a name that need not be there
		}
		if column == o.Groups {
			continue // which other files drop
		}
		claim("drop", column)
	}
	if o.Weights != "" {
		c.weight = claim("weights", o.Weights)
	}
	if o.Groups != "" {
		c.group = claim("groups", o.Groups)
	}
	left := len(first) - len(c.role)
	if c.target = -1; o.Target != "none" && (left != o.Dim || o.Target != "" && !o.TargetOptional) {
		if c.target = claim("target", cmp.Or(o.Target, "-1")); c.target < 0 && o.TargetOptional && o.Dim > 0 {
			err = fmt.Errorf("%s, and %w", o.wrongDim(left), err)
		}
	}
	if c.target >= 0 {
		for _, name := range o.More {
			c.more, c.others = append(c.more, claim("target", name)), append(c.others, nil)
		}
	}
	for j := range first {
		if c.role[j] == "" {
			c.keep = append(c.keep, j)
		}
	}
	for _, k := range o.Categorical {
		flag := map[bool]string{false: "categorical", true: "dates"}[k.Dates != nil]
		if j := claim(flag, k.Column); j >= 0 {
			c.words[j] = newCategory(k)
		}
	}
	return named, err
}

// severalTargets splits a target that is no column's name, but names separated by commas, quoted as in a csv file.
func (c *Table) severalTargets(first []string) error {
	if !strings.Contains(c.o.Target, ",") || slices.Contains(first, c.o.Target) {
		return nil
	}
	names, err := csv.NewReader(strings.NewReader(c.o.Target)).Read()
	if err != nil {
		return fmt.Errorf("target %s: %w", quote(c.o.Target), err)
	}
	if c.o.Target, c.o.More = names[0], names[1:]; len(names) > 1 {
		if c.o.Task == "classification" {
			return fmt.Errorf("--target %s: several targets need --task regression", plain(joinNames(names)))
		}
		c.o.Task = "regression"
	}
	return nil
}

// isHeader decides whether the first row is a header.
func (c *Table) isHeader(first []string, named bool) (bool, error) {
	yes, why := named, "it has the names that are asked for"
	switch {
	case c.o.Header == "yes" || c.o.Header == "no":
		yes, why = c.o.Header == "yes", "--header"
	case !named:
		var err error
		if yes, why, err = headed(first, c.rest, c.target); err != nil {
			return false, err
		}
	}
	c.read.Header = map[bool]string{true: "yes (", false: "no ("}[yes] + why + ")"
	return yes, nil
}

// isIndex reports whether a column is given by its number.
func isIndex(column string) bool {
	_, err := strconv.Atoi(column)
	return err == nil
}

// findColumn returns the column that is given by its number, from the end if it is negative, or
// by its name in the first row.
func findColumn(first []string, column string) (col int, named bool, err error) {
	w := len(first)
	i, err := strconv.Atoi(column)
	if err != nil {
		i, caseDiffers := newWordIndex(first).find(column)
		if i == noPlace || caseDiffers {
			return 0, false, fmt.Errorf("no column is named %s: %s", quote(column), namesIn(first))
		}
		if i == severalPlaces {
			return 0, false, fmt.Errorf("several columns are named %s: say which by its number, counted from 0",
				quote(column))
		}
		return i, true, nil
	}
	if i < -w || i >= w {
		named := ""
		if j := slices.Index(first, column); j >= 0 {
			named = fmt.Sprintf("; %q is in column %d", column, j)
		}
		return 0, false, fmt.Errorf("column %d: the rows have %d columns, 0 to %d%s", i, w, w-1, named)
	}
	return (i + w) % w, false, nil
}

// namesIn says which names the first row has.
func namesIn(first []string) string {
	names := slices.DeleteFunc(slices.Clone(first), func(cell string) bool { return kindOf(cell) == number })
	if len(names) == 0 {
		return "the first row has numbers only; give the column by its number, counted from 0"
	}
	return "there are " + nameList(names)
}
