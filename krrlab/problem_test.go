package krrlab

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestSharedMatrices solves a sequence of problems that share K, Z and M. Each answer must have the bits of the same
// solve alone, and the report must name the parts that were shared.
func TestSharedMatrices(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticClasses(400, 3, 4, 0.05, 3)
	base := Config{Kernel: kernel.Gaussian{Sigma: 0.7}, Lambda: 0.05, Precond: Features{S: 60}, Tol: 1e-6,
		Storage: gram.Float64, Seed: 7}
	first := newLab(t, train, base)
	for _, c := range []struct {
		name   string
		change func(c *Config)
		want   []string
	}{
		{"first", func(c *Config) {}, nil},
		{"tolerance", func(c *Config) { c.Tol = 1e-2 }, []string{"features", "factor", "kernel"}},
		{"λ_p", func(c *Config) { c.Precond = Features{S: 60, LambdaP: 0.5} }, []string{"features", "kernel"}},
		{"form", func(c *Config) { c.Precond = Features{S: 60, LambdaP: 0.5, Form: precond.FormU} },
			[]string{"features", "kernel"}},
		{"seed", func(c *Config) { c.Seed = 8 }, []string{"kernel"}},
		{"s", func(c *Config) { c.Seed, c.Precond = 8, Features{S: 90} }, []string{"kernel"}},
		{"landmarks", func(c *Config) { c.Precond = Nystrom{S: 60} }, []string{"kernel"}},
		{"no preconditioner", func(c *Config) { c.Solver, c.Precond = CG, nil }, []string{"kernel"}},
		{"storage", func(c *Config) { c.Storage, c.Solver, c.Precond = gram.Float32, CG, nil }, nil},
	} {
		cfg := base
		c.change(&cfg)
		separate := mustSolve(t, train, cfg)
		lab := testkit.Must(first.With(func(c *Config) { *c = cfg }))
		got := testkit.Must(lab.Solve(ctx))
		if !mat.Equal(separate.Model.C, got.Model.C) || separate.Iterations != got.Iterations ||
			!reflect.DeepEqual(separate.ColumnTrueResiduals, got.ColumnTrueResiduals) {
			t.Errorf("%s: not the same answer as alone", c.name)
		}
		if !slices.Equal(got.Shared, c.want) {
			t.Errorf("%s: shared %q, want %q", c.name, got.Shared, c.want)
		}
		if seconds := got.Seconds; seconds.Kernel <= 0 || cfg.Solver != CG && (seconds.Features <= 0 ||
			seconds.Factor <= 0) {
			t.Errorf("%s: seconds %+v of what was shared", c.name, seconds)
		}
	}
	first.Free()
	if got, err := first.Solve(ctx); err != nil || got.Shared != nil {
		t.Errorf("shared %q after Free, %v", got.Shared, err)
	}
}

// TestSharedRefines checks that K is formed again if it is stored too coarsely for a smaller tolerance, and that the
// finer K then serves the larger tolerance.
func TestSharedRefines(t *testing.T) {
	ctx := context.Background()
	train := datasets.SyntheticRegression(400, 3, 0.1, 3)
	coarse := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1e-3, Precond: Features{S: 60},
		Tol: 1e-1, Solver: PCG, Seed: 7})
	if sol, err := coarse.Solve(ctx); err != nil || sol.Storage != "float32" {
		t.Fatalf("storage %s at τ = 0.1, %v", sol.Storage, err)
	}
	fine := testkit.Must(coarse.With(func(c *Config) { c.Tol = 1e-6 }))
	if sol, err := fine.Solve(ctx); err != nil || sol.Storage != "float64" || slices.Contains(sol.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 1e-6, %v", sol.Storage, sol.Shared, err)
	}
	if sol, err := coarse.Solve(ctx); err != nil || sol.Storage != "float64" || !slices.Contains(sol.Shared, "kernel") {
		t.Errorf("storage %s, shared %q at τ = 0.1 again, %v", sol.Storage, sol.Shared, err)
	}
}

