package datasets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// ColumnCoding is a column of words or dates in a csv file that is coded by several features. A column of words has one
// feature for each value, which is 1 in rows with this value and 0 in others (one-hot). A missing word is a value like
// any other. A column of dates is coded as DateCoding describes.
type ColumnCoding struct {
	Column string      `json:"column"`           // number or name of the column, in the form of ReadOptions.Target
	Values []string    `json:"values,omitempty"` // in the order of the features; nil: those in the file, sorted
	Dates  *DateCoding `json:"dates,omitempty"`  // coding of a column of dates; nil for words
}

// suffixes returns the suffixes that follow the name of the column in the names of its features; none if the values are
// not known yet.
func (c *ColumnCoding) suffixes() (suffixes []string) {
	if c.Dates != nil {
		return c.Dates.suffixes()
	}
	for _, v := range c.Values {
		suffixes = append(suffixes, "="+v)
	}
	return suffixes
}

// equal reports whether c and otherCoding code the same column by the same features.
func (c *ColumnCoding) equal(otherCoding *ColumnCoding) bool {
	return c.Column == otherCoding.Column && slices.Equal(c.Values, otherCoding.Values) &&
		(c.Dates == nil) == (otherCoding.Dates == nil) &&
		(c.Dates == nil || *c.Dates == *otherCoding.Dates)
}

// isWords reports whether c codes a column of words, and not of dates.
func isWords(c ColumnCoding) bool { return c.Dates == nil }

// UnknownWords lists the words of a categorical column that have no feature, with the number of rows of each.
type UnknownWords struct {
	Column string
	Words  []LabelCount
}

// maxCategories is the largest number of values of a column that is coded. A column with more is unlikely to be
// categorical.
const maxCategories = 1000

// columnCoder is a ColumnCoding while its file is read.
type columnCoder struct {
	ColumnCoding
	codeOf        map[string]int // cache of the codes of known texts, of at most 2·maxCategories of them
	index         *wordIndex     // index of Values; nil if the values are collected from the file
	valueSet      *wordSet       // the values collected from the file
	hasKnownValue bool           // at least one row has a value that is in Values
	dates         *dateReader    // reader of a column of dates; nil for words
	// missingValue is the index in Values of the value that means missing: notFound for none, ambiguous for several.
	missingValue int
	// unknownRows is the number of rows of each word that is not in Values, for the first maxCategories such words.
	unknownRows map[string]int
}

// sourceColumns returns the file columns that the named features were made of. For each column it returns its name, and
// its coder, or nil for a column of numbers.
func sourceColumns(features []string, coded []ColumnCoding) (names []string, coders []*columnCoder) {
	unused := slices.Clone(coded)
	for len(features) > 0 {
		name, count := features[0], 1
		var coder *columnCoder
		if i, base := firstCoding(features, unused); i >= 0 {
			name, count, coder = base, len(unused[i].suffixes()), newColumnCoder(unused[i])
			unused = slices.Delete(unused, i, i+1)
		}
		names, coders, features = append(names, name), append(coders, coder), features[count:]
	}
	return names, coders
}

// firstCoding finds the coding in unused that produced the first of the named features. It returns the index of the
// coding and the name of its column, or notFound if no coding has these features. A coding that names its column is
// preferred. Otherwise it returns, among the codings with these features that give their column by a number, the one
// with the smallest number. If one number counts from the start of a row (0, 1, …) and another one from its end (-1,
// -2, …), it prefers the coding that is earlier in unused.
func firstCoding(features []string, unused []ColumnCoding) (codingIndex int, name string) {
	codingIndex = notFound
	var firstNumber int
	for i := range unused {
		base, ok := unused[i].matchFeatures(features)
		if !ok {
			continue
		}
		number, err := strconv.Atoi(unused[i].Column)
		if err != nil {
			if k, caseDiffers := newWordIndex([]string{base}).find(unused[i].Column); k == 0 && !caseDiffers {
				return i, base
			}
		} else if codingIndex == notFound || number < firstNumber && (number < 0) == (firstNumber < 0) {
			codingIndex, firstNumber, name = i, number, base
		}
	}
	return codingIndex, name
}

// matchFeatures returns the name of the column of c if the first of the named features have the suffixes of c.
func (c *ColumnCoding) matchFeatures(features []string) (name string, ok bool) {
	suffixes := c.suffixes()
	if len(suffixes) == 0 || len(suffixes) > len(features) {
		return "", false
	}
	name, ok = strings.CutSuffix(features[0], suffixes[0])
	for i, suffix := range suffixes {
		ok = ok && features[i] == name+suffix
	}
	return name, ok
}

