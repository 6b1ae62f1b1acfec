package accel

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/krrlab/lab/krrlab/internal/dl"
)

// BLAS says which BLAS and LAPACK are in use.
type BLAS struct {
	Name    string // "gonum" or "openblas"
	Version string // "0.3.21"; empty if unknown
	Config  string // how the library was built and for which core, as it says itself
	Path    string // file of the shared library; empty for gonum
}

// String returns one line such as "openblas 0.3.21 (/usr/lib/…/libopenblas.so.0)".
func (b BLAS) String() string {
	s := b.Name
	if b.Version != "" {
		s += " " + b.Version
	}
	if b.Path != "" {
		s += " (" + b.Path + ")"
	}
	return s
}

// Library is a BLAS and LAPACK loaded at run time; see OpenBLAS and Use.
type Library struct {
	info BLAS
	par  parallel
	want atomic.Int32 // threads asked for, see Library.threads

	narrow bool // its core does not use AVX-512

	getThreads, setThreads uintptr // openblas_[gs]et_num_threads, 0 in some serial builds

	d, s           routines
	dtrtri, dsyevd uintptr
}

// routines are the addresses of a library's routines in one precision.
type routines struct{ gemm, syrk, trsm, trmm, gemv, potrf uintptr }

// Info describes the library.
func (l *Library) Info() BLAS { return l.info }

// parallel is what openblas_get_parallel returns.
type parallel int

const (
	serial   parallel = iota // no threads of its own
	pthreads                 // one pool of threads, one number of threads per process
	openmp                   // OpenMP: a number of threads per calling thread
)

// symbols lists the routines a library must have and where their addresses go.
func (l *Library) symbols() map[string]*uintptr {
	return map[string]*uintptr{
		"dgemm_": &l.d.gemm, "sgemm_": &l.s.gemm,
		"dsyrk_": &l.d.syrk, "ssyrk_": &l.s.syrk,
		"dtrsm_": &l.d.trsm, "strsm_": &l.s.trsm,
		"dtrmm_": &l.d.trmm, "strmm_": &l.s.trmm,
		"dgemv_": &l.d.gemv, "sgemv_": &l.s.gemv,
		"dpotrf_": &l.d.potrf, "spotrf_": &l.s.potrf,
		"dtrtri_": &l.dtrtri, "dsyevd_": &l.dsyevd,
	}
}

// libraryNames returns the names under which OpenBLAS is looked for, the
// dynamic linker's own search first, then where Debian, Fedora, Homebrew and
// MacPorts put it.
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

var openBLAS struct {
	once sync.Once
	lib  *Library
	err  error
}

// OpenBLAS finds OpenBLAS on this machine and loads it; the first call does the
// work. Of several builds one with POSIX threads is preferred to OpenMP, and
// that to one without threads. A library with 64-bit integers (ILP64), without
// one of the routines wanted, or that fails a small known-answer test, is
// passed over. The error says what was tried and which package to install.
//
// Where addresses are limited (ulimit -v, some batch systems) it is not loaded, and the error is ErrAddresses: it has a
// buffer of addresses for each thread and call, and waits without end for one that it cannot have.
func OpenBLAS() (*Library, error) {
	openBLAS.once.Do(func() {
		if _, _, limited := addresses(); limited {
			openBLAS.err = ErrAddresses
			return
		}
		openBLAS.lib, openBLAS.err = find(libraryNames())
	})
	return openBLAS.lib, openBLAS.err
}

// ErrAddresses is OpenBLAS's error where addresses are limited.
var ErrAddresses = errors.New("accel: OpenBLAS is not loaded where addresses are limited (ulimit -v)")

