package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	krr "github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/ranks/remote"
)

// slurm describes a Slurm cluster with three nodes that runs on this host, in separate namespaces.
type slurm struct {
	dir  string // folder of the cluster and of the runs on it
	self string // path of this test binary, which acts as krrlab
}

// newSlurm starts the cluster, or skips the test and says why.
func newSlurm(t *testing.T) *slurm {
	t.Helper()
	if os.Getenv("KRRLAB_SLURM") == "" {
		t.Skip("starts Slurm: KRRLAB_SLURM=1, or make test-machines ROW=slurm")
	}
	if os.Getuid() != 0 {
		t.Skip("Slurm in a private folder needs root")
	}
	for _, name := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		if err := findLauncher(name); err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"slurmctld", "slurmd", "srun", "sbatch", "munged", "unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here: make test-machines ROW=slurm installs Slurm where apt can", name)
		}
	}
	cluster := &slurm{dir: t.TempDir(), self: testkit.Must(os.Executable())}
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--net", "--mount",
		"testdata/slurm.sh", cluster.dir, "3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	firstProcess := 0 // the first process of the process namespace; all others end with it
	t.Cleanup(func() {
		if firstProcess > 0 {
			_ = syscall.Kill(firstProcess, syscall.SIGKILL)
		}
		<-ended
		awaitNoProcesses(t, cluster.dir, output.String())
	})
	for range 3000 {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		_, _ = fmt.Sscan(string(children), &firstProcess)
		if _, err := os.Stat(filepath.Join(cluster.dir, "ready")); err == nil {
			cluster.writeWrappers(t, firstProcess)
			return cluster
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("Slurm cannot be started here (namespaces): %v: %s", err, output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("no node is idle after a minute (%s):\n%s", cluster.read("log/slurmctld"), output.String())
	return nil
}

// writeWrappers writes scripts with the names of Slurm's commands to the folder. Each runs the command in the
// namespaces of the cluster's first process.
func (s *slurm) writeWrappers(t *testing.T, firstProcess int) {
	for _, name := range []string{"srun", "sbatch", "scancel", "squeue", "scontrol"} {
		script := fmt.Sprintf("#!/bin/sh\nSLURM_CONF=%s/slurm.conf exec nsenter -t %d --net --uts -- %s \"$@\"\n",
			s.dir, firstProcess, testkit.Must(exec.LookPath(name)))
		testkit.OK(t, os.WriteFile(filepath.Join(s.dir, name), []byte(script), 0o755))
	}
	t.Setenv(actAsKrrlab, "1")
}

// command returns one of Slurm's commands, run in the folder of the cluster.
func (s *slurm) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.dir, name), args...)
	cmd.Dir = s.dir
	return cmd
}

// read returns the content of a file in the folder of the cluster, or nothing if it is missing.
func (s *slurm) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.dir, name))
	return string(content)
}

// folder makes a folder inside that of the cluster and returns its path.
func (s *slurm) folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	testkit.OK(t, os.Mkdir(dir, 0o755))
	return dir
}

