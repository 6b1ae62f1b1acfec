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

// dotsPerInch is the resolution of PNG.
const dotsPerInch = 160

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

// SVG returns the figure as an SVG document.
func (f *Figure) SVG() (string, error) {
	b, err := f.encode("svg")
	return string(b), err
}

// PNG returns the figure as a PNG image.
func (f *Figure) PNG() ([]byte, error) { return f.encode("png") }

// HTML returns the figure as an HTML figure element: inline SVG, and the Caption.
func (f *Figure) HTML() (string, error) {
	s, err := f.SVG()
	if err != nil {
		return "", err
	}
	s = s[strings.Index(s, "<svg"):]
	caption := ""
	if f.Caption != "" {
		caption = "<figcaption>" + html.EscapeString(f.Caption) + "</figcaption>\n"
	}
	return "<figure>\n" + s + caption + "</figure>\n", nil
}

// encode draws the figure in one of the three formats.
func (f *Figure) encode(format string) ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	wi, hi := f.size()
	w, h := vg.Length(wi)*vg.Inch, vg.Length(hi)*vg.Inch
	var buf bytes.Buffer
	switch format {
	case "svg":
		c := vgsvg.New(w, h)
		f.drawTo(pen{Canvas: c}, w, h)
		if _, err := c.WriteTo(&buf); err != nil {
			return nil, err
		}
		return f.describe(buf.Bytes()), nil
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(paper))
		f.drawTo(pen{Canvas: c}, w, h)
		if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(&buf); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	case "pdf":
		c := vgpdf.New(w, h)
		f.drawTo(pen{Canvas: c, outline: true}, w, h)
		if _, err := c.WriteTo(&buf); err != nil {
			return nil, err
		}
		return pdfDate.ReplaceAll(buf.Bytes(), []byte("${1}20000101000000")), nil
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
func (f *Figure) describe(svg []byte) []byte {
	svg = fontFamily.ReplaceAll(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
	head, body, ok := bytes.Cut(svg, []byte(">\n<g"))
	if !ok {
		return svg
	}
	var b bytes.Buffer
	b.Write(bytes.Replace(head, []byte("<svg "), []byte(`<svg role="img" `), 1))
	b.WriteString(">\n")
	if f.Title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(oneLine(f.Title)))
	}
	if f.Caption != "" {
		fmt.Fprintf(&b, "<desc>%s</desc>\n", html.EscapeString(oneLine(f.Caption)))
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
