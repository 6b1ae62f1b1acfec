package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/plots"
)

// csv is a table with a number, a word, a date and an answer in each row.
const csv = `a,word,day,y
0.5,red,2024-01-03,1.5
-1.25,blue,2024-02-01,0.5
2,red,2024-03-07,4
0.75,green,2024-04-11,-1
1.5,blue,2024-05-30,2
-0.5,green,2024-06-01,0.25
0.25,red,2024-07-15,1
`

// randomModelAndRows returns a model with random coefficients and random rows of the table csv to explain it with. The
// answers are the given classes in turn, or the numbers y if classes is nil.
func randomModelAndRows(t *testing.T, seed uint64, classes []string) (*model.Model, *datasets.Dataset) {
	t.Helper()
	text := csv
	if classes != nil {
		lines := strings.Split(strings.TrimSpace(csv), "\n")
		for i := 1; i < len(lines); i++ {
			lines[i] = lines[i][:strings.LastIndex(lines[i], ",")+1] + classes[i%len(classes)]
		}
		text = strings.Join(lines, "\n")
	}
	d, err := datasets.Read(strings.NewReader(text), "t.csv", &datasets.ReadOptions{Target: "y",
		ColumnCodings: []datasets.ColumnCoding{{Column: "word"}, {Column: "day", Dates: &datasets.DateCoding{}}}})
	testkit.OK(t, err)
	random, columns := rng.New(seed), 1
	if len(classes) > 2 {
		columns = len(classes)
	}
	index := make([]int, 43)
	for i := range index {
		index[i] = random.Sub("row").IntN(uint64(i), d.Len())
	}
	d = d.Subset(index)
	x, c := points.NewDense(9, d.Dim(), nil), mat.NewDense(9, columns, nil)
	random.Sub("x").Normals(x.Data, 0)
	random.Sub("c").Normals(c.RawMatrix().Data, 0)
	return &model.Model{Kernel: kernel.Gaussian{Sigma: 40}, Lambda: 1, X: x, C: c, Labels: classes, Columns: d.Columns},
		d
}

// decideRow returns f(z) of one row by its definition.
func decideRow(m *model.Model, z []float64) []float64 {
	n, _, t := m.Dims()
	f, x := make([]float64, t), make([]float64, len(z))
	for i := range n {
		m.X.RowTo(x, i)
		floats.AddScaled(f, m.Kernel.Eval(x, z), m.C.RawRowView(i))
	}
	return f
}

