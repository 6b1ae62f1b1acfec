package modules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/krrlab/lab/krrlab/internal/group"
)

// runGo runs the go command in dir and returns its output. If the command fails, the error contains the messages that
// it printed.
func runGo(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	var output, messages strings.Builder
	err := execGo(ctx, dir, env, &output, &messages, args...)
	if exitErr := (*exec.ExitError)(nil); !errors.As(err, &exitErr) {
		return output.String(), err
	}
	var lines []string
	for line := range strings.Lines(messages.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading") &&
			!strings.HasPrefix(line, "go: finding") {
			lines = append(lines, strings.TrimPrefix(line, "go: "))
		}
	}
	return "", errors.New(strings.Join(lines, "; "))
}

// execGo runs the go command in dir with the given output streams and waits for it. If the command fails or ctx ends,
// the processes that it started are killed, too; after a success they may continue. On Linux, the go command is
// interrupted if this process is killed.
func execGo(ctx context.Context, dir string, env []string, stdout, stderr io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	group.SignalOnCancel(cmd, syscall.SIGINT)
	cmd.WaitDelay = killDelay
	err := cmd.Start()
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoGo
	}
	if err == nil {
		if err = cmd.Wait(); err != nil {
			group.Kill(cmd)
		}
	}
	return cmp.Or(ctx.Err(), err)
}

// BuildProgram builds a program from the given files, as a file named program in a new folder, which the caller
// removes. It does not use the network: imports are resolved in the module of the current folder, in the source tree
// that contains this program, or in the module cache.
func (f *Finder) BuildProgram(ctx context.Context, files map[string]string, imports []string) (dir string, err error) {
	dir, err = f.newModule(ctx, files, imports)
	if err == nil {
		_, err = runGo(ctx, dir, buildEnv(dir), "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
			"-o", "program", ".")
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// RunTests runs go test with the given flags on a package of the given files, whose imports are resolved as those of
// BuildProgram are. It writes the output to out. If a test fails, it returns an *exec.ExitError.
func (f *Finder) RunTests(ctx context.Context, files map[string]string, imports, flags []string, out io.Writer) error {
	dir, err := f.newModule(ctx, files, imports)
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	return execGo(ctx, dir, buildEnv(dir), out, out, append([]string{"test", "-trimpath"}, flags...)...)
}

// killDelay is the time that the go command has to end after an interrupt, before it is killed.
const killDelay = time.Second

// buildEnv returns the environment in which the go command builds programs in dir. An interrupted go command leaves
// temporary files; they are in dir, which is removed.
func buildEnv(dir string) []string {
	return append([]string{"CGO_ENABLED=0", "GOTMPDIR=" + dir}, offlineEnv...)
}

// newModule writes the files and a go.mod file, which requires the modules of the imports, to a new folder. The caller
// removes the folder, also after an error.
func (f *Finder) newModule(ctx context.Context, files map[string]string, imports []string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "krrlab-program-"); err != nil {
		return "", err
	}
	files = maps.Clone(files)
	for _, path := range imports {
		moduleDir, err := f.tempModule(ctx, withProgram)
		if err == nil && !requireLocal(ctx, moduleDir, path) {
			moduleDir, err = f.moduleWithNewest(ctx, path)
		}
		if err != nil {
			return dir, fmt.Errorf("%s: %w: %w", path, ErrNotFound, err)
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(moduleDir, name))
			if err == nil {
				files[name] = string(text)
			}
		}
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return dir, err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return dir, err
		}
	}
	if len(imports) == 0 {
		// This creates a go.mod file with the language version of the go command.
		_, err = runGo(ctx, dir, offlineEnv, "mod", "init", "notebook")
	}
	return dir, err
}
