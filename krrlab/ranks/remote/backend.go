package remote

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Backend is the krrlab.Backend that starts ranks, on this machine or on others.
type Backend struct {
	Ranks int // P ≥ 1
	// Hosts the ranks are put on, each with the number of its ranks as in "node1:8"; nil means
	// this machine, or with srun what Slurm gives. The launcher must be able to start
	// programs there, and Program and Dir must be the same there as here.
	Hosts []string
	// Launcher starts the ranks: "mpirun", "mpiexec" (Open MPI or MPICH), "srun", or a path that
	// ends in one of them. Default: "mpirun".
	Launcher string
	// Options go to the launcher before the program, and after what it is told anyway: of srun that is
	// --kill-on-bad-exit=1, and --mpi=pmix or pmi2 by the MPI library found here.
	Options []string
	// Program is the command krrlab, or with user-defined kernels a program that registers them
	// (kernel.Register) and calls cli.Main as krrlab does. Default: this program if its name begins
	// with krrlab, and otherwise the one on the path.
	Program string
	// Flags go to krrlab job: --threads, --blas and others of its help.
	Flags []string
	// Dir is the folder of jobs, which all hosts must see. Default: a temporary folder for each
	// run, where there are neither Hosts nor Slurm.
	Dir string
	// Limit is how long a rank waits for the others. Default: comm.DefaultLimit.
	Limit time.Duration
}

// Check implements krrlab.Backend: it refuses what cannot be meant, or sent.
func (b *Backend) Check(cfg *krrlab.Config) error {
	if err := b.check(); err != nil {
		return err
	}
	_, err := newConfig(cfg)
	return err
}

func (b *Backend) check() error {
	switch {
	case b.Ranks < 1:
		return fmt.Errorf("a backend of %d ranks: want at least 1", b.Ranks)
	case b.Limit < 0:
		return fmt.Errorf("rank timeout %v: want a positive time", b.Limit)
	case b.kind() == "sbatch":
		return fmt.Errorf("the launcher sbatch starts no ranks that are waited for: take srun, or submit a script " +
			"that ends with srun krrlab")
	case b.Dir == "" && (len(b.Hosts) > 0 || b.kind() == "srun"):
		return fmt.Errorf("ranks on other machines need a folder that all of them see: set Dir of the Backend")
	}
	return nil
}

// kind returns the launcher's name without its folder.
func (b *Backend) kind() string {
	return filepath.Base(cmp.Or(b.Launcher, "mpirun"))
}

func (b *Backend) program(file string) ([]string, error) {
	name := b.Program
	if name == "" {
		self, err := os.Executable()
		if err == nil && strings.HasPrefix(filepath.Base(self), "krrlab") {
			name = self
		} else if name, err = exec.LookPath("krrlab"); err != nil {
			return nil, fmt.Errorf("the ranks need the command krrlab, which is not on the path: install it, or set " +
				"Program of the Backend")
		}
	}
	limit := cmp.Or(b.Limit, comm.DefaultLimit)
	words := append([]string{name, "job", "--rank-timeout", limit.String()}, b.Flags...)
	return append(words, file), nil
}

// command returns the command line that starts the ranks.
func (b *Backend) command(ctx context.Context, file string) ([]string, error) {
	program, err := b.program(file)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(b.Launcher, "mpirun")
	if _, err := exec.LookPath(name); err != nil {
		return nil, fmt.Errorf("%s, which starts the ranks, was not found: install Open MPI, MPICH or Slurm (Debian, "+
			"Ubuntu: openmpi-bin, mpich or slurm-client)", name)
	}
	words := []string{name, "-n", fmt.Sprint(b.Ranks)}
	if b.kind() == "srun" {
		words = append(words, "--kill-on-bad-exit=1") // of a rank that ends within MPI_Init
		list, _ := exec.CommandContext(ctx, name, "--mpi=list").CombinedOutput()
		if mpi := comm.SrunInterface(string(list)); mpi != "" {
			words = append(words, "--mpi="+mpi)
		}
		var bare []string
		for _, h := range b.Hosts {
			name, _, _ := strings.Cut(h, ":") // without the number of its ranks
			bare = append(bare, name)
		}
		if len(bare) > 0 {
			words = append(words, "--nodelist", strings.Join(bare, ","))
		}
	} else {
		version, _ := exec.CommandContext(ctx, name, "--version").Output()
		words = append(words, b.mpirunWords(string(version))...)
	}
	return slices.Concat(words, b.Options, program), nil
}

// mpirunWords returns what the mpirun that says this of its version is to be told.
func (b *Backend) mpirunWords(version string) (words []string) {
	if !strings.Contains(version, "Open MPI") && !strings.Contains(version, "OpenRTE") { // MPICH and its relatives
		if len(b.Hosts) > 0 {
			words = append(words, "-hosts", strings.Join(b.Hosts, ","))
		}
		return words
	}
	words = append(words, "--bind-to", "none") // threads are krrlab's own to share out
	if os.Geteuid() == 0 {
		words = append(words, "--allow-run-as-root")
	}
	switch {
	case len(b.Hosts) > 0:
		words = append(words, "--host", strings.Join(b.Hosts, ","))
		words = append(words, keepAlive(b.Limit)...)
	case b.Ranks > runtime.NumCPU():
		words = append(words, "--oversubscribe")
	}
	return words
}

// keepAlive lets Open MPI's mpirun notice that a host is lost before the ranks do, so that it
// ends with them: after a third of their limit, and a minute at most.
func keepAlive(limit time.Duration) (words []string) {
	limit = cmp.Or(limit, comm.DefaultLimit)
	seconds := max(3, min(60, int(limit.Seconds()/3)))
	for _, p := range []struct {
		name  string
		value int
	}{{"time", seconds - 2*max(1, seconds/5)}, {"intvl", max(1, seconds/5)}, {"probes", 2}} {
		words = append(words, "--mca", "oob_tcp_keepalive_"+p.name, fmt.Sprint(p.value))
	}
	return words
}
