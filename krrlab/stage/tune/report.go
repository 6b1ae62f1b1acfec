package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

var _ stage.Choice = (*Result)(nil)

// Chosen implements stage.Choice.
func (r *Result) Chosen() (k kernel.Spec, lambda float64, distance []float64) {
	return r.Best.Spec(), r.Best.Lambda, r.Best.Distance()
}

// summary returns the point as one line, with its error in the metric.
func (p *Point) summary(metric model.Metric) string {
	return fmt.Sprintf("%s, λ = %g: %s", p.kernelText(), p.Lambda, p.errorText(metric))
}

// kernelText returns the name of the kernel and its scale.
func (p *Point) kernelText() string {
	name := p.Spec().TextWithoutScale() // may have other parameters than the scale
	if name != p.Kernel {
		name += " "
	}
	switch {
	case p.Lengths != nil:
		return fmt.Sprintf("%s(%d length scales, geometric mean %.4g)", name, len(p.Lengths), p.Sigma)
	case p.Matrix != nil:
		return fmt.Sprintf("%s(‖L(x−z)‖, √d/‖L‖_F = %.4g)", name, p.Sigma)
	}
	return p.Spec().Short()
}

// kernelTitle returns the name of the kernel and its scale for a title.
func (p *Point) kernelTitle() string {
	switch {
	case p.Lengths != nil:
		return fmt.Sprintf("%s kernel, %d length scales of geometric mean %.3g", kernel.Title(p.Kernel), len(p.Lengths),
			p.Sigma)
	case p.Matrix != nil:
		return fmt.Sprintf("%s kernel of ‖L(x−z)‖", kernel.Title(p.Kernel))
	}
	return p.Spec().Prose()
}

// kernelKey returns the name of the kernel and the kind of its distance. It distinguishes the kernels of the search,
// except polynomials of different degrees.
func (p *Point) kernelKey() string {
	return p.Kernel + p.distanceSuffix()
}

// kernelKeyTitle returns the same as kernelKey for a title, such as "Gaussian, lengths".
func (p *Point) kernelKeyTitle() string { return kernel.Title(p.Kernel) + p.distanceSuffix() }

// distanceSuffix returns the end of the name of a kernel: the kind of its distance, or "" for one length scale.
func (p *Point) distanceSuffix() string {
	switch {
	case p.Lengths != nil:
		return ", lengths"
	case p.Matrix != nil:
		return ", matrix"
	}
	return ""
}

// errorText returns the error and its interval as text, or the statement that there is no fit.
func (p *Point) errorText(metric model.Metric) string {
	if !p.Error.Known() {
		return "no fit: K+λI is not positive definite in float64, or the solve did not converge"
	}
	return metric.TextWithInterval(float64(p.Error), float64(p.Lo), float64(p.Hi))
}

// unitsNote states the units of the errors of several targets, or that the classes have weights. Otherwise it returns
// "".
func (r *Result) unitsNote() string {
	if r.classWeights {
		return " (class weights count in the fits only)"
	}
	if r.T == 1 || r.hasClasses() {
		return ""
	}
	return fmt.Sprintf(" (of all %d targets, each in units of its root mean square)", r.T)
}

// repeatsNote states which equal rows are left out together, for which kind of rows the error is, and the error for the
// other kind. It returns "" if there are no repeated rows.
func (r *Result) repeatsNote() string {
	text := r.Repeats.String()
	if text == "" {
		return ""
	}
	text += "; the error is of " + r.Repeats.RowKind.Description()
	if !r.OtherError.Known() {
		return text
	}
	otherText := strings.TrimPrefix(r.Metric.Text(float64(r.OtherError)), "error ")
	return fmt.Sprintf("%s (%s on %s)", text, otherText, r.Repeats.OtherRowKind.Description())
}

// baselineText compares the error with the baseline. It returns "" if the baseline is unknown.
func (r *Result) baselineText() string {
	if !r.Baseline.Known() {
		return ""
	}
	prediction := "the mean answer"
	switch r.Metric {
	case model.ErrorRate:
		prediction = "the most frequent class"
	case model.LogLoss:
		prediction = "the shares of the classes"
	}
	text := fmt.Sprintf("%s if %s is predicted for each row", r.Metric.Text(float64(r.Baseline)), prediction)
	if r.Best.Error.Known() && r.Best.Lo >= r.Baseline {
		return text + ": this is better than the choice"
	}
	if r.Best.Error.Known() && r.Best.Hi >= r.Baseline {
		return text + ": the choice may be no better"
	}
	return text
}

