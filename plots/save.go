package plots

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// DotsPerInch is the resolution of PNG.
const DotsPerInch = 160

// CheckFormat reports whether Save knows the format that a file's name asks for; ask
// before a long computation whose figure is to be saved.
func CheckFormat(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg", ".png", ".pdf":
		return nil
	case "":
		return fmt.Errorf("plots: %s has no extension; a figure is written as .svg, .png or .pdf", path)
	default:
		return fmt.Errorf("plots: %s: a figure cannot be written as %s, only as .svg, .png or .pdf", path, ext)
	}
}

// Save writes the figure to a file in the format of its extension: .svg, .png or
// .pdf. The file is written whole or not at all: on an error, what was there before
// is still there.
func (f *Figure) Save(path string) error {
	if err := CheckFormat(path); err != nil {
		return err
	}
	b, err := f.encode(strings.ToLower(filepath.Ext(path))[1:])
	if err != nil {
		return err
	}
	if err = writeFile(path, b); err != nil {
		return fmt.Errorf("plots: cannot write %s: %w", path, err)
	}
	return nil
}

// Encode writes the figure in a format: "svg", "png" or "pdf".
func (f *Figure) Encode(w io.Writer, format string) error {
	b, err := f.encode(format)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// SVG returns the figure as an SVG document. It implements a notebook's convention
// that a value shows itself, and so has no error: of a figure that Validate refuses it
// draws the reason. Encode and Save return it.
func (f *Figure) SVG() string { return string(f.show("svg")) }

// PNG returns the figure as a PNG image, of the reason where it cannot be drawn.
func (f *Figure) PNG() []byte { return f.show("png") }

// HTML returns the figure as an HTML figure element, inline SVG and the Caption, or,
// where it cannot be drawn, the reason as a pre element.
func (f *Figure) HTML() string {
	b, err := f.encode("svg")
	if err != nil {
		return "<pre>" + html.EscapeString(oneLine(err.Error())) + "</pre>\n"
	}
	s := string(b[bytes.Index(b, []byte("<svg")):])
	s = strings.Replace(s, "<svg ", `<svg style="max-width:100%;height:auto" `, 1)
	caption := ""
	if f.Caption != "" {
		caption = "<figcaption>" + html.EscapeString(f.Caption) + "</figcaption>\n"
	}
	return "<figure>\n" + s + caption + "</figure>\n"
}

// show encodes the figure, or the reason why it cannot be drawn.
func (f *Figure) show(format string) []byte {
	b, err := f.encode(format)
	if err == nil {
		return b
	}
	message := oneLine(err.Error())
	b, err = render(format, 6.5, 0.5, "", message, func(p pen, w, h vg.Length) {
		size := tickSize * min(1, (w-2*margin)/textWidth(message, tickSize, false))
		p.SetColor(paper)
		p.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
		p.text(message, vg.Point{X: margin, Y: h/2 - size*0.35}, size, ink, 0, false, false)
	})
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	return b
}

// encode draws the figure in one of the three formats.
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w, h := f.size()
	return render(format, w, h, f.Title, f.Caption, f.drawTo)
}

// render draws on a canvas of so many inches in one of the three formats; SVG has the
// title and the caption.
func render(format string, width, height float64, title, caption string, draw func(p pen, w, h vg.Length)) ([]byte, error) {
	w, h := vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch
	var buf bytes.Buffer
	switch format {
	case "svg":
		c := vgsvg.New(w, h)
		draw(pen{svgCanvas{c}}, w, h)
		_, err := c.WriteTo(&buf)
		return describe(buf.Bytes(), title, caption), err
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(DotsPerInch), vgimg.UseBackgroundColor(paper))
		draw(pen{c}, w, h)
		return encodePNG(c.Image())
	case "pdf":
		c := vgpdf.New(w, h)
		draw(pen{pdfCanvas{c}}, w, h)
		_, err := c.WriteTo(&buf)
		return pdfDate.ReplaceAll(buf.Bytes(), []byte("${1}20000101000000")), err
	}
	return nil, fmt.Errorf("plots: a figure cannot be written as %q, only as svg, png or pdf", format)
}

// writeFile writes a file through a temporary one beside it. Its errors do not name it.
func writeFile(path string, b []byte) (err error) {
	defer func() {
		if pe := (*os.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		} else if le := (*os.LinkError)(nil); errors.As(err, &le) {
			err = le.Err
		}
	}()
	if st, e := os.Stat(path); e == nil && st.IsDir() {
		return errors.New("it is a folder")
	} else if e == nil && !st.Mode().IsRegular() {
		return os.WriteFile(path, b, 0o644) // a device or a pipe
	}
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name()) // what is left of it
	_, err = t.Write(b)
	if err = cmp.Or(err, t.Chmod(0o644), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
