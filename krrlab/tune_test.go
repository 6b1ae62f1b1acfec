package krrlab

import (
	"context"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/tune"
)

// TestTune: beyond the subsample the last level fits and judges by rows held out, as New, Solve and Predict would.
func TestTune(t *testing.T) {
	ctx := context.Background()
	set := datasets.SyntheticRegression(700, 2, 0.1, 1)
	lab, err := New(set, Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Tune(ctx, tune.Options{Kernels: []string{"gaussian"}, Rows: 200})
	if err != nil {
		t.Fatal(err)
	}
	last := r.Levels[len(r.Levels)-1]
	if last.Name != "140 rows held out, fits of 560" || r.N != 700 || r.Lambda != r.Best.Lambda || r.Header.Kernel != r.Best.Spec() {
		t.Errorf("%+v, %+v", last, r.Header)
	}
	train, held, err := set.Holdout(0.2, 3)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New(train, Config{Kernel: kernel.Gaussian{Sigma: r.Best.Sigma}, Lambda: r.Best.Lambda, Tol: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	sol, err := again.Solve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sol.Model.Predict(ctx, held, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := float64(p.Score(held).RMSE), float64(r.Best.Error); got < 0.999*want || got > 1.001*want {
		t.Errorf("error %g of rows held out, want %g", got, want)
	}
	ranks, err := New(set, Config{Kernel: kernel.Gaussian{Sigma: 5}, Lambda: 10, Comm: comm.OrAlone(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ranks.Tune(ctx, tune.Options{}); err == nil || !strings.Contains(err.Error(), "on ranks") {
		t.Errorf("on ranks: %v", err)
	}
}
