package interval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
)

// The methods, by their names in flags and files.
const (
	Split           = "split"
	Jackknife       = "jackknife"
	JackknifePlus   = "jackknife+"
	GaussianProcess = "posterior"
)

// Methods lists the methods.
var Methods = []string{Split, Jackknife, JackknifePlus, GaussianProcess}

// Guarantee summarizes the guaranteed coverage in a few words.
func (iv *Intervals) Guarantee() string {
	switch {
	case iv.Doubt != "":
		return fmt.Sprintf("coverage mostly near %g, not guaranteed: %s", iv.Level, iv.Doubt)
	case iv.Method == Split:
		return fmt.Sprintf("covers with probability %g at least if rows are exchangeable", iv.Level)
	case iv.Method == JackknifePlus:
		return fmt.Sprintf("covers with probability %.4g at least if rows are exchangeable and did not choose "+
			"kernel, λ and scaling, mostly near %g", max(0, 2*iv.Level-1), iv.Level)
	case iv.Method == GaussianProcess:
		return fmt.Sprintf("covers with probability %g if the answers are a Gaussian process with this kernel and λ, "+
			"which is assumed and not checked", iv.Level)
	}
	return fmt.Sprintf("coverage mostly near %g, not guaranteed", iv.Level)
}

// doubtReason explains why scores of n rows have no guarantee: the description applies to count of the rows. It returns
// "" if count is 0.
func doubtReason(count, n int, description string) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d rows %s", count, n, description)
}

// repeatDescription describes rows that are in the group of an earlier row. A group of the given kind consists of
// copies of a row, of rows with the same features, or of rows with the same value in a group column.
func repeatDescription(kind datasets.RowKind) string {
	return map[datasets.RowKind]string{datasets.RowKindNew: "are copies of others",
		datasets.RowKindNewFeatures: "have the features of others",
		datasets.RowKindNewGroup:    "are of the groups of others"}[kind]
}

// CalibrateSplit returns the scores for Split from a model's prediction p of the rows of d, which must not have been
// used for training. The scores are |y−f| for each target of a regression. For classes they are max_{k≠y} f_k − f_y
// (for two classes, twice the decision value in favor of the other class), or +∞ if the model does not know the label,
// and the maps for Probabilities are added. If train is not nil, it is the data that the model was fitted to, scaled as
// d is. Rows of d that are in a group of its rows (Dataset.Overlap) are reported in Doubt, and so are given groups of
// train if d is another data set, as their numbers do not tell which rows belong together.
func CalibrateSplit(train *datasets.Dataset, p *model.Prediction, d *datasets.Dataset) (*model.Calibration, error) {
	rows, _ := p.Decision.Dims()
	if d.Len() != rows || !d.HasAnswers() || (p.Labels == nil) != (d.Task == datasets.Regression) {
		return nil, fmt.Errorf("interval: %d answers of %v do not fit a prediction of %d rows", d.Len(), d.Task, rows)
	}
	var doubt string
	if train != nil {
		kind := datasets.RowKindNew
		if train.Repeats != nil {
			kind = train.Repeats.RowKind
		}
		doubt = doubtReason(d.Overlap(train), rows, repeatDescription(kind))
		if kind == datasets.RowKindNewGroup && d.Repeats != train.Repeats {
			doubt = "the groups of the test rows, and whether they are groups of the fit, are not known"
		}
	}
	if p.Labels == nil {
		y, err := datasets.Coding{}.EncodeForFit(d)
		if err != nil {
			return nil, err
		}
		y.Sub(y, p.Decision)
		return sortedCalibration(Split, absolute(y), doubt), nil
	}
	scores, class, classIndex := mat.NewDense(rows, 1, nil), make([]int, rows), d.ClassIn(p.Labels)
	for i, label := range d.Class {
		score := math.Inf(1)
		if class[i] = classIndex[label]; class[i] >= 0 {
			score = -datasets.Margin(p.Decision.RawRowView(i), class[i])
		}
		scores.Set(i, 0, score)
	}
	return addProbabilityMaps(sortedCalibration(Split, scores, doubt), p.Decision, class), nil
}

// maxScoreChange is the largest difference of two scores of the same row, relative to the largest finite |score|, if
// its prediction was computed twice. A smaller number overlooks rows whose scores are in the model; a larger one takes
// a few other rows for them.
const maxScoreChange = 0.01

