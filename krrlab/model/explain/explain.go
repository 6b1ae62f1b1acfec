package explain

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/krrlab/stage"
)

// Options are the options of Run. Zero values mean the defaults.
type Options struct {
	Rows         int    `flag:"rows" default:"1000" check:">=2" help:"largest number of rows to use, drawn at random"`
	Permutations int    `flag:"permutations" default:"10" check:">=2" help:"permutations of each column"`
	Top          int    `flag:"top" default:"5" check:">=1" help:"number of leading columns whose partial dependence is computed"`
	Metric       string `flag:"metric" default:"auto" check:"one of auto error auc balanced-error f1 rmse" help:"metric whose loss a permutation increases (auto: error of classes, rmse of numbers)"`
	Seed         uint64 `flag:"seed" default:"1" help:"seed of the rows and permutations"`
	// Progress, if not nil, is called with the number of predictions so far and their total number. Here a prediction
	// covers all rows, for one permutation or value.
	Progress func(predicted, total int)
}

// Explanation is the result of Run. It is a stage.Stage.
type Explanation struct {
	Data         string       `json:"data"`         // file or name of the rows
	Rows         int          `json:"rows"`         // number of rows that were used
	TotalRows    int          `json:"of"`           // number of rows in the data
	FittedRows   int          `json:"fitted_rows"`  // number of rows in the data that the model was fitted to
	RepeatedRows int          `json:"copies"`       // number of used rows that are in the group of an earlier one
	Repeats      string       `json:"repeats"`      // how the rows of a group were found; "" without groups
	Permutations int          `json:"permutations"` // number of permutations of each column
	Metric       model.Metric `json:"metric"`       // metric whose loss a permutation increases
	Loss         float64      `json:"loss"`         // loss of the metric on the rows, see model.Metric.Value
	Seed         uint64       `json:"seed"`
	// Columns has the most important column first.
	Columns []Importance `json:"columns"`
	// Dependence has the partial dependence on the leading columns. A longitude and latitude that are projected, which
	// count as one column, have none.
	Dependence []Dependence `json:"dependence"`
	// Quantity is the quantity whose means are in Dependence: prediction, probability or decision value.
	Quantity string  `json:"quantity"`
	Seconds  float64 `json:"seconds"`
}

// Importance is the increase of the loss if a column is permuted.
type Importance struct {
	Column string  `json:"column"`
	Mean   float64 `json:"importance"` // mean increase over the permutations
	// StandardError is the standard error of Mean, by a jackknife over groups of rows. A group that is left out is
	// neither scored nor a source of cells for other rows. Copies of a record are in one group. The error is unknown if
	// the loss is not defined without some group, such as the only group with rows of a class.
	StandardError stage.Number `json:"standard_error"`
	Deviation     float64      `json:"deviation"` // standard deviation of the increase over the permutations
	source        datasets.SourceColumn
}

// Dependence is the mean prediction of the rows for values of one column.
type Dependence struct {
	Column   string    `json:"column"`
	Values   []float64 `json:"values,omitempty"` // numbers, or days from FirstDay, or hours of the day
	FirstDay string    `json:"first,omitempty"`  // day from which days are counted
	Words    []string  `json:"words,omitempty"`
	// Curves has one curve for a regression, the rarer of two classes (the second for decision values), or one for each
	// of the at most six most frequent classes.
	Curves []DependenceCurve `json:"curves"`
}

// DependenceCurve is the mean prediction, or that of one class, for each value.
type DependenceCurve struct {
	Class         string    `json:"class,omitempty"`
	Mean          []float64 `json:"mean"`
	StandardError []float64 `json:"standard_error"` // of the mean over the rows
}

// Limits of the work and of the results, chosen by judgment.
const (
	// jackknifeGroups is the number of groups of the jackknife. More make the standard error less variable and need no
	// further predictions.
	jackknifeGroups = 20
	gridSize        = 20 // largest number of values of a partial dependence
	// maxBatchFeatures limits rows times features of one batch of predictions. A larger number needs more memory.
	maxBatchFeatures = 1 << 22
	// maxColumns is the largest number of columns. Each costs Permutations predictions of all rows.
	maxColumns = 2000
)

