// Package plots contains figures and tables as data and draws them in one style.
//
// A Figure is a list of series, reference lines and marks with two axes. A Table is a list of columns and rows. Both
// are plain values, which are drawn when a method asks for it. The package knows nothing about kernels, solvers or data
// sets.
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
// Save writes the file atomically and returns the error of Validate if the figure is not valid. SVG, PNG, HTML and
// String follow the convention of Jupyter kernels for Go that a value with such methods displays itself. They return no
// error, but show it.
//
// A program that draws figures imports package plots/draw, which registers the drawer:
//
//	import _ "github.com/krrlab/lab/plots/draw"
//
// # Ready-made figures
//
// These functions return a *Figure. More can be added to it before it is drawn:
//
//	Convergence   relative residuals against the iteration, with the tolerance
//	Spectrum      eigenvalues against their index, with the ridge λ
//	Ladder        a quantity for each of several sketch sizes, with a target and the chosen size
//	Sweep         quantities with intervals over a parameter
//	Map           a heat map over two parameters such as (s, λ_p), with values in the cells
//	Grid          panels in rows with one legend, each with its own x axis or all with the same
//
// The Style of a series: Line is for a quantity that has a value between the samples (a bound, a curve over λ), and
// Points is for separate measurements. Steps is for a quantity that keeps its value until the next sample (the best
// value so far). Bars is for a quantity of several things, whose names are the names of the y axis. A series with Lo
// and Hi has a shaded band if it is a Line or Steps, and error bars if it is Points or Bars.
//
// The scale of an axis: use Log if the values span more than a factor of about ten, and always for residuals. If an
// axis cannot show a value (NaN, ±Inf, or a value ≤ 0 on a log axis), the line has a gap. An infinite or non-positive
// end of a band extends to the edge of the picture. Neither is an error. A figure without any value that can be shown
// is an error.
//
// # Maps and panels
//
// A figure with a Map draws a HeatMap under its series. Its cells fill the axes. The ticks are the values of the cells,
// if there are few of them. Reference lines are possible at values of x only. They are drawn as pointers at the upper
// border, since a line would make the values in the cells unreadable. A Mark frames its cell, or is a ring on a Bare
// map, and is listed in the legend. A figure with Panels is a grid of aligned plots with one legend above. Series with
// the same name look the same in all panels. With ShareX all panels have the same x axis, which is labeled at the
// grid's edge.
//
// # Style
//
// There is one style, made to be read at the width of a notebook (6.5 × 4 inches unless Width and Height differ). The
// colors are those of Okabe and Ito, which can be distinguished with every common form of color blindness. Lines also
// differ in dashes and markers, so that a gray print can be read. The legend is inside the plot if a corner has no
// data, and above it otherwise. A single series without a name has no legend.
//
// Superscripts and subscripts can be written in Unicode (10⁻³, λₚ, ZZᵀ) or as s_λ, λ_p, x^{k+1}, r_{max}. A group in
// braces is raised or lowered. A single character is raised or lowered if it follows a letter that stands alone, so
// that the underscore of cal_housing remains.
//
// The label of an axis is the quantity with its unit in parentheses: "time (s)".
//
// # Formats
//
// The text of an SVG file remains text, in a sans-serif font with the metrics of Helvetica. The file contains Title and
// Caption for screen readers. PNG images have 160 dots per inch. PDF files draw text as outlines, so that Greek letters
// appear everywhere without an embedded font. The same figure always gives the same bytes, since no format contains a
// date.
//
// HTML contains the SVG, its data and a script, and uses neither a library nor the network. It shows values on hover
// and by the arrow keys, zooms by dragging, hides a series at a click on its name, and has buttons for logarithmic
// axes. Its Controls are sliders that recompute something. If scripts are forbidden, the picture is static.
//
// # Tables
//
// A Table is rendered as Text for a terminal, Markdown, CSV or HTML, which escape their special characters. Numbers in
// CSV have all digits. The other formats use Column.Format. By default they show whole numbers in full with separators
// (60,000) and other numbers with four significant digits.
//
// # References
//
// M. Okabe, K. Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/.
// C. Brewer, M. Harrower, ColorBrewer, https://colorbrewer2.org (YlGnBu).
// W. S. Cleveland, The Elements of Graphing Data, 1994 (grids, bands and tick marks).
package plots