// hasClasses reports whether the targets are classes.
func (r *Result) hasClasses() bool { return r.Task == "classification" }

// String returns the result as a few aligned lines.
func (r *Result) String() string {
	var lines stage.Lines
	lines.AddData(&r.Header)
	lines.AddText("errors", strings.Trim(r.unitsNote(), " ()"))
	lines.AddText("repeats", r.repeatsNote())
	for i, level := range r.Levels {
		if level.Points == 0 {
			continue
		}
		lines.Add(map[bool]string{true: "search"}[i == 0], "%s: %s in %.3g s", level.Name,
			plural.Count(level.Points, "point"), level.Seconds)
	}
	lines.AddText("memory", r.MemoryNote)
	leading := r.bestPerKernel()
	for _, p := range leading {
		lines.AddText(p.Kernel, p.summary(r.Metric))
	}
	for _, distance := range r.Distances {
		lines.AddText(distance.Kind, distance.summary(r.Metric))
	}
	lines.AddText("distance", r.DistanceNote)
	reason := ""
	if len(leading) > 0 && r.Best.ModeledError > leading[0].ModeledError {
		reason = "; the smoothest of those not told apart from the least"
	}
	lines.Add("chosen", "%s%s", r.Best.summary(r.Metric), reason)
	lines.AddText("baseline", r.baselineText())
	lines.AddText("features", r.mostRelevant(5))
	lines.AddText("directions", r.directions(3))
	lines.AddText("at an end", r.edge)
	if r.ExpectedGain.Known() {
		lines.Add("next point", "is expected to gain %s of the error, by the model of the search",
			outward.Percent(float64(r.ExpectedGain), 2))
	}
	lines.AddText("fit with", r.Command)
	lines.AddSeconds(r.Seconds)
	return lines.String()
}

// mostRelevant returns the names of at most count features, the most relevant first. It returns "" if σ is the length
// scale of all features.
func (r *Result) mostRelevant(count int) string {
	distance := r.bestDistance()
	if distance == nil {
		return ""
	}
	return strings.Join(distance.RelevantFeatures[:min(count, len(distance.RelevantFeatures))], ", ")
}

// directions describes at most count directions of the chosen matrix. It returns "" if no matrix was chosen.
func (r *Result) directions(count int) string {
	var text []string
	if distance := r.bestDistance(); distance != nil {
		for _, direction := range distance.Directions[:min(count, len(distance.Directions))] {
			// The length scales are for the σ of the fit, not for the σ of the choice.
			length := direction.Length * r.Best.Sigma / distance.Sigma
			text = append(text, fmt.Sprintf("%s (length scale %s)", direction.Text, outward.Plain(length, 2)))
		}
	}
	if text == nil {
		return ""
	}
	return strings.Join(text, "; ") + ", in standard deviations"
}

// directionsFigure returns a map of the directions of the chosen matrix, or nil if no matrix was chosen.
func (r *Result) directionsFigure() *plots.Figure {
	distance := r.bestDistance()
	if distance == nil || distance.Directions == nil {
		return nil
	}
	heatMap := &plots.HeatMap{Color: plots.Axis{Label: "coordinate", Min: -1, Max: 1}, Format: "%.1f"}
	for i, direction := range distance.Directions {
		heatMap.Y, heatMap.Z = append(heatMap.Y, float64(i+1)), append(heatMap.Z, direction.Features)
	}
	for j := range distance.Directions[0].Features {
		heatMap.X = append(heatMap.X, float64(j))
	}
	return &plots.Figure{Title: "directions that matter most: " + distance.Directions[0].Text, Map: heatMap,
		X: plots.Axis{Label: "feature, from 0"}, Y: plots.Axis{Label: "direction, by length scale"}}
}

