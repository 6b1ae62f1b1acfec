package notebook

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/plots"
)

//go:embed page.html
var pageHTML string

// pageTemplate is the template of the page of exportHTML.
var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// htmlPage is the data of pageTemplate.
type htmlPage struct {
	Title string
	Cells []pageCell
}

// pageCell is a cell of a page.
type pageCell struct {
	Markdown template.HTML // the converted text of a cell of Markdown, else ""
	Code     string        // the source of the cell, which is shown unless Markdown is set
	Number   any           // execution count, nil if the cell was not run
	Outputs  []pageOutput
}

// pageOutput is an output of a cell: HTML, or text with a CSS class.
type pageOutput struct {
	HTML        template.HTML
	Text, Class string
}

// exportHTML returns a notebook with its outputs as a self-contained HTML document. The only external references are
// links in the notebook's own text. Formulas are converted to MathML; formulas with commands that mathML does not
// support remain in TeX.
func exportHTML(file string, notebook map[string]any) ([]byte, error) {
	page := htmlPage{Title: strings.TrimSuffix(filepath.Base(file), ".ipynb")}
	var out bytes.Buffer
	err := page.addCells(notebook["cells"])
	if err == nil {
		err = pageTemplate.Execute(&out, page)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return []byte(plots.KeepLastScript(out.String())), nil
}

// addCells adds the cells of a notebook to a page. If the first cell is Markdown with a heading of the first level,
// this heading becomes the title of the page.
func (p *htmlPage) addCells(cells any) error {
	encoded, err := json.Marshal(cells) // gives the outputs of this run the same types as those read from the file
	if err != nil {
		return err
	}
	var saved []struct {
		Type    string           `json:"cell_type"`
		Source  any              `json:"source"`
		Count   any              `json:"execution_count"`
		Outputs []map[string]any `json:"outputs"`
	}
	if err := json.Unmarshal(encoded, &saved); err != nil {
		return err
	}
	for _, savedCell := range saved {
		cell := pageCell{Code: joinLines(savedCell.Source), Number: savedCell.Count}
		switch savedCell.Type {
		case "markdown":
			if heading := firstHeading.FindStringSubmatch(cell.Code); heading != nil && len(p.Cells) == 0 {
				p.Title = heading[1]
			}
			if cell.Markdown, err = markdown(cell.Code); err != nil {
				return err
			}
		case "code":
			for _, output := range savedCell.Outputs {
				cell.Outputs = append(cell.Outputs, outputOnPage(output))
			}
		}
		p.Cells = append(p.Cells, cell)
	}
	return nil
}

// outputOnPage returns an output of a notebook file in the form that a page shows.
func outputOnPage(output map[string]any) pageOutput {
	switch output["output_type"] {
	case "stream":
		name, _ := output["name"].(string)
		return pageOutput{Text: stripANSI(joinLines(output["text"])), Class: name}
	case "error":
		var lines []string
		traceback, _ := output["traceback"].([]any)
		for _, line := range traceback {
			lines = append(lines, fmt.Sprint(line))
		}
		return pageOutput{Text: stripANSI(strings.Join(lines, "\n")), Class: "error"}
	}
	data, _ := output["data"].(map[string]any)
	return richestOutput(data)
}

// firstHeading matches a heading of the first level; group 1 is its text.
var firstHeading = regexp.MustCompile(`(?m)^#\s+(.+?)\s*$`)

// ansiCode matches the codes that control colors and the cursor of a terminal.
var ansiCode = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// stripANSI removes the codes of a terminal from a text.
func stripANSI(s string) string { return ansiCode.ReplaceAllString(s, "") }

// richestOutput returns the most expressive representation of a value: HTML, SVG, PNG, JPEG, Markdown, LaTeX or plain
// text, in this order.
func richestOutput(data map[string]any) pageOutput {
	valueOfType := func(mime string) string { return joinLines(data[mime]) }
	for _, mime := range []string{display.MIMETypeHTML, display.MIMETypeSVG} {
		if s := valueOfType(mime); s != "" {
			if i := strings.Index(s, "<svg"); mime == display.MIMETypeSVG && i > 0 {
				s = s[i:] // omit an XML declaration, which is invalid within HTML
			}
			return pageOutput{HTML: template.HTML(s)}
		}
	}
	for _, mime := range []string{display.MIMETypePNG, display.MIMETypeJPEG} {
		if s := strings.Join(strings.Fields(valueOfType(mime)), ""); s != "" {
			return pageOutput{HTML: template.HTML(`<img alt="picture" src="data:` + mime + `;base64,` +
				template.HTMLEscapeString(s) + `">`)}
		}
	}
	if s := valueOfType(display.MIMETypeMarkdown); s != "" {
		if converted, err := markdown(s); err == nil {
			return pageOutput{HTML: converted}
		}
	}
	if s := valueOfType(display.MIMETypeLatex); s != "" {
		return pageOutput{Text: s}
	}
	return pageOutput{Text: stripANSI(valueOfType(display.MIMETypeText))}
}

// converter converts the Markdown of GitHub with formulas to HTML. HTML in the text is kept.
var converter = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(gmhtml.WithUnsafe()),
	// The priority 150 is after that of code spans, and before those of links and emphasis.
	goldmark.WithParserOptions(parser.WithAutoHeadingID(),
		parser.WithInlineParsers(util.Prioritized(formulaParser{}, 150))))

// markdown converts Markdown to HTML.
func markdown(src string) (template.HTML, error) {
	var converted bytes.Buffer
	err := converter.Convert([]byte(src), &converted)
	return template.HTML(converted.String()), err
}

// formulaParser is a parser of formulas, $x_i$ and $$x_i$$, whose contents must not be read as Markdown.
type formulaParser struct{}

// maxFormula is the maximum length of a formula in bytes; a longer one is left unchanged. It bounds the nesting of
// groups and the search for the end of a formula after each dollar sign.
const maxFormula = 4 << 10

// Trigger implements parser.InlineParser.
func (formulaParser) Trigger() []byte { return []byte{'$'} }

// formulaPattern matches a formula at the start of a text. A formula between single dollar signs is on one line,
// contains no code, and has no blank at its start and end, so that prices are no formulas.
var formulaPattern = regexp.MustCompile(`^(?:\$\$(?s:.+?)\$\$|\$[^\s$` + "`" + `](?:[^$\n` + "`" + `]*[^\s$\\` + "`" +
	`])?\$)`)

// Parse implements parser.InlineParser. A formula that mathML does not support remains in TeX.
func (formulaParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, position := block.Position()
	var ahead []byte
	for nextLine, _ := block.PeekLine(); nextLine != nil && len(ahead) < maxFormula; nextLine, _ = block.PeekLine() {
		ahead = append(ahead, nextLine[:min(len(nextLine), maxFormula-len(ahead))]...)
		block.AdvanceLine()
	}
	block.SetPosition(line, position)
	match := formulaPattern.Find(ahead)
	if match == nil {
		return nil
	}
	block.Advance(len(match))
	if math := mathML(string(match)); math != "" {
		node := ast.NewString([]byte(math))
		node.SetCode(true) // write without escaping
		return node
	}
	node := ast.NewString(match)
	node.SetRaw(true)
	return node
}
