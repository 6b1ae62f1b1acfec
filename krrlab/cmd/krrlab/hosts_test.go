package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// hosts describes two simulated machines with their own names, addresses and networks: Linux namespaces that are joined
// by a virtual network cable. mpirun runs on host a; a script named agent starts its processes on host b, without ssh.
type hosts struct {
	dir            string   // folder of the hosts and of the runs on them
	pidA, pidB     int      // ids of the processes that keep the namespaces of the hosts alive
	nsenterOptions []string // options of nsenter for a command in the namespaces of host a
}

// makeHosts is the shell script that creates the two hosts; its argument $1 is their folder. It also mounts a file
// system of 4 MB, nearly filled, for TestDiskFull.
const makeHosts = `set -e
hostname krrlab-a
ip link set lo up
unshare --net --uts sh -c "hostname krrlab-b; ip link set lo up; : >'$1/b'; exec sleep 900" &
b=$!
while ! [ -e "$1/b" ]; do sleep 0.02; done
ip link add krr0 type veth peer name krr0 netns $b
nsenter -t $b --net ip addr add 10.77.0.2/24 dev krr0
nsenter -t $b --net ip link set krr0 up
ip addr add 10.77.0.1/24 dev krr0
ip link set krr0 up
mkdir "$1/small" && mount -t tmpfs -o size=4m none "$1/small"
head -c 3796k /dev/zero >"$1/small/ballast"
cat >"$1/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
shift
exec nsenter -t $b --net --uts sh -c "\$*"
END
chmod +x "$1/agent"
echo $b >"$1/pid" && mv "$1/pid" "$1/ready"
exec sleep 900
`

