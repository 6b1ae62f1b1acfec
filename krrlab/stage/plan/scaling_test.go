package plan

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	_ "github.com/krrlab/lab/plots/draw"
)

// cluster describes 8 imaginary machines.
func cluster() Options {
	return Options{Nodes: 8, Cores: 32, Bandwidth: 10, Latency: 50e3, Price: 2, Memory: 64e9,
		Rates: "gemm32=3000,gemm64=1500,read=100,exp=40,entry=11"}
}

// TestScale checks that the prediction for the requested number of machines is the same as in the list for 1, 2, 4, …
// 1,024 machines and as that of package cost. More machines need less memory each and form K sooner, and weak scaling
// keeps n²/P constant.
func TestScale(t *testing.T) {
	h := stage.Header{Dataset: "made", N: 1e6, D: 784, T: 10}
	for _, requested := range []cost.Candidate{
		{Solver: cost.PCG, Preconditioner: recipe.Features{S: 20000}, Iterations: 100},
		{Solver: cost.PCG, Preconditioner: recipe.Nystrom{S: 1000}, Iterations: 50},
		{Solver: cost.PCG, Preconditioner: recipe.RPCholesky{S: 1000}, Iterations: 50}, {Solver: cost.BlockPCG, Iterations: 900},
		{Solver: cost.PCG, Preconditioner: recipe.Vecchia{S: 1000, Neighbors: 30}, Iterations: 50},
	} {
		s := testkit.Must(cluster().Scale(t.Context(), h, true, requested))
		eightMachines := s.Strong[3]
		if eightMachines.Seconds != s.Requested.Seconds || eightMachines.Bytes != s.Requested.Bytes || eightMachines.Sent != s.Requested.Sent ||
			s.Requested.Nodes != 8 ||
			eightMachines.Money != s.Requested.Money || math.Abs(eightMachines.Money-16*eightMachines.Seconds.Total/3600) > 1e-9*eightMachines.Money {
			t.Errorf("%v: 8 machines asked for %+v, among others %+v", &requested, s.Requested, eightMachines)
		}
		if s.Requested.N != h.N || s.Weak[3].N != h.N || s.Weak[5].N != 2*h.N || len(s.Strong) != 11 ||
			len(s.Weak) != 11 {
			t.Errorf("%v: points %d and %d, %d and %d numbers of machines", &requested, s.Requested.N, s.Weak[5].N,
				len(s.Strong),
				len(s.Weak))
		}
		for i, e := range s.Strong {
			if i > 0 && e.Storage == s.Strong[i-1].Storage && (e.Bytes > s.Strong[i-1].Bytes ||
				e.Seconds.Kernel > s.Strong[i-1].Seconds.Kernel) {
				t.Errorf("%v: %d machines hold more, or form K later, than half as many: %+v, %+v", &requested, e.Nodes, e,
					s.Strong[i-1])
			}
			if (e.Seconds.Network > 0 || e.Sent > 0) != (i > 0) {
				t.Errorf("%v: %d machines exchange for %g s, %d bytes", &requested, e.Nodes, e.Seconds.Network, e.Sent)
			}
			c := cost.Model{Rates: s.Machines.Rates, Entries: s.Machines.Entries, Cores: 32, N: h.N, D: h.D, T: h.T,
				Ranks: e.Nodes, PointBytes: int64(h.N * h.D)}
			candidate := requested
			candidate.Storage = e.Storage
			if c.Predict(&candidate); candidate.Seconds != e.Seconds {
				t.Errorf("%v: %d machines take %+v, by Cost %+v", &requested, e.Nodes, e.Seconds, candidate.Seconds)
			}
		}
		if storageOfOne := s.Strong[0].Storage; storageOfOne != gram.Recompute || s.Strong[10].Storage != gram.Float32 {
			t.Errorf("%v: K is %v on one machine of 64 GB, %v on 1,024", &requested, storageOfOne, s.Strong[10].Storage)
		}
		if n := len(s.Table().Rows); n != 23 || len(s.Plot().Panels) != 2 {
			t.Errorf("%d rows, %d panels", n, len(s.Plot().Panels))
		}
		testkit.Contains(t, s.String(), "8 of 32 cores and 64 GB, 10 Gbit/s, 50 µs", "(as given)", "more gain nothing",
			"money")
		testkit.Contains(t, s.HTML(), "<svg")
		s.Machines.TimingSpread = 3
		testkit.Contains(t, s.String(), "(as given); the slowest of 5 timings of K took 3 times the quickest")
	}
}

// TestBetter checks that a candidate that fits into memory is preferred, and of two such candidates the faster one.
func TestBetter(t *testing.T) {
	h, o := stage.Header{N: 1e5, D: 20, T: 1}, cluster()
	scaled := func(iterations int) *Scaling {
		return testkit.Must(o.Scale(t.Context(), h, false, cost.Candidate{Solver: cost.PCG,
			Preconditioner: recipe.Features{S: 1000}, Iterations: iterations}))
	}
	fits, longer := scaled(100), scaled(200)
	o.Memory = 1e6
	tooLarge := scaled(1)
	testkit.Contains(t, tooLarge.String(), "does not fit", "a machine has 1 MB")
	if !fits.betterThan(longer) || longer.betterThan(fits) || !longer.betterThan(tooLarge) || tooLarge.betterThan(longer) {
		t.Errorf("%v\n%v\n%v", fits, longer, tooLarge)
	}
	for _, rates := range []string{"speed=1", "read=0", "read", "exp=NaN", "gemm32=1e13"} {
		o.Rates = rates
		testkit.Fails(t, testkit.ErrOf(o.machines(t.Context())), "want name=number")
	}
}

// TestHere checks that missing rates are those of this machine times the ratio of the cores, with a limit on the memory
// bandwidth.
func TestHere(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	threads := accel.Threads()
	o := Options{Nodes: 2, Cores: 100 * threads, Bandwidth: 10, Rates: "exp=5"}
	r := testkit.Must(cost.ReadRates(t.Context()))
	for _, bytes := range []bool{false, true} {
		s := testkit.Must(o.Scale(t.Context(), stage.Header{N: 1e5, D: 20, T: 1}, bytes,
			cost.Candidate{Solver: cost.PCG, Iterations: 9}))
		m := s.Machines
		if m.Gemm32 != 100*r.Gemm32 || m.Gemm64 != 100*r.Gemm64 || m.Exp != 5e9 || m.Read != min(100*r.Read,
			max(r.Read, maxReadRate)) || m.Machine != cost.ThisMachine() || !(m.EntrySeconds > 0 &&
			m.ExactEntrySeconds > 0) {
			t.Errorf("%+v of %+v", m, r)
		}
	}
}
