package datasets

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The format, separator and header of a file are decided by its first windowBytes bytes, and by at most windowRows rows
// of these. Larger values make the decisions more reliable and the start slower.
const (
	windowBytes = 1 << 16
	windowRows  = 200
)

// separators are the separators of cells that are recognized automatically, with their names, the most likely first. A
// blank stands for a run of blanks and tabs.
var separators = []struct {
	sep  rune
	name string
}{{';', "semicolon"}, {',', "comma"}, {'\t', "tab"}, {'|', "pipe"}, {' ', "blank"}}

// ParseSeparator returns the separator that a word stands for: a single character, or a character given by its name. It
// returns 0 for "auto" and "".
func ParseSeparator(word string) (rune, error) {
	for _, separator := range separators {
		if word == separator.name {
			return separator.sep, nil
		}
	}
	switch runes := []rune(strings.ReplaceAll(word, `\t`, "\t")); {
	case word == "" || word == "auto":
		return 0, nil
	case len(runes) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", runes[0]):
		return runes[0], nil
	}
	return 0, fmt.Errorf("separator %s: want auto, one character, or comma, semicolon, tab, pipe or blank", quote(word))
}

// separatorName returns the name of a separator, or the character in quotes if it has no name.
func separatorName(sep rune) string {
	for _, separator := range separators {
		if sep == separator.sep {
			return separator.name
		}
	}
	return strconv.Quote(string(sep))
}

