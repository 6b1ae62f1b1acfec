package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/multilevel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

func levels(t testing.TB, spec string) feature.Levels {
	t.Helper()
	l, err := feature.ParseLevels(spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func multiLevelLab(t testing.TB, n int, k kernel.Kernel, c Config) *Lab {
	t.Helper()
	c.Kernel, c.Solver, c.Lambda, c.Seed = k, PCG, 0.05, 3
	lab := newLab(t, regression(kinds(n, 5, 4)["float64"]), c)
	return lab
}

func TestParseLevels(t *testing.T) {
	const spec = "features:16000,srht:4000,gaussian:2000"
	l := levels(t, strings.ReplaceAll(spec, ",", ", "))
	if len(l) != 3 || l[1] != (feature.ChainLevel{Sketch: "srht", Width: 4000}) || l.String() != spec {
		t.Error(l)
	}
	for spec, want := range map[string]string{
		"":                                    "want a name and a width",
		"features":                            "want a name and a width",
		"features:x":                          "want a name and a width",
		"srht:5":                              "want features first",
		"features:0":                          "at least 1",
		"features:9,features:5":               "unknown sketch",
		"features:9,fft:5":                    "level 2: unknown sketch \"fft\"",
		"features:9,srht:10":                  "wider",
		"features:9,srht:5,gaussian:-1":       "at least 1",
		"features:9,srht:5,gaussian:6,srht:2": "level 3, gaussian:6, is wider than the 5",
	} {
		if _, err := feature.ParseLevels(spec); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line with %q", spec, err, want)
		}
	}
	if err := feature.Levels(nil).Check(); err == nil {
		t.Error("no levels are fine")
	}
}

// TestMultiLevel checks what the stage says against the parts it is made of: the maps that fit
// draws, the iterations that PCG takes with M of them, and the views of the numbers.
func TestMultiLevel(t *testing.T) {
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.5}, kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3}} {
		const n, spec = 400, "features:600,countsketch:200,srht:100,gaussian:40"
		lab := multiLevelLab(t, n, k, Config{})
		m, err := lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: levels(t, spec)})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Chain) != 4 || len(m.OneLevel) != 3 || m.N != n || m.Confidence != 0.95 || m.Levels.String() != spec {
			t.Fatalf("%v: %+v", k, m)
		}
		for i, l := range m.Chain {
			if l.Level != i+1 || l.ChainLevel != m.Levels[i] || !l.Converged || l.Kappa == nil {
				t.Errorf("%v, level %d: %+v", k, i+1, l)
			}
			chain, err := feature.ChainFor(k, false, m.Levels[:i+1])
			if err != nil {
				t.Fatal(err)
			}
			checkLevel(t, lab, l, chain, i == 3)
		}
		alone, err := feature.ForKernel(k, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range m.OneLevel {
			if l.Level != i+2 || l.Width != m.Levels[i+1].Width || l.Sketch != "features" {
				t.Errorf("%v, features alone: %+v", k, l)
			}
			checkLevel(t, lab, l, alone, true)
		}
		checkViews(t, m)
	}
}

