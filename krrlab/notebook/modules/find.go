package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	gopath "path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/krrlab/lab/krrlab/internal/group"
)

// ErrNoGo says that there is no go command.
var ErrNoGo = errors.New("Go is not installed (go.dev/dl)")

// ErrNotFound says that no module here has a package.
var ErrNotFound = errors.New("not in the module cache")

// Package is one whose source was found.
type Package struct {
	Path, Dir string
	Files     []string // names of the Go files that belong to it on this system, without assembly and C
	Module    string   // with its version
	Go        string   // version of the language, as go1.21
	Asked     bool     // for itself, before any package that imports it
	Newer     []string // modules that are here already, in other versions than the package asks for
}

// Finder finds the source of packages.
type Finder struct {
	Compiled func(path string) bool // whether a package is compiled into this program
	temp     string                 // folder of modules for what is in the module cache alone
	found    map[string]*Package
}

// tags choose the files of packages that have no assembly and take no liberties with memory.
const tags = "-tags=purego,noasm,safe"

// Find finds a package and those that it imports. A path that begins with a dot is that of a folder.
func (f *Finder) Find(ctx context.Context, path string) (*Package, error) {
	if p := f.found[path]; p != nil {
		return p, nil
	}
	p, err := f.list(ctx, ".", path, nil)
	if err == nil || strings.HasPrefix(path, ".") {
		return p, err
	}
	dir, err := f.get(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return f.list(ctx, dir, path, offline)
}

// Download brings a package, path or path@version, and what it imports into the module cache. It returns what Find
// finds then: an error where that is another version.
func (f *Finder) Download(ctx context.Context, name string) (*Package, error) {
	path, version, _ := strings.Cut(name, "@")
	if first, _, _ := strings.Cut(path, "/"); f.Compiled(path) || !strings.Contains(strings.Trim(first, "."), ".") {
		return nil, fmt.Errorf("%s needs no download: import it", name)
	}
	delete(f.found, path)
	at := &Finder{}
	defer at.Close()
	dir, err := at.module(ctx, "alone")
	if err != nil {
		return nil, err
	}
	_, err = run(ctx, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "get", path+"@"+cmp.Or(version, "upgrade"))
	text := path + " " + version
	if err == nil {
		text, err = run(ctx, dir, offline, "list", "-f", "{{.Module}}", path)
	}
	p, missing := f.Find(ctx, path)
	switch {
	case missing != nil:
		return nil, cmp.Or(err, missing)
	case err != nil && version == "": // there is no network, but the package
		return p, nil
	case err == nil && p.Module != strings.TrimSpace(text):
		err = fmt.Errorf("%s was downloaded, but imports take %s: name the version in a go.mod in the notebook's "+
			"folder (go mod init, go get %s)", strings.TrimSpace(text), p.Module, name)
	}
	return p, err
}

// offline makes the go command take modules as the module cache has them: verified when they were downloaded.
var offline = []string{"GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOWORK=off", "GOOS=" +
	runtime.GOOS, "GOARCH=" + runtime.GOARCH}

// get takes the newest version of a package in the module cache into a module of this Finder's: if it can be, together
// with the modules of this program.
func (f *Finder) get(ctx context.Context, path string) (dir string, err error) {
	for _, name := range []string{"with", "alone"} {
		if dir, err = f.module(ctx, name); err != nil {
			return "", err
		}
		if err = newest(ctx, dir, path); err == nil {
			break
		}
	}
	return dir, err
}

// module makes a module of this Finder's that requires no others, or those of this program.
func (f *Finder) module(ctx context.Context, name string) (dir string, err error) {
	if f.temp == "" {
		if f.temp, err = os.MkdirTemp("", "krrlab-modules-"); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(f.temp, name)
	if os.Mkdir(dir, 0o755) != nil {
		return dir, nil // it is there
	}
	args := []string{"mod", "edit", "-module=notebook", "-go=" + strings.TrimPrefix(runtime.Version(), "go")}
	for path, version := range linked() {
		if name == "with" && semver.IsValid(version) {
			args = append(args, "-require="+path+"@"+version)
		}
	}
	if err = os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o644); err == nil {
		_, err = run(ctx, dir, offline, args...)
	}
	return dir, err
}

// here takes a package into the module in a folder as the current folder's module has it, or the checkout around this
// program, and reports whether one does.
func here(ctx context.Context, dir, path string) bool {
	program, _ := os.Executable()
	for _, at := range []string{".", filepath.Dir(program)} {
		text, err := run(ctx, at, offline[:1], "list", "-find", "-f",
			"{{with .Module}}{{.Path}} {{or .Version 0}} {{if or .Main .Replace}}{{.Dir}}{{end}}{{end}}", path)
		words := strings.SplitN(strings.TrimSuffix(text, "\n"), " ", 3)
		if err != nil || len(words) < 3 {
			continue
		}
		if words[1] == "0" { // a module that is replaced by a folder can be required in any version of its path
			_, major, _ := module.SplitPathVersion(words[0])
			words[1] = cmp.Or(strings.TrimLeft(major, "/."), "v0") + ".0.0"
		}
		edits := []string{"-require=" + words[0] + "@" + words[1]}
		if words[2] != "" {
			edits = append(edits, "-replace="+words[0]+"="+words[2])
		}
		if take(ctx, dir, path, edits...) == nil {
			return true
		}
	}
	return false
}

// take changes what the module in a folder requires, unless a package or what that imports is not there then.
func take(ctx context.Context, dir, path string, edits ...string) error {
	file := filepath.Join(dir, "go.mod")
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err = run(ctx, dir, offline, append([]string{"mod", "edit"}, edits...)...); err == nil {
		_, err = run(ctx, dir, offline, "list", "-deps", path)
	}
	if err != nil {
		_ = os.WriteFile(file, before, 0o644)
	}
	return err
}

// newest takes the module of a package into that in a folder in the newest version in the module cache, a release if
// there is one: the go command itself would ask for what a cache need not have.
func newest(ctx context.Context, dir, path string) error {
	cache, err := run(ctx, "", nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	err = fmt.Errorf("found no version of %s", path)
	for prefix := path; prefix != "."; prefix = gopath.Dir(prefix) {
		escaped, e := module.EscapePath(prefix)
		if e != nil {
			continue
		}
		zips, _ := filepath.Glob(filepath.Join(strings.TrimSpace(cache), "cache", "download", escaped, "@v", "*.zip"))
		var versions []string
		for _, zip := range zips {
			if v, e := module.UnescapeVersion(strings.TrimSuffix(filepath.Base(zip), ".zip")); e == nil {
				versions = append(versions, v)
			}
		}
		if versions == nil {
			continue
		}
		early := func(v string) int { return min(len(semver.Prerelease(v)), 1) }
		found := slices.MaxFunc(versions, func(a, b string) int {
			return cmp.Or(early(b)-early(a), semver.Compare(a, b))
		})
		if err = take(ctx, dir, path, "-require="+prefix+"@"+found); err == nil {
			return nil
		}
	}
	return err
}

// Close removes what the Finder has written.
func (f *Finder) Close() error {
	if f == nil || f.temp == "" {
		return nil
	}
	return os.RemoveAll(f.temp)
}

// linked returns the versions of the modules of this program, by their paths. That of the program's own module is no
// semantic version if the program was built in a checkout.
var linked = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			out[m.Path] = m.Version
		}
	}
	return out
})