// explainer is the state of a Run.
type explainer struct {
	m                *model.Model
	d                *datasets.Dataset // the rows that are used, with their answers
	features         []float64         // features of d by rows, rows×dim
	dim              int
	firstInGroup     []int // first row of the group of each row; the copies of a record are one group
	progress         func(predicted, total int)
	predicted, total int // numbers of predictions so far and in all, for progress
}

// variant is a change of the features of all rows. The features of row i from index start on are replaced by values(i).
// If values is nil, nothing is changed.
type variant struct {
	start  int
	values func(i int) []float64
}

// Run measures the importance of the columns of d for the model's predictions of the answers of d, which must be raw,
// and the partial dependence on the leading columns. Each column costs Permutations predictions of all rows.
func Run(ctx context.Context, m *model.Model, d *datasets.Dataset, o Options) (*Explanation, error) {
	start := time.Now()
	o.Rows, o.Permutations, o.Top = cmp.Or(o.Rows, 1000), cmp.Or(o.Permutations, 10), cmp.Or(o.Top, 5)
	metric, err := model.MetricOf(cmp.Or(o.Metric, "auto"), m.Labels != nil)
	columns := d.SourceColumns()
	switch {
	case err != nil:
		return nil, err
	case kernel.AsPrecomputed(m.Kernel) != nil:
		return nil, fmt.Errorf("explain: the model has a precomputed K, and no columns")
	case len(m.Targets) > 1:
		return nil, fmt.Errorf("explain: the model has %d targets: want one", len(m.Targets))
	case !d.HasAnswers() || d.Task != m.Task():
		return nil, fmt.Errorf("explain: the rows have no answers for %v, by which importance is measured", m.Task())
	case d.Scaling != nil:
		return nil, fmt.Errorf("explain: the rows are scaled: want the rows as they were read")
	case d.Len() < 2:
		return nil, fmt.Errorf("explain: %d row: want at least 2", d.Len())
	case len(columns) > maxColumns:
		return nil, fmt.Errorf("explain: %d columns: want at most %d", len(columns), maxColumns)
	}
	result := &Explanation{Data: d.Name, Rows: min(o.Rows, d.Len()), TotalRows: d.Len(),
		FittedRows: m.CountFittedRows(d), Permutations: o.Permutations, Metric: metric, Seed: o.Seed}
	random := rng.New(o.Seed).Sub("explain")
	if d.Len() > o.Rows {
		rows := random.Sub("rows").Perm(d.Len())[:o.Rows]
		slices.Sort(rows)
		d = d.WithGroups(nil).Subset(rows) // copies are found among all rows
	}
	grouping := d.Grouping(nil)
	e := &explainer{m: m, d: d, dim: d.Dim(), firstInGroup: grouping.FirstRow, progress: o.Progress}
	if result.RepeatedRows = points.CountRepeated(e.firstInGroup); result.RepeatedRows > 0 {
		result.Repeats = grouping.Repeats.String()
	}
	e.features = make([]float64, d.Len()*e.dim)
	points.RowsTo(d.X, e.features, e.dim)
	// The total excludes the predictions for the partial dependence, whose number is not known yet.
	e.total = 1 + len(columns)*o.Permutations
	if result.Loss, err = e.measureImportance(ctx, result, columns, random.Sub("permutations")); err != nil {
		return nil, err
	}
	slices.SortStableFunc(result.Columns, func(a, b Importance) int { return cmp.Compare(b.Mean, a.Mean) })
	for _, column := range result.Columns[:min(o.Top, len(columns))] {
		// Longitude and latitude together are one column with two features, which have no common axis.
		if column.source.Coding == nil && column.source.FeatureCount > 1 {
			continue
		}
		dependence, err := e.dependence(ctx, column.source, result)
		if err != nil {
			return nil, err
		}
		result.Dependence = append(result.Dependence, *dependence)
	}
	result.Seconds = time.Since(start).Seconds()
	return result, nil
}

