package display

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"math"
	"reflect"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/plots"
)

// side is how many rows and columns of a large matrix its picture has.
const side = 24

// patience is how long the picture of a preconditioner may take.
const patience = 2 * time.Second

// operator shows K, points and features such as Z, a preconditioner M, a kernel, or a struct with a kernel such as
// krrlab.Config: a line, and a small picture of some entries, or of the kernel against the distance. It reports
// whether v is one of these.
func operator(v any, d *Data) bool {
	var picture *plots.Figure
	switch x := v.(type) {
	case *gram.Matrix:
		n := x.Dim()
		stored, _, _ := strings.Cut(x.Choice().String(), "\n")
		d.Data[MIMETypeText] = fmt.Sprintf("K+λI, kernel %v, λ = %g; %s", x.Kernel(), x.Lambda(), stored)
		picture = entries("K", n, n, func(at []int, dst *mat.Dense) error {
			return x.Columns(context.Background(), at, dst)
		})
	case points.Points:
		n, s := x.Dims()
		d.Data[MIMETypeText] = fmt.Sprintf("%d × %d %T", n, s, x)
		picture = entries("value", n, s, func(at []int, dst *mat.Dense) error {
			row := make([]float64, s)
			for i := range n {
				x.RowTo(row, i)
				for k, j := range at {
					dst.Set(i, k, row[j])
				}
			}
			return nil
		})
	case pcg.Preconditioner:
		n := x.Dim()
		d.Data[MIMETypeText] = "M, " + Text(v)
		picture = entries("M⁻¹", n, n, func(at []int, dst *mat.Dense) error {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			defer stop()
			unit := mat.NewDense(n, len(at), nil)
			for k, j := range at {
				unit.Set(j, k, 1)
			}
			return x.SolveTo(ctx, dst, unit)
		})
	case kernel.Kernel:
		picture = profile(x)
	default:
		r := reflect.Indirect(reflect.ValueOf(v))
		if r.Kind() != reflect.Struct {
			return false
		}
		k, ok := reflect.Value{}, false
		if k = r.FieldByName("Kernel"); k.IsValid() && k.CanInterface() {
			var of kernel.Kernel
			of, ok = k.Interface().(kernel.Kernel)
			picture = profile(of)
		}
		if !ok {
			return false
		}
	}
	if d.Data[MIMETypeText] == nil {
		d.Data[MIMETypeText] = Text(v)
	}
	if picture == nil || picture.Validate() != nil {
		return true
	}
	d.Data[MIMETypeHTML] = plots.PreHTML(d.Data[MIMETypeText].(string)) + fmt.Sprintf(
		`<img width="%.0f" alt="%s" src="data:image/png;base64,%s">`, 96*picture.Width,
		html.EscapeString(picture.Title),
		base64.StdEncoding.EncodeToString(picture.PNG()))
	return true
}

// entries returns a picture of entries of an n×s matrix, of rows and columns at equal distances; columns sets dst,
// n×len(at), to the columns at. It is nil where they cannot be had.
func entries(name string, n, s int, columns func(at []int, dst *mat.Dense) error) *plots.Figure {
	if n < 1 || s < 1 {
		return nil
	}
	pick := func(n int) (at []int, on []float64) {
		few := min(n, side)
		for i := range few {
			j := 0
			if few > 1 {
				j = i * (n - 1) / (few - 1)
			}
			at, on = append(at, j), append(on, float64(j))
		}
		return at, on
	}
	rows, y := pick(n)
	at, x := pick(s)
	all := mat.NewDense(n, len(at), nil)
	if columns(at, all) != nil {
		return nil
	}
	m := &plots.HeatMap{X: x, Y: y, Bare: true, Color: plots.Axis{Label: name}}
	for _, i := range rows {
		m.Z = append(m.Z, all.RawRowView(i))
	}
	title := fmt.Sprintf("entries of %d rows and %d columns", len(rows), len(at))
	return &plots.Figure{Title: title, X: plots.Axis{Label: "column"}, Y: plots.Axis{Label: "row"}, Map: m, Width: 3.6,
		Height: 2.8}
}

// profile returns a picture of a kernel against the distance of two points, up to where it is 1 % of what it is at 0;
// nil of a kernel that is no function of a distance.
func profile(k kernel.Kernel) *plots.Figure {
	var at func(r float64) float64
	switch x := k.(type) {
	case kernel.Radial:
		at = func(r float64) float64 {
			g := []float64{r * r}
			x.Profile(g, g)
			return g[0]
		}
	case kernel.Spectral:
		at = func(r float64) float64 { return x.Eval([]float64{r}, []float64{0}) }
	default:
		return nil
	}
	end, least := 1.0, 0.01*math.Abs(at(0))
	for range 60 {
		if math.Abs(at(end)) > least {
			end *= 2
		} else if math.Abs(at(end/2)) < least {
			end /= 2
		}
	}
	var curve plots.Series
	for i := range 101 {
		r := end * float64(i) / 100
		curve.Add(r, at(r))
	}
	return &plots.Figure{Title: k.String(), X: plots.Axis{Label: "distance of x and z"},
		Y:      plots.Axis{Label: "k(x, z)"},
		Series: []plots.Series{curve}, Width: 3.6, Height: 2.2}
}