// TestWithRefuses checks that With refuses changes of what labs of one problem share: λ, the kernel and Comm. It also
// checks that a lab with another method shares the problem, even if its kernel is a Go function.
func TestWithRefuses(t *testing.T) {
	for _, k := range []kernel.Kernel{gauss, kernel.Func{Name: "own", F: gauss.Eval}} {
		lab := newLab(t, datasets.SyntheticRegression(50, 3, 0.1, 3), Config{Kernel: k, Lambda: 0.1, Solver: PCG})
		derived := testkit.Must(lab.With(func(c *Config) { c.Precond = Nystrom{S: 20} }))
		testkit.Equal(t, derived.problem, lab.problem)
		for _, change := range []func(*Config){
			func(c *Config) { c.Lambda = 0.2 },
			func(c *Config) { c.Kernel = kernel.Gaussian{Sigma: 2} },
			func(c *Config) { c.Kernel = kernel.Func{Name: "other", F: gauss.Eval} },
			func(c *Config) { c.Comm = comm.Alone() },
		} {
			testkit.Fails(t, testkit.ErrOf(lab.With(change)), "another problem")
		}
	}
}

// TestStagesWait checks that a stage that waits for another stage of the same lab ends with the error of its context.
func TestStagesWait(t *testing.T) {
	lab := newLab(t, datasets.SyntheticRegression(50, 3, 0.1, 3), Config{Kernel: kernel.Gaussian{Sigma: 1},
		Lambda: 0.1})
	end := testkit.Must(lab.acquire(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lab.acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("while another runs: %v", err)
	}
	end()
	testkit.Must(lab.acquire(t.Context()))()
}

// TestFingerprint checks that the fingerprint of a computation changes with everything that the answer depends on, and
// with nothing that may differ when the computation is resumed.
func TestFingerprint(t *testing.T) {
	fingerprintOf := func(train *datasets.Dataset, change func(*Config)) [32]byte {
		t.Helper()
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20, LambdaP: 0.2}, Tol: 1e-6,
			Seed: 3, Storage: gram.Float64}
		if change != nil {
			change(&cfg)
		}
		return testkit.Must(newLab(t, train, cfg).fingerprint())
	}
	train := ranksProblem(40)
	seen := map[[32]byte]string{fingerprintOf(train, nil): "unchanged"}
	checkDiffers := func(description string, fingerprint [32]byte) {
		t.Helper()
		if earlier, ok := seen[fingerprint]; ok {
			t.Errorf("a change of %s has the fingerprint of %s", description, earlier)
		}
		seen[fingerprint] = description
	}
	for description, change := range map[string]func(*Config){
		"kernel":   func(c *Config) { c.Kernel = kernel.Gaussian{Sigma: math.Nextafter(gauss.Sigma, 9)} },
		"λ":        func(c *Config) { c.Lambda = math.Nextafter(0.1, 1) },
		"solver":   func(c *Config) { c.Solver = BlockPCG },
		"precond":  func(c *Config) { c.Precond = RPCholesky{S: 20, LambdaP: 0.2} },
		"features": func(c *Config) { c.Precond = Features{S: 21, LambdaP: 0.2} },
		"λ_p":      func(c *Config) { c.Precond = Features{S: 20, LambdaP: math.Nextafter(0.2, 1)} },
		"form":     func(c *Config) { c.Precond = Features{S: 20, LambdaP: 0.2, Form: precond.FormEigen} },
		"nystrom":  func(c *Config) { c.Precond = Nystrom{S: 20, LambdaP: 0.2} },
		"spectral": func(c *Config) { c.Precond = Nystrom{S: 20, LambdaP: 0.2, Spectral: true} },
		"landmarks 3, 1": func(c *Config) {
			c.Precond = Nystrom{S: 2, LambdaP: 0.2, Landmarks: []int{3, 1}}
		},
		"landmarks 3, 2": func(c *Config) {
			c.Precond = Nystrom{S: 2, LambdaP: 0.2, Landmarks: []int{3, 2}}
		},
		"τ":        func(c *Config) { c.Tol = math.Nextafter(1e-6, 1) },
		"storage":  func(c *Config) { c.Storage = gram.Float32 },
		"seed":     func(c *Config) { c.Seed = 4 },
		"residual": func(c *Config) { c.Exact = ExactResidual },
	} {
		checkDiffers(description, fingerprintOf(train, change))
	}
	for description, change := range map[string]func(data *datasets.Dataset){
		"a class": func(data *datasets.Dataset) { data.Class[7] = (data.Class[7] + 1) % len(data.Labels) },
		"a label": func(data *datasets.Dataset) { data.Labels[1] += "x" },
		"a number": func(data *datasets.Dataset) {
			x := data.X.(*points.Dense)
			x.Data[5] = math.Nextafter(x.Data[5], 9)
		},
		"one row fewer": func(data *datasets.Dataset) { *data = *data.Head(39) },
		"regression targets": func(data *datasets.Dataset) {
			data.Task, data.Target, data.Class = datasets.Regression, make([]float64, 40), nil
		},
		"another regression target": func(data *datasets.Dataset) {
			data.Task, data.Target, data.Class = datasets.Regression, make([]float64, 40), nil
			data.Target[39] = 1e-3
		},
	} {
		data := ranksProblem(40)
		change(data)
		checkDiffers(description, fingerprintOf(data, nil))
	}
	for description, change := range map[string]func(*Config){
		"iterations": func(c *Config) { c.MaxIter = 7 },
		"memory":     func(c *Config) { c.Memory = 1 << 30 },
		"monitor":    func(c *Config) { c.Monitor = func(Event) error { return nil } },
	} {
		if fingerprint := fingerprintOf(train, change); seen[fingerprint] != "unchanged" {
			t.Errorf("a change of %s changes the fingerprint", description)
		}
	}
}

