package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"golang.org/x/term"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/cli"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Run runs the command line of this process and returns the exit code. The command krrlab version prints the given
// version, or the version of the main module if the given one is "".
func Run(version string) int {
	spareAddresses()
	accel.ConfigureGC()
	ignoreFileLimit()
	atomicfile.StandardStreams = []*os.File{os.Stdout, os.Stderr}
	ctx, stop := signal.NotifyContext(context.Background(), cli.EndSignals()...)
	defer stop()
	launchInfo := launch()
	if launchInfo == nil { // a second signal ends the process at once; a launcher's ranks end together
		context.AfterFunc(ctx, stop)
	}
	return cli.Main(ctx, os.Args[1:], cli.Env{
		Launch:   launchInfo,
		Stdin:    os.Stdin,
		Stdout:   safeOutput(os.Stdout),
		Stderr:   os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			columns, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return columns
		},
		DataDirs:    datasets.Dirs(),
		JupyterData: jupyterData(runtime.GOOS, os.Getenv),
		Version:     cmp.Or(version, moduleVersion()),
		UseBLAS:     useBLAS,
	})
}

// safeOutput returns a writer to the output stream f. On a terminal, control characters in the output are escaped, so
// that text from a file cannot control the terminal; a file or a pipe gets the output unchanged.
func safeOutput(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return safe.Writer{W: f}
	}
	return f
}

// launch returns how mpirun, mpiexec or srun started this process, or nil if none of them did.
func launch() *comm.Launch {
	if info, ok := comm.DetectLaunch(os.Getenv); ok {
		return &info
	}
	return nil
}

// jupyterData returns Jupyter's data folder of the user on the given operating system, as jupyter_data_dir of
// jupyter_core does. env returns the value of an environment variable. The result is "" if there is no home folder.
func jupyterData(system string, env func(name string) string) string {
	home := env("HOME")
	switch dir, xdg := env("JUPYTER_DATA_DIR"), env("XDG_DATA_HOME"); {
	case dir != "":
		return dir
	case xdg != "" && system != "darwin":
		return filepath.Join(xdg, "jupyter")
	case home == "":
		return ""
	case system == "darwin":
		return filepath.Join(home, "Library", "Jupyter")
	}
	return filepath.Join(home, ".local", "share", "jupyter")
}

// loadInterruptibly calls load and returns its result, or the error of ctx if ctx ends first. load then goes on in its
// goroutine, because the system offers no way to stop the loading of a shared library.
func loadInterruptibly(ctx context.Context, load func() (*accel.Library, error)) (lib *accel.Library, err error) {
	type result struct {
		lib *accel.Library
		err error
	}
	loaded := make(chan result, 1)
	go func() {
		lib, err := load()
		loaded <- result{lib, err}
	}()
	select {
	case outcome := <-loaded:
		return outcome.lib, outcome.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// useBLAS installs the BLAS with the given name, as cli.Env.UseBLAS describes. For "auto", the environment
// variable accel.EnvBLAS may name another one. If "auto" finds no OpenBLAS, it installs Go's implementation.
func useBLAS(ctx context.Context, name string) (note string, err error) {
	if requested := os.Getenv(accel.EnvBLAS); name == "auto" && requested != "" {
		name = requested
	}
	switch name {
	case "auto", "openblas":
	case "go":
		accel.UseLibrary(nil)
		return "", nil
	default:
		return "", fmt.Errorf("%s=%q in the environment: want auto, openblas or go", accel.EnvBLAS, name)
	}
	library, err := loadInterruptibly(ctx, accel.OpenBLAS)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", ctxErr
	}
	switch {
	case err != nil && name == "openblas":
		return "", err
	case errors.Is(err, accel.ErrAddressLimit):
		note = "note: Go's own linear algebra is used instead of OpenBLAS, as addresses are limited (ulimit -v)"
	}
	accel.UseLibrary(library) // nil if OpenBLAS was not found: Go's implementation
	return note, nil
}

// moduleVersion returns the version of the main module that the Go command has recorded, or "devel".
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