// TestImportanceAndDependence compares importance, standard errors and partial dependence with plain loops that follow
// their definitions. The standard error is a jackknife over 20 groups of rows.
func TestImportanceAndDependence(t *testing.T) {
	for seed, classes := range map[uint64][]string{1: nil, 2: {"no", "yes"}, 3: {"p", "q", "r"}} {
		m, d := randomModelAndRows(t, seed, classes)
		e, err := Run(t.Context(), m, d, Options{Permutations: 3, Top: 3, Seed: seed})
		testkit.OK(t, err)
		n, dim := d.Len(), d.Dim()
		x := make([]float64, n*dim)
		points.RowsTo(d.X, x, dim)
		// loss is the RMSE or the share of wrong labels of rows whose features first, …, first+count−1 are permuted,
		// without group omitted, and without the rows whose cells order takes from this group.
		loss := func(first, count int, order []int, omitted int) float64 {
			sum, rows := 0.0, 0.0
			for i := range n {
				if omitted >= 0 && (i%20 == omitted || order[i]%20 == omitted) {
					continue
				}
				z := slices.Clone(x[i*dim : (i+1)*dim])
				if count > 0 {
					copy(z[first:], x[order[i]*dim+first:][:count])
				}
				f := decideRow(m, z)
				switch rows++; {
				case classes == nil:
					sum += (f[0] - d.Target[i]) * (f[0] - d.Target[i])
				case len(f) == 1 && (f[0] > 0) != (d.Labels[d.Class[i]] == "yes"),
					len(f) > 1 && classes[slices.Index(f, slices.Max(f))] != d.Labels[d.Class[i]]:
					sum++
				}
			}
			if classes == nil {
				return math.Sqrt(sum / rows)
			}
			return sum / rows
		}
		columns := []struct {
			name         string
			first, count int // the features of the column
		}{{"a", 0, 1}, {"word", 1, 3}, {"day", 4, 5}}
		for k, c := range columns {
			got := e.Columns[slices.IndexFunc(e.Columns, func(v Importance) bool { return v.Column == c.name })]
			var increases []float64 // of the loss, for all groups and without each one
			var mean float64
			for g := -1; g < 20; g++ { // −1 omits no group
				increase := 0.0
				for r := range 3 {
					order := rng.New(seed).Sub("explain").Sub("permutations").Sub("column", uint64(k),
						uint64(r)).Perm(n)
					increase += (loss(c.first, c.count, order, g) - loss(0, 0, order, g)) / 3
				}
				if increases = append(increases, increase); g >= 0 {
					mean += increase / 20
				}
			}
			variance := 0.0
			for _, v := range increases[1:] {
				variance += 19.0 / 20 * (v - mean) * (v - mean)
			}
			testkit.Near(t, got.Mean, increases[0], 1e-4, classes, "importance of", c.name)
			testkit.Near(t, float64(got.StandardError), math.Sqrt(variance), 1e-4, classes, "standard error of", c.name)
		}
		for _, dependence := range e.Dependence {
			for k, word := range dependence.Words {
				feature := map[string]int{"blue": 1, "green": 2, "red": 3}[word]
				mean := make([]float64, len(decideRow(m, x[:dim])))
				for i := range n {
					z := slices.Clone(x[i*dim : (i+1)*dim])
					z[1], z[2], z[3] = 0, 0, 0
					z[feature] = 1
					for j, v := range decideRow(m, z) {
						mean[j] += v / float64(n)
					}
				}
				for j, curve := range dependence.Curves {
					testkit.Near(t, curve.Mean[k], mean[j], 1e-4, classes, "dependence on", word)
				}
			}
			words := 0
			if dependence.Column == "word" {
				words = 3
			}
			if len(dependence.Words) != words || (dependence.FirstDay != "") != (dependence.Column == "day") ||
				!slices.IsSorted(dependence.Values) {
				t.Errorf("the dependence on %s has %d words, want %d, or wrong dates or unsorted values: %+v",
					dependence.Column, len(dependence.Words), words, dependence)
			}
		}
		testkit.OK(t, e.Plot().Validate())
	}
}

// TestStandardError compares the mean standard error of an importance with its standard deviation over samples of
// rows. The model predicts the square of a feature. A row with a large cell has a large loss if the cell is replaced,
// and gives a large loss to the row that gets the cell. If the standard error ignored the second effect, it would be
// three quarters of the deviation. If all rows are there twice, it must stay.
func TestStandardError(t *testing.T) {
	const samples, n = 120, 60
	m := &model.Model{Kernel: kernel.Polynomial{Gamma: 1, Degree: 2}, Lambda: 1,
		X: points.NewDense(1, 2, []float64{1, 0}), C: mat.NewDense(1, 1, []float64{1})}
	var importance []float64
	variance, varianceWithCopies := 0.0, 0.0 // mean squares of the standard errors, without and with copies
	for seed := range uint64(samples) {
		d := &datasets.Dataset{Name: "t", Task: datasets.Regression, X: points.NewDense(n, 2, nil)}
		stream := rng.New(seed).Sub("t")
		for i := range n {
			row := d.X.(*points.Dense).Row(i)
			row[0], row[1] = stream.Normal(uint64(2*i)), stream.Normal(uint64(2*i+1))
			d.Target = append(d.Target, row[0]*row[0]+0.3*row[1])
		}
		e := testkit.Must(Run(t.Context(), m, d, Options{Permutations: 5, Top: 1, Seed: seed}))
		column := e.Columns[0]
		importance = append(importance, column.Mean)
		variance += float64(column.StandardError*column.StandardError) / samples
		if seed%3 > 0 {
			continue
		}
		twice := d.Subset(append(stream.Perm(n), stream.Sub("b").Perm(n)...)).WithGroups(nil)
		e = testkit.Must(Run(t.Context(), m, twice, Options{Permutations: 5, Top: 1, Seed: seed}))
		varianceWithCopies += float64(e.Columns[0].StandardError*e.Columns[0].StandardError) / (samples / 3)
		testkit.Equal(t, e.RepeatedRows, n)
		testkit.Contains(t, e.String(), "60 are copies", "a group counts once in the standard errors")
	}
	deviation := stat.StdDev(importance, nil)
	t.Logf("standard deviation over samples %g, standard error %g, with copies %g", deviation, math.Sqrt(variance),
		math.Sqrt(varianceWithCopies))
	if ratio := math.Sqrt(varianceWithCopies) / deviation; ratio < 0.85 || ratio > 1.35 {
		t.Errorf("with copies, the standard error is %g times the standard deviation over samples", ratio)
	}
	if ratio := math.Sqrt(variance) / deviation; ratio < 0.9 || ratio > 1.35 {
		t.Errorf("the standard error is %g times the standard deviation over samples", ratio)
	}
}

