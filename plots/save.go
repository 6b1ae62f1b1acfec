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

// DotsPerInch is the resolution of PNG images.
const DotsPerInch = 160

// CheckFormat returns an error if Save cannot write a file with this name, because its extension is not that of a known
// format. Call it before a long computation whose figure is to be saved.
func CheckFormat(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg", ".png", ".pdf", ".html":
		return nil
	}
	return fmt.Errorf("plots: %s: the name of a figure ends in .svg, .png, .pdf or .html", path)
}

// Save writes the figure to a file in the format of its extension: .svg, .png, .pdf, or .html for an interactive page.
// The file is written atomically: after an error an existing file is unchanged.
func (f *Figure) Save(path string) error {
	if err := CheckFormat(path); err != nil {
		return err
	}
	encoded, err := f.encode(strings.ToLower(filepath.Ext(path))[1:])
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, encoded)
}

// SVG returns the figure as an SVG document. Jupyter kernels for Go call this method to display the figure, so it
// returns no error: if Validate returns one, the document shows its text.
func (f *Figure) SVG() string { return string(f.encodeOrShowError("svg")) }

// PNG returns the figure as a PNG image. If Validate returns an error, the image shows its text. It returns nil if the
// program does not import package plots/draw.
func (f *Figure) PNG() []byte { return f.encodeOrShowError("png") }

// Drawer draws valid figures. Package plots/draw registers one.
type Drawer interface {
	// Draw encodes a figure in the format "svg", "png" or "pdf".
	Draw(f *Figure, format string) ([]byte, error)
	// DrawText encodes a picture of a line of text in the format "svg" or "png".
	DrawText(line, format string) []byte
	// Interactive returns a figure as an SVG element, and the data for its script as JSON.
	Interactive(f *Figure) (svg, data string)
}

// drawer is the registered Drawer, or nil.
var drawer Drawer

// Register makes d the Drawer of all figures. Package plots/draw calls it when it is imported.
func Register(d Drawer) { drawer = d }

// encodeOrShowError encodes the figure in the format "svg" or "png". If the figure cannot be drawn, the result is a
// picture of the error, or nil for "png" without a Drawer.
func (f *Figure) encodeOrShowError(format string) []byte {
	encoded, err := f.encode(format)
	switch {
	case err == nil:
		return encoded
	case drawer != nil:
		return drawer.DrawText(text.OneLine(err.Error()), format)
	case format == "svg":
		return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="30"><text y="20">` +
			html.EscapeString(err.Error()) + "</text></svg>")
	}
	return nil
}

// encode returns the figure in the format "svg", "png", "pdf" or "html".
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.checkDrawable(); err != nil {
		return nil, err
	}
	if format == "html" {
		return f.page(), nil
	}
	return drawer.Draw(f, format)
}

// checkDrawable returns an error if the figure is not valid or if no Drawer is registered.
func (f *Figure) checkDrawable() error {
	if err := f.Validate(); err != nil || drawer != nil {
		return err
	}
	return errors.New(`plots: this program cannot draw figures: it has to import _ "github.com/krrlab/lab/plots/draw"`)
}
