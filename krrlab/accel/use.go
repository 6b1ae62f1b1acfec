package accel

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/cpu"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// nan is NaN. It fills operands that a BLAS must overwrite.
var nan = math.NaN()

// choice is the BLAS chosen for the process. Its lib is nil for the implementation in Go.
type choice struct{ lib *Library }

var (
	currentChoice atomic.Pointer[choice] // nil until the first use of the BLAS
	choiceMutex   sync.Mutex
)

// init registers this package with blas64, blas32 and lapack64, unless another package has registered its own BLAS.
func init() {
	if _, ok := blas64.Implementation().(gonum.Implementation); ok {
		blas64.Use(float64s{})
	}
	if _, ok := blas32.Implementation().(gonum.Implementation); ok {
		blas32.Use(float32s{})
	}
	lapack64.Use(libraryLAPACK{})
}

// UseLibrary selects the library l for this package and for gonum's blas64, blas32 and lapack64. From then on this
// package controls the number of threads of l (see SetThreads). UseLibrary(nil) selects the implementation that needs
// no library: gonum's code, with products and triangular solves from package gemm.
//
// The choice applies to the whole process. A main program should call UseLibrary before it computes. Without a call of
// UseLibrary, the process chooses at its first product or factorization; see the package comment. UseLibrary returns
// the library that was in use, for callers that restore it; nil if there was none or no choice yet.
func UseLibrary(l *Library) (previous *Library) {
	choiceMutex.Lock()
	defer choiceMutex.Unlock()
	blas64.Use(float64s{})
	blas32.Use(float32s{})
	lapack64.Use(libraryLAPACK{})
	if c := currentChoice.Load(); c != nil {
		previous = c.lib
	}
	useLibraryLocked(l)
	return previous
}

// useLibraryLocked is UseLibrary for callers that hold choiceMutex. It does not register this package with gonum.
func useLibraryLocked(l *Library) {
	blasThreads.use(func(n int) {
		if l != nil {
			l.threads(n)
		}
		goThreads.Store(int32(n))
	})
	currentChoice.Store(&choice{l})
	if ownMemoryLimit.Load() > 0 {
		ConfigureGC() // the library has allocated its memory, which reduces the limit
	}
}

// currentLibrary returns the library in use, or nil if there is none. The first call chooses one, unless UseLibrary has
// been called.
func currentLibrary() *Library {
	if c := currentChoice.Load(); c != nil {
		return c.lib
	}
	choiceMutex.Lock()
	defer choiceMutex.Unlock()
	if c := currentChoice.Load(); c != nil {
		return c.lib
	}
	var lib *Library
	path := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		path = info.Path
	}
	if wantsOpenBLAS(os.Getenv(EnvBLAS), path) {
		lib, _ = OpenBLAS() // after an error lib is nil, which selects Go; see CurrentBLAS
	}
	useLibraryLocked(lib)
	return lib
}

// EnvBLAS is the environment variable that selects the BLAS of a process that does not call UseLibrary. Its value
// "auto", "openblas" or an empty one selects OpenBLAS if it is found, and "go" selects the implementation in Go. In the
// tests of this module, whose results are recorded, an empty value means "go".
const EnvBLAS = "KRRLAB_BLAS"

// wantsOpenBLAS reports whether a process looks for OpenBLAS, given the value of EnvBLAS and the path of its main
// package. It panics if the value is unknown.
func wantsOpenBLAS(value, path string) bool {
	switch value {
	case "go":
		return false
	case "openblas", "auto":
		return true
	case "":
		return !strings.HasPrefix(path, "github.com/krrlab/lab/") || !strings.HasSuffix(path, ".test")
	}
	panic(fmt.Sprintf("accel: %s=%q: want auto, openblas or go", EnvBLAS, value))
}

// CurrentBLAS describes the BLAS and LAPACK in use. Without a library, its Name is "gonum".
func CurrentBLAS() BLAS {
	if l := currentLibrary(); l != nil {
		return l.info
	}
	return BLAS{Name: "gonum"}
}

// CPUInfo describes the processor.
type CPUInfo struct {
	Model    string   // name that the system reports; empty if it reports none
	Arch     string   // "amd64", "arm64", …
	Cores    int      // number of logical cores that this process may run on
	Features []string // instruction sets that matter here: avx, avx2, fma, avx512f, …
}

// CPU describes the processor that the program runs on.
func CPU() CPUInfo { return hostMachine.cpu() }

// machine holds the sources of facts about the machine. Tests replace them.
type machine struct {
	fs        fs.FS                         // root file system
	physical  func() uint64                 // bytes of physical memory, used if /proc/meminfo lacks them; 0 if unknown
	model     func() string                 // name of the processor, used if /proc/cpuinfo lacks it
	ownLimits func() []limit                // memory limits that apply to the process itself
	maxRSS    func() (bytes int64, ok bool) // peak resident memory, used if /proc/self/status lacks it
}

// hostMachine is the machine that the program runs on.
var hostMachine = machine{os.DirFS("/"), physicalMemory, cpuModel, processLimits, maxRSS}

// read returns the text of a file, or "" if it cannot be read.
func (m machine) read(name string) string {
	b, err := fs.ReadFile(m.fs, strings.TrimPrefix(name, "/"))
	if err != nil {
		return ""
	}
	return string(b)
}

// cpu describes the processor.
func (m machine) cpu() CPUInfo {
	c := CPUInfo{Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Features: features()}
	for line := range strings.Lines(m.read("/proc/cpuinfo")) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "Model", "cpu model":
			c.Model = cmp.Or(c.Model, strings.TrimSpace(value))
		}
	}
	if c.Model == "" {
		c.Model = m.model()
	}
	return c
}

// features returns the names of the processor's instruction sets that matter here.
func features() []string {
	var names []string
	addIf := func(has bool, name string) {
		if has {
			names = append(names, name)
		}
	}
	addIf(cpu.X86.HasSSE42, "sse4.2")
	addIf(cpu.X86.HasAVX, "avx")
	addIf(cpu.X86.HasAVX2, "avx2")
	addIf(cpu.X86.HasFMA, "fma")
	addIf(cpu.X86.HasAVX512F, "avx512f")
	addIf(cpu.X86.HasAVX512BW, "avx512bw")
	addIf(cpu.X86.HasAVX512DQ, "avx512dq")
	addIf(cpu.X86.HasAVX512VL, "avx512vl")
	addIf(cpu.X86.HasAVX512VNNI, "avx512vnni")
	addIf(cpu.X86.HasAVX512BF16, "avx512bf16")
	addIf(cpu.X86.HasAMXTile, "amx")
	addIf(cpu.ARM64.HasASIMD, "asimd")
	addIf(cpu.ARM64.HasFPHP, "fp16")
	addIf(cpu.ARM64.HasASIMDDP, "dotprod")
	addIf(cpu.ARM64.HasSVE, "sve")
	addIf(cpu.ARM64.HasSVE2, "sve2")
	return names
}