// Doc returns what go doc prints of one name of a package: Name, Type.Method or Type.Field, or "" for the package
// itself. The source is looked for in the module of the current folder, in the checkout around this program, and in the
// module cache, in the versions that are linked into this program. It returns ErrNoGo if there is no go command.
func (f *Finder) Doc(ctx context.Context, path, name string) (string, error) {
	// a last guard: a loaded machine is slow to start the go command
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	from, err := f.module(ctx, "with")
	if err != nil {
		return "", err
	}
	program, _ := os.Executable()
	find := func(dir string, env []string) (string, error) {
		return run(ctx, dir, env, "list", "-find", "-f", "{{.Dir}}", path)
	}
	source, err := find(".", offline[:1]) // a module of the user's is not changed
	if err != nil {
		source, err = find(filepath.Dir(program), offline[:1])
	}
	if err != nil {
		source, err = find(from, offline)
	}
	if err != nil && !errors.Is(err, ErrNoGo) {
		if from, err = f.get(ctx, path); err == nil {
			source, err = find(from, offline)
		}
	}
	if err != nil {
		return "", err
	}
	text, err := run(ctx, strings.TrimSpace(source), offline, "doc", cmp.Or(name, "."))
	text = strings.Replace(text, `// import "."`, fmt.Sprintf("// import %q", path), 1)
	return strings.TrimSpace(text), err
}

