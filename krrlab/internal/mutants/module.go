package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// module is what the go command knows of the tree.
type module struct {
	root, path string
	packages   map[string]listed // by path in the module
	exports    map[string]string // files of export data by import path
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Path, Dir string }
}

// output runs a command in dir and returns what it wrote; its error has the first lines
// of what it complained of.
func output(ctx context.Context, dir string, words ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mutants: %s: %w: %s", strings.Join(words[:min(3, len(words))], " "), err, firstLines(complaint.String(), 5))
	}
	return out, nil
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(s), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "; ")
}

// open asks the go command for the module that root is in, with export data of everything
// that the packages import.
func open(ctx context.Context, root string, packages []string) (*module, error) {
	words := []string{"go", "list", "-json=ImportPath,Dir,Export,GoFiles,Module", "-export", "-deps"}
	for _, p := range packages {
		words = append(words, "./"+p)
	}
	out, err := output(ctx, root, words...)
	if err != nil {
		return nil, err
	}
	m := &module{packages: map[string]listed{}, exports: map[string]string{}}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		m.exports[l.ImportPath] = l.Export
		if l.Module != nil { // the packages asked for come last
			m.path, m.root = l.Module.Path, l.Module.Dir
		}
		m.packages[l.ImportPath] = l
	}
	return m, nil
}

// load reads one package of the module.
func (m *module) load(p string) (*source, error) {
	imp := m.path
	if p != "." {
		imp += "/" + p
	}
	l, ok := m.packages[imp]
	if !ok {
		return nil, fmt.Errorf("mutants: no package %s in %s", p, m.path)
	}
	return load(p, imp, l.Dir, l.GoFiles, m.exports)
}
