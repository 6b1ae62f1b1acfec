package krrlab

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestShown looks at what a notebook shows of a problem and of its solution.
func TestShown(t *testing.T) {
	pair := testkit.Must(datasets.Load(t.Context(), "synthetic-regression", &datasets.LoadOptions{N: 200}))
	lab := newLab(t, pair.Train, Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 0.1, Solver: PCG,
		Precond: Features{S: 50}})
	sol := solveLab(t, lab)
	dense := newLab(t, pair.Train, Config{Kernel: kernel.Gaussian{Sigma: 1.5}, Lambda: 0.1, Solver: Direct})
	exact := solveLab(t, dense)
	for name, c := range map[string]struct{ text, want string }{
		"lab":             {lab.String(), "n = 200, d = 4; generated"},
		"lab in HTML":     {lab.HTML(), ">data"},
		"solver":          {lab.String(), "s = 50, λ_p = 0.1"},
		"solution":        {sol.String(), sol.String()[:40]},
		"solution's HTML": {sol.HTML(), "<figure "},
		"empty lab":       {(&Lab{}).String(), "New makes one"},
		"empty solution":  {(&Solution{}).HTML(), "Lab.Solve makes one"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: %q, want %q", name, c.text, c.want)
		}
	}
	if strings.Contains(exact.HTML(), "<figure ") || strings.Contains(dense.String(), "preconditioner") {
		t.Errorf("a direct solve shows iterations: %s %s", dense, exact.HTML())
	}
}

// TestNewWithoutData makes a laboratory of what failed to load.
func TestNewWithoutData(t *testing.T) {
	for _, d := range []*datasets.Dataset{nil, {}} {
		testkit.Fails(t, testkit.ErrOf(New(d, Config{})), "the data set is nil")
	}
}
