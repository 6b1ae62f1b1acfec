package remote

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestJobs writes a job for every stage and runs it in one process and on two ranks. The results must equal those of
// the same stage without a job.
func TestJobs(t *testing.T) {
	train := problem(300)
	levels := testkit.Must(feature.ParseLevels("features:120,srht:60,gaussian:30"))
	chain := testkit.Must(feature.ChainFor(gauss, levels))
	for name, test := range map[string]struct {
		cfg     krrlab.Config
		stage   stage.Name
		options stage.Runner
	}{
		"statdim": {krrlab.Config{Precond: krrlab.Features{S: 30}}, "statdim",
			krrlab.StatDimOptions{Method: krrlab.SLQ, MaxProbes: 16, Lambdas: []float64{0.1, 1}}},
		"sketch size": {krrlab.Config{}, "sketch-size", krrlab.SketchSizeOptions{Max: 64}},
		"multilevel": {krrlab.Config{Precond: krrlab.Features{}}, "multilevel",
			krrlab.MultiLevelOptions{Levels: levels}},
		"multilevel of M": {krrlab.Config{Precond: krrlab.Features{S: 20}}, "multilevel", krrlab.MultiLevelOptions{}},
		"registered kernel": {krrlab.Config{Kernel: inverse{0.7}, Solver: krrlab.PCG}, "quality",
			krrlab.QualityOptions{}},
		"lambda-p": {krrlab.Config{Precond: krrlab.RPCholesky{S: 20}}, "lambda-p",
			krrlab.LambdaPOptions{Points: 2}},
		"quality": {krrlab.Config{Precond: krrlab.Features{Map: chain, S: 30, Form: 1, LambdaP: 0.5},
			Storage: gram.Float64}, "quality", krrlab.QualityOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Lambda, test.cfg.Seed, test.cfg.Tol = 0.3, 5, 1e-4
			if test.cfg.Kernel == nil {
				test.cfg.Kernel = gauss
			}
			lab := newLab(t, train, test.cfg)
			root := t.TempDir()
			for _, ranks := range []int{0, 2} {
				dir := &jobDir{root: root}
				sender := newLab(t, train, withBackend(test.cfg, testBackend(root)))
				testkit.OK(t, testBackend(root).writeJob(dir, sender, test.stage, test.options))
				runJob(t, dir.path(jobFile), ranks)
				var got any
				testkit.OK(t, json.Unmarshal(testkit.Must(readOutcome(dir)).Value, &got))
				run := func(ctx context.Context, l *krrlab.Lab) (any, error) { return l.Run(ctx, test.options) }
				want, err := run(t.Context(), lab)
				if ranks > 0 {
					want, err = onTwoRanks(t, train, test.cfg, run)
				}
				if testkit.OK(t, err); !reflect.DeepEqual(withoutTimes(got), withoutTimes(want)) {
					t.Errorf("%d ranks: the job\n%v\nthe stage\n%v", ranks, got, withoutTimes(want))
				}
			}
		})
	}
}

// inverse is the registered user-defined kernel 1/(1+c‖x−z‖²).
type inverse struct{ C float64 }

var errInverse = kernel.Register("test.inverse", inverse{})

func (k inverse) String() string { return "inverse" }
func (k inverse) Eval(x, z []float64) float64 {
	var sq float64
	for i, v := range x {
		sq += (v - z[i]) * (v - z[i])
	}
	return 1 / (1 + k.C*sq)
}

// testBackend returns a backend of two ranks with the job folder dir.
func testBackend(dir string) *Backend { return &Backend{Ranks: 2, Dir: dir} }

// withBackend returns the configuration with the backend b.
func withBackend(c krrlab.Config, b *Backend) krrlab.Config {
	c.Backend = b
	return c
}

// runJob runs a job on the given number of goroutine ranks, or without ranks if the number is 0.
func runJob(t *testing.T, file string, ranks int) {
	t.Helper()
	if ranks == 0 {
		testkit.OK(t, RunJob(t.Context(), file, Options{}))
		return
	}
	comm.RunLocal(ranks, func(c comm.Comm) {
		if err := RunJob(t.Context(), file, Options{Comm: c}); err != nil {
			t.Error(err)
		}
	})
}

// onTwoRanks runs a stage on two goroutine ranks and returns the result of rank 0.
func onTwoRanks(t *testing.T, train *datasets.Dataset, cfg krrlab.Config,
	run func(ctx context.Context, l *krrlab.Lab) (any, error)) (any, error) {
	values, errs := make([]any, 2), make([]error, 2)
	comm.RunLocal(2, func(c comm.Comm) {
		cfg := cfg
		cfg.Comm = c
		values[c.Rank()], errs[c.Rank()] = run(t.Context(), newLab(t, train, cfg))
	})
	return values[0], errs[0]
}

