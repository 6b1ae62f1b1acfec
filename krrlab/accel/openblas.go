package accel

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/krrlab/lab/krrlab/internal/dl"
)

// BLAS describes the BLAS and LAPACK in use.
type BLAS struct {
	Name    string // "gonum" or "openblas"
	Version string // "0.3.21"; empty if unknown
	Config  string // the library's own description of its build options and its processor core
	Path    string // path of the shared library; empty for gonum
}

// String returns one line such as "openblas 0.3.21 (/usr/lib/…/libopenblas.so.0)".
func (b BLAS) String() string {
	text := b.Name
	if b.Version != "" {
		text += " " + b.Version
	}
	if b.Path != "" {
		text += " (" + b.Path + ")"
	}
	return text
}

// Portable returns b without the folder of the library, which means nothing on another machine.
func (b BLAS) Portable() BLAS {
	if b.Path != "" {
		b.Path = filepath.Base(b.Path)
	}
	return b
}

// Library is a BLAS and LAPACK loaded at run time; see OpenBLAS and UseLibrary.
type Library struct {
	info  BLAS
	model threadingModel

	wantedThreads atomic.Int32 // number of threads requested by Library.threads
	lacksAVX512   bool         // the library has no AVX-512 kernels for this processor
	lacksFMA      bool         // the library has neither AVX-512 kernels nor kernels with fused multiply-adds

	getThreads uintptr // address of openblas_get_num_threads; 0 in some serial builds
	setThreads uintptr // address of openblas_set_num_threads; 0 in some serial builds

	d, s routines // routines in float64 and float32, named as in BLAS

	// Addresses of further routines in float64.
	dtrtri, dsyr2k, dlatrd, dsytd2, dstedc, dormql, dormqr uintptr
}

// routines holds the addresses of a library's routines in one precision.
type routines struct{ gemm, syrk, trsm, trmm, gemv, potrf uintptr }

// Info describes the library.
func (l *Library) Info() BLAS { return l.info }

// threadingModel is the threading model of a library, as returned by openblas_get_parallel.
type threadingModel int

const (
	serial   threadingModel = iota // the library runs on the calling thread only
	pthreads                       // one pool of POSIX threads and one thread count per process
	openmp                         // OpenMP, with a thread count for each calling thread
)

// symbols maps the name of each routine that a library must have to the field for its address.
func (l *Library) symbols() map[string]*uintptr {
	return map[string]*uintptr{
		"dgemm_": &l.d.gemm, "sgemm_": &l.s.gemm,
		"dsyrk_": &l.d.syrk, "ssyrk_": &l.s.syrk,
		"dtrsm_": &l.d.trsm, "strsm_": &l.s.trsm,
		"dtrmm_": &l.d.trmm, "strmm_": &l.s.trmm,
		"dgemv_": &l.d.gemv, "sgemv_": &l.s.gemv,
		"dpotrf_": &l.d.potrf, "spotrf_": &l.s.potrf,
		"dtrtri_": &l.dtrtri, "dsyr2k_": &l.dsyr2k,
		"dlatrd_": &l.dlatrd, "dsytd2_": &l.dsytd2,
		"dstedc_": &l.dstedc, "dormql_": &l.dormql, "dormqr_": &l.dormqr,
	}
}

// libraryNames returns the names under which OpenBLAS is searched, in order: first the names that the dynamic linker
// resolves, then the paths of Debian, Fedora, Homebrew and MacPorts.
func libraryNames() []string {
	if runtime.GOOS == "darwin" {
		return []string{
			"libopenblas.0.dylib", "libopenblas.dylib",
			"/opt/homebrew/opt/openblas/lib/libopenblas.dylib",
			"/usr/local/opt/openblas/lib/libopenblas.dylib",
			"/opt/local/lib/libopenblas.dylib",
		}
	}
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return []string{
		"libopenblas.so.0", "libopenblas.so",
		"/usr/lib/" + triple + "/openblas-pthread/libopenblas.so.0",
		"/usr/lib/" + triple + "/openblas-openmp/libopenblas.so.0",
		"/usr/lib/" + triple + "/openblas-serial/libopenblas.so.0",
		"libopenblasp.so.0", "/usr/lib64/libopenblas.so.0", "/usr/local/lib/libopenblas.so.0",
	}
}