// SourceColumn is a column of a file, and the features that were made of it.
type SourceColumn struct {
	// Name is from the header. Without one it is "column 3" of a file, or "feature 3" of other points, counted from 0.
	// It is "lon, lat" for two columns that are projected together.
	Name                       string
	FirstFeature, FeatureCount int           // index of the first feature, and number of features
	Coding                     *ColumnCoding // coding of words or dates; nil for numbers and places
}

// SourceColumns returns the columns that the features of d were made of, in the order of the features. A longitude and
// a latitude that are projected together are one.
func (d *Dataset) SourceColumns() (columns []SourceColumn) {
	if d.Space != nil {
		return d.Space.sourceColumns()
	}
	byColumn := map[string]*ColumnCoding{}
	for i := range d.ColumnCodings {
		byColumn[d.ColumnCodings[i].Column] = &d.ColumnCodings[i]
	}
	names, coders := sourceColumns(d.Columns, d.ColumnCodings)
	for j, k := 0, 0; j < d.Dim(); k++ {
		s := SourceColumn{Name: fmt.Sprintf("feature %d", j), FirstFeature: j, FeatureCount: 1}
		if d.fileColumns != nil {
			s.Name = fmt.Sprintf("column %d", d.fileColumns[j])
			s.Coding = byColumn[strconv.Itoa(d.fileColumns[j])]
		}
		if d.Columns != nil {
			if s.Name, s.Coding = names[k], nil; coders[k] != nil {
				s.Coding = &coders[k].ColumnCoding
			}
		}
		if s.Coding != nil {
			s.FeatureCount = len(s.Coding.suffixes())
		}
		columns, j = append(columns, s), j+s.FeatureCount
	}
	return columns
}

// newColumnCoder returns a coder of the column that coding describes.
func newColumnCoder(coding ColumnCoding) *columnCoder {
	c := &columnCoder{ColumnCoding: coding, codeOf: map[string]int{}, valueSet: newWordSet(), missingValue: notFound,
		unknownRows: map[string]int{}}
	if coding.Dates != nil {
		c.dates = &dateReader{DateCoding: *coding.Dates, isFitted: coding.Dates.Form != ""}
		c.Dates = &c.dates.DateCoding
	}
	if coding.Values == nil {
		return c
	}
	c.index = newWordIndex(coding.Values)
	for i, v := range coding.Values {
		if isMissing(v) && c.missingValue == notFound {
			c.missingValue = i
		} else if isMissing(v) {
			c.missingValue = ambiguous
		}
	}
	return c
}

// encode returns the code of a cell: the index of its value, in the order of first occurrence if the values are
// collected from the file, notFound for an unknown word, or the code of dateReader for a date.
func (c *columnCoder) encode(text string) (float64, error) {
	if c.dates != nil {
		return c.dates.parseCell(text)
	}
	i, ok := c.codeOf[text]
	if !ok {
		if i = c.newCode(text); i == maxCategories {
			return 0, fmt.Errorf("the column has more than %d different values: leave it out by --drop", maxCategories)
		}
		if i >= 0 && len(c.codeOf) < 2*maxCategories {
			c.codeOf[strings.Clone(text)] = i
		}
	}
	c.hasKnownValue = c.hasKnownValue || i >= 0
	if i < 0 && (c.unknownRows[text] > 0 || len(c.unknownRows) < maxCategories) {
		c.unknownRows[strings.Clone(text)]++
	}
	return float64(max(i, notFound)), nil // ambiguous counts as notFound
}

// newCode returns the code of a text that is not in codeOf; a negative number if the value is unknown.
func (c *columnCoder) newCode(text string) (code int) {
	if c.index == nil {
		return c.valueSet.add(text)
	}
	if code, _ = c.index.find(text); code < 0 && isMissing(text) {
		code = c.missingValue
	}
	return code
}

// sortValues sets Values to the sorted collected values, unless they were given, and returns the index in Values of the
// value with each code.
func (c *columnCoder) sortValues() (valueIndex []int) {
	if c.index == nil {
		c.Values = slices.Sorted(slices.Values(c.valueSet.words))
	}
	valueIndex = make([]int, len(c.Values))
	for i := range valueIndex {
		valueIndex[i] = i
		if c.index == nil {
			valueIndex[i], _ = slices.BinarySearch(c.Values, c.valueSet.words[i])
		}
	}
	return valueIndex
}