// checkLevel compares a level with dense eigenvalues and, where fit draws the same map, with PCG and M
// formed in float64.
func checkLevel(t *testing.T, lab *Lab, l MeasuredLevel, dist feature.Dist, same bool) {
	t.Helper()
	if !same {
		return
	}
	cfg := lab.Config()
	cfg.Precond = Features{Map: dist, S: l.Width}
	fit := newLab(t, lab.train, cfg)
	z, err := fit.Z(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := fit.K(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := precond.New(t.Context(), z, ridge(fit), &precond.Options{Form: precond.FormLInv})
	if err != nil {
		t.Fatal(err)
	}
	res, err := pcg.Solve(t.Context(), a, w, fit.y, &pcg.Options{Tol: cfg.Tol, Aim: aim, MaxIter: cfg.MaxIter})
	if err != nil {
		t.Fatal(err)
	}
	if res.Iterations != l.Iterations || res.Status != l.Status {
		t.Errorf("%v: %d iterations (%s), PCG takes %d (%v)", dist, l.Iterations, l.Status, res.Iterations, res.Status)
	}
	m, err := dist.Sample(lab.train.Dim(), l.Width, rng.New(cfg.Seed).Sub("features", 0))
	if err != nil {
		t.Fatal(err)
	}
	norm, kappa := denseLevel(t, lab, m)
	if l.Error.Lo > norm*1.001 || l.Error.Hi < norm*0.999 || l.Kappa.Lo > kappa*1.001 || l.Kappa.Hi < kappa*0.999 {
		t.Errorf("%v: error %v, exactly %g; κ %v, exactly %g", dist, l.Error, norm, *l.Kappa, kappa)
	}
}

// denseLevel returns ‖ZZᵀ−K‖₂ and κ(M⁻¹A) from dense float64 matrices and their eigenvalues.
func denseLevel(t testing.TB, lab *Lab, m feature.Map) (norm, kappa float64) {
	t.Helper()
	cfg := lab.Config()
	n, _, _ := lab.Dims()
	_, s := m.Dims()
	z := mat.NewDense(n, s, nil)
	m.MapTo(z.RawMatrix().Data, s, lab.train.X, &feature.Workspace{})
	var zz mat.SymDense
	zz.SymOuterK(1, z)
	x := rows(lab.train.X)
	e, mm, a := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k := cfg.Kernel.Eval(x[i], x[j])
			e.SetSym(i, j, zz.At(i, j)-k)
			mm.SetSym(i, j, zz.At(i, j))
			a.SetSym(i, j, k)
		}
		mm.SetSym(i, i, mm.At(i, i)+ridge(lab))
		a.SetSym(i, i, a.At(i, i)+cfg.Lambda)
	}
	values := func(a mat.Symmetric) []float64 {
		var eig mat.EigenSym
		if !eig.Factorize(a, false) {
			t.Fatal("no eigenvalues")
		}
		return eig.Values(nil)
	}
	v := values(e)
	var chol mat.Cholesky
	if !chol.Factorize(mm) {
		t.Fatal("M is not positive definite")
	}
	var l mat.TriDense
	chol.LTo(&l)
	var b, c mat.Dense
	if err := b.Solve(&l, a); err != nil {
		t.Fatal(err)
	}
	if err := c.Solve(&l, b.T()); err != nil { // L⁻¹AL⁻ᵀ
		t.Fatal(err)
	}
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			sym.SetSym(i, j, (c.At(i, j)+c.At(j, i))/2)
		}
	}
	w := values(sym)
	return max(math.Abs(v[0]), math.Abs(v[n-1])), w[n-1] / w[0]
}

// checkViews checks that lines, table, picture, page and JSON hold the numbers.
func checkViews(t *testing.T, m *MultiLevel) {
	t.Helper()
	text := m.String()
	for _, want := range []string{"‖Z_kZ_kᵀ−K‖₂", "κ(M_k⁻¹A)", "level 4", "one level", m.Levels.String()} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	table := m.Table()
	if len(table.Rows) != len(m.Chain)+len(m.OneLevel) {
		t.Errorf("%d rows", len(table.Rows))
	}
	if v, ok := table.Rows[1][6].Float(); !ok || v != m.Chain[1].Kappa.Value {
		t.Errorf("κ of level 2 in the table is %v", table.Rows[1][6])
	}
	f := m.Plot()
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
	if len(f.Panels) != 4 || f.Panels[1].Series[0].Y[3] != float64(m.Chain[3].Iterations) || f.Panels[0].Series[1].Hi[1] != m.OneLevel[0].Kappa.Hi {
		t.Errorf("the picture does not show the numbers: %v", f)
	}
	if html := m.HTML(); !strings.Contains(html, "<svg") || !strings.Contains(html, "<table") {
		t.Error("no picture or table in the page")
	}
	js, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back MultiLevel
	if err := json.Unmarshal(js, &back); err != nil || !reflect.DeepEqual(&back, m) {
		t.Errorf("JSON does not come back: %v\n%s", err, js)
	}
}

