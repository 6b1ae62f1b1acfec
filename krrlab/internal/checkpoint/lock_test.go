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

// lockVariable is the environment variable that turns this test binary into a process that holds the lock of the named
// folder until it is killed or its standard input ends.
const lockVariable = "KRRLAB_TEST_LOCK"

// TestMain opens the folder that lockVariable names and holds its lock, or runs the tests if the variable is not set.
func TestMain(m *testing.M) {
	if dir := os.Getenv(lockVariable); dir != "" {
		s, err := Open(dir, [32]byte{1})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		runtime.KeepAlive(s)                 // a store that the garbage collector frees would release its lock
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestOneRunAtATime checks that a folder belongs to one run at a time and is free again when that run ends. A store
// that was closed no longer removes files, even if another run then owns the folder, and Clear of the first store
// removes the files once nobody owns the folder.
func TestOneRunAtATime(t *testing.T) {
	dir := t.TempDir()
	first := openStore(t, dir, 1)
	_ = first.Save([]byte("mine"))
	_, err := Open(dir, [32]byte{1})
	if !errors.Is(err, errLocked) ||
		!strings.Contains(err.Error(), fmt.Sprintf("in use by process %d on ", os.Getpid())) {
		t.Errorf("%v", err)
	}
	checkLoad(t, first, "mine", 0, "")
	first.Close()
	second := openStore(t, dir, 1)
	_ = second.Save([]byte("gone on"))
	if err := first.Clear(); err != nil { // the files now belong to another run
		t.Error(err)
	}
	checkLoad(t, second, "gone on", 0, "")
	second.Close()
	if err := first.Clear(); err != nil {
		t.Error(err)
	}
	if remaining, _ := os.ReadDir(dir); len(remaining) > 0 {
		t.Errorf("%v are left", remaining)
	}
}

// TestKilledRun checks that the folder of a run that was killed can be opened at once.
func TestKilledRun(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	testkit.OK(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, openErr := Open(dir, [32]byte{1}); openErr == nil || !strings.Contains(openErr.Error(),
		fmt.Sprintf("process %d ", cmd.Process.Pid)) {
		t.Errorf("the folder of a run that says %q, %v: %v", line, err, openErr)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		t.Errorf("a killed run cannot have removed its lock file: %v", err)
	}
	openStore(t, dir, 1)
}

// TestFolderOfAnotherRun checks that a run whose folder was removed, and then made again by another run, does not write
// into it.
func TestFolderOfAnotherRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	first := openStore(t, dir, 1)
	testkit.OK(t, os.RemoveAll(dir))
	var unsaved *SaveError
	if err := first.Save(nil); !errors.As(err, &unsaved) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	second := openStore(t, dir, 1)
	if err := first.Save(nil); !errors.As(err, &unsaved) || !strings.Contains(err.Error(), "another run") {
		t.Errorf("%v", err)
	}
	first.Close()
	if err := second.Save([]byte("its own")); err != nil {
		t.Error(err)
	}
}

// TestLockNotRegularFile checks that a lock that is not a regular file is refused: a link to a file, to nothing, to a
// folder or to itself, or a folder. The target of the link must stay as it is.
func TestLockNotRegularFile(t *testing.T) {
	for name, makeLock := range map[string]func(lock, target string) error{
		"link to a file":   func(lock, target string) error { return os.Symlink(target, lock) },
		"link to nothing":  func(lock, target string) error { return os.Symlink(target+"2", lock) },
		"link to a folder": func(lock, target string) error { return os.Symlink(filepath.Dir(target), lock) },
		"link to itself":   func(lock, _ string) error { return os.Symlink(lock, lock) },
		"folder":           func(lock, _ string) error { return os.Mkdir(lock, 0o755) },
	} {
		dir, target := t.TempDir(), filepath.Join(t.TempDir(), "mine")
		testkit.OK(t, os.WriteFile(target, []byte("text"), 0o644))
		if err := makeLock(filepath.Join(dir, lockName), target); err != nil {
			t.Skip(err)
		}
		_, err := Open(dir, [32]byte{1})
		if text, readErr := os.ReadFile(target); err == nil || !strings.Contains(err.Error(), "no regular file") ||
			string(text) != "text" || readErr != nil {
			t.Errorf("%s: %v; %q, %v", name, err, text, readErr)
		}
		if _, err := os.Stat(target + "2"); err == nil {
			t.Errorf("%s: the target of the link was created", name)
		}
	}
}
