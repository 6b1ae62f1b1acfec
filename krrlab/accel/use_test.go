package accel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"

	gogemm "github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/race"
)

// productOfBLAS returns A·Aᵀ of a random matrix A from the BLAS in use, and the same bits from a direct call of lib,
// or of Go's own product if lib is nil.
func productOfBLAS(lib *Library) (got, want []float64) {
	const n = 192
	random := rand.New(rand.NewPCG(5, 6))
	a := make([]float64, n*n)
	for i := range a {
		a[i] = random.NormFloat64()
	}
	got, want = make([]float64, n*n), make([]float64, n*n)
	blas64.Implementation().Dgemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, a, n, 0, got, n)
	switch {
	case lib != nil:
		callFortran(lib, routine[float64]{lib.d.gemm, gemmForm, [4]byte{'T', 'N'}, [6]int{n, n, n, n, n, n}, 1, 0}, a,
			a, want)
	case simd.CurrentPath() != simd.Portable:
		gemmGo(gogemm.Product[float64]{TransA: blas.NoTrans, TransB: blas.Trans, M: n, N: n, K: n, Alpha: 1, A: a,
			LDA: n,
			B:   a, LDB: n, C: want, LDC: n})
	default:
		gonum.Implementation{}.Dgemm(blas.NoTrans, blas.Trans, n, n, n, 1, a, n, a, n, 0, want, n)
	}
	return got, want
}

// checkCurrentBLAS checks that the library lib, or Go's own BLAS if lib is nil, is in use.
func checkCurrentBLAS(t *testing.T, lib *Library) {
	t.Helper()
	want := BLAS{Name: "gonum"}
	if lib != nil {
		want = lib.Info()
	}
	if info := CurrentBLAS(); info != want {
		t.Errorf("CurrentBLAS() = %+v, want %+v", info, want)
	}
	if got, want := productOfBLAS(lib); !slices.Equal(got, want) {
		t.Errorf("products are not those of %v", CurrentBLAS())
	}
}

// TestUseLibrary switches between Go's own products and OpenBLAS.
func TestUseLibrary(t *testing.T) {
	t.Cleanup(func() { UseLibrary(nil) })
	UseLibrary(nil)
	checkCurrentBLAS(t, nil)
	lib := requireOpenBLAS(t)
	UseLibrary(lib)
	checkCurrentBLAS(t, lib)
	UseLibrary(nil)
	checkCurrentBLAS(t, nil)
}

// TestBLASChosenAtFirstProduct checks that a process that does not call UseLibrary chooses its BLAS at its first
// product, once, whatever goroutine comes first, and not earlier.
func TestBLASChosenAtFirstProduct(t *testing.T) {
	t.Cleanup(func() { UseLibrary(nil) })
	useThreads(t, 1) // with one thread a product has the same bits while others run
	lib, err := OpenBLAS()
	if err != nil {
		lib = nil
	}
	for value, want := range map[string]*Library{"go": nil, "": nil, "auto": lib, "openblas": lib} {
		t.Setenv(EnvBLAS, value)
		currentChoice.Store(nil)
		_ = ForEach(t.Context(), 5, func(int, int) {})
		CPU()
		MemoryAvailable()
		if currentChoice.Load() != nil {
			t.Errorf("%q: a BLAS was chosen before it was used", value)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, ofLibrary := productOfBLAS(want); !slices.Equal(got, ofLibrary) {
					t.Errorf("%q: other products than those of the BLAS chosen", value)
				}
			})
		}
		wg.Wait()
		checkCurrentBLAS(t, want)
	}
	t.Setenv(EnvBLAS, "OpenBLAS")
	currentChoice.Store(nil)
	if panicText := fmt.Sprint(panicOf(func() { CurrentBLAS() })); !strings.Contains(panicText,
		`KRRLAB_BLAS="OpenBLAS": want auto, openblas or go`) {
		t.Error(panicText)
	}
}

// TestBLASChosenInForEach checks that a library that is chosen inside ForEach has one thread until the ForEach ends.
func TestBLASChosenInForEach(t *testing.T) {
	t.Cleanup(func() { UseLibrary(nil) })
	lib := requireOpenBLAS(t)
	useThreads(t, min(2, runtime.NumCPU()))
	t.Setenv(EnvBLAS, "auto")
	currentChoice.Store(nil)
	if err := ForEach(context.Background(), 4, func(int, int) {
		if productOfBLAS(lib); lib.wantedThreads.Load() != 1 {
			t.Errorf("%d threads inside ForEach", lib.wantedThreads.Load())
		}
	}); err != nil {
		t.Fatal(err)
	}
	if int(lib.wantedThreads.Load()) != Threads() {
		t.Errorf("%d threads after ForEach, want %d", lib.wantedThreads.Load(), Threads())
	}
}

// TestWantsOpenBLAS checks that the tests of this module use Go's own BLAS by default, and that programs and the tests
// of other modules use OpenBLAS.
func TestWantsOpenBLAS(t *testing.T) {
	for path, want := range map[string]bool{
		"github.com/krrlab/lab/krrlab/base/rng.test": false,
		"github.com/krrlab/lab/krrlab/cmd/krrlab":    true,
		"example.org/user.test":                      true,
		"":                                           true,
	} {
		if got := wantsOpenBLAS("", path); got != want {
			t.Errorf("%q: wants OpenBLAS %v, want %v", path, got, want)
		}
	}
}

// TestBLASUnderAddressLimit checks that a process with an address limit (ulimit -v) chooses Go's own BLAS.
func TestBLASUnderAddressLimit(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || race.Enabled {
		t.Skip("needs ulimit -v and no emulator, and the race detector takes more addresses than that")
	}
	for _, gigabytes := range []float64{1.9, 3.5} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c",
			fmt.Sprintf(`ulimit -s 8192 && ulimit -v %.0f && exec "$0" "$@"`, gigabytes*1e9/1024),
			os.Args[0], "-test.run=^TestMachine$", "-test.v")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "KRRLAB_MACHINE=", EnvBLAS+"=auto")
		output, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "blas:gonum") {
			t.Errorf("address limit of %.1f GB: error %v, or not blas:gonum, in\n%s", gigabytes, err, output)
		}
	}
}
