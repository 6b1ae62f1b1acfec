package golang

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// missingText says which packages cannot be imported, which may be meant, and how to have them.
func (s *Session) missingText(paths []string) string {
	var texts []string
	for _, path := range paths {
		text := fmt.Sprintf("package %s is not in this kernel", path)
		if std, near := packagesNamed(path[strings.LastIndexByte(path, '/')+1:]); len(std)+len(near) > 0 {
			text += "; there is " + strings.Join(append(near, std...), ", ")
		}
		texts = append(texts, text)
	}
	if !standard(paths[0]) {
		if _, err := exec.LookPath("go"); err != nil {
			texts = append(texts, "to have it, install Go (go.dev/dl)")
		} else {
			texts = append(texts, fmt.Sprintf("%%install %s downloads it", paths[0]))
		}
	}
	return strings.Join(texts, "; ") + " (nothing of the cell was imported; %doc lists the packages)"
}

// find finds the source of a package that is not compiled into the kernel.
func (s *Session) find(path string) (*engine.Source, error) {
	if first, _, _ := strings.Cut(path, "/"); standard(path) && engine.Packages()[first] != "" {
		return nil, &engine.MissingError{Paths: []string{path}} // of the standard library
	}
	p, err := s.finder.Find(s.ctx.Load(), path)
	if errors.Is(err, modules.ErrNoGo) || errors.Is(err, modules.ErrNotFound) {
		return nil, &engine.MissingError{Paths: []string{path}}
	} else if err != nil {
		return nil, err
	}
	src := &engine.Source{Path: p.Path, Go: p.Go, Files: map[string][]byte{}}
	for _, name := range p.Files {
		name = filepath.Join(p.Dir, name)
		if src.Files[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	if p.Asked {
		s.interpreted = append(s.interpreted, p)
	}
	return src, nil
}

// standard reports whether a path may be one of the standard library, whose first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// note says what the kernel lacks, and of the packages that a cell was the first to import that they are interpreted.
func (s *Session) note() {
	for _, line := range s.missing {
		s.out.printf(stderr, "%s\n", line)
	}
	s.missing = nil
	for _, p := range s.interpreted {
		text := fmt.Sprintf("%s (%s) is interpreted; in a %%%%go cell it is compiled", p.Path, p.Module)
		if len(p.Newer) > 0 {
			text += "; used with " + strings.Join(p.Newer, ", ")
		}
		s.out.printf(stdout, "%s\n", text)
	}
	s.interpreted = nil
}

// preferred are the packages that a name means where several have it.
var preferred = map[string]string{
	"rand": "math/rand", "template": "text/template", "scanner": "text/scanner", "pprof": "runtime/pprof",
	"ast": "go/ast", "color": "image/color",
}

// packagesNamed returns the paths of the linked-in packages that cells know by a name, those of the standard
// library first.
func packagesNamed(name string) (std, others []string) {
	for path, known := range engine.Packages() {
		if known != name && path[strings.LastIndexByte(path, '/')+1:] != name {
			continue
		}
		if standard(path) {
			std = append(std, path)
		} else {
			others = append(others, path)
		}
	}
	slices.Sort(std)
	slices.Sort(others)
	return std, others
}

// linked returns the package that a name means without an import: of the standard library, or one of the others that
// are linked in.
func linked(name string) string {
	if path := preferred[name]; path != "" {
		return path
	}
	std, others := packagesNamed(name)
	if len(std) == 0 {
		std = others
	}
	if len(std) == 1 {
		return std[0]
	}
	return ""
}

// importLine says how to import what a name may mean, "" if no package has it.
func importLine(name string) string {
	std, others := packagesNamed(name)
	all := append(others, std...)
	if len(all) == 0 {
		return ""
	}
	for i, path := range all {
		all[i] = fmt.Sprintf("import %q", path)
	}
	return strings.Join(all[:min(len(all), 3)], " or ")
}
