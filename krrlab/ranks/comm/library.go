package comm

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/krrlab/lab/krrlab/internal/dl"
)

// library is an MPI library loaded at run time: its functions and its handles.
type library struct {
	name string // file name under which the library was loaded
	kind string // ABI of the library, "Open MPI" or "MPICH"

	// Addresses of the functions of MPI, and of usleep of the C library.
	initThread, finalize, abort, errorString, setErrhandler uintptr
	commRank, commSize, getVersion                          uintptr
	iallreduce, ibcast, isend, irecv, test, usleep          uintptr

	// Handles of predefined objects, and special addresses: MPI_COMM_WORLD, MPI_INT64_T, MPI_BYTE, MPI_SUM,
	// MPI_ERRORS_RETURN, MPI_IN_PLACE and MPI_STATUS_IGNORE.
	world, int64, byte, sum, errorsReturn, inPlace, statusIgnore uintptr
}

// functions maps the name of each required function to the field for its address.
func (l *library) functions() map[string]*uintptr {
	return map[string]*uintptr{
		"MPI_Init_thread": &l.initThread, "MPI_Finalize": &l.finalize,
		"MPI_Abort": &l.abort, "MPI_Error_string": &l.errorString, "MPI_Comm_set_errhandler": &l.setErrhandler,
		"MPI_Comm_rank": &l.commRank, "MPI_Comm_size": &l.commSize,
		"MPI_Get_library_version": &l.getVersion,
		"MPI_Iallreduce":          &l.iallreduce, "MPI_Ibcast": &l.ibcast,
		"MPI_Isend": &l.isend, "MPI_Irecv": &l.irecv, "MPI_Test": &l.test,
		"usleep": &l.usleep,
	}
}

// threadFunneled is MPI_THREAD_FUNNELED in both ABIs: only one thread calls MPI.
const threadFunneled = 1

// libraryNames returns the file names of MPI libraries to try, those that match the launcher first.
func libraryNames(launcher string) []string {
	openMPI := []string{"libmpi.so.40"}
	mpich := []string{"libmpich.so.12", "libmpi.so.12"}
	either := []string{"libmpi.so"}
	if runtime.GOOS == "darwin" {
		openMPI, mpich, either = []string{"libmpi.40.dylib"}, []string{"libmpi.12.dylib"}, []string{"libmpi.dylib"}
		for _, dir := range []string{"/opt/homebrew/lib/", "/usr/local/lib/"} {
			either = append(either, dir+"libmpi.dylib")
		}
	}
	if launcher == "MPICH" {
		return append(append(mpich, either...), openMPI...)
	}
	return append(append(openMPI, either...), mpich...)
}

// ucxSettings are environment variables for UCX (openucx.org), a library that MPI libraries depend on and that reads
// these variables when it is loaded. Its defaults are unsafe in a Go process for two reasons. First, UCX overwrites
// the code of mmap and other functions of the C library while the process runs; a thread that executes this code at
// the same time, for example to start another thread, ends the process with a segmentation fault. Second, UCX handles
// the signals that Go converts to panics, so a panic that Go code would recover from ends the rank.
//
// Without memory events, UCX does not cache registrations of memory. It could not cache them for memory of Go anyway,
// because the Go runtime maps and unmaps memory without the C library.
var ucxSettings = map[string]string{"UCX_MEM_EVENTS": "n", "UCX_HANDLE_ERRORS": "none"}

// load loads the MPI library that matches a launcher. Before that, it sets each variable of ucxSettings that is not yet
// set, in the environment that C code reads.
func load(launcher string) (*library, error) {
	if setenv := dl.Sym(dl.AllLibraries, "setenv"); setenv != 0 {
		for name, value := range ucxSettings {
			const overwrite = 0 // false
			name, value := append([]byte(name), 0), append([]byte(value), 0)
			invoke(setenv, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&value[0])), overwrite)
		}
	}
	var tried []string
	for _, name := range libraryNames(launcher) {
		l, err := loadLibrary(name)
		if err == nil {
			return l, nil
		}
		tried = append(tried, fmt.Sprintf("%s (%v)", name, err))
	}
	return nil, fmt.Errorf("no MPI library found, install the one of the launcher "+
		"(Debian, Ubuntu: libopenmpi3 for Open MPI, libmpich12 for MPICH); tried %s", strings.Join(tried, ", "))
}

