package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// playVariable makes this test binary a process that has the folder it names, until it is killed.
const playVariable = "KRRLAB_PLAY_RUN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(playVariable); dir != "" {
		s, err := Open(dir, [32]byte{1})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("has it")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		runtime.KeepAlive(s)                 // collected, it would close its lock
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestTwoRuns: a folder is one run's, whatever another would do, and free when that ends.
func TestTwoRuns(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, 1)
	_ = first.Save([]byte("mine"))
	_, err := Open(dir, [32]byte{1})
	if !errors.Is(err, errLocked) || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d on ", os.Getpid())) {
		t.Errorf("%v", err)
	}
	load(t, first, "mine", 0, "")
	first.Close()
	second := open(t, dir, 1)
	_ = second.Save([]byte("gone on"))
	if err := first.Clear(); err != nil { // the files now belong to another run
		t.Error(err)
	}
	load(t, second, "gone on", 0, "")
	second.Close()
	if err := first.Clear(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestKilledRun: the folder of a run that was killed is free at once.
func TestKilledRun(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	testkit.OK(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, e := Open(dir, [32]byte{1}); e == nil || !strings.Contains(e.Error(),
		fmt.Sprintf("process %d ", cmd.Process.Pid)) {
		t.Errorf("the folder of a run that says %q, %v: %v", line, err, e)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		t.Errorf("killed, it cannot have cleared up: %v", err)
	}
	open(t, dir, 1)
}

// TestFolderTaken: a run whose folder was removed and is another's now does not write into it.
func TestFolderTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	first := open(t, dir, 1)
	testkit.OK(t, os.RemoveAll(dir))
	var unsaved *SaveError
	if err := first.Save(nil); !errors.As(err, &unsaved) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	second := open(t, dir, 1)
	if err := first.Save(nil); !errors.As(err, &unsaved) || !strings.Contains(err.Error(), "another run") {
		t.Errorf("%v", err)
	}
	first.Close()
	if err := second.Save([]byte("its own")); err != nil {
		t.Error(err)
	}
}

// TestLockNoFile: a lock that is a link, to a file, to none or to a folder, or no file, is refused, and what it leads
// to stays as it is.
func TestLockNoFile(t *testing.T) {
	for name, make := range map[string]func(lock, target string) error{
		"link":        func(lock, target string) error { return os.Symlink(target, lock) },
		"to nothing":  func(lock, target string) error { return os.Symlink(target+"2", lock) },
		"to a folder": func(lock, target string) error { return os.Symlink(filepath.Dir(target), lock) },
		"to itself":   func(lock, _ string) error { return os.Symlink(lock, lock) },
		"folder":      func(lock, _ string) error { return os.Mkdir(lock, 0o755) },
	} {
		dir, target := t.TempDir(), filepath.Join(t.TempDir(), "mine")
		testkit.OK(t, os.WriteFile(target, []byte("text"), 0o644))
		if err := make(filepath.Join(dir, lockName), target); err != nil {
			t.Skip(err)
		}
		_, err := Open(dir, [32]byte{1})
		if text, e := os.ReadFile(target); err == nil || !strings.Contains(err.Error(), "no regular file") ||
			string(text) != "text" || e != nil {
			t.Errorf("%s: %v; %q, %v", name, err, text, e)
		}
		if _, err := os.Stat(target + "2"); err == nil {
			t.Errorf("%s: made what it leads to", name)
		}
	}
}