// newHosts creates the two hosts, or skips the test and says why.
func newHosts(t *testing.T) *hosts {
	t.Helper()
	if err := findLauncher("mpirun.openmpi"); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("no %s here: two hosts need util-linux and iproute2 (make test-long installs them)", name)
		}
	}
	h := &hosts{dir: t.TempDir(), nsenterOptions: []string{"--net", "--uts", "--mount"}}
	namespaces := []string{"--net", "--uts", "--mount"}
	if os.Getuid() != 0 {
		namespaces = append([]string{"--user", "--map-root-user"}, namespaces...)
		h.nsenterOptions = append([]string{"--user", "--preserve-credentials"}, h.nsenterOptions...)
	}
	cmd := exec.Command("unshare", append(namespaces, "sh", "-c", makeHosts, "sh", h.dir)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Skipf("two hosts cannot be made here: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	h.pidA = cmd.Process.Pid
	t.Cleanup(func() {
		for _, pid := range append(processesOf(h.dir), h.pidA, h.pidB) {
			if pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		<-ended
	})
	for range 6000 {
		if pidText, err := os.ReadFile(filepath.Join(h.dir, "ready")); err == nil {
			fmt.Sscan(string(pidText), &h.pidB)
			return h
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("two hosts cannot be made here (network namespaces): %v: %s", err,
				strings.TrimSpace(output.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("two hosts did not come up: %s", output.String())
	return nil
}

// commandOnA returns a command that runs on host a.
func (h *hosts) commandOnA(ctx context.Context, words ...string) *exec.Cmd {
	args := append([]string{"-t", fmt.Sprint(h.pidA)}, h.nsenterOptions...)
	cmd := exec.CommandContext(ctx, "nsenter", append(args, words...)...)
	// mpirun makes a folder in TMPDIR that is named after the host; in /tmp it may already exist and belong to another
	// user.
	cmd.Env = append(os.Environ(), actAsKrrlab+"=1", "TMPDIR="+h.dir)
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// setLink sets host a's end of the cable up or down.
func (h *hosts) setLink(t *testing.T, state string) {
	t.Helper()
	mustRun(t, h.commandOnA(t.Context(), "ip", "link", "set", "krr0", state))
}

// krrlab returns the command krrlab on two ranks of each host, connected by TCP. The launcher reports a host as lost
// after it could not be reached for lostAfter seconds.
func (h *hosts) krrlab(ctx context.Context, lostAfter int, args ...string) *exec.Cmd {
	return h.krrlabOnRanks(ctx, 2, lostAfter, args...)
}

// krrlabOnRanks returns the command krrlab on the given number of ranks of each host; see krrlab for lostAfter.
func (h *hosts) krrlabOnRanks(ctx context.Context, perHost, lostAfter int, args ...string) *exec.Cmd {
	self := testkit.Must(os.Executable())
	words := []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--host",
		fmt.Sprintf("10.77.0.1:%d,10.77.0.2:%[1]d", perHost), "-n", fmt.Sprint(2 * perHost), "-x", actAsKrrlab}
	for _, option := range [][2]string{
		{"plm_rsh_agent", filepath.Join(h.dir, "agent")},
		{"btl", "tcp,self"}, {"btl_tcp_if_include", "krr0"}, {"oob_tcp_if_include", "krr0"},
		// Two probes, one second apart, follow the time without an answer.
		{"oob_tcp_keepalive_time", fmt.Sprint(lostAfter - 2)},
		{"oob_tcp_keepalive_intvl", "1"}, {"oob_tcp_keepalive_probes", "2"},
	} {
		words = append(words, "--mca", option[0], option[1])
	}
	return h.commandOnA(ctx, append(append(words, self), args...)...)
}

// ranksOn returns the process ids of the ranks of a run in dir that run on host b if onB is set, and on host a
// otherwise.
func (h *hosts) ranksOn(dir string, onB bool) (pids []int) {
	host := h.pidA
	if onB {
		host = h.pidB
	}
	namespace, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", host))
	for _, pid := range ranksOf(dir) {
		if rankNamespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil &&
			rankNamespace == namespace {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestTwoHosts checks that a fit on two hosts with their own addresses, with half of the ranks on each, gives the
// coefficients of one process on this machine.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	oneProcess, twoHosts := filepath.Join(h.dir, "one.krr"), filepath.Join(h.dir, "two.krr")
	text := mustRun(t, h.krrlab(testContext(t), 30, quickFit(twoHosts)...), "ranks        4 (4 on this machine)")
	testkit.Equal(t, strings.Count(text, "converged after"), 1, text)
	mustRun(t, krrlab(testContext(t), t, 0, 1, quickFit(oneProcess)...))
	checkCoefficients(t, twoHosts, coefficients(oneProcess))
}

// TestFaultsOfHosts interrupts runs on two hosts. It kills a rank on the other host and cuts the cable; with
// KRRLAB_LONG=1 it also stops ranks and ends a run by SIGTERM, as a scheduler does. Each time, all ranks and the
// launcher must end with an exit code other than 0, and the run must say why in one line, unless the launcher ends it.
// In the end, the run continues from its checkpoint to the coefficients of an uninterrupted run.
func TestFaultsOfHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	const limit = "6s"
	dir := h.dir
	noAnswer := "no answer within " + limit
	for _, fault := range []struct {
		name, message string // message is empty if the launcher ends the ranks
		long          bool   // run only with KRRLAB_LONG=1
		cause         func(mpirun int)
	}{
		{"killed rank", "", false, func(int) { _ = syscall.Kill(h.ranksOn(dir, true)[0], syscall.SIGKILL) }},
		{"stopped rank", noAnswer, true, func(int) { _ = syscall.Kill(h.ranksOn(dir, true)[1], syscall.SIGSTOP) }},
		{"stopped first rank", noAnswer, true, func(int) {
			_ = syscall.Kill(h.ranksOn(dir, false)[0],
				syscall.SIGSTOP)
		}},
		{"SIGTERM", "interrupted after", true, func(mpirun int) { _ = syscall.Kill(mpirun, syscall.SIGTERM) }},
		{"cut cable", "interrupted after", false, func(int) { h.setLink(t, "down") }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if fault.long && suite.Scale(0, 0, 1) == 0 {
				t.Skip("one of many faults (make test-long)")
			}
			// The run must not resume from the checkpoint of the previous fault, or it could end before this fault.
			testkit.OK(t, os.RemoveAll(filepath.Join(dir, "kept")))
			cmd := h.krrlab(testContext(t), 4, slowFit(dir, "--rank-timeout", limit)...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			testkit.OK(t, cmd.Start())
			awaitCheckpoint(t, dir, 1)
			start := time.Now()
			fault.cause(cmd.Process.Pid)
			err := cmd.Wait()
			t.Logf("%v after %.1f s", err, time.Since(start).Seconds())
			if err == nil || strings.Contains(stdout.String(), "converged") {
				t.Fatalf("the run ends without an error, or converges:\n%s%s", stdout.String(), stderr.String())
			}
			awaitNoProcesses(t, dir, stderr.String())
			if fault.message == "" {
				return
			}
			lines := messages(stderr.String())
			// The stopped first rank continues when it is terminated, and then adds a message of its own.
			if stoppedFirst := fault.name == "stopped first rank"; len(lines) == 2 && stoppedFirst {
				lines = lines[:1]
			}
			if len(lines) != 1 || !strings.Contains(lines[0], fault.message) ||
				!strings.Contains(lines[0], "; the checkpoint in ") ||
				!strings.Contains(lines[0], "is kept; --resume continues") {
				t.Errorf("messages %q, want one line with %q and how to continue:\n%s", lines, fault.message,
					stderr.String())
			}
		})
	}
	h.setLink(t, "up")
	mustRun(t, h.krrlab(testContext(t), 30, slowFit(dir, "--resume")...), "resuming from the checkpoint")
	checkCoefficients(t, filepath.Join(dir, "m.krr"), uninterrupted(t, true))
}

// TestDiskFull checks a run whose checkpoint fills the disk. It must end and say so, the previous checkpoint must
// remain valid, and the run must continue from it once the disk has free space.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	smallDisk := filepath.Join(h.dir, "small")
	fit := func(more ...string) []string {
		return append(slowFit(h.dir, more...), "--checkpoint", filepath.Join(smallDisk, "kept"))
	}
	text, err := h.krrlab(testContext(t), 30, fit()...).CombinedOutput()
	if got := messages(string(text)); err == nil || len(got) != 1 ||
		!strings.Contains(got[0], "no space left on device") || !strings.Contains(got[0], "--resume continues") {
		t.Fatalf("want one message of a full disk, and an error; error %v:\n%s", err, text)
	}
	awaitNoProcesses(t, h.dir, string(text))
	mustRun(t, h.commandOnA(t.Context(), "rm", filepath.Join(smallDisk, "ballast")))
	resumed := mustRun(t, h.krrlab(testContext(t), 30, fit("--resume")...), "resuming from the checkpoint")
	if strings.Contains(resumed, "refused") {
		t.Errorf("the checkpoint before the full disk is refused:\n%s", resumed)
	}
	checkCoefficients(t, filepath.Join(h.dir, "m.krr"), uninterrupted(t, true))
}

// TestFileLimit checks the same as TestDiskFull in one process, without a full disk: a limit on the size of files
// (ulimit -f) is smaller than a checkpoint.
func TestFileLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := krrlab(testContext(t), t, -1, 1, slowFit(dir, "--max-iter", "30")...).CombinedOutput()
	if !strings.Contains(string(text), "not converged") {
		t.Fatalf("30 iterations should not converge; error %v:\n%s", err, text)
	}
	newest := newestCheckpoint(dir)
	cmd := krrlab(testContext(t), t, -1, 1, slowFit(dir, "--resume")...)
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 40 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to limit files with")
	}
	cmd.Path = shell
	text, err = cmd.CombinedOutput()
	if got := messages(string(text)); err == nil || len(got) != 1 || !strings.Contains(got[0], "file too large") ||
		!strings.Contains(got[0], "--resume continues") {
		t.Fatalf("want one message of a large file, and an error; error %v:\n%s", err, text)
	}
	testkit.Equal(t, newestCheckpoint(dir), newest)
	mustRun(t, krrlab(testContext(t), t, -1, 1, slowFit(dir, "--resume")...))
	checkCoefficients(t, filepath.Join(dir, "m.krr"), uninterrupted(t, false))
}

// messages returns the lines of text that krrlab itself has written, except the notes about the checkpoint from which
// it resumes.
func messages(text string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "krrlab: ") && !strings.Contains(line, ": resuming from") &&
			!strings.Contains(line, ": no checkpoint in") {
			lines = append(lines, line)
		}
	}
	return lines
}
