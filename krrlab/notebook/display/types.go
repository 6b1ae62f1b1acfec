package display

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/krrlab/lab/datasets"
)

const (
	maxRows    = 200 // of a table
	maxColumns = 60
	matrixSide = 12 // rows and columns of a matrix shown
)

// byType shows values of types that have no method for it.
func byType(v any, d *Data) error {
	switch x := v.(type) {
	case *plot.Plot:
		var drawn [2]bytes.Buffer
		for i, format := range []string{"svg", "png"} {
			w, err := x.WriterTo(6.5*vg.Inch, 4*vg.Inch, format)
			if err != nil {
				return err
			}
			if _, err := w.WriteTo(&drawn[i]); err != nil {
				return err
			}
		}
		d.Data[MIMETypeSVG], d.Data[MIMETypePNG] = drawn[0].String(), drawn[1].Bytes()
		d.Data[MIMETypeText] = fmt.Sprintf("plot %q", x.Title.Text)
	case dataframe.DataFrame:
		return frame(&x, d)
	case *dataframe.DataFrame:
		return frame(x, d)
	case series.Series:
		f := dataframe.New(x)
		return frame(&f, d)
	case mat.Matrix:
		matrix(x, d)
	case *datasets.Dataset:
		dataset(x.String(), x, d)
	case *datasets.Pair:
		dataset(x.String(), x.Train, d)
	}
	return nil
}

// table starts a table that scrolls within the cell, in a box of the page's width and half its height.
func table(b *strings.Builder, caption string) {
	fmt.Fprintf(b, `<div style="max-height:40em;overflow:auto"><table><caption style="text-align:left">%s</caption>`,
		html.EscapeString(caption))
}

// frame shows a data frame: a table with the types below the names.
func frame(f *dataframe.DataFrame, d *Data) error {
	if f.Err != nil {
		return f.Err
	}
	rows, columns := f.Dims()
	showRows, showColumns := min(rows, maxRows), min(columns, maxColumns)
	names, types := f.Names(), f.Types()
	var b strings.Builder
	caption := fmt.Sprintf("%d rows × %d columns", rows, columns)
	if showRows < rows || showColumns < columns {
		caption += fmt.Sprintf(", the first %d × %d shown", showRows, showColumns)
	}
	table(&b, caption)
	b.WriteString(`<thead style="position:sticky;top:0;background:inherit"><tr><th></th>`)
	for j := range showColumns {
		fmt.Fprintf(&b, `<th>%s<br><span style="font-weight:normal;opacity:0.6">%s</span></th>`, html.EscapeString(names[j]), types[j])
	}
	b.WriteString("</tr></thead><tbody>")
	for i := range showRows {
		fmt.Fprintf(&b, "<tr><th>%d</th>", i)
		for j := range showColumns {
			fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(element(f.Elem(i, j), types[j])))
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table></div>")
	d.Data[MIMETypeHTML] = b.String()
	d.Data[MIMETypeText] = f.String()
	return nil
}

func element(e series.Element, t series.Type) string {
	if t == series.Float && !e.IsNA() {
		return number(e.Float())
	}
	return e.String()
}

// number writes a number as a table shows it, to six digits.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.6g", v)
}

// matrix shows a matrix: its corners where it is large.
func matrix(m mat.Matrix, d *Data) {
	r, c := m.Dims()
	rows, columns := corners(r), corners(c)
	var b, text strings.Builder
	caption := fmt.Sprintf("%d × %d", r, c)
	table(&b, caption)
	fmt.Fprintf(&text, "%s %T", caption, m)
	for _, i := range rows {
		b.WriteString("<tr>")
		text.WriteString("\n")
		for _, j := range columns {
			s := "⋯"
			switch {
			case i < 0 && j < 0:
				s = "⋱"
			case i < 0:
				s = "⋮"
			case j >= 0:
				s = number(m.At(i, j))
			}
			fmt.Fprintf(&b, `<td style="text-align:right">%s</td>`, s)
			fmt.Fprintf(&text, " %11s", s)
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</table></div>")
	d.Data[MIMETypeHTML], d.Data[MIMETypeText] = b.String(), text.String()
}

// corners returns the indices shown of n, −1 for those left out between.
func corners(n int) []int {
	var out []int
	for i := range n {
		switch {
		case n <= matrixSide || i < matrixSide/2 || i >= n-matrixSide/2:
			out = append(out, i)
		case i == matrixSide/2:
			out = append(out, -1)
		}
	}
	return out
}
