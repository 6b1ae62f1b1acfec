package cost

import (
	"encoding/json"
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

// TestRatesCache checks that measured rates are cached and cached rates are used, and that files that are damaged or of
// another machine are replaced. Rates of a busy machine must be measured again, and only lower ones replaced. A cache
// folder that cannot be written must cause no error.
func TestRatesCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	read := func() Rates {
		t.Helper()
		r, err := ReadRates(t.Context())
		if err != nil || !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) || r.Machine != ThisMachine() {
			t.Fatalf("rates %+v, error %v; want positive rates of this machine", r, err)
		}
		return r
	}
	checkSaved := func(r Rates) {
		t.Helper()
		var saved Rates
		if testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(cacheFile())), &saved)); saved != r {
			t.Errorf("the file has the rates %+v, want %+v", saved, r)
		}
	}
	checkSaved(read())
	cached := Rates{Machine: ThisMachine(), Read: 1e18, Gemm32: 1e18, Gemm64: 1e18, Exp: 1e18}
	if cached.Save(); read() != cached {
		t.Error("the cached rates are not used")
	}
	otherMachine := cached
	otherMachine.Machine = "another"
	zeroText, _ := json.Marshal(Rates{Machine: ThisMachine()})
	otherText, _ := json.Marshal(otherMachine)
	for name, text := range map[string]string{"half an object": `{"a": {`, "no text": "",
		"rates of zero": string(zeroText), "another machine": string(otherText)} {
		testkit.OK(t, os.WriteFile(cacheFile(), []byte(text), 0o666))
		r := read()
		if checkSaved(r); r.Read == 1e18 {
			t.Errorf("a cache file with %s is used", name)
		}
	}
	busy := Rates{Machine: ThisMachine(), Read: 1e18, Gemm32: 1, Gemm64: 1, Exp: 1, Touch: 1e18}
	busy.Save()
	r := read()
	if checkSaved(r); r.Read != 1e18 || r.Touch != 1e18 || min(r.Gemm32, r.Gemm64, r.Exp) == 1 {
		t.Errorf("rates %+v, want the higher ones of %+v and of new measurements", r, busy)
	}
	file := filepath.Join(dir, "file")
	testkit.OK(t, os.WriteFile(file, nil, 0o666))
	t.Setenv("XDG_CACHE_HOME", file) // no folder, so nothing can be written in it
	read()
}

// TestMeasure checks that every measured rate is positive, and that the measurement takes little memory.
func TestMeasure(t *testing.T) {
	allocated := testkit.AllocatedBytes(func() {
		if r := Measure(t.Context()); !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) {
			t.Errorf("rates %+v, want positive ones", r)
		}
	})
	// With the race detector, pools drop their buffers at random, so more memory is allocated.
	if allocated > 160e6 && !race.Enabled {
		t.Errorf("the measurement allocates %d bytes, want at most 160 MB", allocated)
	}
}

// TestPredictedSeconds checks three predictions: no iteration is faster than reading its data from memory, sparse tiles
// cost less than dense ones, and a Cholesky factorization of large order nearly has the rate of matrix products.
func TestPredictedSeconds(t *testing.T) {
	const n, rank = 40_000, 500
	memoryBound := rates()
	memoryBound.Exp = 1e15 // makes the arithmetic of the loops, whose time is proportional to 1/Exp, negligible
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		m := &Model{Rates: memoryBound, N: n, T: 1}
		iterationSeconds := m.ProductSeconds(s) + m.vectorSeconds(PCG, true) + m.ApplyLowRankSeconds(rank, 1)
		if readSeconds := (float64(m.KernelBytes(s)) + 8*n*rank) / m.Rates.Read; iterationSeconds < readSeconds ||
			iterationSeconds > 1.2*readSeconds {
			t.Errorf("%v: an iteration of %g s, want 1 to 1.2 times the %g s in which its memory is read", s,
				iterationSeconds, readSeconds)
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
	if sparseTiles.Seconds.Kernel > 0.06*denseTiles.Seconds.Kernel || // 5 % of K is formed
		sparseTiles.Seconds.Solve > 0.1*denseTiles.Seconds.Solve || sparseTiles.Bytes > denseTiles.Bytes/20 {
		t.Errorf("sparse tiles %+v, %d bytes; dense tiles %+v, %d bytes", sparseTiles.Seconds, sparseTiles.Bytes,
			denseTiles.Seconds, denseTiles.Bytes)
	}
	const order, gemmRate = 1e5, 1e11
	if share := order * order * order / 3 / gemmRate / (&Model{}).CholeskySeconds(order, gemmRate, 1); !(share > 0.87 &&
		share < 1/1.12) {
		t.Errorf("a large factorization has %g of the rate of products, want 0.87 to 0.89", share)
	}
}
