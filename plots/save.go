package plots

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// DotsPerInch is the resolution of PNG.
const DotsPerInch = 160

// format returns "svg", "png" or "pdf" for a file name.
func format(path string) (string, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg", ".png", ".pdf":
		return ext[1:], nil
	case "":
		return "", fmt.Errorf("plots: %s has no extension; a figure is written as .svg, .png or .pdf", path)
	default:
		return "", fmt.Errorf("plots: %s: a figure cannot be written as %s, only as .svg, .png or .pdf", path, ext)
	}
}

// CheckFormat reports whether Save knows the format that a file's name asks for; ask
// before a long computation whose figure is to be saved.
func CheckFormat(path string) error {
	_, err := format(path)
	return err
}

// Save writes the figure to a file in the format of its extension: .svg, .png or
// .pdf. The file is written whole or not at all: on an error, what was there before
// is still there.
func (f *Figure) Save(path string) error {
	ext, err := format(path)
	if err != nil {
		return err
	}
	b, err := f.encode(ext)
	if err != nil {
		return err
	}
	return writeFile(path, b)
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
	b, err = render(format, 6.5, 0.5, func(p pen, w, h vg.Length) {
		size := tickSize * min(1, (w-2*margin)/textWidth(message, tickSize, false))
		p.SetColor(paper)
		p.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
		p.text(message, vg.Point{X: margin, Y: h/2 - size*0.35}, size, ink, 0, false, false)
	})
	if err != nil { // writing to memory does not fail
		panic(err)
	}
	if format == "svg" {
		b = describe(b, "", message)
	}
	return b
}

// encode draws the figure in one of the three formats.
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w, h := f.size()
	b, err := render(format, w, h, f.drawTo)
	if err == nil && format == "svg" {
		b = describe(b, f.Title, f.Caption)
	}
	return b, err
}

// render draws on a canvas of so many inches in one of the three formats.
func render(format string, width, height float64, draw func(p pen, w, h vg.Length)) ([]byte, error) {
	w, h := vg.Length(width)*vg.Inch, vg.Length(height)*vg.Inch
	var buf bytes.Buffer
	switch format {
	case "svg":
		c := vgsvg.New(w, h)
		draw(pen{Canvas: c, flows: true}, w, h)
		_, err := c.WriteTo(&buf)
		return flow(buf.Bytes()), err
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(DotsPerInch), vgimg.UseBackgroundColor(paper))
		draw(pen{Canvas: c}, w, h)
		return encodePNG(c.Image())
	case "pdf":
		c := vgpdf.New(w, h)
		draw(pen{Canvas: c, outline: true}, w, h)
		_, err := c.WriteTo(&buf)
		return pdfDate.ReplaceAll(buf.Bytes(), []byte("${1}20000101000000")), err
	}
	return nil, fmt.Errorf("plots: a figure cannot be written as %q, only as svg, png or pdf", format)
}

// pdfDate finds the dates in a PDF file, which are replaced by one of the same length:
// the file's table of offsets stays right, and the same figure gives the same bytes.
var pdfDate = regexp.MustCompile(`(/(?:Creation|Mod)Date \(D:)\d{14}`)

// fontFamily finds the font of a text in SVG. Its substitutes have the same metrics.
var fontFamily = regexp.MustCompile(`font-family:[^;"]*`)

// describe puts the title and the caption into an SVG document, for those who listen
// to it, and names substitutes for the font.
func describe(svg []byte, title, caption string) []byte {
	svg = fontFamily.ReplaceAll(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
	head, body, ok := bytes.Cut(svg, []byte(">\n<g"))
	if !ok {
		return svg
	}
	var b bytes.Buffer
	b.Write(bytes.Replace(head, []byte("<svg "), []byte(`<svg role="img" `), 1))
	b.WriteString(">\n")
	if title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(oneLine(title)))
	}
	if caption != "" {
		fmt.Fprintf(&b, "<desc>%s</desc>\n", html.EscapeString(oneLine(caption)))
	}
	b.WriteString("<g")
	b.Write(body)
	return b.Bytes()
}

// writeFile writes a file through a temporary one beside it.
func writeFile(path string, b []byte) (err error) {
	defer func() {
		var pe *os.PathError
		var le *os.LinkError
		switch {
		case errors.As(err, &pe):
			err = fmt.Errorf("plots: cannot write %s: %w", path, pe.Err)
		case errors.As(err, &le):
			err = fmt.Errorf("plots: cannot write %s: %w", path, le.Err)
		}
	}()
	if st, e := os.Stat(path); e == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return fmt.Errorf("plots: cannot write %s: it is a folder", path)
		}
		return os.WriteFile(path, b, 0o644) // a device or a pipe
	}
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.Close()
			os.Remove(t.Name())
		}
	}()
	if _, err = t.Write(b); err != nil {
		return err
	}
	if err = t.Chmod(0o644); err != nil {
		return err
	}
	if err = t.Close(); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
