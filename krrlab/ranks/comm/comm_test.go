package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// onRanks runs body on the given number of goroutine ranks and returns the error of each rank.
func onRanks(ranks int, limit time.Duration, body func(c comm.Comm) error) []error {
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for rank, c := range comm.Local(ranks, limit) {
		wg.Go(func() { errs[rank] = body(c) })
	}
	wg.Wait()
	return errs
}

// TestAlone runs the conformance tests on the communicator of a single process.
func TestAlone(t *testing.T) {
	if err := checkConformance(t.Context(), comm.Alone()); err != nil {
		t.Error(err)
	}
}

// TestLocal runs the conformance tests on goroutine ranks.
func TestLocal(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		errs := onRanks(ranks, 0, func(c comm.Comm) error { return checkConformance(t.Context(), c) })
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// barrier waits for all ranks.
func barrier(ctx context.Context, c comm.Comm) error { return c.AllReduceInt64(ctx, []int64{0}) }

// TestMissingRank lets one of three ranks skip a collective. The other two must get an error with their rank, which
// names the missing one.
func TestMissingRank(t *testing.T) {
	errs := onRanks(3, 50*time.Millisecond, func(c comm.Comm) error {
		if c.Rank() == 1 {
			return nil // without the collective
		}
		return barrier(t.Context(), c)
	})
	for _, rank := range []int{0, 2} {
		var commErr *comm.Error
		// On a busy machine the other waiting rank may be late as well, and is then also listed.
		if !errors.As(errs[rank],
			&commErr) || commErr.Rank != rank || !regexp.MustCompile(fmt.Sprintf(`missing: \[(%d )?1( %d)?\]`, 2-rank,
			2-rank)).MatchString(commErr.Error()) {
			t.Errorf("rank %d: %v", rank, errs[rank])
		}
	}
}

// TestCancelCollective cancels a collective while one rank is missing. The waiting ranks must get an error, and every
// later collective must fail.
func TestCancelCollective(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	errs := onRanks(3, 0, func(c comm.Comm) error {
		if c.Rank() == 1 {
			cancel()
			return nil
		}
		err := barrier(ctx, c)
		if again := barrier(t.Context(), c); again == nil {
			t.Errorf("rank %d: a broken group continues", c.Rank())
		}
		return err
	})
	for _, rank := range []int{0, 2} {
		if errs[rank] == nil {
			t.Errorf("rank %d: no error", rank)
		}
	}
}

// TestDetectLaunch checks which launcher, rank and size the environment variables of launchers give.
func TestDetectLaunch(t *testing.T) {
	for _, test := range []struct {
		env    string
		want   comm.Launch
		isRank bool
	}{
		{"", comm.Launch{}, false},
		{"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 PMIX_RANK=3",
			comm.Launch{Launcher: "Open MPI", Rank: 3, Size: 4, LostHostTimeout: 480 * time.Second}, true},
		{"OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_MCA_oob_tcp_keepalive_time=10 " +
			"OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=x",
			comm.Launch{Launcher: "Open MPI", Size: 2, LostHostTimeout: 28 * time.Second}, true},
		{"PMI_SIZE=2 PMI_RANK=0", comm.Launch{Launcher: "MPICH", Size: 2}, true},
		{"PMIX_RANK=1", comm.Launch{Launcher: "PMIx", Rank: 1}, true},
		{"PMIX_RANK=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8", comm.Launch{Launcher: "PMIx", Rank: 1, Size: 8}, true},
		// The process was started by another launcher within a Slurm step.
		{"PMIX_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", comm.Launch{Launcher: "PMIx"}, true},
		{"PMIX_RANK=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=8 SLURM_CPUS_PER_TASK=4",
			comm.Launch{Launcher: "PMIx", Rank: 1, Size: 8, RequestedCPUs: true}, true},
		{"SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8", comm.Launch{Launcher: "Slurm", Rank: 5, Size: 8, NoPMI: true}, true},
		{"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_MPI_TYPE=cray_shasta", comm.Launch{Launcher: "Slurm", Rank: 1,
			Size: 2}, true},
		{"PMI_SIZE=2 PMI_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", comm.Launch{Launcher: "MPICH", Size: 2}, true},
		{"SLURM_PROCID=0 SLURM_NTASKS=8", comm.Launch{}, false}, // a batch script, which is not a rank
		{"PMI_RANK=x PMI_SIZE=2", comm.Launch{}, false},
	} {
		env := map[string]string{}
		for _, variable := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
		got, ok := comm.DetectLaunch(func(name string) string { return env[name] })
		if got != test.want || ok != test.isRank {
			t.Errorf("%q: %+v, %v, want %+v, %v", test.env, got, ok, test.want, test.isRank)
		}
	}
}

// TestSrunInterface checks which process manager interface is chosen from the list that srun prints.
func TestSrunInterface(t *testing.T) {
	for list, want := range map[string]string{
		"MPI plugin types are...\n\tnone\n\tpmi2\n":                                                        "pmi2",
		"srun: MPI types are...\nsrun: pmix_v3\nsrun: pmix\nsrun: none\n":                                  "pmix",
		"MPI plugin types are...\n\tcray_shasta\n\tnone\nspecific pmix plugin versions available: pmix_v4": "",
		"": "",
		"MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n": "pmix or pmi2",
	} {
		if got := comm.SrunInterface(list); got != want && (got == "" || !strings.Contains(want, " or ")) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// TestWithoutPMI checks that a rank that srun started without a process manager interface gets an error before MPI
// starts, because MPI would end the process.
func TestWithoutPMI(t *testing.T) {
	_, err := comm.Open(comm.Launch{Launcher: "Slurm", Rank: 1, Size: 3, NoPMI: true}, 0)
	if err == nil || !strings.Contains(err.Error(), "take srun --mpi=pm") &&
		!strings.Contains(err.Error(), "no MPI library found") {
		t.Error(err)
	}
}

// TestRowRange checks that the block distribution assigns every row to one rank, in blocks of 512 rows.
func TestRowRange(t *testing.T) {
	for _, n := range []int{1, 511, 512, 513, 5000} {
		for _, ranks := range []int{1, 2, 3, 7} {
			next := 0
			for rank := range ranks {
				lo, hi := comm.RowRange(n, 512, rank, ranks)
				if lo != next || hi < lo || lo%512 != 0 && lo != n {
					t.Errorf("n = %d: rank %d of %d has [%d, %d)", n, rank, ranks, lo, hi)
				}
				testkit.Equal(t, comm.RowCounts(n, 512, ranks, 3)[rank], 3*(hi-lo), n, rank, ranks)
				next = hi
			}
			testkit.Equal(t, next, n, ranks)
		}
	}
}

// TestFixedPointSums checks fixed-point sums for a bound of 3: the value of a sum, and which terms fit.
func TestFixedPointSums(t *testing.T) {
	terms := []float64{1, -0.25, 1e-9, -1e-13, 0.7}
	format := comm.NewFixedPoint(3)
	sum := []int64{0}
	var want float64
	for _, v := range terms {
		if !format.Add(sum, []float64{v}) {
			t.Errorf("%v does not fit", v)
		}
		want += v
	}
	// Each of the five terms loses at most 3·2⁻⁶¹; the reference sum, below 2, is rounded a few times.
	testkit.Near(t, format.Value(sum[0]), want, 5*3*0x1p-61+0x1p-52)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e9} {
		if format.Add(sum, []float64{bad}) {
			t.Errorf("%v fits below 3", bad)
		}
	}
	// A term fits if it is at most 2⁶² units in size, scaled or not. A term that does not fit must be reported even if
	// terms that fit follow.
	for v, fits := range map[float64]bool{4: true, -4: true, math.Nextafter(4, 5): false,
		math.Nextafter(-4, -5): false} {
		sums, fractions, narrow := []int64{0, 0}, []int64{0, 0}, float32(v)
		if format.Add(sums, []float64{v, 1}) != fits ||
			format.AddScaled(sums, []float64{v / 2, 1}, []float64{2, 1}) != fits ||
			format.AddFine(sums, fractions, []float64{8 * v, 1}, []float64{0.125, 1}) != fits ||
			format.AddScaled32(sums, []float32{2 * narrow, 1}, []float64{0.5, 1}) != (float64(narrow) == 4 ||
				float64(narrow) == -4) {
			t.Errorf("%v, where at most 4 fits: want fits = %v", v, fits)
		}
	}
	if v := comm.NewFixedPoint(math.Inf(1)).Value(0); !math.IsNaN(v) {
		t.Errorf("a sum of unknown bound is %v", v)
	}
	testkit.Equal(t, comm.NewFixedPoint(0).Value(0), 0)
}