// predict returns the prediction of all rows for each variant. The variants are predicted in batches.
func (e *explainer) predict(ctx context.Context, variants []variant) (predictions []*model.Prediction, err error) {
	rows := e.d.Len()
	batchSize := max(1, maxBatchFeatures/len(e.features))
	for batch := range slices.Chunk(variants, batchSize) {
		z := points.NewDense(rows*len(batch), e.dim, nil)
		for k, v := range batch {
			for i := range rows {
				row := z.Row(k*rows + i)
				copy(row, e.features[i*e.dim:(i+1)*e.dim])
				if v.values != nil {
					copy(row[v.start:], v.values(i))
				}
			}
		}
		p, err := e.m.Predict(ctx, &datasets.Dataset{X: z}, nil)
		if err != nil {
			return nil, err
		}
		batchRows := make([]int, rows)
		for k := range batch {
			for i := range batchRows {
				batchRows[i] = k*rows + i
			}
			predictions = append(predictions, p.Subset(batchRows))
		}
		if e.predicted += len(batch); e.progress != nil {
			e.progress(e.predicted, max(e.predicted, e.total))
		}
	}
	return predictions, nil
}

// measureImportance sets result.Columns, in the order of columns, and returns the loss of the unchanged rows.
func (e *explainer) measureImportance(ctx context.Context, result *Explanation, columns []datasets.SourceColumn,
	random rng.Stream) (float64, error) {
	unchanged, err := e.predict(ctx, []variant{{}})
	if err != nil {
		return 0, err
	}
	l := e.newPermutationLoss(result.Metric, unchanged[0], result.Rows-result.RepeatedRows)
	if math.IsNaN(l.reference) {
		return 0, fmt.Errorf("explain: the %s of these %d rows is not known: want rows of two classes",
			result.Metric.Name(), result.Rows)
	}
	for k, column := range columns {
		variants, orders := make([]variant, result.Permutations), make([][]int, result.Permutations)
		for r := range variants {
			order := random.Sub("column", uint64(k), uint64(r)).Perm(result.Rows)
			orders[r], variants[r] = order, variant{column.FirstFeature, func(i int) []float64 {
				return e.features[order[i]*e.dim+column.FirstFeature:][:column.FeatureCount]
			}}
		}
		permuted, err := e.predict(ctx, variants)
		if err != nil {
			return 0, err
		}
		importance := l.importance(permuted, orders)
		importance.Column, importance.source = column.Name, column
		result.Columns = append(result.Columns, importance)
	}
	return l.reference, nil
}

// permutationLoss measures how much the loss increases if the cells of a column are permuted.
type permutationLoss struct {
	metric        model.Metric
	positiveClass int               // class whose F1 counts if there are two: the rarer one of all rows
	unchanged     *model.Prediction // prediction of the unchanged rows
	answers       datasets.Dataset  // the rows without their features
	allRows       []int             // indices of all rows
	reference     float64           // loss of the unchanged rows; NaN if it is not known

	groupCount int   // number of groups of the jackknife
	groupOf    []int // group of the jackknife of each row; copies of a record are in the same group
}

// newPermutationLoss returns the permutationLoss of a metric for the prediction of the unchanged rows, which have the
// given number of different records.
func (e *explainer) newPermutationLoss(metric model.Metric, unchanged *model.Prediction, records int) *permutationLoss {
	rows := e.d.Len()
	l := &permutationLoss{metric: metric, unchanged: unchanged, answers: *e.d, allRows: make([]int, rows),
		groupCount: min(jackknifeGroups, records), groupOf: make([]int, rows)}
	l.answers.X = points.NewDense(rows, 1, nil) // Score does not read the features
	if len(unchanged.Labels) == 2 {
		l.positiveClass = rarerOfTwo(unchanged.Labels, e.d)
	}
	seen := 0 // number of different records so far
	for i, first := range e.firstInGroup {
		l.allRows[i] = i
		if l.groupOf[i] = l.groupOf[first]; first == i {
			l.groupOf[i], seen = seen%l.groupCount, seen+1
		}
	}
	l.reference = l.loss(unchanged, l.allRows)
	return l
}

// loss returns the loss of a prediction on the rows with the given indices, or NaN if it is not known.
func (l *permutationLoss) loss(p *model.Prediction, index []int) float64 {
	predictions := p.Subset(index)
	if l.metric != model.AUC && predictions.Labels != nil {
		predictions.Decision = nil // then Score computes no ROC curves
	}
	v, err := l.metric.Loss(predictions.Score(l.answers.Subset(index)), l.positiveClass)
	if err != nil {
		return math.NaN()
	}
	return v
}