// TestLossF1 checks that the F1 of a part of the rows is that of the class that is rarer among all rows by weight, even
// if the other class is rarer in the part or by the number of rows.
func TestLossF1(t *testing.T) {
	// Predicted as class 1: rows 0, 1, 2. By weight class 1 has 4 of 10.
	d := &datasets.Dataset{Task: datasets.Classification, Labels: []string{"a", "b"}, Class: []int{0, 1, 1, 1, 0},
		Weights: []float64{3, 1, 1, 2, 3}, X: points.NewDense(5, 1, nil)}
	p := &model.Prediction{Labels: d.Labels, Class: []int{1, 1, 1, 0, 0},
		Decision: mat.NewDense(5, 1, []float64{1, 1, 1, -1, -1})}
	e := &explainer{d: d, firstInGroup: []int{0, 1, 2, 3, 4}}
	l := e.newPermutationLoss(model.F1, p, 5)
	testkit.Near(t, l.reference, 5./9, 1e-15)                  // N/(2TP+N) with TP = 2, N = 2+3
	testkit.Near(t, l.loss(p, []int{1, 2, 3, 4}), 1./3, 1e-15) // TP = 2, N = 2; class a has less weight here
	testkit.Near(t, l.loss(p, []int{1, 2, 3}), 1./3, 1e-15)    // the part has no row of class a
}

