//go:build unix

package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// text returns what writes s.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// TestLink: a link stays a link, and its target gets the content, whether it was there or not.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, b, file := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "sub", "file")
	if err := os.Symlink("b", a); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("sub", "file"), b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"new", "replaced"} {
		if err := Check(a); err != nil {
			t.Fatal(err)
		}
		if err := Write(a, text(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); string(got) != want {
			t.Errorf("the target has %q, %v", got, err)
		}
		for _, name := range []string{a, b} {
			if st, err := os.Lstat(name); err != nil || st.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s is %v, %v", name, st.Mode(), err)
			}
		}
	}
	if es, _ := os.ReadDir(filepath.Join(dir, "sub")); len(es) != 1 {
		t.Errorf("left behind: %v", es)
	}
}

// TestMode: a new file has what umask leaves, an old one what it had.
func TestMode(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	name := filepath.Join(t.TempDir(), "a")
	for _, want := range []os.FileMode{0o640, 0o600, 0o664} {
		if err := Write(name, text("x")); err != nil {
			t.Fatal(err)
		}
		if want != 0o640 {
			if err := os.Chmod(name, want); err != nil {
				t.Fatal(err)
			}
			if err := Write(name, text("y")); err != nil {
				t.Fatal(err)
			}
		}
		if st, err := os.Stat(name); err != nil || st.Mode() != want {
			t.Errorf("mode %v, want %v", st.Mode(), want)
		}
	}
}

// TestOutput: the file that the process's output goes to is written on, not replaced, by whatever name.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	Streams = []*os.File{f}
	defer func() { Streams = nil }()
	link := filepath.Join(dir, "stdout")
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "before ")
	for _, name := range []string{f.Name(), link} {
		if err := Write(name, text("written ")); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(f, "after")
	if b, _ := os.ReadFile(f.Name()); string(b) != "before written written after" {
		t.Errorf("content %q", b)
	}
}

// TestPipe: a pipe is written to and stays.
func TestPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(name)
		got <- string(b)
	}()
	if err := Check(name); err != nil {
		t.Fatal(err)
	}
	if err := Write(name, text("through")); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "through" {
		t.Errorf("read %q", s)
	}
	if st, err := os.Lstat(name); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}
