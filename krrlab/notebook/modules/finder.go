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
	gopath "path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// ErrNoGo is the error of all functions if there is no go command.
var ErrNoGo = errors.New("Go is not installed (go.dev/dl)")

// ErrNotFound is the error, or part of it, if no available module contains a package.
var ErrNotFound = errors.New("not in the module cache")

// Package is a package whose source was found.
type Package struct {
	// Path is the import path; Dir is the folder of the source.
	Path, Dir string
	Files     []string // names of the Go files for this system; without assembly and C
	Embedded  []string // names of the files that directives //go:embed of Files name
	Module    string   // path and version of the module
	GoVersion string   // language version, for example go1.21
	Requested bool     // Find was called with this path; otherwise the package is a dependency of such a package
	// VersionConflicts lists modules that the package uses in a different version than it requires, because they are
	// already loaded.
	VersionConflicts []string
}

// Finder finds the source of packages. Its methods must not be called concurrently. The caller closes it.
type Finder struct {
	IsCompiled func(path string) bool // reports whether a package is compiled into this program
	tempDir    string                 // folder of temporary modules, for packages from the module cache
	packages   map[string]*Package    // packages found so far, by path
}

// tagsFlag selects files without assembly and without unsafe memory access, in packages that offer a choice.
const tagsFlag = "-tags=purego,noasm,safe"

