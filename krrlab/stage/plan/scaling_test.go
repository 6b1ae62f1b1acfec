package plan

import (
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	_ "github.com/krrlab/lab/plots/draw"
)

// clusterOptions returns the options for 8 imaginary machines.
func clusterOptions() Options {
	return Options{Nodes: 8, Cores: 32, Bandwidth: 10, Latency: 50e3, Price: 2, Memory: 64e9,
		Rates: "gemm32=3000,gemm64=1500,read=100,exp=40,entry=11"}
}

// TestScale checks that the prediction for the requested number of machines is the same as in the list for 1, 2, 4, …
// 1,024 machines and as that of package cost. More machines need less memory each and form K sooner, and weak scaling
// keeps n²/P constant.
func TestScale(t *testing.T) {
	header := stage.Header{Dataset: "made", N: 1e6, D: 784, T: 10}
	for _, requested := range []cost.Candidate{
		{Solver: cost.PCG, Preconditioner: recipe.Features{S: 20000}, Iterations: 100},
		{Solver: cost.PCG, Preconditioner: recipe.Nystrom{S: 1000}, Iterations: 50},
		{Solver: cost.PCG, Preconditioner: recipe.RPCholesky{S: 1000}, Iterations: 50},
		{Solver: cost.BlockPCG, Iterations: 900},
		{Solver: cost.PCG, Preconditioner: recipe.Vecchia{S: 1000, Neighbors: 30}, Iterations: 50},
	} {
		scaling := testkit.Must(clusterOptions().Scale(t.Context(), header, true, requested))
		on8 := scaling.Strong[3]
		if on8.Seconds != scaling.Requested.Seconds || on8.Bytes != scaling.Requested.Bytes ||
			on8.SentBytes != scaling.Requested.SentBytes || on8.TotalPrice != scaling.Requested.TotalPrice ||
			scaling.Requested.Nodes != 8 {
			t.Errorf("%v: 8 machines as requested %+v, in the list %+v", &requested, scaling.Requested, on8)
		}
		// Each of the 8 machines costs 2 an hour.
		testkit.Near(t, on8.TotalPrice, 16*on8.Seconds.Total/3600, 1e-9*on8.TotalPrice, &requested)
		if scaling.Requested.N != header.N || scaling.Weak[3].N != header.N || scaling.Weak[5].N != 2*header.N {
			t.Errorf("%v: %d points on the requested machines, %d on 8 and %d on 32 in weak scaling", &requested,
				scaling.Requested.N, scaling.Weak[3].N, scaling.Weak[5].N)
		}
		if len(scaling.Strong) != 11 || len(scaling.Weak) != 11 { // 2⁰ … 2¹⁰ machines
			t.Errorf("%v: %d and %d numbers of machines, want 11", &requested, len(scaling.Strong), len(scaling.Weak))
		}
		for i, point := range scaling.Strong {
			if i > 0 && point.Storage == scaling.Strong[i-1].Storage && (point.Bytes > scaling.Strong[i-1].Bytes ||
				point.Seconds.Kernel > scaling.Strong[i-1].Seconds.Kernel) {
				t.Errorf("%v: %d machines hold more, or form K later, than half as many: %+v, %+v", &requested,
					point.Nodes, point, scaling.Strong[i-1])
			}
			if (point.Seconds.Network > 0 || point.SentBytes > 0) != (i > 0) {
				t.Errorf("%v: %d machines send %d bytes in %g s", &requested, point.Nodes, point.SentBytes,
					point.Seconds.Network)
			}
			model := cost.Model{Rates: scaling.Machines.Rates, Entries: scaling.Machines.Entries, Cores: 32,
				N: header.N, D: header.D, T: header.T, Ranks: point.Nodes, PointBytes: int64(header.N * header.D)}
			candidate := requested
			candidate.Storage = point.Storage
			model.Predict(&candidate)
			testkit.Equal(t, point.Seconds, candidate.Seconds, &requested, point.Nodes, "machines")
		}
		if storageOn1 := scaling.Strong[0].Storage; storageOn1 != gram.Recompute ||
			scaling.Strong[10].Storage != gram.Float32 {
			t.Errorf("%v: K is %v on one machine of 64 GB, %v on 1,024", &requested, storageOn1,
				scaling.Strong[10].Storage)
		}
		// The table has the requested machines, and strong and weak scaling; the figure has a panel for each scaling.
		testkit.Equal(t, len(scaling.Table().Rows), 1+11+11, "rows of the table")
		testkit.Equal(t, len(scaling.Plot().Panels), 2, "panels of the figure")
		testkit.Contains(t, scaling.String(), "8 of 32 cores and 64 GB, 10 Gbit/s, 50 µs", "(as given)",
			"more gain nothing", "money")
		testkit.Contains(t, scaling.HTML(), "<svg")
		scaling.Machines.TimingSpread = 3
		testkit.Contains(t, scaling.String(), "(as given); the slowest timing of K took 3 times the quickest")
	}
}

// TestBetterThan checks that a candidate that fits into memory is preferred, and of two such candidates the faster one.
// It also checks that invalid rates are refused.
func TestBetterThan(t *testing.T) {
	header, options := stage.Header{N: 1e5, D: 20, T: 1}, clusterOptions()
	scaled := func(iterations int) *Scaling {
		return testkit.Must(options.Scale(t.Context(), header, false, cost.Candidate{Solver: cost.PCG,
			Preconditioner: recipe.Features{S: 1000}, Iterations: iterations}))
	}
	faster, slower := scaled(100), scaled(200)
	options.Memory = 1e6
	tooLarge := scaled(1)
	testkit.Contains(t, tooLarge.String(), "does not fit",
		"a rank would take 85.7 MB of memory, and 1 MB of 1 MB are free")
	for _, test := range []struct {
		better, worse *Scaling
	}{{faster, slower}, {slower, tooLarge}} {
		if !test.better.betterThan(test.worse) || test.worse.betterThan(test.better) {
			t.Errorf("this is not better:\n%v\nthan this:\n%v", test.better, test.worse)
		}
	}
	for _, rates := range []string{"speed=1", "read=0", "read", "exp=NaN", "gemm32=1e13"} {
		options.Rates = rates
		testkit.Fails(t, testkit.ErrOf(options.machines(t.Context())), "want name=number")
	}
}

// TestMissingRates checks that rates that are not given are those of this machine times the ratio of the cores, here
// 100, with a limit on the memory bandwidth.
func TestMissingRates(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	threads := accel.Threads()
	options := Options{Nodes: 2, Cores: 100 * threads, Bandwidth: 10, Rates: "exp=5"}
	cached := cost.Rates{Machine: cost.ThisMachine(), Read: 2e10, Gemm32: 1e15, Gemm64: 5e14, Exp: 1e9, Touch: 1e9}
	cached.Save() // No measurement exceeds these rates, so that they are not measured again.
	for _, pointsInBytes := range []bool{false, true} {
		scaling := testkit.Must(options.Scale(t.Context(), stage.Header{N: 1e5, D: 20, T: 1}, pointsInBytes,
			cost.Candidate{Solver: cost.PCG, Iterations: 9}))
		machines := scaling.Machines
		if machines.Gemm32 != 100*cached.Gemm32 || machines.Gemm64 != 100*cached.Gemm64 || machines.Exp != 5e9 ||
			machines.Read != min(100*cached.Read, max(cached.Read, maxReadRate)) ||
			machines.Machine != cost.ThisMachine() || !(machines.EntrySeconds > 0 && machines.ExactEntrySeconds > 0) {
			t.Errorf("predicted with %+v, while this machine has %+v", machines, cached)
		}
	}
}
