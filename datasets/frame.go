package datasets

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"

	"github.com/krrlab/lab/krrlab/points"
)

// FromFrame returns the rows of a gota data frame as a data set. target names the column
// of the answers, "" means that there is none; task is one of Tasks. All other columns
// must hold finite numbers.
func FromFrame(df dataframe.DataFrame, target, task string) (*Dataset, error) {
	if df.Err != nil {
		return nil, df.Err
	}
	names := df.Names()
	if target != "" && !slices.Contains(names, target) {
		return nil, fmt.Errorf("data frame: no column is named %q", target)
	}
	if err := known("task", task, Tasks); err != nil {
		return nil, err
	}
	s := &source{name: "data frame"}
	n := df.Nrow()
	columns := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == target })
	if n == 0 || len(columns) == 0 {
		return nil, s.fail(0, 0, "%d rows of %d features", n, len(columns))
	}
	x := points.NewDense(n, len(columns), nil)
	for j, name := range columns {
		col := df.Col(name)
		for i, v := range col.Float() {
			if isFinite(v) {
				x.Row(i)[j] = v
				continue
			}
			return nil, s.fail(i+1, slices.Index(names, name)+1, "%s: %s is not a finite number", plain(name), quote(col.Elem(i).String()))
		}
	}
	d := &Dataset{Name: "data frame", Source: "data frame", X: x}
	if target == "" {
		return d, nil
	}
	return d, d.setAnswers(s, &answers{text: df.Col(target).Records()}, task)
}

// Frame returns the data set as a gota data frame with the columns x0, x1, … and, if the
// answers are known, y: numbers for regression, labels for classification. The numbers are those of X, which
// the frame cannot say to be scaled.
func (d *Dataset) Frame() dataframe.DataFrame {
	n, dim := d.X.Dims()
	columns := make([][]float64, dim)
	eachRow(d.X, func(row []float64) {
		for j, v := range row {
			columns[j] = append(columns[j], v)
		}
	})
	all := make([]series.Series, 0, dim+1)
	for j, c := range columns {
		all = append(all, series.New(c, series.Float, "x"+strconv.Itoa(j)))
	}
	switch {
	case d.Target != nil:
		all = append(all, series.New(d.Target, series.Float, "y"))
	case d.Class != nil:
		y := make([]string, n)
		for i, c := range d.Class {
			y[i] = d.Labels[c]
		}
		all = append(all, series.New(y, series.String, "y"))
	}
	return dataframe.New(all...)
}
