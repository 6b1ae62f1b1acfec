package theory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // draws the figures
)

// Figures draws the figures of the claims into the folder dir, as SVG files named after the claims, and returns the
// names of the files. Claims without a figure are skipped. The same options give the same files. If ctx ends, Figures
// returns the files written so far and the error of ctx.
func Figures(ctx context.Context, dir string, claims []Claim, o *Options) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	for _, claim := range claims {
		if claim.program.figure == nil {
			continue
		}
		figure, err := claim.Figure(ctx, o)
		if err != nil {
			return names, err
		}
		name := filepath.Join(dir, claim.Name+".svg")
		if err := figure.Save(name); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// pointSeries returns a series without samples that is drawn as points.
func pointSeries(name string) plots.Series { return plots.Series{Name: name, Style: plots.Points} }

// addPoint appends the point (x, y) to a series.
func addPoint(s *plots.Series, x int, y float64) { s.Add(float64(x), y) }

// addDraws appends the median of the draws, with the range from the 5 % to the 95 % quantile as a band.
func addDraws(s *plots.Series, x float64, draws []float64) {
	sorted := slices.Sorted(slices.Values(draws))
	quantile := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, sorted, nil) }
	s.AddBand(x, quantile(0.5), quantile(0.05), quantile(0.95))
}

// tickValues returns v as the ticks of an axis.
func tickValues(v []int) []float64 {
	return tabulate(len(v), func(i int) float64 { return float64(v[i]) })
}
