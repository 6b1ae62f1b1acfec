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

// Backend is a krrlab.Backend that starts ranks, on this machine or on others.
type Backend struct {
	Ranks int // number of ranks, at least 1
	// Hosts lists the hosts of the ranks, each optionally with its number of ranks as in "node1:8". If it is nil, the
	// ranks run on this machine, or with srun on the nodes that Slurm allocated; srun ignores the numbers of ranks. The
	// launcher must be able to start programs on the hosts, and the paths Program and Dir must be the same there as
	// here.
	Hosts []string
	// Launcher is the program that starts the ranks: "mpirun", "mpiexec" (Open MPI or MPICH), "srun", or a path that
	// ends in one of them. Default: "mpirun".
	Launcher string
	// Options are additional arguments of the launcher. They follow the arguments that Backend passes: for srun,
	// --kill-on-bad-exit=1, --nodelist for Hosts, and --mpi=pmix or --mpi=pmi2, depending on the MPI library found on
	// this machine; for the mpirun of Open MPI, --bind-to none, --host and keep-alive settings for Hosts,
	// --oversubscribe for more ranks than processors, and --allow-run-as-root for root; for that of MPICH, -hosts.
	Options []string
	// Program is the program that the ranks run: krrlab, or for user-defined kernels a program that registers them
	// (kernel.Register) and calls program.Run (krrlab/cmd/program). Default: this program if its name begins with
	// krrlab, otherwise the krrlab on the path.
	Program string
	// Flags are additional flags of krrlab job, such as --threads and --blas; its help lists them.
	Flags []string
	// Dir is the folder for jobs, which all hosts must see. Default: a temporary folder for each run, which is
	// possible without Hosts and Slurm.
	Dir string
	// Limit is the longest time that a rank waits for the others. Default: comm.DefaultLimit.
	Limit time.Duration
}

// Check implements krrlab.Backend. It returns an error if the fields of b are invalid or if cfg cannot be serialized.
func (b *Backend) Check(cfg *krrlab.Config) error {
	if err := b.checkFields(); err != nil {
		return err
	}
	_, err := newConfig(cfg)
	return err
}

// checkFields returns an error if the fields of b are invalid.
func (b *Backend) checkFields() error {
	switch {
	case b.Ranks < 1:
		return fmt.Errorf("a backend of %d ranks: want at least 1", b.Ranks)
	case b.Limit < 0:
		return fmt.Errorf("rank timeout %v: want a positive time", b.Limit)
	case b.launcherName() == "sbatch":
		return fmt.Errorf("the launcher sbatch starts no ranks that are waited for: take srun, or submit a script " +
			"that ends with srun krrlab")
	case b.Dir == "" && (len(b.Hosts) > 0 || b.launcherName() == "srun"):
		return fmt.Errorf("ranks on other machines need a folder that all of them see: set Dir of the Backend")
	}
	return nil
}

// launcherName returns the base name of the launcher.
func (b *Backend) launcherName() string {
	return filepath.Base(cmp.Or(b.Launcher, "mpirun"))
}

// rankCommand returns the command line of one rank, for the job file named file.
func (b *Backend) rankCommand(file string) ([]string, error) {
	name := b.Program
	if name == "" {
		program, err := os.Executable()
		if err == nil && strings.HasPrefix(filepath.Base(program), "krrlab") {
			name = program
		} else if name, err = exec.LookPath("krrlab"); err != nil {
			return nil, fmt.Errorf("the ranks need the command krrlab, which is not on the path: install it, or set " +
				"Program of the Backend")
		}
	}
	limit := cmp.Or(b.Limit, comm.DefaultLimit)
	args := append([]string{name, "job", "--rank-timeout", limit.String()}, b.Flags...)
	return append(args, file), nil
}

// command returns the command line that starts the ranks, as a list of words. It runs the launcher to find the
// arguments that this launcher accepts: srun with --mpi=list, mpirun with --version.
func (b *Backend) command(ctx context.Context, file string) ([]string, error) {
	program, err := b.rankCommand(file)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(b.Launcher, "mpirun")
	if _, err := exec.LookPath(name); err != nil {
		return nil, fmt.Errorf("%s, which starts the ranks, was not found: install Open MPI, MPICH or Slurm (Debian, "+
			"Ubuntu: openmpi-bin, mpich or slurm-client)", name)
	}
	args := []string{name, "-n", fmt.Sprint(b.Ranks)}
	if b.launcherName() == "srun" {
		args = append(args, "--kill-on-bad-exit=1") // also ends the others if a rank fails in MPI_Init
		list, _ := exec.CommandContext(ctx, name, "--mpi=list").CombinedOutput()
		if mpi := comm.SrunInterface(string(list)); mpi != "" {
			args = append(args, "--mpi="+mpi)
		}
		var hosts []string
		for _, host := range b.Hosts {
			name, _, _ := strings.Cut(host, ":") // drop the number of ranks
			hosts = append(hosts, name)
		}
		if len(hosts) > 0 {
			args = append(args, "--nodelist", strings.Join(hosts, ","))
		}
	} else {
		version, _ := exec.CommandContext(ctx, name, "--version").Output()
		args = append(args, b.mpirunArgs(string(version))...)
	}
	return slices.Concat(args, b.Options, program), nil
}

// mpirunArgs returns the arguments for mpirun. Open MPI and MPICH take different ones; version is the output of
// mpirun --version.
func (b *Backend) mpirunArgs(version string) (args []string) {
	if !strings.Contains(version, "Open MPI") && !strings.Contains(version, "OpenRTE") { // MPICH and its relatives
		if len(b.Hosts) > 0 {
			args = append(args, "-hosts", strings.Join(b.Hosts, ","))
		}
		return args
	}
	args = append(args, "--bind-to", "none") // krrlab distributes the processors over threads
	if os.Geteuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	switch {
	case len(b.Hosts) > 0:
		args = append(args, "--host", strings.Join(b.Hosts, ","))
		args = append(args, keepAlive(b.Limit)...)
	case b.Ranks > runtime.NumCPU():
		args = append(args, "--oversubscribe")
	}
	return args
}

// keepAlive returns arguments that make the mpirun of Open MPI notice a lost host before the ranks do, so that mpirun
// ends the run. It gives up a silent host after a third of the limit, but after at most a minute and at least 3
// seconds: that is the time until the first of two probes, plus two intervals of a fifth of the total.
func keepAlive(limit time.Duration) (args []string) {
	limit = cmp.Or(limit, comm.DefaultLimit)
	seconds := max(3, min(60, int(limit.Seconds()/3)))
	interval := max(1, seconds/5)
	const probes = 2
	for _, setting := range []struct {
		name  string
		value int
	}{{"time", seconds - probes*interval}, {"intvl", interval}, {"probes", probes}} {
		args = append(args, "--mca", "oob_tcp_keepalive_"+setting.name, fmt.Sprint(setting.value))
	}
	return args
}