// splitRecords calls visit with the cells of each record of a table, the line of the record, counted from 0, and the
// line after it, until visit returns false. The cells are trimmed and valid only during the call. If the separator is a
// blank, a run of blanks and tabs separates two cells, and blanks at the ends of a line separate none. Text that
// contains quotes, and text with comments, is split by encoding/csv.
func splitRecords(text []byte, sep, comment rune, visit func(cells []string, line, nextLine int) bool) error {
	if sep == ' ' {
		text = blanksForTabs(text, comment)
	}
	if comment == 0 && bytes.IndexByte(text, '"') < 0 {
		splitPlainRecords(string(text), sep, visit)
		return nil
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.Comment, r.TrimLeadingSpace, r.FieldsPerRecord, r.ReuseRecord = sep, comment, sep != '\t', -1, true
	for {
		cells, err := r.Read()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if n := len(cells); sep == ' ' && n > 1 && cells[n-1] == "" {
			cells = cells[:n-1]
		}
		line, _ := r.FieldPos(0)
		nextLine := line
		for j, cell := range cells {
			nextLine += strings.Count(cell, "\n")
			cells[j] = strings.TrimSpace(cell)
		}
		if !visit(cells, line-1, nextLine) {
			return nil
		}
	}
}

// blanksForTabs returns text with a blank for each tab that is neither in quotes nor in a comment.
func blanksForTabs(text []byte, comment rune) []byte {
	if bytes.IndexByte(text, '"') < 0 {
		return bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	text = bytes.Clone(text)
	isQuoted, inComment, commentStart := false, false, []byte(string(comment))
	for i, char := range text {
		if !isQuoted && (i == 0 || text[i-1] == '\n') {
			inComment = comment != 0 && bytes.HasPrefix(text[i:], commentStart)
		}
		switch {
		case inComment:
		case char == '"':
			isQuoted = !isQuoted
		case char == '\t' && !isQuoted:
			text[i] = ' '
		}
	}
	return text
}

// splitPlainRecords is splitRecords for text without quotes and comments.
func splitPlainRecords(text string, sep rune, visit func(cells []string, line, nextLine int) bool) {
	var cells []string
	lineCount, separator := 0, string(sep)
	for line := range strings.Lines(text) {
		lineCount++
		if strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") == "" {
			continue
		}
		cells = cells[:0]
		for hasMore := true; hasMore; {
			var cell string
			if sep == ' ' {
				line = strings.TrimSpace(line)
			}
			cell, line, hasMore = strings.Cut(line, separator)
			cells = append(cells, strings.TrimSpace(cell))
		}
		if !visit(cells, lineCount-1, lineCount) {
			return
		}
	}
}

// firstRows returns the first rows of a text, the result of Source.Head. If the text is longer than that, the last row
// may be incomplete and is omitted.
func firstRows(head []byte, sep, comment rune) (rows [][]string) {
	// An error is reported when the file is read.
	_ = splitRecords(head, sep, comment, func(cells []string, _, _ int) bool {
		if len(cells) > 1 || cells[0] != "" {
			rows = append(rows, slices.Clone(cells))
		}
		return len(rows) < windowRows
	})
	if len(head) == windowBytes && len(rows) > 1 && len(rows) < windowRows {
		rows = rows[:len(rows)-1]
	}
	return rows
}

// commonWidth returns the most frequent number of cells of a row, and the number of rows that have it. A first row with
// one cell less, the form in which R writes a header, counts as one of them.
func commonWidth(rows [][]string) (width, rowsOfWidth int) {
	rowCount := map[int]int{}
	for _, row := range rows {
		if rowCount[len(row)]++; rowCount[len(row)] > rowsOfWidth || rowCount[len(row)] == rowsOfWidth &&
			len(row) > width {
			width, rowsOfWidth = len(row), rowCount[len(row)]
		}
	}
	if rowsOfWidth > 1 && isRowNameHeader(rows, width) {
		rowsOfWidth++
	}
	return width, rowsOfWidth
}

// isRowNameHeader reports whether the first row is a header that does not name the column of row names: it has one cell
// less than all other rows.
func isRowNameHeader(rows [][]string, width int) bool {
	if len(rows) < 3 || len(rows[0]) != width-1 {
		return false
	}
	return !slices.ContainsFunc(rows[1:], func(row []string) bool { return len(row) != width || row[width-1] == "" }) &&
		!slices.ContainsFunc(rows[0], func(cell string) bool { return kindOf(cell) != wordCell })
}

// chooseSeparator chooses the separator of the cells and returns the reason. The score of a separator is the share of
// rows that have the most frequent width, which must be at least 2, plus the share of cells that are numbers, minus the
// share of cells that contain another separator. (The separator itself is in a cell only in quotes.) It returns an
// error if two separators have the best score; only a blank yields to another separator. If no separator gives two
// cells, the table has one column.
func chooseSeparator(head []byte, comment rune) (sep rune, reason string, err error) {
	bestScore, tiedSeparator := 0.0, rune(0) // tiedSeparator is another separator with the best score, or 0
	for _, separator := range separators {
		otherSeparators := strings.ReplaceAll(";,\t|", string(separator.sep), "")
		rows := firstRows(head, separator.sep, comment)
		width, rowsOfWidth := commonWidth(rows)
		if width < 2 {
			continue
		}
		numbers, cells := 0, 0
		for _, row := range rows {
			for _, cell := range row {
				cells++
				switch {
				case kindOf(cell) != wordCell:
					numbers++
				case strings.ContainsAny(cell, otherSeparators):
					numbers--
				}
			}
		}
		score := float64(rowsOfWidth)/float64(len(rows)) + float64(numbers)/float64(cells)
		if sep != 0 && score == bestScore && separator.sep != ' ' {
			tiedSeparator = separator.sep
		}
		if sep == 0 || score > bestScore {
			sep, bestScore, tiedSeparator = separator.sep, score, 0
			reason = fmt.Sprintf("%d cells in %d of %d rows", width, rowsOfWidth, len(rows))
		}
	}
	switch {
	case tiedSeparator != 0:
		return 0, "", fmt.Errorf("cells may be separated by a %s or a %s: say which by --format separator=",
			separatorName(sep), separatorName(tiedSeparator))
	case sep == 0:
		return ',', "one column", nil
	}
	return sep, reason, nil
}

// headerEvidence describes the first row and the rows below it, to decide whether the first row is a header. The
// integers are numbers of columns.
type headerEvidence struct {
	numbers  []float64 // the numbers in the first row; 0 for a number in a local form, such as with a decimal comma
	allPlain bool      // none of the numbers is in a local form
	noValues bool      // no cell of the first row, other than the target's, has a value

	words                   int // columns with a word in the first row
	wordsOverNumbers        int // columns with a word above numbers
	featureWordsOverNumbers int // columns with a word above numbers, except the target
	repeatedWords           int // columns whose word in the first row is in later rows too
	newTargetWords          int // 1 if the target's word is new although later words are frequent, else 0
	fractionColumns         int // columns with numbers that are not whole
}

// gatherEvidence returns the evidence of the first row and the next rows. target is the column of the answers.
//
// newTargetWords is 1 if the word of the target in the first row does not occur in the next rows, of which there are at
// least ten, although the values of this column repeat (minRowsPerClass rows for each on average).
func gatherEvidence(firstRow []string, nextRows [][]string, target int) *headerEvidence {
	e := &headerEvidence{allPlain: true, noValues: true}
	for j, cell := range firstRow {
		kind, kindCount, textCount, allWhole := kindOf(cell), [localCell + 1]int{}, map[string]int{}, true
		for _, row := range nextRows {
			if j < len(row) {
				kindCount[kindOf(row[j])]++
				textCount[row[j]]++
				allWhole = allWhole && !strings.ContainsAny(row[j], ".eE")
			}
		}
		if e.noValues = e.noValues && (kind == missingCell || j == target && len(firstRow) > 1); !allWhole {
			e.fractionColumns++
		}
		if kind == numberCell || kind == localCell {
			v, _ := parseNumber(cell)
			e.numbers, e.allPlain = append(e.numbers, v), e.allPlain && kind == numberCell
		}
		if kind != wordCell {
			continue
		}
		switch e.words++; {
		case 10*kindCount[wordCell] < kindCount[numberCell]+kindCount[localCell]: // a few words may be typing errors
			if e.wordsOverNumbers++; j != target {
				e.featureWordsOverNumbers++
			}
		case textCount[cell] > 0:
			e.repeatedWords++
		case j == target && len(nextRows) >= 10 && len(textCount)*minRowsPerClass <= len(nextRows):
			e.newTargetWords++
		}
	}
	return e
}

// guessHeader decides whether the first row is a header, and returns the reason. target is the column of the answers.
//
// A column of numbers below a word indicates a header. So do numbers in the first row that count the columns or
// increase, as years and wavelengths do, next to a word that is in no other row. Words that are in other rows too
// indicate that there is no header. It returns an error if the evidence is contradictory. The smallest numbers of rows
// and columns in the conditions are judgments: few numbers may increase or count by chance.
func guessHeader(firstRow []string, nextRows [][]string, target int) (isHeader bool, reason string, err error) {
	const either = "say --format header=yes if it is a header, --format header=no if it is none"
	e := gatherEvidence(firstRow, nextRows, target)
	n := len(e.numbers)
	newWords := e.wordsOverNumbers+e.newTargetWords > 0 // some word of the first row is not a value
	isIncreasing := e.allPlain && n > 1
	for i := 1; i < n; i++ {
		isIncreasing = isIncreasing && e.numbers[i] > e.numbers[i-1]
	}
	countsColumns := isIncreasing && (e.numbers[0] == 0 || e.numbers[0] == 1) &&
		e.numbers[n-1] == e.numbers[0]+float64(n-1)
	switch {
	case e.noValues:
		return false, "the first row has no values", nil
	case n == 0 && (e.wordsOverNumbers > 0 || e.repeatedWords == 0):
		return true, "words", nil
	case n == 0:
		return false, "the words of the first row are in others too", nil
	case countsColumns && e.words > 0 && e.repeatedWords == 0 && newWords,
		// 0, 1, 2, … above measured numbers.
		countsColumns && e.words == 0 && n > 2 && 2*e.fractionColumns > len(firstRow):
		return true, "numbers that count the columns", nil
	case countsColumns && e.words == 0 && n > 4 && len(nextRows) >= 10: // above whole numbers
		return false, "", fmt.Errorf("the first row counts the columns: %s", either)
	case isIncreasing && newWords && e.featureWordsOverNumbers == 0 && e.repeatedWords == 0 &&
		(e.wordsOverNumbers > 0 || n > 2):
		return true, "numbers that rise, and the word " + quote(firstRow[target]), nil
	case isIncreasing && e.newTargetWords > 0:
		return false, "", fmt.Errorf("%s of the first row is in no other: %s", quote(firstRow[target]), either)
	}
	return false, "the first row has numbers", nil
}
