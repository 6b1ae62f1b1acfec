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

// MIMEMap maps MIME types to representations of one value.
type MIMEMap = map[string]any

// Data is a value in the form that is sent to a notebook.
type Data = struct {
	Data      MIMEMap // representations
	Metadata  MIMEMap // properties of the representations, for example sizes
	Transient MIMEMap // properties that are not stored with the notebook, such as display_id
}

// MakeData returns data of one MIME type, together with a text: the data itself if it can be read, or a summary.
func MakeData(mimeType string, data any) Data {
	d := Data{Data: MIMEMap{mimeType: data}}
	if mimeType != MIMETypeText {
		d.Data[MIMETypeText] = textFor(mimeType, data)
	}
	return d
}

// textFor returns the text/plain representation of data: the data itself if it is readable text, else a summary.
func textFor(mimeType string, data any) string {
	switch content := data.(type) {
	case string:
		if mimeType == MIMETypeMarkdown || mimeType == MIMETypeLatex {
			return content
		}
		return fmt.Sprintf("<%s, %d bytes>", mimeType, len(content))
	case []byte:
		return fmt.Sprintf("<%s, %d bytes>", mimeType, len(content))
	}
	return fmt.Sprint(data)
}

// MakeData3 returns data of one MIME type, together with the given text. The name is that of gophernotes.
func MakeData3(mimeType, plaintext string, data any) Data {
	return Data{Data: MIMEMap{MIMETypeText: plaintext, mimeType: data}}
}

// HTML returns data that shows HTML code.
func HTML(html string) Data { return MakeData(MIMETypeHTML, html) }

// Latex returns data that shows a formula within a line.
func Latex(latex string) Data {
	return MakeData3(MIMETypeLatex, latex, "$"+strings.Trim(latex, "$")+"$")
}

// Math returns data that shows a formula in a separate line.
func Math(latex string) Data {
	return MakeData3(MIMETypeLatex, latex, "$$"+strings.Trim(latex, "$")+"$$")
}

// Markdown returns data that shows formatted text.
func Markdown(markdown string) Data { return MakeData(MIMETypeMarkdown, markdown) }

// PNG returns data that shows a picture.
func PNG(png []byte) Data { return MakeData(MIMETypePNG, png) }

// SVG returns data that shows a drawing.
func SVG(svg string) Data { return MakeData(MIMETypeSVG, svg) }

// Any returns data that shows text or bytes of a MIME type. If mimeType is "", text is plain text, and the type of
// bytes is detected from their contents. For other values, Any is the same as Render.
func Any(mimeType string, data any) Data {
	content, ok := data.([]byte)
	if text, isText := data.(string); isText {
		return MakeData(cmp.Or(mimeType, MIMETypeText), text)
	}
	if !ok {
		return Render(data)
	}
	if mimeType == "" {
		mimeType, _, _ = strings.Cut(http.DetectContentType(content), ";")
	}
	if strings.HasPrefix(mimeType, "text/") || mimeType == MIMETypeSVG {
		return MakeData(mimeType, string(content))
	}
	return MakeData(mimeType, content)
}

// File returns data that shows the contents of a file, as Any does. It panics if the file cannot be read.
func File(mimeType, path string) Data {
	content, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return Any(mimeType, content)
}

// encodePNG returns a picture as PNG, and its size as metadata.
func encodePNG(img image.Image) ([]byte, MIMEMap, error) {
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, img); err != nil {
		return nil, nil, err
	}
	size := img.Bounds().Size()
	return encoded.Bytes(), MIMEMap{MIMETypePNG: MIMEMap{"width": size.X, "height": size.Y}}, nil
}