// importance returns the increase of the loss for predictions of permuted rows. Row i has the cell of row orders[r][i]
// in permutation r.
func (l *permutationLoss) importance(permuted []*model.Prediction, orders [][]int) Importance {
	increases, jackknife := make([]float64, len(permuted)), make([]float64, l.groupCount)
	for r, p := range permuted {
		increases[r] = l.loss(p, l.allRows) - l.reference
		for g := range jackknife {
			jackknife[g] += l.increaseWithout(g, p, orders[r]) / float64(len(permuted))
		}
	}
	_, variance := stat.PopMeanVariance(jackknife, nil) // the jackknife variance is this times groupCount−1
	mean, deviation := stat.MeanStdDev(increases, nil)
	return Importance{Mean: mean, Deviation: deviation,
		StandardError: stage.Number(math.Sqrt(variance * float64(l.groupCount-1)))}
}

// increaseWithout returns the increase of the loss on the rows that are not in group g and whose cells are not of a row
// of group g, or NaN if there are none.
func (l *permutationLoss) increaseWithout(g int, p *model.Prediction, order []int) float64 {
	var index []int
	for i, donor := range order {
		if l.groupOf[i] != g && l.groupOf[donor] != g {
			index = append(index, i)
		}
	}
	if index == nil {
		return math.NaN()
	}
	return l.loss(p, index) - l.loss(l.unchanged, index)
}

// dependence returns the partial dependence on a column, and sets result.Quantity. It has no curves if no row has a
// value that the fit knows.
func (e *explainer) dependence(ctx context.Context, column datasets.SourceColumn, result *Explanation) (
	*Dependence, error) {
	dependence, variants := e.dependenceGrid(column)
	if variants == nil { // all cells are missing, or have words that the fit does not know
		return dependence, nil
	}
	predictions, err := e.predict(ctx, variants)
	if err != nil {
		return nil, err
	}
	records := float64(result.Rows - result.RepeatedRows)
	for _, p := range predictions {
		values, classes := p.Decision, []int{0}
		if result.Quantity = "prediction"; p.Labels != nil {
			result.Quantity = "decision value"
			if prob, err := interval.Probabilities(e.m.Calibration, p); err == nil {
				result.Quantity, values, classes = "probability", prob, []int{rarerOfTwo(p.Labels, e.d)}
			}
			if len(p.Labels) > 2 {
				classes = mostFrequent(classCounts(p.Labels, e.d), maxCurves)
			}
		}
		for k, class := range classes {
			if len(dependence.Curves) == k {
				dependence.Curves = append(dependence.Curves, DependenceCurve{})
				if p.Labels != nil {
					dependence.Curves[k].Class = p.Labels[class]
					// With two classes, the only column of decision values belongs to the second one.
					if values == p.Decision && len(classes) == 1 {
						dependence.Curves[k].Class = p.Labels[1]
					}
				}
			}
			mean, se := estimate.GroupedMean(mat.Col(nil, class, values), e.firstInGroup)
			// The factor corrects the bias of deviations from the mean of the same groups.
			se *= math.Sqrt(records / max(records-1, 1))
			curve := &dependence.Curves[k]
			curve.Mean, curve.StandardError = append(curve.Mean, mean), append(curve.StandardError, se)
		}
	}
	return dependence, nil
}

// dependenceGrid returns the values of a column at which its partial dependence is computed, in a Dependence without
// curves, and the change of the rows for each value.
func (e *explainer) dependenceGrid(column datasets.SourceColumn) (*Dependence, []variant) {
	dependence := &Dependence{Column: column.Name}
	var variants []variant
	add := func(v []float64) {
		variants = append(variants, variant{column.FirstFeature, func(int) []float64 { return v }})
	}
	switch {
	case column.Coding == nil: // numbers
		for _, v := range gridValues(e.sortedFeature(column.FirstFeature)) {
			dependence.Values = append(dependence.Values, v)
			add([]float64{v})
		}
	case column.Coding.Dates == nil: // words
		for _, k := range e.frequentWords(column) {
			dependence.Words = append(dependence.Words, column.Coding.Values[k])
			word := make([]float64, column.FeatureCount)
			word[k] = 1
			add(word)
		}
	default: // the dates of the rows at equal distances in time
		for _, i := range e.rowsAtSpacedTimes(column) {
			dependence.Values = append(dependence.Values, e.rowTime(column, i))
			add(e.features[i*e.dim+column.FirstFeature:][:column.FeatureCount])
		}
		dependence.FirstDay = column.Coding.Dates.First
	}
	return dependence, variants
}
