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

// TestPrepare checks how Prepare completes options from the command: rbf becomes gaussian, DistanceFlag becomes
// Distance, the flag --kernel replaces the kernels to search, and σ and λ of the command are fixed. It also checks that
// the flag --matrix is an error, that --quick excludes --rows, and that the validation file is read as test rows.
func TestPrepare(t *testing.T) {
	var setFlags []string // flags that are set on the command line
	command := &stage.Command{Lambda: 0.5, Kernel: kernel.Spec{Name: "polynomial degree=4", Sigma: 2},
		FitCommand: "krrlab fit", IsSet: func(flags ...string) bool { return slices.Contains(setFlags, flags[0]) }}
	for _, test := range []struct {
		setFlags             []string
		options, wantOptions Options
	}{
		{nil, Options{Kernels: []string{"rbf", "laplacian"}}, Options{Kernels: []string{"gaussian", "laplacian"}}},
		{nil, Options{Kernels: []string{"gaussian"}, DistanceFlag: "auto"},
			Options{Kernels: []string{"gaussian"}, DistanceFlag: "auto", Distance: "auto"}},
		{[]string{"kernel"}, Options{Kernels: []string{"gaussian"}}, Options{Kernels: []string{"polynomial degree=4"}}},
	} {
		setFlags = test.setFlags
		want := test.wantOptions
		want.Sigma, want.Lambda, want.fitCommand = command.Kernel.Sigma, command.Lambda, command.FitCommand
		if err := test.options.Prepare(command); err != nil || !reflect.DeepEqual(test.options, want) ||
			command.OnTestRows != nil {
			t.Errorf("flags %v: %+v, want %+v: error %v", test.setFlags, test.options, want, err)
		}
	}
	setFlags = []string{"matrix"}
	testkit.Fails(t, new(Options).Prepare(command), "krrlab loo --kernel precomputed")
	setFlags = []string{"rows"}
	testkit.Fails(t, (&Options{Quick: true}).Prepare(command), "--quick sets --rows, --points, --gain and --distance")
	setFlags = nil
	options, rows := Options{ValidFile: "v.csv", Kernels: []string{"gaussian"}}, new(datasets.Dataset)
	testkit.OK(t, options.Prepare(command))
	if command.OnTestRows(rows); options.Valid != rows || command.TestFile != "v.csv" {
		t.Errorf("the test file is %q, want v.csv; the validation rows are %v", command.TestFile, options.Valid)
	}
}