// find loads the best of the libraries of those names.
func find(names []string) (*Library, error) {
	var best *Library
	var tried []string
	for _, name := range names {
		l, err := load(name)
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
			continue
		}
		if l.par == pthreads {
			return l, nil
		}
		if best == nil || l.par > best.par {
			best = l
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, &LibraryError{Tried: tried}
}

// LibraryError is OpenBLAS's error: no usable library was found.
type LibraryError struct {
	Tried []string // each library tried and, in brackets, what was wrong with it
}

func (e *LibraryError) Error() string {
	install := "install the package libopenblas0 (Debian, Ubuntu: apt-get install libopenblas0)"
	if runtime.GOOS == "darwin" {
		install = "install OpenBLAS (brew install openblas)"
	}
	return fmt.Sprintf("accel: OpenBLAS not found, %s; tried %s", install, strings.Join(e.Tried, ", "))
}

// narrow reports whether the core that the configuration names has no kernels for AVX-512.
func narrow(config string) bool {
	for _, core := range []string{"skylakex", "cooperlake", "sapphirerapids"} {
		if strings.Contains(strings.ToLower(config), core) {
			return false
		}
	}
	return true
}

// waitVar tells OpenBLAS, when it is loaded, the binary logarithm of the cycles that its threads wait in a loop for
// more work. Its own default is 26, about 30 ms, in which a ForEach has fewer cores: on Linux 6.18 the threads were
// measured not to give way to it. 20 is half a millisecond.
const waitVar = "OPENBLAS_THREAD_TIMEOUT"

func load(name string) (*Library, error) {
	if os.Getenv(waitVar) == "" {
		os.Setenv(waitVar, "20")
		defer os.Unsetenv(waitVar)
	}
	handle, err := dl.Open(name, false)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("not loaded: %s", first)
	}
	l := &Library{info: BLAS{Name: "openblas", Path: loadedFrom(name)}}
	config := dl.Sym(handle, "openblas_get_config")
	if config == 0 {
		return nil, fmt.Errorf("no symbol openblas_get_config: not OpenBLAS")
	}
	l.info.Config = strings.TrimSpace(dl.String(config))
	if f := strings.Fields(l.info.Config); len(f) > 1 && f[0] == "OpenBLAS" {
		l.info.Version = f[1]
	}
	if core := dl.Sym(handle, "openblas_get_corename"); core != 0 {
		if s := dl.String(core); !strings.Contains(l.info.Config, s) {
			l.info.Config += " " + s
		}
	}
	l.narrow = narrow(l.info.Config)
	if strings.Contains(l.info.Config, "USE64BITINT") {
		return nil, fmt.Errorf("built with 64-bit integers, 32-bit wanted: %s", l.info.Config)
	}
	for name, at := range l.symbols() {
		if *at = dl.Sym(handle, name); *at == 0 {
			return nil, fmt.Errorf("no symbol %s", name)
		}
	}
	l.getThreads = dl.Sym(handle, "openblas_get_num_threads")
	l.setThreads = dl.Sym(handle, "openblas_set_num_threads")
	if p := dl.Sym(handle, "openblas_get_parallel"); p != 0 {
		l.par = parallel(int32(dl.Call(p)))
	}
	if l.setThreads == 0 {
		l.par = serial
	}
	if err := l.selfTest(); err != nil {
		return nil, err
	}
	return l, nil
}

// selfTest multiplies two small matrices, one the transpose of the other in
// storage, over a result full of NaN.
func (l *Library) selfTest() error {
	a := []float64{1, 2, 3, 4, 5, 6} // 2×3
	c := []float64{nan, nan, nan, nan}
	fortran(l, l.d.gemm, gemmForm, [4]byte{'T', 'N'}, [6]int{2, 2, 3, 3, 3, 2}, 1, 0, a, a, c)
	if want := [4]float64{14, 32, 32, 77}; [4]float64(c) != want {
		return fmt.Errorf("dgemm gives %v for %v", c, want)
	}
	return nil
}

// threads sets the number of threads that calls use. With pthreads that is a property of the library, with OpenMP of
// each operating system thread that calls it, set before each call. It is never given more threads than the cores it
// was loaded on: OpenBLAS 0.3.21 computes wrong numbers on those that it adds to its pool and takes away again, where
// they wait for a core.
func (l *Library) threads(n int) {
	n = min(n, runtime.NumCPU())
	l.want.Store(int32(n))
	if l.setThreads != 0 {
		f := frames.Get().(*frame)
		l.setNow(f)
		frames.Put(f)
	}
}

// setNow passes the number of threads on to the library.
func (l *Library) setNow(f *frame) {
	f.args[0] = uintptr(l.want.Load())
	dl.Call(l.setThreads, f.args[:1]...)
}

// numThreads returns the number of threads that a call from here would use.
func (l *Library) numThreads() int {
	if l.getThreads == 0 {
		return 1
	}
	return int(int32(dl.Call(l.getThreads)))
}

// frame holds the operands of one call where C can take their addresses. Frames
// are on the Go heap, which does not move, and so is all that they point to;
// the frame's pointers keep the operands alive during the call.
type frame struct {
	c           [4]byte // side, uplo, trans, …: Fortran characters
	i           [6]int32
	alpha, beta uint64 // a float64 or a float32
	p           [4]unsafe.Pointer
	info        int32
	args        [20]uintptr
}

var frames = sync.Pool{New: func() any { return new(frame) }}

// loadedFrom returns the file that a library was loaded from, or its name where
// the system does not say.
func loadedFrom(name string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	return mappedFile(string(maps), name)
}

// mappedFile finds in the text of /proc/self/maps the file that is name, or what
// name leads to: libopenblas.so.0 is a link to libopenblasp-r0.3.21.so, say.
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
