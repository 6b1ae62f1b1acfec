//go:build unix

package atomicfile

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// writeString returns a function that writes s.
func writeString(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// TestWriteToLink checks that symbolic links remain, and that their target gets the content, whether the target existed
// or not. The file is written through a link to a link.
func TestWriteToLink(t *testing.T) {
	dir := t.TempDir()
	testkit.OK(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	linkToLink, link, file := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "sub", "file")
	testkit.OK(t, os.Symlink("b", linkToLink))
	testkit.OK(t, os.Symlink(filepath.Join("sub", "file"), link))
	for _, want := range []string{"new", "replaced"} {
		testkit.OK(t, CheckWritable(linkToLink))
		testkit.OK(t, Write(linkToLink, writeString(want)))
		if got, err := os.ReadFile(file); string(got) != want {
			t.Errorf("the target has %q, %v", got, err)
		}
		for _, name := range []string{linkToLink, link} {
			if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s is %v, %v", name, info.Mode(), err)
			}
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "sub")); len(entries) != 1 {
		t.Errorf("want the target alone, got %v", entries)
	}
}

// TestWriteKeepsMode checks that a new file gets the mode that umask allows, and that an existing file keeps its mode.
func TestWriteKeepsMode(t *testing.T) {
	previousMask := syscall.Umask(0o027)
	defer syscall.Umask(previousMask)
	name := filepath.Join(t.TempDir(), "a")
	for _, want := range []os.FileMode{0o640, 0o600, 0o664} {
		testkit.OK(t, Write(name, writeString("x")))
		if want != 0o640 { // the file exists already
			testkit.OK(t, os.Chmod(name, want))
			testkit.OK(t, Write(name, writeString("y")))
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("mode %v, want %v", info.Mode(), want)
		}
	}
}

// TestWriteToStream checks that the file that receives the process's output is appended to and not replaced, under any
// name.
func TestWriteToStream(t *testing.T) {
	dir := t.TempDir()
	stream := testkit.Must(os.Create(filepath.Join(dir, "f")))
	defer stream.Close()
	StandardStreams = []*os.File{stream}
	defer func() { StandardStreams = nil }()
	link := filepath.Join(dir, "stdout")
	testkit.OK(t, os.Symlink("f", link))
	io.WriteString(stream, "before ")
	for _, name := range []string{stream.Name(), link} {
		testkit.OK(t, Write(name, writeString("written ")))
	}
	io.WriteString(stream, "after")
	if content, _ := os.ReadFile(stream.Name()); string(content) != "before written written after" {
		t.Errorf("content %q, want all four texts", content)
	}
}

// TestCheckWritableStream checks that CheckWritable accepts a file that receives the process's output even if no
// temporary file can be created in its folder, here because its name is too long to be extended.
func TestCheckWritableStream(t *testing.T) {
	stream, err := os.Create(filepath.Join(t.TempDir(), strings.Repeat("f", 250)))
	if err != nil {
		t.Skip(err)
	}
	defer stream.Close()
	if CheckWritable(stream.Name()) == nil {
		t.Error("a file beside which no temporary file can be created counts as writable")
	}
	StandardStreams = []*os.File{stream}
	defer func() { StandardStreams = nil }()
	testkit.OK(t, CheckWritable(stream.Name()))
}

// TestWriteToPipe checks that a named pipe is written to and not replaced.
func TestWriteToPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	received := make(chan string)
	go func() {
		content, _ := os.ReadFile(name)
		received <- string(content)
	}()
	testkit.OK(t, CheckWritable(name))
	testkit.OK(t, Write(name, writeString("through")))
	if text := <-received; text != "through" {
		t.Errorf("read %q", text)
	}
	if info, err := os.Lstat(name); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
