package checkpoint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// openStore opens the checkpoint store of a folder for the configuration with the given first byte, and closes it when
// the test ends.
func openStore(t *testing.T, dir string, owner byte) *Store {
	t.Helper()
	s := testkit.Must(Open(dir, [32]byte{owner}))
	t.Cleanup(s.Close)
	return s
}

// checkLoad checks that Load returns the wanted state and the wanted number of refused files, and that the first
// refusal contains the reason.
func checkLoad(t *testing.T, s *Store, want string, wantRefusals int, reason string) {
	t.Helper()
	state, refusals, err := s.Load()
	if err != nil || string(state) != want || len(refusals) != wantRefusals {
		t.Fatalf("%q, refused %v, %v; want %q and %d refused", state, refusals, err, want, wantRefusals)
	}
	if wantRefusals > 0 && !strings.Contains(refusals[0].Error(), reason) {
		t.Errorf("refused because %v, want %q", refusals[0], reason)
	}
}

// TestStore checks the life of a store: it saves states, loads the newest one, keeps only maxFiles files, continues
// after it is opened again, and Clear removes its files and the other named files.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s := openStore(t, dir, 1)
	checkLoad(t, s, "", 0, "")
	if Exists(dir) || Exists(filepath.Join(dir, "none")) {
		t.Error("a folder without checkpoints has some")
	}
	for i := range 5 {
		testkit.OK(t, s.Save(fmt.Appendf(nil, "state %d", i)))
	}
	checkLoad(t, s, "state 4", 0, "")
	if !Exists(dir) {
		t.Error("a folder with checkpoints has none")
	}
	if numbers, _ := s.files(); len(numbers) != maxFiles {
		t.Errorf("%v remain", numbers)
	}
	s.Close()
	s = openStore(t, dir, 1) // as another process would
	testkit.OK(t, s.Save([]byte("state 5")))
	checkLoad(t, s, "state 5", 0, "")
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "beside"), nil, 0o644))
	testkit.OK(t, s.Clear("beside", "none"))
	s.Close()
	if remaining, _ := os.ReadDir(dir); len(remaining) > 0 {
		t.Errorf("%v are left", remaining)
	}
}

// TestEmptyState checks that a state of zero bytes is saved and loaded as the newest state.
func TestEmptyState(t *testing.T) {
	s := openStore(t, t.TempDir(), 1)
	_ = s.Save([]byte("the one before"))
	testkit.OK(t, s.Save(nil))
	checkLoad(t, s, "", 0, "")
}

// TestDamagedCheckpoint damages the newest checkpoint in several ways. Load must refuse it with the right reason and
// return the checkpoint before it, and a later Save must succeed.
func TestDamagedCheckpoint(t *testing.T) {
	for name, damage := range map[string]struct {
		change func(b []byte) []byte
		reason string
	}{
		"empty":                 {func([]byte) []byte { return nil }, "cut off"},
		"cut off":               {func(b []byte) []byte { return b[:len(b)-1] }, "bytes of state"},
		"longer than the state": {func(b []byte) []byte { return append(b, 0) }, "bytes of state"},
		"changed bit":           {func(b []byte) []byte { b[headerSize+3] ^= 4; return b }, "checksum"},
		"other version": {func(b []byte) []byte { b[len(magic)]++; return b },
			fmt.Sprintf("format version %d, want %d", version+1, version)},
		"other content": {func(b []byte) []byte { return bytes.Repeat([]byte{'x'}, len(b)) }, "no checkpoint"},
		"changed owner": {func(b []byte) []byte { b[len(magic)+4]++; return b }, "checksum"},
	} {
		s := openStore(t, t.TempDir(), 1)
		_ = s.Save([]byte("the one before"))
		_ = s.Save([]byte("the newest"))
		file := s.path(1)
		b := testkit.Must(os.ReadFile(file))
		testkit.OK(t, os.WriteFile(file, damage.change(b), 0o644))
		t.Run(name, func(t *testing.T) {
			checkLoad(t, s, "the one before", 1, damage.reason)
			testkit.OK(t, s.Save([]byte("after it")))
			checkLoad(t, s, "after it", 0, "")
		})
	}
}

// TestOtherConfiguration checks that a store refuses the checkpoints of another configuration, in an error of one line,
// and that a folder inside a file is an error.
func TestOtherConfiguration(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, 1)
	_ = s.Save([]byte("mine"))
	_ = s.Save([]byte("mine too"))
	s.Close()
	if _, _, err := openStore(t, dir, 2).Load(); err == nil || strings.Count(err.Error(),
		"of other data or another configuration") != 2 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	testkit.Fails(t, testkit.ErrOf(readState(dir, [32]byte{})), "no regular file")
	if _, err := Open(filepath.Join(dir, "checkpoint-00000000.krrc", "x"), [32]byte{}); err == nil {
		t.Error("a folder within a file is opened")
	}
}

// TestFolderNames checks that a folder whose name is a file pattern is not mixed up with the folders that match the
// pattern: Save removes the unfinished file in its own folder only.
func TestFolderNames(t *testing.T) {
	parent := t.TempDir()
	dir, otherDir := filepath.Join(parent, "run[1]"), filepath.Join(parent, "run1")
	s := openStore(t, dir, 1)
	ownFile, otherFile := filepath.Join(dir, ".checkpoint-00000000.krrc.1.part"),
		filepath.Join(otherDir, ".checkpoint-00000000.krrc.1.part")
	testkit.OK(t, os.Mkdir(otherDir, 0o755))
	for _, name := range []string{ownFile, otherFile} {
		testkit.OK(t, os.WriteFile(name, nil, 0o644))
	}
	testkit.OK(t, s.Save([]byte("state")))
	if _, err := os.Stat(ownFile); !os.IsNotExist(err) {
		t.Errorf("the unfinished file of an interrupted Save remains: %v", err)
	}
	if _, err := os.Stat(otherFile); err != nil {
		t.Errorf("the unfinished file in another folder: %v", err)
	}
}

// TestBegin checks that Begin starts anew in a folder without a state, and resumes from a state only if asked to. A
// resumed run notes a damaged file; a refused run releases its lock, so that a later run can open the folder.
func TestBegin(t *testing.T) {
	dir := t.TempDir()
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	s, found, err := Begin(dir, [32]byte{1}, true, note)
	if err != nil || found != nil || len(notes) != 1 || !strings.Contains(notes[0], "beginning") {
		t.Fatalf("%q, %q, %v", found, notes, err)
	}
	testkit.OK(t, s.Save([]byte("state")))
	testkit.OK(t, os.WriteFile(s.path(s.nextNumber), nil, 0o644))
	s.Close()
	if _, _, err := Begin(dir, [32]byte{1}, false, note); err == nil ||
		!strings.Contains(err.Error(), "resume from it") {
		t.Error(err)
	}
	if _, _, err := Begin(dir, [32]byte{2}, true, note); err == nil ||
		!strings.Contains(err.Error(), "another configuration") {
		t.Error(err)
	}
	if s, found, err = Begin(dir, [32]byte{1}, true, note); err != nil || string(found) != "state" ||
		!strings.Contains(notes[1], "refused ") {
		t.Fatalf("%q, %q, %v", found, notes, err)
	}
	s.Close()
}
