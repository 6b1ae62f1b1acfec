// Command krrlab is kernel ridge regression by sketching and preconditioning on the
// command line; see package cli for its commands and krrlab help for their flags.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/cli"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
)

func main() {
	accel.BoundGarbage()
	ignoreFileLimit()
	atomicfile.Streams = []*os.File{os.Stdout, os.Stderr}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	launched := launch()
	if launched == nil { // a second signal ends the process at once; a launcher's ranks end together
		context.AfterFunc(ctx, stop)
	}
	code := cli.Main(ctx, os.Args[1:], cli.Env{
		Launch:   launched,
		Stdout:   os.Stdout,
		Stderr:   os.Stderr,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		DataDirs: dataDirs(),
		Version:  version(),
		UseBLAS:  useBLAS,
	})
	stop()
	os.Exit(code)
}

// launch says how mpirun, mpiexec or srun started this process, nil if none did.
func launch() *comm.Launch {
	if l, ok := comm.Detect(os.Getenv); ok {
		return &l
	}
	return nil
}

// dataDirs returns $KRRLAB_DATA, if set, and the user's cache.
func dataDirs() []string {
	var dirs []string
	if d := os.Getenv("KRRLAB_DATA"); d != "" {
		dirs = append(dirs, d)
	}
	if d, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(d, "krrlab"))
	}
	return dirs
}

func useBLAS(name string) error {
	if name == "go" {
		accel.Use(nil)
		return nil
	}
	lib, err := accel.OpenBLAS()
	if err != nil && name == "openblas" {
		return err
	}
	accel.Use(lib)
	return nil
}

// commit is set by the linker (make build) for builds that carry no revision of their own.
var commit string

// version is the module's version, or the commit the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if commit != "" && (v == "" || v == "(devel)") {
		v = "devel-" + commit
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
