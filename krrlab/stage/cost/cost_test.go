package cost

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

// rates returns the rates of an imaginary machine.
func rates() Rates {
	return Rates{Machine: "made up", Read: 3e10, Gemm32: 2e11, Gemm64: 1e11, Exp: 3e9}
}

// TestCache checks that cached rates are used, that damaged or foreign files are replaced, and that a folder that
// cannot be written causes no error.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	read := func() Rates {
		t.Helper()
		r, err := ReadRates(t.Context())
		if err != nil || !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) || r.Machine != ThisMachine() {
			t.Fatal(r, err)
		}
		return r
	}
	if first := read(); read() != first {
		t.Error("measured again")
	}
	cached := Rates{Machine: ThisMachine(), Read: 1e18, Gemm32: 1e18, Gemm64: 1e18, Exp: 1e18}
	if cached.Save(); read() != cached {
		t.Error("the cached rates are not used")
	}
	other := cached
	other.Machine = "another"
	zero, _ := json.Marshal(Rates{Machine: ThisMachine()})
	another, _ := json.Marshal(other)
	for name, text := range map[string]string{"cut off": `{"a": {`, "nothing": "", "zeros": string(zero),
		"another": string(another)} {
		testkit.OK(t, os.WriteFile(cacheFile(), []byte(text), 0o666))
		if r := read(); r.Read == 1e18 || read() != r {
			t.Errorf("%s: %+v", name, r)
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "file"))
	read()
}

// TestMeasure checks that every measured rate is positive, and that the measurement takes little memory.
func TestMeasure(t *testing.T) {
	got := testkit.AllocatedBytes(func() {
		if r := Measure(t.Context()); !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) {
			t.Errorf("%+v", r)
		}
	})
	// With the race detector, pools drop their buffers at random, so more memory is allocated.
	if got > 160e6 && !race.Enabled {
		t.Errorf("it allocates %d bytes", got)
	}
}

// TestCosts checks three predictions: no iteration is faster than reading its data from memory, sparse tiles cost less
// than dense ones, and the serial part of a Cholesky factorization is negligible for a large order.
func TestCosts(t *testing.T) {
	quick := rates()
	quick.Exp = 1e15
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		m := &Model{Rates: quick, N: 40000, T: 1}
		v := m.ProductSeconds(s) + m.vectorSeconds(PCG, true) + m.ApplyLowRankSeconds(500, 1)
		if readSeconds := (float64(m.KernelBytes(s)) + 8*40000*500) / quick.Read; v < readSeconds || v > 1.2*readSeconds {
			t.Errorf("%v: an iteration of %g s, memory is read in %g", s, v, readSeconds)
		}
	}
	model := Model{Rates: rates(), N: 30000, D: 3, T: 1, ErrorKnown: true, Entries: Entries{EntrySeconds: 1e-9,
		ExactEntrySeconds: 1e-9}}
	denseTiles := Candidate{Solver: CG, Precond: None, Storage: gram.Float32, Iterations: 100}
	sparseTiles := denseTiles
	model.Predict(&denseTiles)
	model.K = &gram.Choice{Storage: gram.Float32, Bytes: gram.RankBytes(30000, gram.Float32, 1) / 100,
		Sparse: &gram.Sparsity{FormedShare: 0.05, StoredShare: 0.01}}
	model.Predict(&sparseTiles)
	if k := sparseTiles.Seconds.Kernel / denseTiles.Seconds.Kernel; k > 0.06 || sparseTiles.Seconds.Solve > 0.1*denseTiles.Seconds.Solve ||
		sparseTiles.Bytes > denseTiles.Bytes/20 {
		t.Errorf("%+v of %d bytes, dense %+v of %d", sparseTiles.Seconds, sparseTiles.Bytes, denseTiles.Seconds, denseTiles.Bytes)
	}
	const gemm = 1e11
	// The rate of a large factorization is close to that of matrix products.
	if v := math.Pow(1e5, 3) / 3 / gemm / (&Model{}).CholeskySeconds(1e5, gemm, 1); !(v > 0.87 && v < 1/1.12) {
		t.Errorf("a large factorization at %g of the rate of products", v)
	}
}