// TestJobSolve runs a solve on two ranks, for every kind of points and targets. The coefficients must come back with
// the same bits, and the report must be the same.
func TestJobSolve(t *testing.T) {
	root := t.TempDir()
	for kind, x := range pointsInEachFormat(260, 4) {
		for _, train := range []*datasets.Dataset{classes(x, 3), classes(x, 2), regression(x).Center()} {
			train = train.Slice(3, 257) // rows that do not begin at 0
			cfg := krrlab.Config{Kernel: gauss, Lambda: 0.1, Precond: krrlab.Nystrom{S: 40}, Tol: 1e-5, Seed: 7,
				Exact: krrlab.StoredResidual}
			sender := newLab(t, train, withBackend(cfg, testBackend(root)))
			dir := &jobDir{root: root}
			testkit.OK(t, testBackend(root).writeJob(dir, sender, "solve", nil))
			runJob(t, dir.path(jobFile), 2)
			out := testkit.Must(readOutcome(dir))
			got := &krrlab.Solution{}
			testkit.OK(t, out.decode(got, dir.path("")))
			value := testkit.Must(onTwoRanks(t, train, cfg,
				func(ctx context.Context, l *krrlab.Lab) (any, error) { return l.Solve(ctx) }))
			want := value.(*krrlab.Solution)
			if !mat.Equal(got.Model.C, want.Model.C) {
				t.Fatalf("%s, %v: other coefficients", kind, train.Task)
			}
			if gotReport, wantReport := withoutTimes(got), withoutTimes(want); !reflect.DeepEqual(gotReport,
				wantReport) {
				t.Errorf("%s, %v:\n%v\nwant\n%v", kind, train.Task, gotReport, wantReport)
			}
		}
	}
}

// ownKernel is a kernel that is not registered, so no job can contain it.
type ownKernel struct{}

func (ownKernel) Eval(x, z []float64) float64 { return 1 / (1 + math.Abs(x[0]-z[0])) }
func (ownKernel) String() string              { return "cauchy of x₁" }

// TestBackendRefuses checks that each configuration that cannot be sent or started yields an error of one line that
// says what to do.
func TestBackendRefuses(t *testing.T) {
	train := problem(50)
	valid := krrlab.Config{Kernel: gauss, Lambda: 0.1, Precond: krrlab.Features{S: 10}}
	for name, test := range map[string]struct {
		change func(cfg *krrlab.Config, b *Backend)
		want   string
	}{
		"own kernel": {func(cfg *krrlab.Config, b *Backend) { cfg.Kernel = ownKernel{} },
			"cauchy of x₁ is user-defined"},
		"own map": {func(cfg *krrlab.Config, b *Backend) {
			cfg.Precond = krrlab.Features{Map: feature.Doubling{Dist: feature.Fourier{Kernel: gauss}, First: 10}}
		}, "is user-defined"},
		"map of another": {func(cfg *krrlab.Config, b *Backend) {
			cfg.Precond = krrlab.Features{Map: feature.Fourier{Kernel: kernel.Laplacian{Sigma: 3}}}
		}, "is user-defined"},
		"no ranks":         {func(cfg *krrlab.Config, b *Backend) { b.Ranks = 0 }, "at least 1"},
		"hosts, no folder": {func(cfg *krrlab.Config, b *Backend) { b.Hosts, b.Dir = []string{"a"}, "" }, "set Dir"},
		"slurm, no folder": {func(cfg *krrlab.Config, b *Backend) { b.Launcher, b.Dir = "srun", "" }, "set Dir"},
		"sbatch":           {func(cfg *krrlab.Config, b *Backend) { b.Launcher = "/opt/sbatch" }, "take srun"},
		"ranks and backend": {func(cfg *krrlab.Config, b *Backend) { cfg.Comm = comm.Alone() },
			"want at most one of them"},
		"direct": {func(cfg *krrlab.Config, b *Backend) { cfg.Solver, cfg.Precond = krrlab.Direct, nil },
			"direct solver"},
		"negative limit": {func(cfg *krrlab.Config, b *Backend) { b.Limit = -time.Second }, "positive time"},
	} {
		b := testBackend(t.TempDir())
		cfg := withBackend(valid, b)
		test.change(&cfg, b)
		if _, err := krrlab.New(train, cfg); err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	b := testBackend(t.TempDir())
	b.Launcher, b.Program = "/nowhere/mpirun", "/bin/true"
	testkit.Fails(t, testkit.ErrOf(newLab(t, train, withBackend(valid, b)).Solve(t.Context())),
		"/nowhere/mpirun, which starts the ranks, was not found")
}

// TestJobRefuses changes the files of a job. RunJob must refuse each changed job with the reason.
func TestJobRefuses(t *testing.T) {
	train := problem(50)
	for name, test := range map[string]struct {
		change func(t *testing.T, root string, j *job)
		want   string
	}{
		"version": {func(_ *testing.T, _ string, j *job) { j.Version = 1 }, "format version 1, want 5"},
		"stage":   {func(_ *testing.T, _ string, j *job) { j.Stage = "dance" }, `unknown stage "dance"`},
		"kernel":  {func(_ *testing.T, _ string, j *job) { j.Config.Spec.Name = "x" }, "kernel"},
		"damaged data": {func(t *testing.T, root string, j *job) {
			b := testkit.Must(os.ReadFile(j.Data.path(root)))
			b[len(b)/2] ^= 1
			testkit.OK(t, os.WriteFile(j.Data.path(root), b, 0o644))
		}, "damaged model"},
		"no data": {func(_ *testing.T, root string, j *job) { os.Remove(j.Data.path(root)) }, "no such file"},
		"other data": {func(_ *testing.T, root string, j *job) {
			other := data{Fingerprint: strings.Repeat("0", 64)}
			testkit.OK(t, os.Rename(j.Data.path(root), other.path(root)))
			j.Data = other
		}, "not those of the job"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			l := newLab(t, train, withBackend(krrlab.Config{Kernel: gauss, Lambda: 0.1,
				Precond: krrlab.Features{S: 10}}, testBackend(root)))
			dir := &jobDir{root: root}
			testkit.OK(t, testBackend(root).writeJob(dir, l, "quality", krrlab.QualityOptions{}))
			j := testkit.Must(readJob(dir.path(jobFile)))
			test.change(t, root, j)
			b, err := json.Marshal(j)
			if err == nil {
				err = os.WriteFile(dir.path(jobFile), b, 0o644)
			}
			testkit.OK(t, err)
			testkit.Fails(t, RunJob(t.Context(), dir.path(jobFile), Options{}), test.want)
		})
	}
}

