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

// hosts are two machines with their own names, addresses and network: namespaces joined by a
// virtual cable. a is where mpirun runs; agent starts what it wants on b, instead of ssh.
type hosts struct {
	dir   string
	a, b  int // the processes that keep the namespaces
	enter []string
}

// makeHosts is the script that makes them; $1 is the folder.
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

// newHosts makes two hosts, or skips the test and says why.
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
	h := &hosts{dir: t.TempDir(), enter: []string{"--net", "--uts", "--mount"}}
	spaces := []string{"--net", "--uts", "--mount"}
	if os.Getuid() != 0 {
		spaces = append([]string{"--user", "--map-root-user"}, spaces...)
		h.enter = append([]string{"--user", "--preserve-credentials"}, h.enter...)
	}
	cmd := exec.Command("unshare", append(spaces, "sh", "-c", makeHosts, "sh", h.dir)...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Skipf("two hosts cannot be made here: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	h.a = cmd.Process.Pid
	t.Cleanup(func() {
		for _, pid := range append(processesOf(h.dir), h.a, h.b) {
			if pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		<-ended
	})
	for range 6000 {
		if b, err := os.ReadFile(filepath.Join(h.dir, "ready")); err == nil {
			fmt.Sscan(string(b), &h.b)
			return h
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("two hosts cannot be made here (network namespaces): %v: %s", err, strings.TrimSpace(text.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("two hosts did not come up: %s", text.String())
	return nil
}

// on returns a command on host a.
func (h *hosts) on(ctx context.Context, words ...string) *exec.Cmd {
	args := append([]string{"-t", fmt.Sprint(h.a)}, h.enter...)
	cmd := exec.CommandContext(ctx, "nsenter", append(args, words...)...)
	// In /tmp another user's run on hosts of these names may have left the folder that mpirun makes.
	cmd.Env = append(os.Environ(), playVariable+"=1", "TMPDIR="+h.dir)
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// link sets host a's end of the cable up or down.
func (h *hosts) link(t *testing.T, state string) {
	t.Helper()
	runs(t, h.on(t.Context(), "ip", "link", "set", "krr0", state))
}

// krrlab returns the command on two ranks of each host, TCP between them. The launcher notices
// after lost seconds that a host cannot be reached.
func (h *hosts) krrlab(ctx context.Context, lost int, args ...string) *exec.Cmd {
	return h.ranks(ctx, 2, lost, args...)
}

// ranks returns the command on so many ranks of each host.
func (h *hosts) ranks(ctx context.Context, each, lost int, args ...string) *exec.Cmd {
	self := testkit.Must(os.Executable())
	words := []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--host",
		fmt.Sprintf("10.77.0.1:%d,10.77.0.2:%[1]d", each), "-n", fmt.Sprint(2 * each), "-x", playVariable}
	for _, p := range [][2]string{
		{"plm_rsh_agent", filepath.Join(h.dir, "agent")},
		{"btl", "tcp,self"}, {"btl_tcp_if_include", "krr0"}, {"oob_tcp_if_include", "krr0"},
		{"oob_tcp_keepalive_time", fmt.Sprint(lost - 2)}, {"oob_tcp_keepalive_intvl", "1"}, {"oob_tcp_keepalive_probes",
			"2"},
	} {
		words = append(words, "--mca", p[0], p[1])
	}
	return h.on(ctx, append(append(words, self), args...)...)
}

// ranksOn returns the ranks of a run in dir that live on host b, or on a.
func (h *hosts) ranksOn(dir string, b bool) (pids []int) {
	space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", map[bool]int{false: h.a, true: h.b}[b]))
	for _, pid := range ranksOf(dir) {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && ns == space {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestTwoHosts fits on two hosts with their own addresses: the coefficients of one rank on
// this machine, and half of the ranks on each host.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	one, two := filepath.Join(h.dir, "one.krr"), filepath.Join(h.dir, "two.krr")
	text := runs(t, h.krrlab(limited(t), 30, quick(two)...), "ranks        4 (4 on this machine)")
	testkit.Equal(t, strings.Count(text, "converged after"), 1, text)
	runs(t, krrlab(limited(t), t, 0, 1, quick(one)...))
	same(t, two, coefficients(one))
}

// TestFaultsOfHosts kills a rank of the other host and cuts the cable, and with KRRLAB_LONG=1
// stops ranks and ends the run as a scheduler does: each time all ranks and the launcher end,
// the run says why in one line and has a code other than 0, and in the end it continues from its
// checkpoint to the coefficients of an unbroken run.
func TestFaultsOfHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	const limit = "6s"
	dir := h.dir
	late := "no answer within " + limit
	for _, fault := range []struct {
		name, says string // says "" where it is the launcher that ends the ranks
		long       bool
		strike     func(mpirun int)
	}{
		{"killed rank", "", false, func(int) { _ = syscall.Kill(h.ranksOn(dir, true)[0], syscall.SIGKILL) }},
		{"stopped rank", late, true, func(int) { _ = syscall.Kill(h.ranksOn(dir, true)[1], syscall.SIGSTOP) }},
		{"stopped first rank", late, true, func(int) { _ = syscall.Kill(h.ranksOn(dir, false)[0], syscall.SIGSTOP) }},
		{"SIGTERM", "interrupted after", true, func(mpirun int) { _ = syscall.Kill(mpirun, syscall.SIGTERM) }},
		{"cut cable", "interrupted after", false, func(int) { h.link(t, "down") }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if fault.long && suite.Scale(0, 0, 1) == 0 {
				t.Skip("one of many faults (make test-long)")
			}
			// a resumed run could end before it is struck
			testkit.OK(t, os.RemoveAll(filepath.Join(dir, "kept")))
			cmd := h.krrlab(limited(t), 4, slow(dir, "--rank-timeout", limit)...)
			var out, text bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &text
			testkit.OK(t, cmd.Start())
			await(t, dir, 1)
			struck := time.Now()
			fault.strike(cmd.Process.Pid)
			err := cmd.Wait()
			t.Logf("%v after %.1f s", err, time.Since(struck).Seconds())
			if err == nil || strings.Contains(out.String(), "converged") {
				t.Fatalf("the run ended well:\n%s%s", out.String(), text.String())
			}
			gone(t, dir, text.String())
			if fault.says == "" {
				return
			}
			lines := said(text.String())
			// which wakes to be ended, and says that
			if first := fault.name == "stopped first rank"; len(lines) == 2 && first {
				lines = lines[:1]
			}
			if len(lines) != 1 || !strings.Contains(lines[0], fault.says) ||
				!strings.Contains(lines[0], "; the checkpoint in ") ||
				!strings.Contains(lines[0], "is kept; --resume continues") {
				t.Errorf("said %q, want one line with %q and how to go on:\n%s", lines, fault.says, text.String())
			}
		})
	}
	h.link(t, "up")
	runs(t, h.krrlab(limited(t), 30, slow(dir, "--resume")...), "resuming from the checkpoint")
	same(t, filepath.Join(dir, "m.krr"), unbroken(t, true))
}

// TestDiskFull fills the disk with a checkpoint: the run ends and says so, the checkpoint
// before is whole, and the run continues from it where there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	full := filepath.Join(h.dir, "small")
	fit := func(more ...string) []string {
		return append(slow(h.dir, more...), "--checkpoint", filepath.Join(full, "kept"))
	}
	text, err := h.krrlab(limited(t), 30, fit()...).CombinedOutput()
	if got := said(string(text)); err == nil || len(got) != 1 || !strings.Contains(got[0], "no space left on device") ||
		!strings.Contains(got[0], "--resume continues") {
		t.Fatalf("%v:\n%s", err, text)
	}
	gone(t, h.dir, string(text))
	runs(t, h.on(t.Context(), "rm", filepath.Join(full, "ballast")))
	again := runs(t, h.krrlab(limited(t), 30, fit("--resume")...), "resuming from the checkpoint")
	if strings.Contains(again, "refused") {
		t.Error(again)
	}
	same(t, filepath.Join(h.dir, "m.krr"), unbroken(t, true))
}

// TestFileLimit writes a checkpoint that is larger than files may be, in one process: as a full
// disk, without one.
func TestFileLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if text, err := krrlab(limited(t), t, -1, 1, slow(dir, "--max-iter",
		"30")...).CombinedOutput(); !strings.Contains(string(text), "not converged") {
		t.Fatalf("%v:\n%s", err, text)
	}
	newest := newestCheckpoint(dir)
	cmd := krrlab(limited(t), t, -1, 1, slow(dir, "--resume")...)
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 40 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to limit files with")
	}
	cmd.Path = shell
	text, err := cmd.CombinedOutput()
	if got := said(string(text)); err == nil || len(got) != 1 || !strings.Contains(got[0], "file too large") ||
		!strings.Contains(got[0], "--resume continues") {
		t.Fatalf("%v:\n%s", err, text)
	}
	testkit.Equal(t, newestCheckpoint(dir), newest)
	runs(t, krrlab(limited(t), t, -1, 1, slow(dir, "--resume")...))
	same(t, filepath.Join(dir, "m.krr"), unbroken(t, false))
}

// said returns the lines that krrlab itself has written, without what it resumes from.
func said(text string) (lines []string) {
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "krrlab: ") && !strings.Contains(l, ": resuming from") &&
			!strings.Contains(l, ": no checkpoint in") {
			lines = append(lines, l)
		}
	}
	return lines
}
