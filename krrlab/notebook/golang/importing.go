package golang

import (
	"errors"
	"fmt"
	"os"
	gopath "path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// missingPackagesText returns an error message about packages, at least one, that cannot be imported. It suggests
// packages of the same name and how to install the first one.
func (s *Session) missingPackagesText(paths []string) string {
	var texts []string
	for _, path := range paths {
		text := fmt.Sprintf("package %s is not in this kernel", path)
		if alternatives := packagesNamed(gopath.Base(path)); alternatives != nil {
			text += "; there is " + strings.Join(alternatives, ", ")
		}
		texts = append(texts, text)
	}
	switch path := paths[0]; {
	case path == "C":
		texts = append(texts, "cells cannot call C; put the calls into a program and run it: !cmd")
	case isStandard(path):
	case hasGo():
		texts = append(texts, fmt.Sprintf("%%install %s downloads it", path))
	default:
		texts = append(texts, "to have it, install Go (go.dev/dl)")
	}
	return strings.Join(texts, "; ") + " (nothing of the cell was imported; %doc lists the packages)"
}

// findSource finds the source of a package that is not compiled into the kernel. It returns an
// engine.MissingPackagesError if there is none.
func (s *Session) findSource(path string) (*engine.Source, error) {
	if firstElement, _, _ := strings.Cut(path, "/"); isStandard(path) && engine.IsCompiled(firstElement) {
		// This is a package of the standard library that is not compiled in.
		return nil, &engine.MissingPackagesError{Paths: []string{path}}
	}
	pkg, err := s.finder.Find(s.ctx.Load(), path)
	if errors.Is(err, modules.ErrNotFound) && s.autoget {
		if pkg, err = s.finder.Download(s.ctx.Load(), path); err != nil {
			return nil, err
		}
		s.printLine(fmt.Sprintf("%%autoget downloaded %s", pkg.Module))
	}
	if errors.Is(err, modules.ErrNoGo) || errors.Is(err, modules.ErrNotFound) {
		return nil, &engine.MissingPackagesError{Paths: []string{path}}
	} else if err != nil {
		return nil, err
	}
	src := &engine.Source{Path: pkg.Path, GoVersion: pkg.GoVersion, Files: map[string][]byte{},
		Embedded: map[string][]byte{}}
	for _, name := range pkg.Files {
		name = filepath.Join(pkg.Dir, name)
		if src.Files[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	for _, name := range pkg.Embedded {
		if src.Embedded[name], err = os.ReadFile(filepath.Join(pkg.Dir, name)); err != nil {
			return nil, err
		}
	}
	if pkg.Requested {
		s.unreported = append(s.unreported, pkg)
	}
	return src, nil
}

// isStandard reports whether path can be a package of the standard library, that is, whether its first element has no
// dot.
func isStandard(path string) bool {
	firstElement, _, _ := strings.Cut(path, "/")
	return !strings.Contains(firstElement, ".")
}

// printNotices prints, once each, the features that the kernel lacks and the packages that are interpreted.
func (s *Session) printNotices() {
	for _, line := range s.missingFeatures {
		s.out.printf(stderr, "%s\n", line)
	}
	s.missingFeatures = nil
	for _, pkg := range s.unreported {
		if s.interp.Package(pkg.Path) == nil { // the import failed
			continue
		}
		text := fmt.Sprintf("%s (%s) is interpreted; in a %%%%go cell it is compiled", pkg.Path, pkg.Module)
		if len(pkg.VersionConflicts) > 0 {
			text += "; used with " + strings.Join(pkg.VersionConflicts, ", ")
		}
		s.out.printf(stdout, "%s\n", text)
	}
	s.unreported = nil
}

// preferredPaths maps names that several packages of the standard library have to the one that is meant without an
// import.
var preferredPaths = map[string]string{
	"rand": "math/rand", "template": "text/template", "scanner": "text/scanner", "pprof": "runtime/pprof",
	"ast": "go/ast", "color": "image/color",
}

// packagesNamed returns the paths of the compiled-in packages with the given name, sorted; those of the standard
// library are the last ones.
func packagesNamed(name string) []string {
	var std, extras []string
	for path, packageName := range engine.Packages() {
		switch {
		case packageName != name && gopath.Base(path) != name:
		case isStandard(path):
			std = append(std, path)
		default:
			extras = append(extras, path)
		}
	}
	slices.Sort(std)
	slices.Sort(extras)
	return append(extras, std...)
}

// implicitImport returns the path of the compiled-in package that a name denotes without an import, or "" if there is
// none or several. Packages of the standard library take precedence.
func implicitImport(name string) string {
	if path := preferredPaths[name]; path != "" {
		return path
	}
	paths := packagesNamed(name)
	if i := slices.IndexFunc(paths, isStandard); i > 0 {
		paths = paths[i:]
	}
	if len(paths) == 1 {
		return paths[0]
	}
	return ""
}

// importAdvice returns up to three import declarations that may define a name, or "" if no package has this name.
func importAdvice(name string) string {
	paths := packagesNamed(name)
	for i, path := range paths {
		paths[i] = fmt.Sprintf("import %q", path)
	}
	return strings.Join(paths[:min(len(paths), 3)], " or ")
}
