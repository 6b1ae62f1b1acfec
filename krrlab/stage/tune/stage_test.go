package tune

import (
	"reflect"
	"slices"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestPrepare checks that the parameters on the command line are fixed, and that all others are searched.
func TestPrepare(t *testing.T) {
	given := []string{}
	c := &stage.Command{Lambda: 0.5, Kernel: kernel.Spec{Name: "polynomial degree=4", Sigma: 2},
		FitCommand: "krrlab fit", IsSet: func(flags ...string) bool { return slices.Contains(given, flags[0]) }}
	for _, v := range []struct {
		given []string
		o     Options
		want  Options
	}{
		{nil, Options{Kernels: []string{"rbf", "laplacian"}}, Options{Kernels: []string{"gaussian", "laplacian"}}},
		{nil, Options{Kernels: []string{"gaussian"}, DistanceFlag: "auto"},
			Options{Kernels: []string{"gaussian"}, DistanceFlag: "auto", Distance: "auto"}},
		{[]string{"kernel"}, Options{Kernels: []string{"gaussian"}}, Options{Kernels: []string{"polynomial degree=4"}}},
	} {
		given = v.given
		v.want.Sigma, v.want.Lambda, v.want.fitCommand = 2, 0.5, c.FitCommand
		if err := v.o.Prepare(c); err != nil || !reflect.DeepEqual(v.o, v.want) || c.OnTestRows != nil {
			t.Errorf("%v: %+v, want %+v: %v", v.given, v.o, v.want, err)
		}
	}
	given = []string{"matrix"}
	testkit.Fails(t, new(Options).Prepare(c), "krrlab loo --kernel precomputed")
	given = []string{"rows"}
	testkit.Fails(t, (&Options{Quick: true}).Prepare(c), "--quick sets --rows, --points, --gain and --distance")
	given = nil
	o, rows := Options{ValidFile: "v.csv", Kernels: []string{"gaussian"}}, new(datasets.Dataset)
	testkit.OK(t, o.Prepare(c))
	if c.OnTestRows(rows); o.Valid != rows || c.TestFile != "v.csv" {
		t.Errorf("%q is read for %v", c.TestFile, o.Valid)
	}
}
