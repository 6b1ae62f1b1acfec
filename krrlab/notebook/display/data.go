package display

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"os"
	"strings"
)

// MIME types of a notebook.
const (
	MIMETypeHTML     = "text/html"
	MIMETypeJPEG     = "image/jpeg"
	MIMETypeLatex    = "text/latex"
	MIMETypeMarkdown = "text/markdown"
	MIMETypePNG      = "image/png"
	MIMETypeSVG      = "image/svg+xml"
	MIMETypeText     = "text/plain"
)

// MIMEMap holds one value in several representations, by MIME type.
type MIMEMap = map[string]any

// Data is what a notebook is sent: representations, what belongs to them (sizes), and what is
// not kept with the notebook (display_id).
type Data = struct {
	Data      MIMEMap
	Metadata  MIMEMap
	Transient MIMEMap
}

// MakeData returns data of one type, with its text as well.
func MakeData(mimeType string, data any) Data {
	d := Data{Data: MIMEMap{mimeType: data}}
	if mimeType != MIMETypeText {
		d.Data[MIMETypeText] = textBeside(mimeType, data)
	}
	return d
}

// textBeside is the text beside data: the data itself where a person can read it.
func textBeside(mimeType string, data any) string {
	switch x := data.(type) {
	case string:
		if mimeType == MIMETypeMarkdown || mimeType == MIMETypeLatex {
			return x
		}
		return fmt.Sprintf("<%s, %d bytes>", mimeType, len(x))
	case []byte:
		return fmt.Sprintf("<%s, %d bytes>", mimeType, len(x))
	}
	return fmt.Sprint(data)
}

// MakeData3 returns data of one type with the text given.
func MakeData3(mimeType, plaintext string, data any) Data {
	return Data{Data: MIMEMap{MIMETypeText: plaintext, mimeType: data}}
}

// HTML shows a piece of HTML.
func HTML(html string) Data { return MakeData(MIMETypeHTML, html) }

// Latex shows a formula in the line.
func Latex(latex string) Data {
	return MakeData3(MIMETypeLatex, latex, "$"+strings.Trim(latex, "$")+"$")
}

// Math shows a formula on its own line.
func Math(latex string) Data {
	return MakeData3(MIMETypeLatex, latex, "$$"+strings.Trim(latex, "$")+"$$")
}

// Markdown shows formatted text.
func Markdown(markdown string) Data { return MakeData(MIMETypeMarkdown, markdown) }

// PNG shows a picture.
func PNG(png []byte) Data { return MakeData(MIMETypePNG, png) }

// SVG shows a drawing.
func SVG(svg string) Data { return MakeData(MIMETypeSVG, svg) }

// Any shows text or bytes of a MIME type, which may be left to what the bytes look like, and other values as Render
// does.
func Any(mimeType string, data any) Data {
	b, ok := data.([]byte)
	if text, isText := data.(string); isText {
		return MakeData(cmp.Or(mimeType, MIMETypeText), text)
	}
	if !ok {
		return Render(data)
	}
	if mimeType == "" {
		mimeType, _, _ = strings.Cut(http.DetectContentType(b), ";")
	}
	if strings.HasPrefix(mimeType, "text/") || mimeType == MIMETypeSVG {
		return MakeData(mimeType, string(b))
	}
	return MakeData(mimeType, b)
}

// File shows the content of a file. It panics if the file cannot be read.
func File(mimeType, path string) Data {
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return Any(mimeType, b)
}

// encodePNG returns a picture as PNG, and its size as metadata.
func encodePNG(img image.Image) ([]byte, MIMEMap, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil, nil, err
	}
	s := img.Bounds().Size()
	return b.Bytes(), MIMEMap{MIMETypePNG: MIMEMap{"width": s.X, "height": s.Y}}, nil
}
