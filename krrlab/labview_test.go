package krrlab

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestShown: what a notebook shows of a problem, of a direct solve, and of what is empty.
func TestShown(t *testing.T) {
	dense := newLab(t, datasets.SyntheticRegression(200, 4, 0.1, 1), Config{Kernel: gauss, Lambda: 0.1, Solver: Direct})
	exact := solveLab(t, dense)
	testkit.Contains(t, dense.HTML(), "n = 200, d = 4", ">data")
	testkit.Contains(t, (&Lab{}).String()+(&Solution{}).HTML(), "New makes one", "Lab.Solve makes one")
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
