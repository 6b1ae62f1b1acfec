package modules

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab/internal/atomicfile"
)

// Kernel says where kernels with more packages are kept, and of what they are made.
type Kernel struct {
	Dir     string                 // folder in the user's cache
	Program string                 // krrlab without more packages
	Version string                 // of that
	Source  string                 // checkout of the laboratory; "": that around Program, or the module of the version
	Bound   func(path string) bool // whether a package is compiled into krrlab
}

// Added is a kernel that was built.
type Added struct {
	Program  string   `json:"program"` // krrlab without more packages
	Version  string   `json:"version"` // of that
	Folder   string   `json:"folder"`  // of the build, in Kernel.Dir
	Packages []Entry  `json:"packages"`
	Tables   []string `json:"tables"` // packages compiled in with their names; others may be mentioned by those added
	dir      string
}

// Entry is a package that was added.
type Entry struct {
	Path        string `json:"path"`
	Version     string `json:"version,omitempty"` // "" for a local package
	Module      string `json:"module,omitempty"`
	Dir         string `json:"dir,omitempty"` // of the module of a local package
	Interpreted bool   `json:"interpreted,omitempty"`
}

// String is the package, where it is from, and whether it is compiled.
func (e Entry) String() string {
	s := e.Path + " " + cmp.Or(e.Version, e.Dir)
	if e.Interpreted {
		s += " (interpreted: its API is generic)"
	}
	return s
}

func (k *Kernel) file() string { return filepath.Join(k.Dir, "current.json") }

// Current returns the kernel that counts, nil if nothing was added.
func (k *Kernel) Current() (*Added, error) {
	b, err := os.ReadFile(k.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	a := &Added{dir: k.Dir}
	if err == nil {
		err = json.Unmarshal(b, a)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to start again", k.file(), err)
	}
	return a, nil
}

// Path is the program of the kernel that was built.
func (a *Added) Path() string { return filepath.Join(a.Module(), "krrlab") }

// Module is the folder of the module that it was built of.
func (a *Added) Module() string { return filepath.Join(a.dir, filepath.Base(a.Folder)) }

// Fresh reports whether the kernel was built of this program, as it is now.
func (a *Added) Fresh(program, version string) bool {
	base, err := os.Stat(program)
	built, err2 := os.Stat(a.Path())
	return err == nil && err2 == nil && a.Program == program && a.Version == version &&
		!built.ModTime().Before(base.ModTime())
}

// Add builds a kernel with the packages that were added before and those named: path, path@version, or the folder of
// a local package. With none named it builds again.
func (k *Kernel) Add(ctx context.Context, log io.Writer, names ...string) (*Added, error) {
	entries, err := k.entries()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		e, err := k.entry(ctx, name)
		if err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(old Entry) bool { return old.Path == e.Path })
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("no package was added before: name one, such as github.com/google/uuid or ./mypackage")
	}
	return k.build(ctx, log, entries)
}

// Remove builds a kernel without packages; with none left, what was built is removed.
func (k *Kernel) Remove(ctx context.Context, log io.Writer, paths ...string) (*Added, error) {
	entries, err := k.entries()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		n := len(entries)
		if entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Path == path }); len(entries) == n {
			return nil, fmt.Errorf("%s was not added; krrlab notebook list shows what was", path)
		}
	}
	if len(entries) > 0 {
		return k.build(ctx, log, entries)
	}
	if err := os.Remove(k.file()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	k.sweep("", 0)
	return nil, nil
}

func (k *Kernel) entries() ([]Entry, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("packages are added by compiling them: %w", ErrNoGo)
	}
	a, err := k.Current()
	if a == nil {
		return nil, err
	}
	return a.Packages, nil
}

// entry reads what a user has named.
func (k *Kernel) entry(ctx context.Context, name string) (Entry, error) {
	path, version, _ := strings.Cut(name, "@")
	if k.Bound(path) {
		return Entry{}, fmt.Errorf("%s is in the kernel already: import it", path)
	}
	if !strings.HasPrefix(path, ".") && !filepath.IsAbs(path) {
		if strings.Contains(path, "...") || path == "" {
			return Entry{}, fmt.Errorf("%q: name packages one by one", name)
		}
		return Entry{Path: path, Version: version}, nil
	}
	text, err := run(ctx, path, nil, "list", "-f", "{{.ImportPath}}\n{{with .Module}}{{.Path}}\n{{.Dir}}{{end}}", ".")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if err == nil && len(lines) < 3 {
		err = errors.New("it is in no module: go mod init makes one")
	}
	if err != nil {
		return Entry{}, fmt.Errorf("%s: %w", path, err)
	}
	return Entry{Path: lines[0], Module: lines[1], Dir: lines[2]}, nil
}

// sweep removes the folders of builds but one, as far as they are old enough.
func (k *Kernel) sweep(keep string, age time.Duration) {
	old, _ := filepath.Glob(filepath.Join(k.Dir, "kernel-*"))
	for _, dir := range old {
		if st, err := os.Stat(dir); err == nil && filepath.Base(dir) != keep && time.Since(st.ModTime()) >= age {
			_ = os.RemoveAll(dir)
		}
	}
}

// build builds the kernel in a separate folder, and makes it the one that counts.
func (k *Kernel) build(ctx context.Context, log io.Writer, entries []Entry) (a *Added, err error) {
	old, err := k.Current()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(k.Dir, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(k.Dir, "kernel-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	b := &builder{Kernel: k, ctx: ctx, dir: dir}
	if err := b.module(entries); err != nil {
		return nil, err
	}
	for i := range entries {
		fmt.Fprintf(log, "adding %s\n", entries[i])
	}
	fmt.Fprintln(log, "building the kernel; the first time takes a minute or two")
	if err := b.program(); err != nil {
		return nil, err
	}
	a = &Added{Program: k.Program, Version: k.Version, Folder: filepath.Base(dir), Packages: entries, Tables: b.written,
		dir: k.Dir}
	if err := exec.CommandContext(ctx, a.Path(), "version").Run(); err != nil {
		return nil, fmt.Errorf("the kernel was built, but does not start: %w", err)
	}
	err = atomicfile.Write(k.file(), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(a)
	})
	if err != nil {
		return nil, err
	}
	if old != nil {
		_ = os.RemoveAll(old.Module())
	}
	k.sweep(a.Folder, 24*time.Hour) // others may be at work on theirs
	return a, nil
}

// setting returns how a program was built: its -tags, or CGO_ENABLED.
func setting(program, key string) string {
	if info, err := buildinfo.ReadFile(program); err == nil {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}
