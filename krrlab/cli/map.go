package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/plots"
)

// mapFlags are the flags of krrlab map.
type mapFlags struct {
	modelFlag
	pictureFlags
	Grid   gridSizes `flag:"grid" help:"cells of each coordinate, such as 200x150 (default: 200 along the longer side, 500 on a line)"`
	Out    string    `flag:"out" file:"write"`
	Memory int64     `flag:"memory" check:">=0" unit:"bytes" help:"memory limit, such as 20GB (default: what is available)"`
	NoStd  bool      `flag:"no-std" help:"leave the standard deviation out"`
}

// Help returns the help texts of flags whose tags have none.
func (mapFlags) Help() map[string]string {
	return map[string]string{
		"plot": "draw prediction and standard deviation to this file" + plotFormats,
		"out": "file to write: CSV with a row for each cell, or, if the name ends in .npy, an array of the predictions " +
			"and, without --no-std, of their standard deviations: 2×rows×columns, for two coordinates",
	}
}

// gridSizes are the numbers of cells along the coordinates, such as 200x150; nil if --grid is not set.
type gridSizes []int

// Set parses positive numbers, separated by x.
func (g *gridSizes) Set(text string) error {
	*g = nil
	for word := range strings.SplitSeq(text, "x") {
		count, err := strconv.Atoi(word)
		if err != nil || count < 1 {
			return fmt.Errorf("want numbers of cells, such as 200x150")
		}
		*g = append(*g, count)
	}
	return nil
}

// Type returns the text that stands for the value in the help text.
func (gridSizes) Type() string { return "NxM" }

// mapCommand returns the command krrlab map.
func (a *app) mapCommand() *cobra.Command {
	f := &mapFlags{}
	return flagCommand(&cobra.Command{
		Use:   "map MODEL [--grid 200x150] [--out FILE] [--plot FILE]",
		Short: "Predict on a grid, and draw a map with standard deviations",
		Long: `Map predicts the centers of the cells of a grid over the box of the training points, for a
model that was fitted with --space. The standard deviation is that of f, without the noise of
an answer, under the assumption that the answers are a Gaussian process with the kernel and λ
of the model (krrlab predict --interval 90% --method posterior). The first coordinate is
horizontal and changes fastest; rows and layers go upward.`,
		Example: `  krrlab fit --train wells.csv --target depth --space lon,lat --out wells.krr
  krrlab map wells.krr --plot map.svg --out map.npy`,
		Args: f.takeModelArg,
	}, schema.Of(f), f, a.runMap)
}

// gridMap is a prediction on a grid. Its points are the centers of the cells; the first coordinate changes fastest.
type gridMap struct {
	target  string      // name of the target column; may be ""
	names   []string    // names of the coordinates
	centers [][]float64 // centers of the cells along each coordinate
	*model.Prediction
	posterior *interval.Posterior // nil without standard deviations
}

// runMap runs krrlab map. It returns an error if the model was not fitted with --space, is not a regression with one
// target, or has too many coordinates for a picture.
func (a *app) runMap(ctx context.Context, f *mapFlags) error {
	if f.Out == "" && f.Plot == "" {
		return usagef("nothing to write: want --plot FILE or --out FILE")
	}
	m, err := model.LoadWithin(f.Model, accel.AvailableMemory(f.Memory, 1))
	if err != nil {
		return err
	}
	space := m.Origin.Space
	switch {
	case space == nil:
		return fmt.Errorf("%s has no coordinates: fit with --space lon,lat, or the names of other columns", f.Model)
	case m.Labels != nil || m.Targets != nil:
		return fmt.Errorf("%s is for classes or several targets: a map is of a regression with one target", f.Model)
	case len(space.Columns) > 2 && f.Plot != "":
		return usagef("--plot: %s has %d coordinates, and a picture has two: want --out", f.Model, len(space.Columns))
	}
	g := &gridMap{target: m.Origin.Target, names: space.Columns}
	memory := accel.AvailableMemory(f.Memory, 1)
	centers, cells, err := space.Grid(f.Grid, memory)
	if err != nil {
		return err
	}
	g.centers = centers
	if f.Plot != "" && g.axes() == nil {
		return fmt.Errorf("--plot: a grid of one cell is no map to draw: --out writes its prediction")
	}
	options := &model.Options{Accuracy: model.AccuracyFor(m.Origin.Tol), Progress: a.showPredicted}
	if g.Prediction, err = m.Predict(ctx, cells, options); err == nil && !f.NoStd {
		if g.posterior, err = interval.NewPosterior(ctx, m, g.Prediction, cells, memory); err != nil {
			err = fmt.Errorf("%w; --no-std draws the map without standard deviations", err)
		}
	}
	if err != nil {
		return err
	}
	err = a.writeOutput(f.Out, g.write)
	err = cmp.Or(err, a.writeOutput(f.Plot, func(file string) error { return f.save(g.figure(space.Aspect()), file) }))
	a.printf("%-*s %s\n", labelWidth, "grid", g.text())
	a.printWritten(labelWidth, nil)
	return err
}

