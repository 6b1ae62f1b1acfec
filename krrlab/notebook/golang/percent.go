package golang

import (
	"fmt"
	"go/format"
	"regexp"
	"strings"
)

// cellMark matches the comment that begins a part of a program.
var cellMark = regexp.MustCompile(
	`(?m)^\t?// %% (?:helpers|(?:declarations of )?cell (\d+)|\[(markdown|raw)\])( %%go)?(?: tags=\["(.*)"\])?$`)

// Indices of the groups of cellMark. A group is "" if the comment does not have that part.
const (
	markNumber   = iota + 1 // number of a code cell
	markKind                // kind of another cell
	markCompiled            // command of a compiled cell
	markTags                // tags of the cell, separated by ", "
)

var (
	programStart = regexp.MustCompile(`(?s)^.*?\npackage main\n|^package main\n`)
	mainStart    = regexp.MustCompile(`(?m)^func main\(\) \{\n`)
	lineComment  = regexp.MustCompile(`(?m)^\t?// ?`)
	// anyCommentMark matches commentMark also after go/format has inserted a space into it or removed its last one.
	anyCommentMark = regexp.MustCompile(`// ?krrlab: ?`)
	// lastShowCall matches the call that shows the values of the last line of a cell, up to the end of the cell.
	lastShowCall = regexp.MustCompile(
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
	mainRange := mainStart.FindStringIndex(text)
	if mainRange == nil || !cellMark.MatchString(text) {
		return []NotebookCell{{Kind: "code", Text: strings.TrimSpace(text)}}, nil
	}
	declarations := map[string]string{} // by the number of their cell; those of cell 1 include the imports
	head := splitMarks(text[:mainRange[0]], func(mark []string,
		content string) {
		declarations[mark[markNumber]] += content + "\n\n"
	})
	declarations["1"] = head + "\n\n" + declarations["1"]
	delete(declarations, "") // the helpers
	splitMarks(text[mainRange[1]:strings.LastIndexByte(text, '}')], func(mark []string, content string) {
		cell := NotebookCell{Kind: mark[markKind]}
		if mark[markTags] != "" {
			cell.Tags = strings.Split(mark[markTags], `", "`)
		}
		switch {
		case cell.Kind != "":
			cell.Text = lineComment.ReplaceAllString(content, "")
		case mark[markNumber] == "": // helpers
			return
		default:
			cell.Kind = "code"
			if code, err := format.Source([]byte(content)); err == nil { // without the indentation of main
				content = string(code)
			}
			content = anyCommentMark.ReplaceAllString(declarations[mark[markNumber]]+content, "")
			cell.Text = strings.TrimSpace(lastShowCall.ReplaceAllString(content, "$1$2"))
			if mark[markCompiled] != "" {
				cell.Text = "%%go\n" + cell.Text
			}
			delete(declarations, mark[markNumber])
		}
		cells = append(cells, cell)
	})
	for number := range declarations {
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