// loadLibrary loads the library in a file, and determines its ABI and the handles.
func loadLibrary(name string) (*library, error) {
	handle, err := dl.Open(name, true)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("not loaded: %s", text)
	}
	l := &library{name: name}
	for symbol, addr := range l.functions() {
		if *addr = dl.Sym(handle, symbol); *addr == 0 {
			return nil, fmt.Errorf("no symbol %s", symbol)
		}
	}
	if dl.Sym(handle, "ompi_mpi_comm_world") != 0 {
		return l, l.setOpenMPIHandles(handle)
	}
	if version := l.version(); !strings.Contains(version, "MPICH") && !strings.Contains(version, "MVAPICH") &&
		!strings.Contains(version, "Intel(R) MPI") {
		return nil, fmt.Errorf("neither Open MPI nor of MPICH's ABI: %s", version)
	}
	l.setMPICHHandles()
	return l, nil
}

// setOpenMPIHandles sets the handles of the Open MPI ABI, which are addresses of variables of the library (mpi.h).
func (l *library) setOpenMPIHandles(handle uintptr) error {
	l.kind, l.inPlace, l.statusIgnore = "Open MPI", 1, 0
	for name, address := range map[string]*uintptr{
		"ompi_mpi_comm_world": &l.world, "ompi_mpi_int64_t": &l.int64,
		"ompi_mpi_byte": &l.byte, "ompi_mpi_op_sum": &l.sum, "ompi_mpi_errors_return": &l.errorsReturn,
	} {
		if *address = dl.Sym(handle, name); *address == 0 {
			return fmt.Errorf("no symbol %s", name)
		}
	}
	return nil
}

// setMPICHHandles sets the handles of the MPICH ABI, which are constants (mpi.h).
func (l *library) setMPICHHandles() {
	l.kind, l.inPlace, l.statusIgnore = "MPICH", ^uintptr(0), 1
	l.world, l.sum, l.errorsReturn = 0x44000000, 0x58000003, 0x54000001
	l.int64, l.byte = 0x4c00083a, 0x4c00010d
}

// srunInterface returns the name of the process manager interface that srun must use to start ranks of the library.
func (l *library) srunInterface() string {
	if l.kind == "MPICH" {
		return "pmi2"
	}
	return "pmix"
}

// SrunInterface returns the process manager interface that srun should use. list is the output of srun --mpi=list. If
// it names both pmix and pmi2, the interface of the MPI library on this machine is returned; if it names one of them,
// that one; otherwise "".
func SrunInterface(list string) string {
	var names []string
	for line := range strings.Lines(list) { // older versions print "srun: " first
		name := strings.TrimSpace(strings.TrimPrefix(line, "srun: "))
		if name == "pmix" || name == "pmi2" {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	lib, err := load("PMIx")
	if err != nil {
		lib = &library{} // srun then assumes Open MPI
	}
	return lib.srunInterface()
}

// version returns the first line of the text that MPI_Get_library_version returns.
func (l *library) version() string {
	text, length := make([]byte, 8192), new(int32) // at least MPI_MAX_LIBRARY_VERSION_STRING of both ABIs
	invoke(l.getVersion, uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(length)))
	return cLine(text, *length)
}

// failure returns an error with the text that MPI has for a return code.
func (l *library) failure(code int32) error {
	text, length := make([]byte, 1024), new(int32) // at least MPI_MAX_ERROR_STRING of both ABIs
	invoke(l.errorString, uintptr(code), uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(length)))
	return fmt.Errorf("%s: %s", l.kind, cLine(text, *length))
}

// cLine returns the first line of the first n characters of buf. C may count the terminating zero; it is removed.
func cLine(buf []byte, n int32) string {
	line := strings.TrimRight(string(buf[:max(0, min(int(n), len(buf)))]), "\x00")
	line, _, _ = strings.Cut(line, "\n")
	return strings.TrimSpace(line)
}

// handle is memory for an MPI request, written by C: a pointer with Open MPI, an int with MPICH.
type handle uint64

// invoke calls a C function that returns an int. Its arguments are addresses or integers. If an argument is written
// as uintptr(unsafe.Pointer(p)), the compiler allocates *p on the heap and keeps it alive during the call. Heap
// memory does not move, whereas a stack moves when it grows, which may happen during the call. For any other address
// the caller must ensure both.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) int32 { return int32(dl.Call(fn, args...)) }