// text describes the grid, the ranges of the predictions and of the standard deviations, and how these were computed.
func (g *gridMap) text() string {
	var sizes []string
	for _, centers := range g.centers {
		sizes = append(sizes, strconv.Itoa(len(centers)))
	}
	text := fmt.Sprintf("%s cells of %s, prediction %s to %s", strings.Join(sizes, "×"), joinNames(g.names),
		outward.Plain(slices.Min(g.Value), 4), outward.Plain(slices.Max(g.Value), 4))
	if posterior := g.posterior; posterior != nil {
		std := posterior.Std.RawMatrix().Data
		text += fmt.Sprintf("; std %s to %s, noise %s", outward.Plain(slices.Min(std), 3),
			outward.Plain(slices.Max(std), 3), outward.Plain(posterior.Noise[0], 3))
		if posterior.Modes == 0 {
			return text + ", by a factor of K"
		}
		text += fmt.Sprintf(", by a Fourier series of %d modes, whose truncation changes it by at most %.1g",
			posterior.Modes, posterior.TruncationError)
	}
	return text
}

// layers returns the predictions and, if they are known, the standard deviations, each with a value for every cell.
func (g *gridMap) layers() [][]float64 {
	if g.posterior == nil {
		return [][]float64{g.Value}
	}
	return [][]float64{g.Value, g.posterior.Std.RawMatrix().Data}
}

// write writes the grid to a file: as CSV with a row for each cell, or, if the name ends in .npy, as an array of the
// shape (layers, …, cells of the second coordinate, cells of the first coordinate).
func (g *gridMap) write(file string) error {
	layers := g.layers()
	if filepath.Ext(file) == ".npy" {
		shape := []int{len(layers)}
		for _, centers := range slices.Backward(g.centers) {
			shape = append(shape, len(centers))
		}
		return atomicfile.Write(file, func(w io.Writer) error { return npy.Write(w, slices.Concat(layers...), shape...) })
	}
	var columns []model.Column
	stride := 1 // distance between neighboring cells along coordinate j in the order of the points
	for j, centers := range g.centers {
		strideHere := stride // the closure must not see later values of stride
		columns = append(columns, model.Column{Name: g.names[j],
			Cell: func(i int) string { return model.FullPrecision(centers[i/strideHere%len(centers)]) }})
		stride *= len(centers)
	}
	for k, layer := range layers {
		columns = append(columns, model.Column{Name: []string{"prediction", "std"}[k],
			Cell: func(i int) string { return model.FullPrecision(layer[i]) }})
	}
	return atomicfile.Write(file, func(w io.Writer) error { return model.WriteCSV(w, len(g.Value), columns) })
}

// axes returns the indices of the coordinates along which there are several cells.
func (g *gridMap) axes() (axes []int) {
	for j, centers := range g.centers {
		if len(centers) > 1 {
			axes = append(axes, j)
		}
	}
	return axes
}

// figure draws a map of the two coordinates for each layer, side by side, or a curve if there are several cells along
// one coordinate only. aspect is the ratio of width to height of the mapped box.
func (g *gridMap) figure(aspect float64) *plots.Figure {
	target := cmp.Or(g.target, "prediction")
	if axes := g.axes(); len(axes) == 1 {
		curve := plots.Series{Name: target, X: g.centers[axes[0]], Y: g.Value}
		if g.posterior != nil {
			curve.Name += " ± std"
			for i, std := range g.posterior.Std.RawMatrix().Data {
				curve.Lo, curve.Hi = append(curve.Lo, g.Value[i]-std), append(curve.Hi, g.Value[i]+std)
			}
		}
		return &plots.Figure{Title: target, X: plots.Axis{Label: g.names[axes[0]]}, Y: plots.Axis{Label: target},
			Series: []plots.Series{curve}}
	}
	var panels []*plots.Figure
	for k, layer := range g.layers() {
		heatMap := &plots.HeatMap{X: g.centers[0], Y: g.centers[1],
			Color: plots.Axis{Label: []string{target, "standard deviation"}[k]}, Bare: true}
		for row := range slices.Chunk(layer, len(g.centers[0])) {
			heatMap.Z = append(heatMap.Z, row)
		}
		panels = append(panels, &plots.Figure{Title: heatMap.Color.Label, X: plots.Axis{Label: g.names[0]},
			Y: plots.Axis{Label: g.names[1]}, Map: heatMap})
	}
	figure := plots.Grid("", len(panels), panels...)
	const (
		side        = 4.0 // length of the longer side of a map, in inches
		extraWidth  = 1.6 // width of the labels and of the color bar next to a map, in inches
		extraHeight = 1.0 // height of the title and of the labels, in inches
	)
	figure.Width = float64(len(panels)) * (side*min(1, aspect) + extraWidth)
	figure.Height = side*min(1, 1/aspect) + extraHeight
	return figure
}