// openBLAS is the result of the only search of OpenBLAS.
var openBLAS struct {
	load sync.Once
	lib  *Library
	err  error
}

// OpenBLAS finds OpenBLAS on this machine and loads it. Only the first call searches; later calls return its result. If
// there are several builds, one with POSIX threads is preferred to one with OpenMP, and that to one without threads. A
// library is rejected if it has 64-bit integers (ILP64), lacks a required routine, or fails a small known-answer test.
// If no library is found, the error lists the libraries tried and names the package to install.
//
// If the address space of the process is limited (ulimit -v, some batch systems), OpenBLAS is not loaded and the error
// is ErrAddressLimit. The library reserves a buffer of addresses for each thread and call, and hangs if it cannot get
// one.
func OpenBLAS() (*Library, error) {
	openBLAS.load.Do(func() {
		if _, _, limited := addressSpace(); limited {
			openBLAS.err = ErrAddressLimit
			return
		}
		openBLAS.lib, openBLAS.err = find(libraryNames())
	})
	return openBLAS.lib, openBLAS.err
}

// ErrAddressLimit is the error of OpenBLAS if the address space of the process is limited.
var ErrAddressLimit = errors.New("accel: OpenBLAS is not loaded where addresses are limited (ulimit -v)")

// find loads the libraries with the given names and returns the best of them.
func find(names []string) (*Library, error) {
	var best *Library
	var tried []string
	for _, name := range names {
		lib, err := load(name)
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
			continue
		}
		if lib.model == pthreads {
			return lib, nil
		}
		if best == nil || lib.model > best.model {
			best = lib
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, &LibraryError{Tried: tried}
}

// LibraryError is the error of OpenBLAS if no usable library was found.
type LibraryError struct {
	Tried []string // each library tried and, in parentheses, the reason why it was rejected
}

// Error names the package to install, and the libraries tried.
func (e *LibraryError) Error() string {
	install := "install the package libopenblas0 (Debian, Ubuntu: apt-get install libopenblas0)"
	if runtime.GOOS == "darwin" {
		install = "install OpenBLAS (brew install openblas)"
	}
	return fmt.Sprintf("accel: OpenBLAS not found, %s; tried %s", install, strings.Join(e.Tried, ", "))
}

// The cores for which OpenBLAS has kernels with AVX-512, and those for which it has kernels with fused multiply-adds
// but without AVX-512.
var (
	avx512Cores = []string{"skylakex", "cooperlake", "sapphirerapids"}
	fmaCores    = []string{"haswell", "zen", "piledriver", "steamroller", "excavator"}
)

// namesCore reports whether the configuration of a library names one of the cores.
func namesCore(config string, cores []string) bool {
	return slices.ContainsFunc(cores, func(core string) bool { return strings.Contains(strings.ToLower(config), core) })
}

// timeoutVariable is an environment variable that OpenBLAS reads when it is loaded. Its value is the binary logarithm
// of the number of cycles for which an idle thread waits in a loop for more work. The default of OpenBLAS is 26, about
// 30 ms, during which a ForEach has fewer cores: measurements on Linux 6.18 show that the waiting threads do not yield
// to it. load sets 20, about half a millisecond.
const timeoutVariable = "OPENBLAS_THREAD_TIMEOUT"

// load loads the library with the given name, finds its routines and tests it.
func load(name string) (*Library, error) {
	if os.Getenv(timeoutVariable) == "" {
		os.Setenv(timeoutVariable, "20")
		defer os.Unsetenv(timeoutVariable)
	}
	handle, err := dl.Open(name, false)
	if err != nil {
		firstLine, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("not loaded: %s", firstLine)
	}
	l := &Library{info: BLAS{Name: "openblas", Path: loadedFrom(name)}}
	config := dl.Sym(handle, "openblas_get_config")
	if config == 0 {
		return nil, fmt.Errorf("no symbol openblas_get_config: not OpenBLAS")
	}
	l.info.Config = strings.TrimSpace(dl.String(config))
	if fields := strings.Fields(l.info.Config); len(fields) > 1 && fields[0] == "OpenBLAS" {
		l.info.Version = fields[1]
	}
	if core := dl.Sym(handle, "openblas_get_corename"); core != 0 {
		if coreName := dl.String(core); !strings.Contains(l.info.Config, coreName) {
			l.info.Config += " " + coreName
		}
	}
	l.lacksAVX512 = !namesCore(l.info.Config, avx512Cores)
	l.lacksFMA = l.lacksAVX512 && !namesCore(l.info.Config, fmaCores)
	if strings.Contains(l.info.Config, "USE64BITINT") {
		return nil, fmt.Errorf("built with 64-bit integers, 32-bit wanted: %s", l.info.Config)
	}
	for name, address := range l.symbols() {
		if *address = dl.Sym(handle, name); *address == 0 {
			return nil, fmt.Errorf("no symbol %s", name)
		}
	}
	l.getThreads = dl.Sym(handle, "openblas_get_num_threads")
	l.setThreads = dl.Sym(handle, "openblas_set_num_threads")
	if parallel := dl.Sym(handle, "openblas_get_parallel"); parallel != 0 {
		l.model = threadingModel(int32(dl.Call(parallel)))
	}
	if l.setThreads == 0 {
		l.model = serial
	}
	if err := l.selfTest(); err != nil {
		return nil, err
	}
	return l, nil
}

// nan is NaN. It fills operands that a BLAS must overwrite.
var nan = math.NaN()

// selfTest computes A·Aᵀ for a small matrix, with a result that is initially full of NaN, and returns an error if the
// product is wrong.
func (l *Library) selfTest() error {
	a := []float64{1, 2, 3, 4, 5, 6} // 2×3
	c := []float64{nan, nan, nan, nan}
	callFortran(l, routine[float64]{l.d.gemm, gemmForm, [4]byte{'T', 'N'}, [6]int{2, 2, 3, 3, 3, 2}, 1, 0}, a, a, c)
	if want := [4]float64{14, 32, 32, 77}; [4]float64(c) != want {
		return fmt.Errorf("dgemm gives %v for %v", c, want)
	}
	return nil
}

// threads sets the number of threads that calls use. With POSIX threads this is a property of the library. With OpenMP
// it is a property of each calling operating system thread, and is set before each call. The number is limited to the
// number of cores, because OpenBLAS 0.3.21 computes wrong results on threads that it adds to its pool and later
// removes, if these threads wait for a core.
func (l *Library) threads(n int) {
	n = min(n, runtime.NumCPU())
	l.wantedThreads.Store(int32(n))
	if l.setThreads != 0 {
		frame := frames.Get().(*frame)
		l.passThreads(frame)
		frames.Put(frame)
	}
}

// passThreads passes the requested number of threads to the library.
func (l *Library) passThreads(f *frame) {
	f.args[0] = uintptr(l.wantedThreads.Load())
	dl.Call(l.setThreads, f.args[:1]...)
}

// numThreads returns the number of threads that the library would use for a call from the calling thread.
func (l *Library) numThreads() int {
	if l.getThreads == 0 {
		return 1
	}
	return int(int32(dl.Call(l.getThreads)))
}

// frame holds the operands of one call in memory whose addresses can be passed to C. Frames and the operands they point
// to are on the Go heap, whose objects do not move. The pointers of a frame keep the operands alive during the call.
type frame struct {
	chars       [4]byte           // Fortran characters: side, uplo, trans, …
	ints        [6]int32          // dimensions and strides
	alpha, beta uint64            // a float64 or a float32
	pointers    [5]unsafe.Pointer // matrices and vectors
	info        int32             // LAPACK's error code
	args        [20]uintptr       // addresses of the arguments, and lengths of character strings
}

// frames holds unused frames, so that a call does not allocate.
var frames = sync.Pool{New: func() any { return new(frame) }}

// loadedFrom returns the file from which a library was loaded, or its name if the system does not report the file.
func loadedFrom(name string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	return mappedFile(string(maps), name)
}

// mappedFile finds the file for a library name in maps, the text of /proc/self/maps. The name may be a link, such as
// libopenblas.so.0 to libopenblasp-r0.3.21.so, so the file only needs to start with the name's stem.
func mappedFile(maps, name string) string {
	dir, base := path.Split(name)
	stem, _, _ := strings.Cut(base, ".")
	for line := range strings.Lines(maps) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		file := strings.TrimSuffix(line[i:], "\n")
		if strings.HasPrefix(file, dir) && strings.HasPrefix(path.Base(file), stem) {
			return file
		}
	}
	return name
}
