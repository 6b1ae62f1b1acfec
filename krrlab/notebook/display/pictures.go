package display

import (
	"bytes"
	"encoding/base64"
	"html"
	"image/png"
	"regexp"

	"github.com/krrlab/lab/plots"
)

// inlineFigure is a drawing of package plots within HTML.
var inlineFigure = regexp.MustCompile(`(?s)<svg style="max-width:100%;height:auto" role="img".*?</svg>`)

var figureTitle = regexp.MustCompile(`<title>([^<]*)</title>`)

// asImages replaces the drawings within HTML by images of the same: a notebook that is not trusted
// drops svg elements, and keeps images.
func asImages(s string) string {
	return inlineFigure.ReplaceAllStringFunc(s, func(svg string) string {
		alt := "figure"
		if m := figureTitle.FindStringSubmatch(svg); m != nil {
			alt = html.UnescapeString(m[1])
		}
		return `<img style="max-width:100%;height:auto" alt="` + html.EscapeString(alt) + `" src="data:image/svg+xml;base64,` +
			base64.StdEncoding.EncodeToString([]byte(svg)) + `">`
	})
}

// settle puts a figure's representations right: how large the image is to be seen, and HTML only where there
// is a caption to show, with images for the drawings.
func settle(v any, d *Data) {
	if s, ok := d.Data[MIMETypeHTML].(string); ok {
		d.Data[MIMETypeHTML] = asImages(s)
	}
	f, ok := v.(*plots.Figure)
	if g, value := v.(plots.Figure); value {
		f, ok = &g, true
	}
	if !ok || d.Data[MIMETypeSVG] == nil {
		return
	}
	if f.Caption == "" {
		delete(d.Data, MIMETypeHTML)
	}
	if b, ok := d.Data[MIMETypePNG].([]byte); ok {
		if c, err := png.DecodeConfig(bytes.NewReader(b)); err == nil {
			d.Metadata = MIMEMap{MIMETypePNG: MIMEMap{"width": c.Width * 96 / plots.DotsPerInch, "height": c.Height * 96 / plots.DotsPerInch}}
		}
	}
}
