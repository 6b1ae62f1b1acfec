package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/points"
)

// checkMatrix checks the flags of a precomputed K.
func (f *kernelFlags) checkMatrix(set *pflag.FlagSet) error {
	switch {
	case f.name != "precomputed":
		return usagef("--matrix goes with --kernel precomputed only")
	case f.matrix == "":
		return usagef("--kernel precomputed: want K in a .npy file: --matrix FILE")
	case set.Lookup("criterion") != nil || set.Changed("tune"):
		return usagef("--tune does not go with --kernel precomputed, which leaves only λ to choose: krrlab loo --kernel precomputed gives the error for a grid of λ")
	}
	if p := set.Lookup("precond"); p != nil && p.Changed && p.Value.String() == "features" {
		return usagef("--precond features: a precomputed K has no random features: want rpcholesky or nystrom")
	}
	for _, name := range []string{"sigma", "gamma", "coef0", "degree", "data", "test", "scale", "impute", "categorical", "dim", "warm"} {
		if set.Changed(name) {
			return usagef("--%s does not go with --kernel precomputed: --train has only the targets, and --holdout holds out rows of K", name)
		}
	}
	return nil
}

// precomputed makes the rows of K the points.
func (d *loaded) precomputed(ctx context.Context, f *dataFlags, memory int64) error {
	x, err := datasets.ReadMatrix(ctx, f.matrix, memory)
	if err != nil {
		return err
	}
	if d.given, err = kernel.NewPrecomputed(x); err != nil {
		return fmt.Errorf("%s: %w", f.matrix, err)
	}
	n := d.train.Len()
	if rows := d.given.N(); rows < n || rows > n && (f.n == 0 || n < f.n) {
		header := ""
		if n == rows+1 {
			header = "; if its first line is a header, say --header yes"
		}
		return fmt.Errorf("%s: K has %d rows, and %s has %d: want a target for each row%s", f.matrix, rows, f.train, n, header)
	}
	d.train.X, d.train.Columns = kernel.Rows(n), nil
	return nil
}

// rows reads K(test, train) for a model of a precomputed K.
func (f *predictFlags) rows(ctx context.Context, m *model.Model) (*datasets.Dataset, error) {
	if f.in == "" || f.target != "" || f.textFlags != (textFlags{"auto", "auto", "auto", ""}) {
		return nil, usagef("%s is a model of a precomputed K: want --in FILE, K(test, train) in a .npy file, without --target and --format", f.model)
	}
	x, err := datasets.ReadMatrix(ctx, f.in, 0)
	if err == nil {
		if err = points.CheckFinite(x); err != nil {
			err = fmt.Errorf("%s: %w", f.in, err)
		}
	}
	return &datasets.Dataset{Name: f.in, Source: f.in, Task: m.Task(), X: x}, err
}
