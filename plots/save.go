package plots

import (
	"errors"
	"fmt"
	"html"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/plots/internal/text"
)

// DotsPerInch is the resolution of PNG.
const DotsPerInch = 160

// CheckFormat reports whether Save knows the format that a file's name asks for; ask
// before a long computation whose figure is to be saved.
func CheckFormat(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png", ".pdf", ".html":
		return nil
	}
	return fmt.Errorf("plots: %s: the name of a figure ends in .svg, .png, .pdf or .html", path)
}

// Save writes the figure to a file in the format of its extension: .svg, .png, .pdf, or .html for a page that answers
// (HTML). The file is written whole or not at all: after an error the earlier file is unchanged.
func (f *Figure) Save(path string) error {
	if err := CheckFormat(path); err != nil {
		return err
	}
	b, err := f.encode(strings.ToLower(filepath.Ext(path))[1:])
	if err != nil {
		return err
	}
	return atomicfile.Put(path, b)
}

// SVG returns the figure as an SVG document. It implements a notebook's convention
// that a value shows itself, and so has no error: of a figure that Validate refuses it
// draws the reason. Save returns it.
func (f *Figure) SVG() string { return string(f.show("svg")) }

// PNG returns the figure as a PNG image, of the reason where it cannot be drawn.
func (f *Figure) PNG() []byte { return f.show("png") }

// Drawer draws valid figures. Package plots/draw registers one.
type Drawer interface {
	// Draw returns a figure in the format svg, png or pdf.
	Draw(f *Figure, format string) ([]byte, error)
	// DrawText returns a line of text in the format svg or png.
	DrawText(line, format string) []byte
	// Interactive returns a figure as an SVG element, and the data for its script as JSON.
	Interactive(f *Figure) (svg, data string)
}

var drawer Drawer

// Register sets what draws figures.
func Register(d Drawer) { drawer = d }

// show encodes the figure, or the reason why it cannot be drawn.
func (f *Figure) show(format string) []byte {
	b, err := f.encode(format)
	switch {
	case err == nil:
		return b
	case drawer != nil:
		return drawer.DrawText(text.OneLine(err.Error()), format)
	case format == "svg":
		return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="30"><text y="20">` +
			html.EscapeString(err.Error()) + "</text></svg>")
	}
	return nil
}

// encode draws the figure in one of the formats.
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.drawable(); err != nil {
		return nil, err
	}
	if format == "html" {
		return f.page(), nil
	}
	return drawer.Draw(f, format)
}

// drawable returns an error if the figure is not valid, or nothing draws figures.
func (f *Figure) drawable() error {
	if err := f.Validate(); err != nil || drawer != nil {
		return err
	}
	return errors.New(`plots: this program cannot draw figures: it has to import _ "github.com/krrlab/lab/plots/draw"`)
}