// report notes which texts were read as a different value, and returns the unknown words, the most frequent first.
// valueIndex is the result of sortValues. report returns an error if no row has a known word.
func (c *columnCoder) report(r *ReadReport, column string, valueIndex []int) (unknownWords UnknownWords, err error) {
	var aliases []string
	for text, code := range c.codeOf {
		// Texts with equal NFC look the same.
		if v := c.Values[valueIndex[code]]; norm.NFC.String(text) != norm.NFC.String(v) {
			aliases = append(aliases, equalityNote(text, v))
		}
	}
	if slices.Sort(aliases); aliases != nil {
		r.note("words taken as equal in %s: %s", column, joinLimited(aliases))
	}
	unknownWords.Column = column
	for text, n := range c.unknownRows {
		unknownWords.Words = append(unknownWords.Words, LabelCount{text, n}) // n rows have the word
	}
	slices.SortFunc(unknownWords.Words, func(a, b LabelCount) int {
		return cmp.Or(b.Rows-a.Rows, strings.Compare(a.Label, b.Label))
	})
	if unknownWords.Words == nil || c.hasKnownValue {
		return unknownWords, nil
	}
	return unknownWords,
		fmt.Errorf("no row has a word that the training data have in this column, in %v; they have %s: write "+
			"the words as there, or fit again with rows that have them", unknownWords, nameList(c.Values))
}

// String returns the column, and its unknown words with their numbers of rows.
func (u UnknownWords) String() string {
	var words []string
	for _, w := range u.Words {
		words = append(words, fmt.Sprintf("%s (%d)", quote(w.Label), w.Rows))
	}
	return fmt.Sprintf("%s: %s", u.Column, joinLimited(words))
}

// finishCoder completes the coding of column j, which is feature column k: it collects the values or decides the order
// of dates, and adds notes. It returns a function that sets the features of a row from the code of its cell; row begins
// with the first feature of the column.
func (t *Table) finishCoder(d *Dataset, j, k int) (setFeatures func(row []float64, code float64), err error) {
	coder := t.columns[j].coder
	if coder.dates != nil {
		if err := coder.dates.decideOrder(); err != nil {
			return nil, err
		}
		coder.dates.setRange(t.featureValues(k))
		if !coder.dates.isFitted || coder.dates.orderIsNew || coder.dates.ignoresTimes {
			t.report.note("%s: %v", t.columnName(j), coder.dates)
		}
		return coder.Dates.setFeatures, nil
	}
	valueIndex := coder.sortValues()
	unknownWords, err := coder.report(t.report, t.columnName(j), valueIndex)
	if unknownWords.Words != nil {
		d.UnknownWords = append(d.UnknownWords, unknownWords)
	}
	return func(row []float64, code float64) {
		if code >= 0 {
			row[valueIndex[int(code)]] = 1
		}
	}, err
}

// encodeColumns replaces the columns of words and dates, whose codes are in t.features, by their features: it sets the
// points, the column names and the ColumnCodings of d.
func (t *Table) encodeColumns(d *Dataset) error {
	if !t.hasCoders {
		return nil
	}
	width, names, fileColumns := 0, []string{}, []int{}
	addFeature := func(name string, column int) {
		width, names, fileColumns = width+1, append(names, name), append(fileColumns, column)
	}
	setFeatures := make([]func(row []float64, code float64), len(t.featureColumns)) // nil for columns of numbers
	firstFeature := make([]int, len(t.featureColumns))
	for k, j := range t.featureColumns {
		name := ""
		if d.Columns != nil {
			name = d.Columns[k]
		}
		coder := t.columns[j].coder
		if firstFeature[k] = width; coder == nil {
			addFeature(name, j)
			continue
		}
		var err error
		if setFeatures[k], err = t.finishCoder(d, j, k); err != nil {
			return t.cellFault(0, j, err)
		}
		for _, suffix := range coder.suffixes() {
			addFeature(name+suffix, j)
		}
	}
	if err := t.source.reserve(8*t.rows*width, t.rows); err != nil {
		return err
	}
	x := points.NewDense(t.rows, width, nil)
	for i := range t.rows {
		for k, v := range t.features[i*len(t.featureColumns) : (i+1)*len(t.featureColumns)] {
			if setFeatures[k] == nil {
				x.Row(i)[firstFeature[k]] = v
			} else {
				setFeatures[k](x.Row(i)[firstFeature[k]:], v)
			}
		}
	}
	d.fileColumns = fileColumns
	if d.X = x; d.Columns != nil {
		d.Columns = names
	}
	for _, j := range t.featureColumns {
		if coder := t.columns[j].coder; coder != nil {
			d.ColumnCodings = append(d.ColumnCodings, coder.ColumnCoding)
		}
	}
	return nil
}
