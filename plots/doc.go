// Package plots holds figures and tables as data and draws them in one style.
//
// A Figure is a list of series, reference lines and marks with two axes; a Table is
// a list of columns and rows. Both are plain values, and nothing is drawn until asked.
// The package knows nothing of kernels, solvers or data sets.
//
// # Figures
//
//	f := &plots.Figure{
//		Title: "Statistical dimension",
//		X: plots.Axis{Label: "λ", Log: true},
//		Y: plots.Axis{Label: "s_λ(K)"},
//		Series: []plots.Series{{Name: "exact", X: lambda, Y: s}},
//	}
//	err := f.Save("statdim.svg")    // or .png, .pdf, .html
//
// Save writes the whole file or none, and returns an error for what Validate refuses. SVG, PNG, HTML and String show
// the figure by the convention of Jupyter kernels for Go, where a value with such methods displays itself, and so they
// have no error: they show the reason instead.
//
// A program that draws figures imports package plots/draw, which registers what draws them:
//
//	import _ "github.com/krrlab/lab/plots/draw"
//
// # Ready-made figures
//
// Each returns a *Figure, to which more can be added before it is drawn:
//
//	Convergence   relative residuals against the iteration, the tolerance marked
//	Spectrum      eigenvalues against their index, the ridge λ marked
//	Ladder        a quantity on each rung of doubled sketch sizes, the target and the rung taken
//	Sweep         a quantity with its interval, bounds and measurements over a parameter
//	Map           a heat map over two parameters such as (s, λ_p), values in the cells
//	Grid          panels in rows, one legend, with one x axis or each its own
//
// How to choose a series' Style: Line for a quantity that has a value between the
// samples (a bound, a curve over λ), Points for separate measurements, Steps for a
// quantity that keeps its value until the next sample (the best so far, a ladder of
// sketch sizes), Bars for a quantity of named things, whose names are those of the y axis. Lo and Hi give a Line or Steps a shaded band, and Points error bars.
//
// How to choose an axis: Log when the values span more than a factor of ten or so,
// and always for residuals. A value that an axis cannot show (NaN, ±Inf, or ≤ 0 on a
// log axis) leaves a gap in its line, and an infinite or non-positive end of a band
// runs to the edge of the picture; neither is an error. A figure without one value
// that can be shown is an error, for there is nothing to draw.
//
// # Maps and panels
//
// A figure with a Map draws a HeatMap under its series. Its cells fill the axes, the
// ticks are the cells' own values while there are few, and reference lines, at values of
// x only, are pointers at the upper border, for a line would strike out the values in the
// cells. A Mark frames its cell and stands in the legend. A figure with Panels is a grid:
// plots in line, one legend above, one look for one name, and with ShareX one x axis for
// all, labeled at the grid's edge.
//
// # Style
//
// There is one style, to be read at the width of a notebook (6.5 × 4 inches unless
// Width and Height say otherwise). The colors are those of Okabe and Ito, told apart
// with every common form of color blindness; lines also differ by dash and marker,
// so that a print in gray can be read. The legend stands inside the plot where a
// corner is free of data, and above it otherwise. One series without a name needs no
// legend.
//
// Superscripts and subscripts are drawn as such, whether written in Unicode (10⁻³, λₚ,
// ZZᵀ) or as s_λ, λ_p, x^{k+1}, r_{max}: a group in braces is lowered or raised, and a
// single character is after a letter that stands alone, so that the underscore of
// cal_housing remains.
//
// Labels are axis quantities with their unit in parentheses: "time (s)".
//
// # Formats
//
// SVG keeps its text as text, in a sans-serif of Helvetica's metrics, and carries
// Title and Caption for screen readers. PNG has 160 dots per inch. In PDF the text is
// drawn as outlines, so that Greek letters appear everywhere and no font is embedded.
// The same figure gives the same bytes each time: nothing holds a date.
//
// HTML is the SVG, its data, and its own script, without library or network: values on hover and by the arrow
// keys, zoom by dragging, series on and off by their names, logarithms by buttons, and Controls, sliders that
// recompute something. Where scripts are forbidden the picture is the static one.
//
// # Tables
//
// A Table renders as Text for a terminal, Markdown, CSV and HTML. Each escapes what its
// format treats as special. CSV carries
// every digit of a number; the others show what Column.Format asks, by default whole
// numbers in full with separators (60,000) and others to four significant digits.
//
// # References
//
// M. Okabe, K. Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/.
// C. Brewer, M. Harrower, ColorBrewer, https://colorbrewer2.org (YlGnBu).
// W. S. Cleveland, The Elements of Graphing Data, 1994 (grids, bands and tick marks).
package plots