// submit submits a batch script whose output goes to the file out, and returns the number of its job.
func (s *slurm) submit(t *testing.T, out string, options []string, script string) string {
	t.Helper()
	testkit.OK(t, os.WriteFile(filepath.Join(s.dir, out+".sh"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	words := append([]string{"--parsable", "--output", out, "--open-mode=append"}, options...)
	return strings.TrimSpace(mustRun(t, s.command(t.Context(), "sbatch", append(words, out+".sh")...)))
}

// shellWords returns words quoted for a shell.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = safe.Shell(word)
	}
	return strings.Join(quoted, " ")
}

// awaitJob waits until Slurm's description of a job matches the regular expression want.
func (s *slurm) awaitJob(t *testing.T, id, want string) {
	t.Helper()
	var description []byte
	for range 900 {
		description, _ = s.command(t.Context(), "scontrol", "show", "job", id).CombinedOutput()
		if regexp.MustCompile(want).Match(description) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("job %s is not %s:\n%s", id, want, description)
}

// crash kills all processes of a node at once, as a power failure does. The node stays down until the returned function
// is called.
func (s *slurm) crash(t *testing.T, node string) (restart func()) {
	t.Helper()
	downFile := filepath.Join(s.dir, "down."+node)
	testkit.OK(t, os.WriteFile(downFile, nil, 0o644))
	nodeSpace := ""
	for _, pid := range processesOf(s.dir) {
		if commandLine, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasPrefix(commandLine,
			[]byte("slurmd\x00")) && bytes.HasSuffix(commandLine, []byte("\x00"+node+"\x00")) {
			nodeSpace, _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", pid))
		}
	}
	if nodeSpace == "" {
		t.Fatalf("no slurmd of %s", node)
	}
	spaces, _ := filepath.Glob("/proc/[0-9]*/ns/uts")
	for _, file := range spaces {
		var pid int
		if namespace, err := os.Readlink(file); err != nil || namespace != nodeSpace {
			continue
		} else if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return func() { testkit.OK(t, os.Remove(downFile)) }
}

// TestSlurm runs krrlab under Slurm: by srun with both MPI implementations, by sbatch, from a Backend, with a cancelled
// job, and with a job that Slurm starts again after a node is lost. The coefficients must equal those of ranks that
// mpirun starts.
func TestSlurm(t *testing.T) {
	cluster := newSlurm(t)
	fit := func(name string, ranks ...string) []string {
		return append(append(ranks, cluster.self), quickFit(filepath.Join(cluster.dir, name))...)
	}
	mustRun(t, krrlab(testContext(t), t, 0, 2, fit("mpirun.krr")[1:]...))
	want := coefficients(filepath.Join(cluster.dir, "mpirun.krr"))
	for name, options := range map[string][]string{"pmix": {"--mpi=pmix", "-N3", "-n3"},
		"pmi2": {"--mpi=pmi2", "-N2", "-n2"}} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SLURM_PMIX_DIRECT_CONN", "false") // needed for PMIx, see docs/ranks.md; a Backend sets it itself
			count := strings.TrimPrefix(options[2], "-n")
			text := mustRun(t, cluster.command(testContext(t), "srun", fit(name+".krr", append(options, "-K")...)...))
			testkit.Contains(t, text, fmt.Sprintf("ranks        %s (%[1]s on this machine)", count))
			checkCoefficients(t, filepath.Join(cluster.dir, name+".krr"), want)
		})
	}
	t.Run("no interface", func(t *testing.T) {
		text, err := cluster.command(testContext(t), "srun", fit("none.krr", "-K", "-N3", "-n3")...).CombinedOutput()
		if got := messages(string(text)); err == nil || len(got) != 1 ||
			!strings.Contains(got[0], "take srun --mpi=pmix") || strings.Contains(string(text), "MPI_Init") {
			t.Errorf("want one message that names --mpi=pmix, and an error; error %v:\n%s", err, text)
		}
	})
	t.Run("sbatch", func(t *testing.T) {
		id := cluster.submit(t, "batch", []string{"-N2", "-n2"}, "srun "+shellWords(fit("batch.krr", "--mpi=pmi2")))
		cluster.awaitJob(t, id, "JobState=COMPLETED")
		testkit.Contains(t, cluster.read("batch"), "ranks        2 (2 on this machine)")
		checkCoefficients(t, filepath.Join(cluster.dir, "batch.krr"), want)
	})
	t.Run("backend", func(t *testing.T) { testSlurmBackend(t, cluster) })
	t.Run("scancel", func(t *testing.T) {
		dir := cluster.folder(t, "cancel")
		id := cluster.submit(t, "canceled", []string{"-N3", "-n3"}, "exec srun --mpi=pmi2 "+cluster.self+" "+
			shellWords(slowFit(dir)))
		awaitCheckpoint(t, dir, 1)
		mustRun(t, cluster.command(t.Context(), "scancel", id))
		cluster.awaitJob(t, id, "JobState=CANCELLED")
		awaitNoProcesses(t, dir, cluster.read("canceled"))
		testkit.Contains(t, cluster.read("canceled"), "interrupted after ", "--resume continues")
	})
	t.Run("lost node", func(t *testing.T) {
		dir := cluster.folder(t, "lost")
		// The simulated nodes share one machine, where UCX would exchange data by reading the memory of other processes
		// (cma) and end the remaining ranks when that fails. Ranks on separate machines cannot do this.
		id := cluster.submit(t, "requeued", []string{"-N3", "-n3", "--requeue"},
			"UCX_TLS=^cma srun --mpi=pmi2 "+cluster.self+" "+
				shellWords(slowFit(dir, "--resume", "--rank-timeout", "2m")))
		awaitCheckpoint(t, dir, 1)
		restart := cluster.crash(t, "n3")
		cluster.awaitJob(t, id, "(?s)JobState=PENDING.*Restarts=1")
		awaitNoProcesses(t, dir, cluster.read("requeued"))
		testkit.Contains(t, cluster.read("requeued"), "is kept; --resume continues")
		restart()
		cluster.awaitJob(t, id, "JobState=COMPLETED")
		testkit.Contains(t, cluster.read("requeued"), "resuming from the checkpoint", "converged after")
		checkCoefficients(t, filepath.Join(dir, "m.krr"), uninterrupted(t, true))
	})
}

// testSlurmBackend sends a solve to ranks that srun starts, once with the default interface to MPI and once with one
// from Options, and checks that both give the same coefficients. It then cancels a solve and checks that no job step is
// left.
func testSlurmBackend(t *testing.T, cluster *slurm) {
	train, cfg := problemForBackend()
	newBackend := func(name string, options ...string) *remote.Backend {
		return &remote.Backend{Ranks: 3, Launcher: filepath.Join(cluster.dir, "srun"), Program: cluster.self,
			Flags: []string{"--blas", "go"}, Dir: filepath.Join(cluster.dir, name), Options: append(options, "-N3")}
	}
	var reference *mat.Dense
	for _, backend := range []*remote.Backend{newBackend("alone"), newBackend("options", "--mpi=pmi2")} {
		events := 0
		cfg.Backend = backend
		cfg.Monitor = func(krr.Event) error { events++; return nil }
		sol, err := testkit.Must(krr.New(train, cfg)).Solve(testContext(t))
		testkit.OK(t, err)
		if reference == nil {
			reference = sol.Model.C
		}
		if !mat.Equal(sol.Model.C, reference) || !sol.Converged() || sol.Ranks.Count != 3 || events < 5 {
			t.Errorf("%s on %d ranks with %d events, want converged on 3 with at least 5; or other coefficients",
				sol.Status, sol.Ranks.Count, events)
		}
	}
	cancelSolve(t, newBackend("ended", "--mpi=pmi2"))
	if steps := mustRun(t,
		cluster.command(t.Context(), "squeue", "--noheader", "--steps")); strings.TrimSpace(steps) != "" {
		t.Errorf("job steps of the canceled solve still run:\n%s", steps)
	}
}