// IsCalibratedOn reports whether the scores of a Split calibration are those of the rows of d with the prediction p, up
// to rounding. Such rows do not test intervals and probabilities. It returns false for scores of other methods, and for
// nil.
func IsCalibratedOn(calibration *model.Calibration, p *model.Prediction, d *datasets.Dataset) bool {
	if calibration == nil || calibration.Method != Split {
		return false
	}
	recomputed, err := CalibrateSplit(nil, p, d)
	if err != nil {
		return false
	}
	rows, columns := calibration.Scores.Dims()
	if r, t := recomputed.Scores.Dims(); r != rows || t != columns {
		return false
	}
	saved, largest := calibration.Scores.RawMatrix().Data, 0.0
	for _, score := range saved {
		if !math.IsInf(score, 0) {
			largest = max(largest, math.Abs(score))
		}
	}
	for i, score := range recomputed.Scores.RawMatrix().Data {
		if score != saved[i] && !(math.Abs(score-saved[i]) <= maxScoreChange*largest) { // both may be infinite
			return false
		}
	}
	return true
}

// CalibrateJackknife returns the scores for Jackknife, and for classes the maps for Probabilities, from the training
// points. Each point is predicted by a fit without its group (FactoredSystem.LeaveOneOut).
func CalibrateJackknife(s *FactoredSystem) *model.Calibration {
	residuals := s.LeaveOneOut()
	if s.m.Labels == nil {
		return sortedCalibration(Jackknife, absolute(residuals), s.doubt)
	}
	n, _ := residuals.Dims()
	scores, class := mat.NewDense(n, 1, nil), make([]int, n)
	groups := map[int]map[int]bool{} // for each class, the set of groups of its rows
	for i := range n {
		if class[i] = datasets.PredictedClass(s.ac.RawRowView(i)); groups[class[i]] == nil {
			groups[class[i]] = map[int]bool{}
		}
		groups[class[i]][s.firstInGroup[i]] = true
	}
	var f mat.Dense
	f.Sub(s.ac, residuals)
	for i, label := range class {
		score := math.Inf(1)
		if len(groups[label]) == 1 { // a fit without this group does not know the label
			class[i] = -1
		} else {
			score = -datasets.Margin(f.RawRowView(i), label)
		}
		scores.Set(i, 0, score)
	}
	return addProbabilityMaps(sortedCalibration(Jackknife, scores, s.doubt), &f, class)
}

// absolute replaces the entries of r by their absolute values, and returns r.
func absolute(r *mat.Dense) *mat.Dense {
	r.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, r)
	return r
}

// sortedCalibration returns a calibration with the scores, each column sorted in ascending order.
func sortedCalibration(method string, scores *mat.Dense, doubt string) *model.Calibration {
	rows, t := scores.Dims()
	sorted := mat.NewDense(rows, t, nil)
	for j := range t {
		column := mat.Col(nil, j, scores)
		slices.Sort(column)
		sorted.SetCol(j, column)
	}
	return &model.Calibration{Method: method, Scores: sorted, Doubt: doubt}
}

// scoreRank returns the rank, counted from 1, of the score among m that bounds a new score at the level: ⌈level·(m+1)⌉.
func scoreRank(level float64, m int) (int, error) {
	if !(level > 0 && level < 1) {
		return 0, levelError(level)
	}
	// 1e-9 is larger than the rounding error of level·(m+1), which must not increase the rank.
	rank := max(1, int(math.Ceil(level*float64(m+1)-1e-9)))
	if rank > m {
		return 0, fmt.Errorf("interval: %d scores are too few for intervals of level %.6g: want at least %.0f, or a "+
			"lower level", m, level, math.Ceil(level/(1-level)-1e-9))
	}
	return rank, nil
}

// levelError returns the error for a level outside (0, 1).
func levelError(level float64) error {
	return fmt.Errorf("interval: level %g: want a number between 0 and 1, such as 0.9", level)
}

// Intervals contain the answers of new points at the given level. For a regression they are from Lo to Hi. For classes
// they are Sets of label indices, ascending. The index len(Labels) stands for any label that the model does not know.
type Intervals struct {
	Method string     // one of Methods
	Level  float64    // stated coverage, in (0, 1)
	Doubt  string     // reason why Method's guarantee does not hold; "" if it does
	Lo, Hi *mat.Dense // ends of the intervals, m×t; nil for classes
	Std    *mat.Dense // standard deviation of f, m×t, for GaussianProcess; else nil
	Sets   [][]int    // for each point, the label indices of its set; nil for a regression
	// UnknownShare is the share of the rows of the scores whose labels the model does not know.
	UnknownShare float64
}