// TestMultiLevelThreads checks that nothing but seconds depends on the number of threads, or on
// what was called before.
func TestMultiLevelThreads(t *testing.T) {
	setThreads(t, accel.Threads())
	var first *MultiLevel
	for _, threads := range []int{1, 2} {
		accel.SetThreads(threads)
		lab := multiLevelLab(t, 300, kernel.Gaussian{Sigma: 1.5}, Config{Precond: Features{S: 40}})
		if threads == 2 {
			if _, err := lab.Solve(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		m, err := lab.MultiLevel(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if m.Levels.String() != "features:320,srht:80,gaussian:40" {
			t.Errorf("default chain %v", m.Levels)
		}
		forgetSeconds(m)
		if first == nil {
			first = m
		}
		if !reflect.DeepEqual(first, m) {
			t.Errorf("%d threads: %+v\nwith one: %+v", threads, m, first)
		}
	}
}

func forgetSeconds(m *MultiLevel) {
	m.Seconds = 0
	for _, ls := range [][]MeasuredLevel{m.Chain, m.OneLevel} {
		for i := range ls {
			ls[i].Seconds, ls[i].Error.Seconds, ls[i].Kappa.Seconds = multilevel.Seconds{}, 0, 0
		}
	}
}

// TestMultiLevelArguments checks that bad arguments give one line.
func TestMultiLevelArguments(t *testing.T) {
	lab := multiLevelLab(t, 50, kernel.Gaussian{Sigma: 1.5}, Config{})
	for want, o := range map[string]*MultiLevelOptions{
		"confidence 1":               {Confidence: 1},
		"confidence -0.5":            {Confidence: -0.5},
		"want a positive number":     {Work: -1},
		"s = 51 for n = 50":          {Levels: feature.Levels{{Sketch: "features", Width: 51}}},
		"want features first":        {Levels: feature.Levels{{Sketch: "gaussian", Width: 5}}},
		"wider":                      {Levels: feature.Levels{{Sketch: "features", Width: 50}, {Sketch: "srht", Width: 51}}},
		"unknown sketch \"fourier\"": {Levels: feature.Levels{{Sketch: "features", Width: 50}, {Sketch: "fourier", Width: 20}}},
	} {
		if m, err := lab.MultiLevel(t.Context(), o); m != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, want)
		}
	}
	if _, err := feature.ChainFor(kernel.Laplacian{Sigma: 1}, true, feature.Levels{{Sketch: "features", Width: 5}}); err != nil {
		t.Error(err) // that there are no orthogonal ones is Sample's to say
	}
}

// TestMultiLevelInterrupted checks that an interrupted stage returns the levels it has, and that
// these can be looked at.
func TestMultiLevelInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lab := multiLevelLab(t, 200, kernel.Gaussian{Sigma: 1.5}, Config{Monitor: func(e Event) error {
		if strings.HasPrefix(e.Detail, "level 1, features:100") {
			cancel()
		}
		return nil
	}})
	m, err := lab.MultiLevel(ctx, &MultiLevelOptions{Levels: levels(t, "features:100,srht:50,gaussian:20")})
	if !errors.Is(err, context.Canceled) || m == nil || len(m.Chain) != 2 || len(m.OneLevel) != 2 || m.Chain[0].Level != 2 {
		t.Fatalf("%v, %+v", err, m)
	}
	if err := m.Plot().Validate(); err != nil || !strings.Contains(m.String(), "level 3") {
		t.Error(err, m)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := lab.K(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if m, err := lab.MultiLevel(ctx, nil); !errors.Is(err, context.Canceled) || m != nil {
		t.Errorf("%v, %+v", err, m)
	}
}

// TestMultiLevelLimit checks a chain whose first level is too dear to precondition with.
func TestMultiLevelLimit(t *testing.T) {
	lab := multiLevelLab(t, 200, kernel.Gaussian{Sigma: 1.5}, Config{})
	m, err := lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: levels(t, "features:150,srht:20"), Work: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if m.Chain[0].Kappa != nil || !strings.Contains(m.Chain[0].Left, "flops") || m.Chain[1].Kappa == nil {
		t.Errorf("%+v", m.Chain)
	}
	checkLimited(t, m)
	m, err = lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: levels(t, "features:150,srht:100"), Work: 1})
	if err != nil {
		t.Fatal(err)
	}
	if f := m.Plot(); len(f.Panels) != 1 || f.Panels[0].Title != "‖Z_{k}Z_{k}ᵀ−K‖₂" {
		t.Errorf("without any κ the picture is %v", f)
	}
	checkLimited(t, m)
}

func checkLimited(t *testing.T, m *MultiLevel) {
	t.Helper()
	if err := m.Plot().Validate(); err != nil || !strings.Contains(m.String(), "no preconditioner") || len(m.Table().Text()) == 0 {
		t.Error(err, m)
	}
	js, err := json.Marshal(m)
	var back MultiLevel
	if err != nil || json.Unmarshal(js, &back) != nil || !reflect.DeepEqual(&back, m) {
		t.Errorf("JSON does not come back: %s", js)
	}
}
