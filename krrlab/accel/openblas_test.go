package accel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// TestOpenBLASInfo checks the description of OpenBLAS, and that it is loaded once.
func TestOpenBLASInfo(t *testing.T) {
	lib := requireOpenBLAS(t)
	t.Logf("%v; %s; %d", lib.Info(), lib.Info().Config, lib.model)
	if info := lib.Info(); info.Name != "openblas" || info.Version == "" || info.Path == "" ||
		!strings.Contains(info.Config, "OpenBLAS") {
		t.Errorf("%+v", info)
	}
	if again, err := OpenBLAS(); again != lib || err != nil {
		t.Errorf("a second call gives %p, %v", again, err)
	}
}

// TestFindReportsTriedFiles checks that the error for a missing library names every file that was tried and says what
// to install.
func TestFindReportsTriedFiles(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), "libopenblas.so.0")
	if err := os.WriteFile(damaged, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	names := []string{"libnosuchblas.so.9", damaged, "libm.so.6"}
	lib, err := find(names)
	var libraryErr *LibraryError
	if lib != nil || !errors.As(err, &libraryErr) || len(libraryErr.Tried) != len(names) {
		t.Fatalf("find returns %v, %v; want an error with the %d files", lib, err, len(names))
	}
	for _, want := range append(names, "install", "openblas") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	t.Log(err)
}

// TestMappedFile checks how the file of a loaded library is found in /proc/self/maps.
func TestMappedFile(t *testing.T) {
	maps := "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/x\n" +
		"7f0-7f1 rw-p 00000000 00:00 0 \n" +
		"7f2-7f3 r--p 00000000 08:02 9 /usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so\n"
	for name, want := range map[string]string{
		"libopenblas.so.0": "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
		"libother.so":      "libother.so",
		"/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0": "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
		"/opt/libopenblas.so.0": "/opt/libopenblas.so.0",
	} {
		if got := mappedFile(maps, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestUsesGemm checks which builds of OpenBLAS use AVX-512 and fused multiply-adds. Products of package gemm must
// replace those of a build without fused multiply-adds, and large ones of a build that does not use the AVX-512 of the
// processor.
func TestUsesGemm(t *testing.T) {
	for config, want := range map[string][2]bool{ // AVX-512, and fused multiply-adds without it
		"OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64": {false, true},
		"OpenBLAS 0.3.21 NO_AFFINITY SkylakeX":                            {true, false},
		"OpenBLAS 0.3.26 Cooperlake":                                      {true, false},
		"OpenBLAS 0.3.26 SAPPHIRERAPIDS":                                  {true, false},
		"OpenBLAS 0.3.26 Zen":                                             {false, true},
		"OpenBLAS 0.3.21 DYNAMIC_ARCH Sandybridge":                        {false, false},
		"": {false, false},
	} {
		if got := [2]bool{namesCore(config, avx512Cores), namesCore(config, fmaCores)}; got != want {
			t.Errorf("%s: AVX-512 and fused multiply-adds %v, want %v", config, got, want)
		}
	}
	hasKernels, hasAVX512 := simd.CurrentPath() != simd.Portable, simd.CurrentPath() == simd.AVX512
	for _, test := range []struct {
		library *Library
		order   int
		want    bool
	}{
		{nil, 1, hasKernels},
		{&Library{}, 1000, false},
		{&Library{lacksAVX512: true}, avx512Order, hasAVX512},
		{&Library{lacksAVX512: true}, avx512Order - 1, false},
		{&Library{lacksFMA: true}, 100, hasKernels},
	} {
		if got := usesGemm(test.library, test.order); got != test.want {
			t.Errorf("usesGemm of %+v for order %d is %v, want %v", test.library, test.order, got, test.want)
		}
	}
}

// TestSum compares sum with a plain loop for all lengths up to 69.
func TestSum(t *testing.T) {
	for n := range 70 {
		numbers, want := make([]uint64, n), uint64(0)
		for i := range numbers {
			numbers[i] = uint64(i * i)
			want += numbers[i]
		}
		if got := sum(numbers); got != want {
			t.Errorf("n = %d: %d, want %d", n, got, want)
		}
	}
}