// bestDistance returns the distance of the chosen point, or nil if σ is the length scale of all features.
func (r *Result) bestDistance() *DistanceFit {
	i := slices.IndexFunc(r.Distances, func(distance *DistanceFit) bool {
		return len(distance.Shape) == len(r.Best.Distance())
	})
	if i < 0 {
		return nil
	}
	return r.Distances[i]
}

// bestPerKernel returns the best point of each kernel on the last level where it was evaluated, the best kernel first.
func (r *Result) bestPerKernel() (leading []Point) {
	for _, p := range r.Points {
		if !p.Error.Known() {
			continue
		}
		i := slices.IndexFunc(leading, func(leader Point) bool { return leader.kernelKey() == p.kernelKey() })
		switch {
		case i < 0:
			leading = append(leading, p)
		case p.Level > leading[i].Level || p.Level == leading[i].Level && p.ModeledError < leading[i].ModeledError:
			leading[i] = p
		}
	}
	slices.SortStableFunc(leading, func(a, b Point) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.ModeledError, b.ModeledError))
	})
	return leading
}

// Table returns a table with one row per point.
func (r *Result) Table() *plots.Table {
	table := &plots.Table{
		Title: "tune: " + r.Dataset,
		Columns: plots.ParseColumns("rows", "kernel", "σ %.3g", "γ %.3g", "λ %.3g", "error %.4g", "from %.4g",
			"to %.4g",
			"by the model %.4g", "time (s) %.3g"),
	}
	// cell returns an empty cell for a value that a point does not have.
	cell := func(value stage.Number, newCell func(float64) plots.Cell) any {
		if !value.Known() || value == 0 {
			return nil
		}
		return newCell(float64(value))
	}
	number := func(value stage.Number) any { return cell(value, plots.Number) }
	for _, p := range r.Points {
		name := p.kernelKey()
		if p.Degree > 0 {
			name = fmt.Sprintf("%s %d", name, p.Degree)
		}
		table.Add(r.Levels[p.Level].Rows, name, number(stage.Number(p.Sigma)), number(stage.Number(p.Gamma)), p.Lambda,
			number(p.Error), cell(p.Lo, plots.AtLeast), cell(p.Hi, plots.AtMost), number(p.ModeledError), p.Seconds)
	}
	if features := r.mostRelevant(5); features != "" {
		table.Caption = "σ of a kernel with lengths is the geometric mean of one for each feature, with a matrix " +
			"L it is √d/‖L‖_F; the most relevant features: " + features
	}
	return table
}

// Plot returns three panels: the modeled error of the chosen kernel over σ (or γ) and λ, with the evaluated points and
// a ring around the chosen one; the error of each point of the last level against λ, with its interval; and the
// directions of a matrix. It omits the first and the third if there is no map or no matrix.
func (r *Result) Plot() *plots.Figure {
	quantity := r.Metric.Name()
	if r.Metric.Value(0) == 1 {
		quantity = "1 − " + quantity
	}
	panels := []*plots.Figure{r.errorFigure(quantity)}
	if r.ErrorMap != nil {
		panels = append([]*plots.Figure{r.errorMapFigure(quantity)}, panels...)
	}
	if figure := r.directionsFigure(); figure != nil {
		panels = append(panels, figure)
	}
	figure := plots.Grid(fmt.Sprintf("%s, n = %d: %s, λ = %.3g", r.Dataset, r.N, r.Best.kernelTitle(), r.Lambda),
		len(panels), panels...)
	figure.Caption = "The error of rows that the fit has not seen. The ring is the point that was chosen; " +
		"other points of the map were tried, between them it is by the model, " +
		"and errors of 1.5 times the least and more have one color."
	if text := r.directions(maxDirections); text != "" {
		figure.Caption += " Directions in which the points' distance changes most: " + text + "."
	}
	if features := r.mostRelevant(5); features != "" {
		figure.Caption += " The distance is of the kind " + r.bestDistance().Kind + "; the most relevant features: " +
			features + "."
	}
	return figure
}