// Find finds a package and the packages that it imports. It looks in the module of the current folder, then in the
// module cache, where it takes the newest version. A path that begins with a dot is the path of a folder. Find returns
// ErrNotFound if no available module contains the package.
func (f *Finder) Find(ctx context.Context, path string) (*Package, error) {
	if pkg := f.packages[path]; pkg != nil {
		return pkg, nil
	}
	pkg, err := f.listPackages(ctx, ".", path, nil)
	if err == nil || strings.HasPrefix(path, ".") {
		return pkg, err
	}
	dir, err := f.moduleWithNewest(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return f.listPackages(ctx, dir, path, offlineEnv)
}

// Download downloads a package, given as path or path@version, and its dependencies to the module cache, and returns
// the package as Find finds it. It returns an error if Find finds a different version.
func (f *Finder) Download(ctx context.Context, name string) (*Package, error) {
	path, version, _ := strings.Cut(name, "@")
	host, _, _ := strings.Cut(path, "/")
	if f.IsCompiled(path) || !strings.Contains(strings.Trim(host, "."), ".") {
		return nil, fmt.Errorf("%s needs no download: import it", name)
	}
	delete(f.packages, path)
	scratch := &Finder{}
	defer scratch.Close()
	dir, err := scratch.tempModule(ctx, standalone)
	if err != nil {
		return nil, err
	}
	_, err = runGo(ctx, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off"}, "get", path+"@"+cmp.Or(version, "upgrade"))
	downloaded := path + " " + version
	if err == nil {
		downloaded, err = runGo(ctx, dir, offlineEnv, "list", "-f", "{{.Module}}", path)
	}
	pkg, findErr := f.Find(ctx, path)
	switch {
	case findErr != nil:
		return nil, cmp.Or(err, findErr)
	case err != nil && version == "": // no network, but the package is available
		return pkg, nil
	case err == nil && pkg.Module != strings.TrimSpace(downloaded):
		err = fmt.Errorf("%s was downloaded, but imports take %s: name the version in a go.mod in the notebook's "+
			"folder (go mod init, go get %s)", strings.TrimSpace(downloaded), pkg.Module, name)
	}
	return pkg, err
}

// offlineEnv is the environment in which the go command uses only the module cache. Modules were verified when they
// were downloaded.
var offlineEnv = []string{"GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOWORK=off", "GOOS=" +
	runtime.GOOS, "GOARCH=" + runtime.GOARCH}

// noDownloadEnv is the environment in which the go command downloads nothing and leaves the user's module unchanged.
var noDownloadEnv = []string{"GOPROXY=off"}

// moduleWithNewest returns the folder of a temporary module that requires the newest version of a package in the module
// cache. If possible, the module also requires the modules of this program in their versions.
func (f *Finder) moduleWithNewest(ctx context.Context, path string) (dir string, err error) {
	for _, name := range []string{withProgram, standalone} {
		if dir, err = f.tempModule(ctx, name); err != nil {
			return "", err
		}
		if err = requireNewest(ctx, dir, path); err == nil {
			break
		}
	}
	return dir, err
}

// Names of temporary modules.
const (
	withProgram = "with"
	standalone  = "alone"
)

// tempModule returns the folder of a temporary module, which is created if necessary. The module requires the modules
// of this program if name is withProgram, or none if name is standalone.
func (f *Finder) tempModule(ctx context.Context, name string) (dir string, err error) {
	if f.tempDir == "" {
		if f.tempDir, err = os.MkdirTemp("", "krrlab-modules-"); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(f.tempDir, name)
	if os.Mkdir(dir, 0o755) != nil {
		return dir, nil // it exists already
	}
	args := []string{"mod", "edit", "-module=notebook", "-go=" + strings.TrimPrefix(runtime.Version(), "go")}
	for path, version := range linkedVersions() {
		if name == withProgram && semver.IsValid(version) {
			args = append(args, "-require="+path+"@"+version)
		}
	}
	if err = os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o644); err == nil {
		_, err = runGo(ctx, dir, offlineEnv, args...)
	}
	return dir, err
}

// requireLocal makes the module in dir require a package in the same way as the module of the current folder or, if
// this module does not have the package, as the source tree that contains this program. It reports whether one of them
// has the package.
func requireLocal(ctx context.Context, dir, path string) bool {
	program, _ := os.Executable()
	for _, folder := range []string{".", filepath.Dir(program)} {
		info, err := runGo(ctx, folder, noDownloadEnv, "list", "-find", "-f",
			"{{with .Module}}{{.Path}} {{or .Version 0}} {{if or .Main .Replace}}{{.Dir}}{{end}}{{end}}", path)
		fields := strings.SplitN(strings.TrimSuffix(info, "\n"), " ", 3)
		if err != nil || len(fields) < 3 {
			continue
		}
		if fields[1] == "0" { // a local module, which can be required in any version of its path
			_, major, _ := module.SplitPathVersion(fields[0])
			fields[1] = cmp.Or(strings.TrimLeft(major, "/."), "v0") + ".0.0"
		}
		edits := []string{"-require=" + fields[0] + "@" + fields[1]}
		if fields[2] != "" {
			edits = append(edits, "-replace="+fields[0]+"="+fields[2])
		}
		if tryRequire(ctx, dir, path, edits...) == nil {
			return true
		}
	}
	return false
}

// tryRequire edits the go.mod file in dir. It undoes the change and returns an error if the package or one of its
// dependencies is then missing.
func tryRequire(ctx context.Context, dir, path string, edits ...string) error {
	file := filepath.Join(dir, "go.mod")
	original, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err = runGo(ctx, dir, offlineEnv, append([]string{"mod", "edit"}, edits...)...); err == nil {
		_, err = runGo(ctx, dir, offlineEnv, "list", "-deps", path)
	}
	if err != nil {
		_ = os.WriteFile(file, original, 0o644)
	}
	return err
}

// requireNewest makes the module in dir require the newest version of a package in the module cache, preferably a
// release. The go command is not used for this choice, because it would look for versions that the cache may lack.
func requireNewest(ctx context.Context, dir, path string) error {
	cache, err := runGo(ctx, "", nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	err = fmt.Errorf("found no version of %s", path)
	for prefix := path; prefix != "."; prefix = gopath.Dir(prefix) {
		escaped, escapeErr := module.EscapePath(prefix)
		if escapeErr != nil {
			continue
		}
		zips, _ := filepath.Glob(filepath.Join(strings.TrimSpace(cache), "cache", "download", escaped, "@v", "*.zip"))
		var versions []string
		for _, zip := range zips {
			version, escapeErr := module.UnescapeVersion(strings.TrimSuffix(filepath.Base(zip), ".zip"))
			if escapeErr == nil {
				versions = append(versions, version)
			}
		}
		if versions == nil {
			continue
		}
		// prereleaseRank returns 1 for a prerelease and 0 for a release.
		prereleaseRank := func(version string) int { return min(len(semver.Prerelease(version)), 1) }
		newestVersion := slices.MaxFunc(versions, func(a, b string) int {
			return cmp.Or(prereleaseRank(b)-prereleaseRank(a), semver.Compare(a, b))
		})
		if err = tryRequire(ctx, dir, path, "-require="+prefix+"@"+newestVersion); err == nil {
			return nil
		}
	}
	return err
}

// Close removes the temporary modules of the Finder.
func (f *Finder) Close() error {
	if f == nil || f.tempDir == "" {
		return nil
	}
	return os.RemoveAll(f.tempDir)
}

// linkedVersions returns the versions of the modules of this program, by path. The version of the program's own module
// is not a semantic version if the program was built in a checkout.
var linkedVersions = sync.OnceValue(func() map[string]string {
	versions := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, linked := range append(info.Deps, &info.Main) {
			versions[linked.Path] = linked.Version
		}
	}
	return versions
})

// Doc returns the output of go doc for a name in a package (Name, Type.Method or Type.Field), or for the package if
// name is "". It searches for the source in the module of the current folder, in the source tree that contains this
// program, and in the module cache. From the cache it takes the version that is linked into this program, or the newest
// one if the package is not linked. It returns ErrNoGo if there is no go command.
func (f *Finder) Doc(ctx context.Context, path, name string) (string, error) {
	// The limit is generous, because the go command starts slowly on a loaded machine.
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	moduleDir, err := f.tempModule(ctx, withProgram)
	if err != nil {
		return "", err
	}
	program, _ := os.Executable()
	findDir := func(dir string, env []string) (string, error) {
		return runGo(ctx, dir, env, "list", "-find", "-f", "{{.Dir}}", path)
	}
	source, err := findDir(".", noDownloadEnv)
	if err != nil {
		source, err = findDir(filepath.Dir(program), noDownloadEnv)
	}
	if err != nil {
		source, err = findDir(moduleDir, offlineEnv)
	}
	if err != nil && !errors.Is(err, ErrNoGo) {
		if moduleDir, err = f.moduleWithNewest(ctx, path); err == nil {
			source, err = findDir(moduleDir, offlineEnv)
		}
	}
	if err != nil {
		return "", err
	}
	args := []string{"doc", cmp.Or(name, ".")}
	if path == "builtin" { // the names of this package are not exported
		args = []string{"doc", "-u", cmp.Or(name, ".")}
	}
	text, err := runGo(ctx, strings.TrimSpace(source), offlineEnv, args...)
	text = strings.Replace(text, `// import "."`, fmt.Sprintf("// import %q", path), 1)
	return strings.TrimSpace(text), err
}

// listPackages finds a package and its dependencies with go list, in the module of dir, and adds them to f.packages. It
// omits packages of the standard library, and dependencies that are compiled into this program. A package that was
// found before keeps its version; if go list names another one, that is a version conflict.
func (f *Finder) listPackages(ctx context.Context, dir, path string, env []string) (*Package, error) {
	text, err := runGo(ctx, dir, append([]string{"CGO_ENABLED=0"}, env...), "list", "-deps", tagsFlag,
		"-json=ImportPath,Dir,GoFiles,EmbedFiles,Standard,DepOnly,Module", path)
	if err != nil {
		return nil, err
	}
	var requested *Package
	var conflicts []string
	newPackages := map[string]*Package{}
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var listed struct {
			ImportPath, Dir   string
			GoFiles           []string
			EmbedFiles        []string
			Standard, DepOnly bool
			Module            *struct{ Path, Version, GoVersion string }
		}
		if err := decoder.Decode(&listed); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if listed.Standard || listed.Module == nil {
			continue
		}
		mod := listed.Module
		if listed.DepOnly && f.IsCompiled(listed.ImportPath) {
			if linked := linkedVersions()[mod.Path]; linked != "" && semver.Compare(mod.Version, linked) > 0 {
				conflicts = append(conflicts, fmt.Sprintf("%s %s, not %s", mod.Path, linked, mod.Version))
			}
			continue
		}
		pkg := &Package{Path: listed.ImportPath, Dir: listed.Dir, Files: listed.GoFiles,
			Embedded: listed.EmbedFiles, Module: strings.TrimSpace(mod.Path + " " + mod.Version),
			GoVersion: "go1.16"} // the language version if go.mod names none
		if mod.GoVersion != "" {
			pkg.GoVersion = "go" + mod.GoVersion
		}
		if existing := f.packages[pkg.Path]; existing == nil {
			newPackages[pkg.Path] = pkg
		} else if pkg = existing; mod.Version != "" && !strings.HasSuffix(existing.Module, " "+mod.Version) {
			conflicts = append(conflicts, fmt.Sprintf("%s, not %s", existing.Module, mod.Version))
		}
		if !listed.DepOnly {
			requested = pkg
		}
	}
	if requested == nil {
		return nil, fmt.Errorf("no package %s that could be interpreted", path)
	}
	slices.Sort(conflicts)
	requested.VersionConflicts, requested.Requested = slices.Compact(conflicts), true
	if f.packages == nil {
		f.packages = map[string]*Package{}
	}
	maps.Copy(f.packages, newPackages)
	f.packages[path] = requested
	return requested, nil
}
