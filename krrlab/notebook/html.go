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

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// pageCell is a cell as the page shows it.
type pageCell struct {
	Markdown template.HTML
	Code     string
	Number   any
	Outputs  []pageOutput
}

// pageOutput is one output: HTML, or text of a class.
type pageOutput struct {
	HTML        template.HTML
	Text, Class string
}

// exportHTML returns a notebook with its outputs as one HTML document, with nothing outside it but what its own
// text links to. Formulas are MathML, and stay TeX where they have commands beyond mathML's.
func exportHTML(file string, nb map[string]any) ([]byte, error) {
	b, err := json.Marshal(nb) // outputs of this run are of other types than those that were read
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var book struct {
		Cells []struct {
			Type    string `json:"cell_type"`
			Source  any    `json:"source"`
			Count   any    `json:"execution_count"`
			Outputs []struct {
				Type      string         `json:"output_type"`
				Name      string         `json:"name"`
				Text      any            `json:"text"`
				Data      map[string]any `json:"data"`
				Traceback []string       `json:"traceback"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(b, &book); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	page := struct {
		Title string
		Cells []pageCell
	}{Title: strings.TrimSuffix(filepath.Base(file), ".ipynb")}
	for _, c := range book.Cells {
		cell, src := pageCell{Code: source(c.Source), Number: c.Count}, source(c.Source)
		switch c.Type {
		case "markdown":
			if cell.Markdown, err = markdown(src); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if m := firstHeading.FindStringSubmatch(src); m != nil && len(page.Cells) == 0 {
				page.Title = m[1]
			}
		case "code":
			for _, o := range c.Outputs {
				switch o.Type {
				case "stream":
					cell.Outputs = append(cell.Outputs, pageOutput{Text: plain(source(o.Text)), Class: o.Name})
				case "error":
					cell.Outputs = append(cell.Outputs, pageOutput{Text: plain(strings.Join(o.Traceback, "\n")),
						Class: "error"})
				default:
					cell.Outputs = append(cell.Outputs, richest(o.Data))
				}
			}
		}
		page.Cells = append(page.Cells, cell)
	}
	var out bytes.Buffer
	err = pageTemplate.Execute(&out, page)
	return []byte(plots.OneScript(out.String())), err
}

var (
	firstHeading = regexp.MustCompile(`(?m)^#\s+(.+?)\s*$`)
	ansi         = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
)

// plain takes the colors of a terminal out of a text.
func plain(s string) string { return ansi.ReplaceAllString(s, "") }

// richest returns the representation of a value that says most.
func richest(data map[string]any) pageOutput {
	value := func(mime string) string { return source(data[mime]) }
	for _, mime := range []string{display.MIMETypeHTML, display.MIMETypeSVG} {
		if s := value(mime); s != "" {
			if i := strings.Index(s, "<svg"); mime == display.MIMETypeSVG && i > 0 {
				s = s[i:] // an XML declaration has no place within HTML
			}
			return pageOutput{HTML: template.HTML(s)}
		}
	}
	for _, mime := range []string{display.MIMETypePNG, display.MIMETypeJPEG} {
		if s := strings.Join(strings.Fields(value(mime)), ""); s != "" {
			return pageOutput{HTML: template.HTML(`<img alt="picture" src="data:` + mime + `;base64,` +
				template.HTMLEscapeString(s) + `">`)}
		}
	}
	if s := value(display.MIMETypeMarkdown); s != "" {
		if h, err := markdown(s); err == nil {
			return pageOutput{HTML: h}
		}
	}
	if s := value(display.MIMETypeLatex); s != "" {
		return pageOutput{Text: s}
	}
	return pageOutput{Text: plain(value(display.MIMETypeText))}
}

var converter = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(gmhtml.WithUnsafe()),
	// behind code spans, before links and emphasis
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithInlineParsers(util.Prioritized(formulas{}, 150))))

func markdown(src string) (template.HTML, error) {
	var b bytes.Buffer
	err := converter.Convert([]byte(src), &b)
	return template.HTML(b.String()), err
}

// formulas keeps what stands between dollar signs, $x_i$ and $$x_i$$, from being read as Markdown.
type formulas struct{}

// maxFormula is the length in bytes of a formula; a longer one stays as it is written. It bounds how deep groups
// nest, and how far the end of a formula is looked for behind each dollar sign.
const maxFormula = 4 << 10

// Trigger implements parser.InlineParser.
func (formulas) Trigger() []byte { return []byte{'$'} }

var formula = regexp.MustCompile(`^(?:\$\$(?s:.+?)\$\$|\$[^\s$` + "`" + `](?:[^$\n` + "`" + `]*[^\s$\\` + "`" +
	`])?\$)`)

// Parse implements parser.InlineParser.
func (formulas) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, at := block.Position()
	var rest []byte
	for l, _ := block.PeekLine(); l != nil && len(rest) < maxFormula; l, _ = block.PeekLine() {
		rest = append(rest, l[:min(len(l), maxFormula-len(rest))]...)
		block.AdvanceLine()
	}
	block.SetPosition(line, at)
	m := formula.Find(rest)
	if m == nil {
		return nil
	}
	block.Advance(len(m))
	if ml := mathML(string(m)); ml != "" {
		s := ast.NewString([]byte(ml))
		s.SetCode(true) // as it is
		return s
	}
	s := ast.NewString(m)
	s.SetRaw(true)
	return s
}
