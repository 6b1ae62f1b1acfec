package golang

import (
	"fmt"
	"go/format"
	"regexp"
	"strings"
)

// cellMark matches the comment that begins a part of a program. Its groups are the number of a code cell, the kind of
// another cell, the command of a compiled cell, and tags.
var cellMark = regexp.MustCompile(
	`(?m)^\t?// %% (?:helpers|(?:declarations of )?cell (\d+)|\[(markdown|raw)\])( %%go)?(?: tags=\["(.*)"\])?$`)

var (
	programStart = regexp.MustCompile(`(?s)^.*?\npackage main\n|^package main\n`)
	mainStart    = regexp.MustCompile(`(?m)^func main\(\) \{\n`)
	lineComment  = regexp.MustCompile(`(?m)^\t?// ?`)
	commentMarks = regexp.MustCompile(`// ?krrlab: ?`) // go/format may move the space
	// shownLast matches the call that shows the values of the last line of a cell, up to the end of the cell.
	shownLast = regexp.MustCompile(
		`(?ms)^(?:showLast|showOrFail)\((.*?)\)((?:[ \t]*(?://[^\n]*)?\n)*(?:[ \t]*//[^\n]*)?)\z`)
)

// ProgramCells returns the cells of a program that Session.Program has written. The program is in the percent format of
// jupytext: a comment such as "// %% cell 3" begins a cell. A program without such comments is one cell.
func ProgramCells(src []byte) (cells []NotebookCell, err error) {
	text := string(src)
	if _, err := format.Source(src); err != nil {
		return nil, err
	}
	text = programStart.ReplaceAllString(text, "")
	m := mainStart.FindStringIndex(text)
	if m == nil || !cellMark.MatchString(text) {
		return []NotebookCell{{Kind: "code", Text: strings.TrimSpace(text)}}, nil
	}
	declared := map[string]string{} // declarations, by the number of their cell; the first one has the imports
	head := splitMarks(text[:m[0]], func(mark []string, content string) { declared[mark[1]] += content + "\n\n" })
	declared["1"] = head + "\n\n" + declared["1"]
	delete(declared, "") // the helpers
	splitMarks(text[m[1]:strings.LastIndexByte(text, '}')], func(mark []string, content string) {
		c := NotebookCell{Kind: mark[2]}
		if mark[4] != "" {
			c.Tags = strings.Split(mark[4], `", "`)
		}
		switch {
		case c.Kind != "":
			c.Text = lineComment.ReplaceAllString(content, "")
		case mark[1] == "": // helpers
			return
		default:
			c.Kind = "code"
			if code, err := format.Source([]byte(content)); err == nil { // without the indentation of main
				content = string(code)
			}
			content = commentMarks.ReplaceAllString(declared[mark[1]]+content, "")
			c.Text = strings.TrimSpace(shownLast.ReplaceAllString(content, "$1$2"))
			if mark[3] != "" {
				c.Text = "%%go\n" + c.Text
			}
			delete(declared, mark[1])
		}
		cells = append(cells, c)
	})
	for number := range declared {
		return nil, fmt.Errorf("declarations of cell %s, but no such cell in main", number)
	}
	return cells, nil
}

// splitMarks calls f with the groups of each mark in text and with the text up to the next mark, without white space
// around it. It returns the text before the first mark.
func splitMarks(text string, f func(mark []string, content string)) (head string) {
	marks := cellMark.FindAllStringSubmatch(text, -1)
	parts := cellMark.Split(text, -1)
	for i, mark := range marks {
		f(mark, strings.TrimSpace(parts[i+1]))
	}
	return strings.TrimSpace(parts[0])
}