// list asks the go command for a package and those that it imports.
func (f *Finder) list(ctx context.Context, dir, path string, env []string) (*Package, error) {
	text, err := run(ctx, dir, append([]string{"CGO_ENABLED=0"}, env...), "list", "-deps", tags,
		"-json=ImportPath,Dir,GoFiles,Standard,DepOnly,Module", path)
	if err != nil {
		return nil, err
	}
	var named *Package
	var newer []string
	found := map[string]*Package{}
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var l struct {
			ImportPath, Dir   string
			GoFiles           []string
			Standard, DepOnly bool
			Module            *struct{ Path, Version, GoVersion string }
		}
		if err := dec.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if l.Standard || l.Module == nil {
			continue
		}
		if l.DepOnly && f.Compiled(l.ImportPath) {
			m := l.Module
			if have := linked()[m.Path]; have != "" && semver.Compare(m.Version, have) > 0 {
				newer = append(newer, fmt.Sprintf("%s %s, not %s", m.Path, have, m.Version))
			}
			continue
		}
		p := &Package{Path: l.ImportPath, Dir: l.Dir, Files: l.GoFiles, Module: strings.TrimSpace(l.Module.Path + " " +
			l.Module.Version), Go: "go1.16"}
		if l.Module.GoVersion != "" {
			p.Go = "go" + l.Module.GoVersion
		}
		if old := f.found[p.Path]; old == nil {
			found[p.Path] = p
		} else if p = old; l.Module.Version != "" && !strings.HasSuffix(old.Module, " "+l.Module.Version) {
			newer = append(newer, fmt.Sprintf("%s, not %s", old.Module, l.Module.Version))
		}
		if !l.DepOnly {
			named = p
		}
	}
	if named == nil {
		return nil, fmt.Errorf("no package %s that could be interpreted", path)
	}
	slices.Sort(newer)
	named.Newer, named.Asked = slices.Compact(newer), true
	if f.found == nil {
		f.found = map[string]*Package{}
	}
	maps.Copy(f.found, found)
	f.found[path] = named
	return named, nil
}

// run runs the go command and returns what it prints; its error is what it says. What the command has started ends with
// it: nothing of that is left when it returns, and nothing survives when this process is killed.
func run(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	group.Cancel(cmd, syscall.SIGINT)
	cmd.WaitDelay = lastGrace
	err := cmd.Start()
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNoGo
	}
	if err == nil {
		if err = cmd.Wait(); err != nil {
			group.Kill(cmd)
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		var lines []string
		for line := range strings.Lines(errs.String()) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading") &&
				!strings.HasPrefix(line, "go: finding") {
				lines = append(lines, strings.TrimPrefix(line, "go: "))
			}
		}
		return "", errors.New(strings.Join(lines, "; "))
	}
	return out.String(), err
}

// Program builds the program of some files without a network, with those of the packages that it imports that are at
// hand or in the module cache. It returns its folder, which the caller removes; there it is called program.
func (f *Finder) Program(ctx context.Context, files map[string]string, imports []string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "krrlab-program-"); err != nil {
		return "", err
	}
	if err := f.program(ctx, dir, maps.Clone(files), imports); err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// lastGrace is how long the go command may take to end once it is told to.
const lastGrace = time.Second

func (f *Finder) program(ctx context.Context, dir string, files map[string]string, imports []string) error {
	for _, path := range imports {
		from, err := f.module(ctx, "with")
		if err == nil && !here(ctx, from, path) {
			from, err = f.get(ctx, path)
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", path, ErrNotFound, err)
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(from, name))
			if err == nil {
				files[name] = string(text)
			}
		}
	}
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(imports) == 0 {
		// with the version of the go command
		if _, err := run(ctx, dir, offline, "mod", "init", "notebook"); err != nil {
			return err
		}
	}
	// An interrupt leaves the temporary files of the go command, in the folder that is removed.
	env := append([]string{"CGO_ENABLED=0", "GOTMPDIR=" + dir}, offline...)
	_, err := run(ctx, dir, env, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "program", ".")
	return err
}
