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

var nan = math.NaN()

// choice is a BLAS chosen for the process: a library, or nil for Go's own.
type choice struct{ lib *Library }

var (
	chosen   atomic.Pointer[choice] // nil before the first use
	choosing sync.Mutex
)

// init puts this package below blas64, blas32 and lapack64, unless another package has put itself there.
func init() {
	if _, ok := blas64.Implementation().(gonum.Implementation); ok {
		blas64.Use(float64s{})
	}
	if _, ok := blas32.Implementation().(gonum.Implementation); ok {
		blas32.Use(float32s{})
	}
	lapack64.Use(lapacks{})
}

// Use makes gonum's blas64, blas32 and lapack64, and this package, run on l, and
// gives l's threads to this package (see SetThreads). Use(nil) takes what needs
// no library: gonum's own code, with products and triangular solves from package gemm.
// It is a choice for the whole process, made by a main program before it computes. A process that
// does not call Use chooses at its first product or factorization; see the package doc.
func Use(l *Library) {
	choosing.Lock()
	defer choosing.Unlock()
	blas64.Use(float64s{})
	blas32.Use(float32s{})
	lapack64.Use(lapacks{})
	use(l)
}

// use is Use, for one that holds choosing.
func use(l *Library) {
	blasThreads.use(func(n int) {
		if l != nil {
			l.threads(n)
		}
		ownThreads.Store(int32(n))
	})
	chosen.Store(&choice{l})
	if garbageBound.Load() > 0 {
		BoundGarbage() // the library has had its share
	}
}

// inUse returns the library in use, nil if there is none. The first call chooses, unless Use did.
func inUse() *Library {
	if c := chosen.Load(); c != nil {
		return c.lib
	}
	choosing.Lock()
	defer choosing.Unlock()
	if c := chosen.Load(); c != nil {
		return c.lib
	}
	var lib *Library
	path := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		path = info.Path
	}
	if wanted(os.Getenv(EnvBLAS), path) {
		lib, _ = OpenBLAS() // an error means Go's own; InUse says which it is
	}
	use(lib)
	return lib
}

// EnvBLAS is the environment variable that chooses the BLAS of a process whose main does not call
// Use: auto or nothing for OpenBLAS if it is found, go for Go's own. In the tests of this
// module, whose numbers are recorded, nothing means go; with openblas they run on OpenBLAS.
const EnvBLAS = "KRRLAB_BLAS"

// wanted reports whether a process looks for OpenBLAS, by the value of EnvBLAS and the path that
// its program was built from.
func wanted(value, path string) bool {
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

// InUse returns the BLAS and LAPACK that are in use. Without a library its Name is
// "gonum".
func InUse() BLAS {
	if l := inUse(); l != nil {
		return l.info
	}
	return BLAS{Name: "gonum"}
}

// CPUInfo describes the processor.
type CPUInfo struct {
	Model    string   // as the system calls it; empty if it does not say
	Arch     string   // "amd64", "arm64", …
	Cores    int      // logical cores this process may run on
	Features []string // of those that matter here: avx, avx2, fma, avx512f, …
}

// CPU describes the processor that the program runs on.
func CPU() CPUInfo { return here.cpu() }

// machine is where facts about the machine are read from; tests have their own.
type machine struct {
	fs       fs.FS                         // the root file system
	physical func() uint64                 // bytes of memory if /proc/meminfo does not say; 0 = unknown
	model    func() string                 // of the processor if /proc/cpuinfo does not say
	limits   func() []limit                // limits that the process itself has
	maxRSS   func() (bytes int64, ok bool) // peak if /proc/self/status does not say
}

var here = machine{os.DirFS("/"), physicalMemory, cpuModel, processLimits, maxRSS}

// read returns the text of a file, "" if there is none.
func (m machine) read(name string) string {
	b, err := fs.ReadFile(m.fs, strings.TrimPrefix(name, "/"))
	if err != nil {
		return ""
	}
	return string(b)
}

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

func features() []string {
	var names []string
	add := func(has bool, name string) {
		if has {
			names = append(names, name)
		}
	}
	add(cpu.X86.HasSSE42, "sse4.2")
	add(cpu.X86.HasAVX, "avx")
	add(cpu.X86.HasAVX2, "avx2")
	add(cpu.X86.HasFMA, "fma")
	add(cpu.X86.HasAVX512F, "avx512f")
	add(cpu.X86.HasAVX512BW, "avx512bw")
	add(cpu.X86.HasAVX512DQ, "avx512dq")
	add(cpu.X86.HasAVX512VL, "avx512vl")
	add(cpu.X86.HasAVX512VNNI, "avx512vnni")
	add(cpu.X86.HasAVX512BF16, "avx512bf16")
	add(cpu.X86.HasAMXTile, "amx")
	add(cpu.ARM64.HasASIMD, "asimd")
	add(cpu.ARM64.HasFPHP, "fp16")
	add(cpu.ARM64.HasASIMDDP, "dotprod")
	add(cpu.ARM64.HasSVE, "sve")
	add(cpu.ARM64.HasSVE2, "sve2")
	return names
}