// TestDataRoundTrip checks that points of every kind, scaling, mean, names and targets are read as they were written.
func TestDataRoundTrip(t *testing.T) {
	for kind, x := range pointsInEachFormat(60, 4) {
		several := regression(x)
		several.MoreTargets, several.TargetNames = [][]float64{several.Target[:]}, []string{"a", "b"}
		several.Columns, several.Note = []string{"p", "q", "r", "s"}, "generated"
		for _, train := range []*datasets.Dataset{several, regression(x).Center(), classes(x, 2), classes(x, 3)} {
			for _, scale := range datasets.Scalings {
				want, _, err := datasets.Scale(scale, train, nil)
				testkit.OK(t, err)
				root := t.TempDir()
				j := testkit.Must(writeData(root, want))
				got, err := j.read(root)
				if err == nil {
					got.ReadReport = want.ReadReport
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s, %v: %v, %+v, want %+v", kind, scale, train.Task, err, got, want)
				}
			}
		}
	}
}

// TestGeneratedData checks that a generated problem, whose smallest errors are known, can be written and read.
func TestGeneratedData(t *testing.T) {
	for _, d := range []*datasets.Dataset{datasets.SyntheticClasses(60, 3, 4, 0.05, 1),
		datasets.SyntheticRegression(60, 2, 0.1, 1)} {
		root := t.TempDir()
		j := testkit.Must(writeData(root, d))
		testkit.Must(j.read(root))
	}
}

// TestCoefficientErrors checks that no result is written if the coefficients cannot be written, and that missing or
// damaged coefficients are an error.
func TestCoefficientErrors(t *testing.T) {
	root := t.TempDir()
	lab := newLab(t, problem(40), krrlab.Config{Kernel: gauss, Lambda: 0.1, Precond: krrlab.Features{S: 10}})
	sol := testkit.Must(lab.Solve(t.Context()))
	out := &outcome{Version: jobVersion, Stage: "solve"}
	if err := out.write(filepath.Join(root, "none"), sol); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("result in a folder that does not exist: %v, want os.ErrNotExist", err)
	}
	testkit.OK(t, out.write(root, sol))
	file := filepath.Join(root, answerFile)
	content := testkit.Must(os.ReadFile(file))
	testkit.OK(t, os.WriteFile(file, content[1:], 0o644))
	testkit.Fails(t, out.decode(new(krrlab.Solution), root), "coefficients: mat: ")
	testkit.OK(t, os.Remove(file))
	testkit.Fails(t, out.decode(new(krrlab.Solution), root), "no such file")
}

// TestCheckpointFolderIsAbsolute checks that the folder of checkpoints is stored as an absolute path, so that it does
// not depend on where the ranks run.
func TestCheckpointFolderIsAbsolute(t *testing.T) {
	j, err := newConfig(&krrlab.Config{Kernel: gauss, Checkpoint: &krrlab.Checkpoint{Dir: "kept"}})
	want, errAbs := filepath.Abs("kept")
	if err != nil || errAbs != nil || j.Checkpoint.Dir != want {
		t.Errorf("%v, %v: %s, want %s", err, errAbs, j.Checkpoint.Dir, want)
	}
}