// TestRunRefuses checks that Run refuses data for which importance is not defined, and ends with a canceled context.
func TestRunRefuses(t *testing.T) {
	m, d := randomModelAndRows(t, 1, nil)
	for want, change := range map[string]func(m *model.Model, d *datasets.Dataset, o *Options){
		"no answers":  func(_ *model.Model, d *datasets.Dataset, _ *Options) { d.Target = nil },
		"targets":     func(m *model.Model, _ *datasets.Dataset, _ *Options) { m.Targets = []string{"u", "v"} },
		"are numbers": func(_ *model.Model, _ *datasets.Dataset, o *Options) { o.Metric = "auc" },
		"scaled":      func(_ *model.Model, d *datasets.Dataset, _ *Options) { d.Scaling = &datasets.Scaling{} },
		"row":         func(_ *model.Model, d *datasets.Dataset, _ *Options) { *d = *d.Head(1) },
	} {
		changedModel, changedRows, o := *m, *d, Options{}
		change(&changedModel, &changedRows, &o)
		testkit.Fails(t, testkit.ErrOf(Run(t.Context(), &changedModel, &changedRows, o)), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Equal(t, testkit.ErrOf(Run(ctx, m, d, Options{})), context.Canceled)
}

// TestGrid checks the values at which a partial dependence is computed. They are the values of the rows if there are
// few, and otherwise lie between the 5th and the 95th percentile.
func TestGrid(t *testing.T) {
	many := make([]float64, 101)
	for i := range many {
		many[i] = float64(i)
	}
	if g := gridValues(many); len(g) != gridSize || g[0] != 5 || g[gridSize-1] != 95 {
		t.Errorf("the grid of 0, …, 100 is %v, want %d values from 5 to 95", g, gridSize)
	}
	if g := gridValues([]float64{1, 1, 3}); !slices.Equal(g, []float64{1, 3}) {
		t.Errorf("the grid of 1, 1, 3 is %v, want 1, 3", g)
	}
}

// TestImportanceOfPlace checks that a projected longitude and latitude are permuted together, under their names in the
// file. The importance must be the mean increase of the loss computed with plain loops.
func TestImportanceOfPlace(t *testing.T) {
	text := "lon,lat,alt,y\n"
	for i := range 40 {
		u := rng.New(5).Sub("u").Normal(uint64(i))
		v := rng.New(5).Sub("v").Normal(uint64(i))
		text += fmt.Sprintf("%g,%g,%g,%g\n", 8+0.1*u, 47+0.1*v, float64(i%3), u-v)
	}
	d := testkit.Must(datasets.Read(strings.NewReader(text), "t.csv", &datasets.ReadOptions{Target: "y",
		Space: &datasets.Space{Columns: []string{"lon", "lat", "alt"}}}))
	c := mat.NewDense(40, 1, nil)
	for i := range 40 {
		c.Set(i, 0, rng.New(6).Normal(uint64(i)))
	}
	m := &model.Model{Kernel: kernel.Gaussian{Sigma: 40}, Lambda: 1, X: d.X, C: c, Columns: d.Columns}
	x := make([]float64, 40*3)
	points.RowsTo(d.X, x, 3)
	for i := range d.Target {
		d.Target[i] = decideRow(m, x[i*3:][:3])[0] + 0.1*d.Target[i]
	}
	e := testkit.Must(Run(t.Context(), m, d, Options{Permutations: 3}))
	if len(e.Columns) != 2 || e.Columns[0].Column != "lon, lat" || e.Columns[1].Column != "alt" ||
		len(e.Dependence) != 1 || e.Dependence[0].Column != "alt" {
		t.Fatalf("want importances of lon, lat together and of alt, and the dependence on alt: %+v", e)
	}
	loss := func(order []int) float64 {
		sum := 0.0
		for i := range 40 {
			f := decideRow(m, []float64{x[order[i]*3], x[order[i]*3+1], x[i*3+2]})[0]
			sum += (f - d.Target[i]) * (f - d.Target[i])
		}
		return math.Sqrt(sum / 40)
	}
	unpermuted, mean := make([]int, 40), 0.0
	for i := range unpermuted {
		unpermuted[i] = i
	}
	permutations := rng.New(0).Sub("explain").Sub("permutations")
	for r := range uint64(3) {
		mean += (loss(permutations.Sub("column", 0, r).Perm(40)) - loss(unpermuted)) / 3
	}
	testkit.Near(t, e.Columns[0].Mean, mean, 1e-6)
	testkit.Contains(t, e.String(), "lon, lat")
	testkit.OK(t, e.Plot().Validate())
}

// TestDependencePanel checks that two values are drawn as points and more as a line, that a few whole numbers become
// the ticks, and that the axis extends beyond them.
func TestDependencePanel(t *testing.T) {
	for _, c := range []struct {
		values, ticks []float64
		style         plots.Style
	}{{[]float64{0, 0.5}, []float64{0, 0.5}, plots.Points}, {[]float64{1, 2, 4}, []float64{1, 2, 4}, plots.Line},
		{[]float64{1, 2.5, 4}, nil, plots.Line}} {
		zeros := make([]float64, len(c.values))
		panel := new(Explanation).dependencePanel(&Dependence{Values: c.values,
			Curves: []DependenceCurve{{Mean: zeros, StandardError: zeros}}})
		if !slices.Equal(panel.X.Ticks, c.ticks) || panel.Series[0].Style != c.style || c.ticks != nil &&
			!(panel.X.Min < c.ticks[0]) {
			t.Errorf("values %v: ticks %v, want %v; style %v, want %v; the axis begins at %g", c.values, panel.X.Ticks,
				c.ticks, panel.Series[0].Style, c.style, panel.X.Min)
		}
	}
}