// TestDatasetFingerprint checks that the fingerprint of a data set changes with every number of dense points and with
// every value and row length of sparse points, also if there are more numbers than are hashed at a time. A view of rows
// must have the fingerprint of the rows alone.
func TestDatasetFingerprint(t *testing.T) {
	fingerprint := func(x points.Points) [32]byte {
		return (&datasets.Dataset{Task: datasets.Regression, X: x, Target: []float64{1, 2}}).Fingerprint()
	}
	const d = 5000
	dense, sparse := points.NewDense(2, d, nil), &points.CSR{N: 2, D: d, Ptr: []int{0, d, 2 * d}}
	for i := range 2 * d {
		dense.Data[i] = float64(i)
		sparse.Col, sparse.Val = append(sparse.Col, int32(i%d)), append(sparse.Val, float64(i))
	}
	seen := map[[32]byte]bool{fingerprint(dense): true, fingerprint(sparse): true}
	for _, i := range []int{0, 1, d - 1, d, 2*d - 1} {
		changedDense, changedSparse := points.NewDense(2, d, slices.Clone(dense.Data)), *sparse
		changedDense.Data[i]++
		changedSparse.Val = slices.Clone(changedSparse.Val)
		changedSparse.Val[i]++
		seen[fingerprint(changedDense)], seen[fingerprint(&changedSparse)] = true, true
	}
	moved, shorter := *sparse, *sparse
	moved.Ptr, shorter.Ptr = []int{0, d - 1, 2 * d}, []int{0, d, 2*d - 1}
	seen[fingerprint(&moved)], seen[fingerprint(&shorter)] = true, true
	testkit.Equal(t, len(seen), 2+2*5+2) // originals, one changed number each, and two changed row pointers
	view := &points.CSR{N: 3, D: d, Ptr: []int{0, 0, d, 2 * d}, Col: sparse.Col, Val: sparse.Val}
	testkit.Equal(t, fingerprint(view.Slice(1, 3)), fingerprint(sparse))
}

// TestHTML checks String and HTML of a lab, of a direct solve, which has no iterations to show, and of empty values.
func TestHTML(t *testing.T) {
	dense := newLab(t, datasets.SyntheticRegression(200, 4, 0.1, 1), Config{Kernel: gauss, Lambda: 0.1, Solver: Direct})
	exact := solveLab(t, dense)
	testkit.Contains(t, dense.HTML(), "n = 200, d = 4", ">data")
	testkit.Contains(t, (&Lab{}).String()+(&Solution{}).HTML(), "New makes one", "Lab.Solve makes one")
	if strings.Contains(exact.HTML(), "<figure ") || strings.Contains(dense.String(), "preconditioner") {
		t.Errorf("a direct solve shows iterations: %s %s", dense, exact.HTML())
	}
}

// TestNewWithoutData checks that New refuses a data set that is nil or empty, as after a failed load.
func TestNewWithoutData(t *testing.T) {
	for _, d := range []*datasets.Dataset{nil, {}} {
		testkit.Fails(t, testkit.ErrOf(New(d, Config{})), "the data set is nil")
	}
}