// FromScores returns the intervals or sets of Split or Jackknife around a prediction. If the labels of too many scores
// are unknown to the model for any set of its labels to cover at the level, each set contains all labels and the index
// of an unknown one. FromScores returns an error if the level is not in (0, 1), or there are too few scores for it.
func FromScores(calibration *model.Calibration, p *model.Prediction, level float64) (*Intervals, error) {
	m, _ := calibration.Scores.Dims()
	rank, err := scoreRank(level, m)
	if err != nil {
		return nil, err
	}
	halfWidths := calibration.Scores.RawRowView(rank - 1)
	rows, t := p.Decision.Dims()
	iv := &Intervals{Method: calibration.Method, Level: level, Doubt: calibration.Doubt}
	if p.Labels == nil {
		iv.Lo, iv.Hi = mat.NewDense(rows, t, nil), mat.NewDense(rows, t, nil)
		iv.Lo.Apply(func(_, j int, f float64) float64 { return f - halfWidths[j] }, p.Decision)
		iv.Hi.Apply(func(_, j int, f float64) float64 { return f + halfWidths[j] }, p.Decision)
		return iv, nil
	}
	knownScores, _ := slices.BinarySearch(mat.Col(nil, 0, calibration.Scores), math.Inf(1))
	iv.Sets, iv.UnknownShare = make([][]int, rows), 1-float64(knownScores)/float64(m)
	for i := range iv.Sets {
		f := p.Decision.RawRowView(i)
		for j := range p.Labels {
			if j == p.Class[i] || -datasets.Margin(f, j) <= halfWidths[0] {
				iv.Sets[i] = append(iv.Sets[i], j)
			}
		}
		if math.IsInf(halfWidths[0], 1) {
			iv.Sets[i] = append(iv.Sets[i], len(p.Labels))
		}
	}
	return iv, nil
}

// JackknifePlusIntervals returns the intervals of JackknifePlus for a regression, around the prediction of the points
// of d, by
//
//	f_{−G}(z) = f(z) − δ(1−1ᵀA⁻¹k_z) − r_Gᵀ(A⁻¹k_z)_G
//
// where G are the rows that equal row i: see FactoredSystem.LeaveOneOut.
func JackknifePlusIntervals(ctx context.Context, s *FactoredSystem, p *model.Prediction, d *datasets.Dataset,
	level float64) (*Intervals, error) {
	n, t := s.residuals.Dims()
	if p.Labels != nil {
		return nil, fmt.Errorf("interval: jackknife+ gives intervals for regression, and the model is for " +
			"classification: take split or jackknife")
	}
	rank, err := scoreRank(level, n)
	if err != nil {
		return nil, err
	}
	z, err := s.points(d)
	if err != nil {
		return nil, err
	}
	rows, decision := z.Len(), p.Decision
	iv := &Intervals{Method: JackknifePlus, Level: level, Lo: mat.NewDense(rows, t, nil),
		Hi: mat.NewDense(rows, t, nil)}
	if iv.Doubt = s.doubt; s.m.Origin.Tuned {
		iv.Doubt = "kernel and λ were chosen by their error on the rows of the fit"
	}
	return iv, s.forEachBlock(ctx, z, func(lo int, block *mat.Dense) {
		s.factor.Backward(block)
		low, high, groupSums := make([]float64, n), make([]float64, n), make([]float64, n)
		for column := range block.RawMatrix().Cols {
			remainder := 1 - mat.Sum(block.ColView(column))
			for j := range t {
				clear(groupSums)
				for i, g := range s.firstInGroup {
					groupSums[g] += s.residuals.At(i, j) * block.At(i, column)
				}
				for i, g := range s.firstInGroup {
					prediction := decision.At(lo+column, j) - s.shift.At(g, j)*remainder - groupSums[g]
					absResidual := math.Abs(s.residuals.At(i, j))
					low[i], high[i] = prediction-absResidual, prediction+absResidual
				}
				slices.Sort(low)
				slices.Sort(high)
				iv.Lo.Set(lo+column, j, low[n-rank]) // rank n+1−k = ⌊α(n+1)⌋
				iv.Hi.Set(lo+column, j, high[rank-1])
			}
		}
	})
}

// Coverage returns the share of the rows of d whose answers are in their intervals or sets. For several targets it is
// the mean of their shares.
func (iv *Intervals) Coverage(p *model.Prediction, d *datasets.Dataset) float64 {
	covered := 0
	if iv.Sets != nil {
		classIndex := d.ClassIn(p.Labels)
		for i, set := range iv.Sets {
			label := classIndex[d.Class[i]]
			if label < 0 {
				label = len(p.Labels)
			}
			if slices.Contains(set, label) {
				covered++
			}
		}
		return float64(covered) / float64(len(iv.Sets))
	}
	y, err := datasets.Coding{}.EncodeForFit(d)
	if err != nil {
		return math.NaN()
	}
	rows, t := iv.Lo.Dims()
	for i := range rows {
		for j := range t {
			if answer := y.At(i, j); iv.Lo.At(i, j) <= answer && answer <= iv.Hi.At(i, j) {
				covered++
			}
		}
	}
	return float64(covered) / float64(rows*t)
}