// errorMapFigure returns the map of the error of the chosen kernel. quantity is the name of the error. All errors of at
// least 1.5 times the smallest have the same color.
func (r *Result) errorMapFigure(quantity string) *plots.Figure {
	label, title := "σ", r.Best.kernelKeyTitle()
	if features := r.mostRelevant(3); features != "" {
		title += ": " + features + " matter most"
	}
	if r.Best.Gamma > 0 {
		label = "γ"
	}
	figure := plots.Map(title, label, "λ", quantity+" (≤ 1.5 × least)", r.ErrorMap.Scale, r.ErrorMap.Lambda,
		r.ErrorMap.Error)
	lowest := math.Inf(1)
	for _, row := range r.ErrorMap.Error {
		lowest = min(lowest, slices.Min(row))
	}
	figure.Map.Bare, figure.Map.Color.Min, figure.Map.Color.Max = true, lowest, 1.5*lowest
	figure.Marks = append(figure.Marks, plots.Mark{X: r.Best.Sigma + r.Best.Gamma, Y: r.Best.Lambda, Label: "chosen"})
	tried := plots.Series{Name: "tried", Style: plots.Points}
	for _, p := range r.Points {
		x := p.Sigma + p.Gamma
		if p.kernelKey() == r.Best.kernelKey() && p.Degree == r.Best.Degree && p.Level == r.Best.Level &&
			slices.Contains(r.ErrorMap.Scale, x) && slices.Contains(r.ErrorMap.Lambda, p.Lambda) {
			tried.X, tried.Y = append(tried.X, x), append(tried.Y, p.Lambda)
		}
	}
	figure.Series = append(figure.Series, tried)
	return figure
}

// errorFigure returns a figure of the errors of the last level against λ, with their intervals. It omits errors of at
// least twice the upper end of the interval of the chosen point. quantity is the name of the error.
func (r *Result) errorFigure(quantity string) *plots.Figure {
	lastLevel := r.Points[len(r.Points)-1].Level
	figure := &plots.Figure{Title: strings.Replace(r.Levels[lastLevel].Name, "loo", "leave-one-out", 1),
		X: plots.Axis{Label: "λ", Log: true},
		Y: plots.Axis{Label: quantity}}
	for _, p := range r.Points {
		if p.Level != lastLevel || !p.Error.Known() || float64(p.Error) >= 2*float64(r.Best.Hi) {
			continue
		}
		figure.SeriesNamed(p.kernelKeyTitle(), plots.Points).AddBand(p.Lambda, float64(p.Error), float64(p.Lo),
			float64(p.Hi))
	}
	figure.Marks = []plots.Mark{{X: r.Best.Lambda, Y: float64(r.Best.Error), Label: "chosen"}}
	return figure
}

// HTML returns the result as text, figure and table.
func (r *Result) HTML() string { return stage.HTML(r) }

// Short implements stage.Choice. It returns the choice in one or a few lines.
func (r *Result) Short() string {
	var lines stage.Lines
	lines.Width = 12
	name, hint := "tuned", ""
	if r.Quick {
		name, hint = "chosen", "a quick search; --tune tries more rows and other distances"
	}
	sampled := "rows"
	if r.Repeats.Grouped > 0 {
		sampled = "groups of rows"
	}
	lines.Add(name, "%s%s with 95 %% over samples of %s, by %s; %s, %.3g s", r.Best.summary(r.Metric), r.unitsNote(),
		sampled, r.Levels[r.Best.Level].Name, plural.Count(len(r.Points), "point"), r.Seconds)
	lines.AddText("", r.baselineText())
	lines.AddText("", r.repeatsNote())
	if features := r.mostRelevant(5); features != "" {
		lines.AddText("", "the most relevant features: "+features)
	}
	lines.AddText("", r.edge)
	lines.AddText("", hint)
	return lines.String()
}

// flags returns the point as flags of krrlab fit, with a space before the first.
func (p *Point) flags() string {
	name, scale := p.Kernel, fmt.Sprint(" --sigma ", p.Sigma)
	if p.Params != "" || p.Gamma > 0 {
		name, scale = "'"+p.Spec().Text()+"'", ""
	}
	if p.Distance() != nil {
		if p.Params != "" {
			name = "'" + p.Spec().TextWithoutScale() + "'"
		}
		scale = " --sigma " + strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Distance()), "[]"), " ", ",")
	}
	return fmt.Sprintf(" --kernel %s%s --lambda %g", name, scale, p.Lambda)
}
