package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/krrlab/lab/krrlab/notebook/bindgen"
)

// lab is the module of the laboratory.
const lab = "github.com/krrlab/lab"

// program is its main package.
const program = lab + "/krrlab/cmd/krrlab"

// builder is one build.
type builder struct {
	*Kernel
	ctx      context.Context
	dir, lab string // folders of the module that is built, and of the laboratory
	written  []string
	version  string // of the laboratory; v0.0.0 for a checkout
}

// flags are those of all runs of the go command in the module that is built.
var flags = []string{"GOFLAGS=-mod=mod", "GOWORK=off"}

func (b *builder) run(args ...string) (string, error) { return run(b.ctx, b.dir, flags, args...) }

// described matches a version that git describe made: a tag, how many commits ago, the commit.
var described = regexp.MustCompile(`^v.*-\d+-g([0-9a-f]{7,})$`)

// laboratory finds the source of the laboratory: a checkout, or the module of this program's version.
func (b *builder) laboratory() error {
	if b.Source != "" {
		if !checkout(b.Source) {
			return fmt.Errorf("%s is not a checkout of %s", b.Source, lab)
		}
		b.lab, b.version = b.Source, "v0.0.0"
		return nil
	}
	for dir := filepath.Dir(b.Program); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if checkout(dir) {
			b.lab, b.version = dir, "v0.0.0"
			return nil
		}
	}
	query := b.Version
	if m := described.FindStringSubmatch(query); m != nil {
		query = m[1]
	} else if !semver.IsValid(query) || strings.Contains(query, "dirty") {
		return fmt.Errorf("krrlab %s is not a release, and no folder around %s has its source: name a checkout of it "+
			"by --source", b.Version, b.Program)
	}
	text, err := b.run("mod", "download", "-json", lab+"@"+query)
	var m struct{ Dir, Version string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &m)
	}
	if err != nil {
		return fmt.Errorf("the source of krrlab %s cannot be downloaded (%w): name a checkout of it by --source",
			b.Version, err)
	}
	b.lab, b.version = m.Dir, m.Version
	return nil
}

func checkout(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(text) == lab
}

// module makes the module: go.mod requires the laboratory and the packages. It completes the entries.
func (b *builder) module(entries []Entry) error {
	mod := new(modfile.File)
	_ = mod.AddModuleStmt(lab + "/krrlab/added") // below the laboratory's internal packages
	if err := b.write("go.mod", mod); err != nil {
		return err
	}
	if err := b.laboratory(); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(b.lab, "go.mod"))
	if err != nil {
		return err
	}
	theirs, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		return err
	}
	_ = mod.AddGoStmt(theirs.Go.Version)
	_ = mod.AddRequire(lab, b.version)
	if b.version == "v0.0.0" {
		_ = mod.AddReplace(lab, "", b.lab, "")
	}
	for _, e := range entries {
		if e.Dir != "" {
			_ = mod.AddRequire(e.Module, zero(e.Module))
			_ = mod.AddReplace(e.Module, "", e.Dir, "")
		}
	}
	if err := b.write("go.mod", mod); err != nil {
		return err
	}
	if sums, err := os.ReadFile(filepath.Join(b.lab, "go.sum")); err == nil {
		if err := os.WriteFile(filepath.Join(b.dir, "go.sum"), sums, 0o644); err != nil {
			return err
		}
	}
	return b.get(entries)
}

func (b *builder) write(name string, mod *modfile.File) error {
	mod.Cleanup()
	text, err := mod.Format()
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, name), text, 0o644)
	}
	return err
}

// get takes the packages into the module. The laboratory keeps its version, and so does what it needs, unless a package
// needs a newer one.
func (b *builder) get(entries []Entry) error {
	if _, err := b.run("list", "-deps", program); err != nil { // go.mod has what the laboratory needs then
		return err
	}
	args := []string{"get", lab + "@" + b.version}
	var paths []string
	var missing []Entry
	for _, e := range entries {
		paths = append(paths, e.Path)
		if e.Dir != "" {
			continue
		}
		if e.Version == "" {
			if _, err := run(b.ctx, b.dir, offline, "list", e.Path); err == nil {
				continue // of a module that the laboratory needs
			}
		}
		args, missing = append(args, e.Path+"@"+cmp.Or(e.Version, "upgrade")), append(missing, e)
	}
	if len(missing) > 0 {
		_, err := b.run(args...)
		if err != nil && b.ctx.Err() == nil && !strings.Contains(err.Error(), " requires ") &&
			!slices.ContainsFunc(missing, func(e Entry) bool {
				return require(b.ctx, b.dir, e.Path,
					e.Version) != nil
			}) {
			err = nil // the module cache has them
		}
		if err != nil {
			return errors.New(strings.NewReplacer("@upgrade", "", lab+"@"+b.version, "krrlab").Replace(err.Error()))
		}
	}
	// with all that the program needs, versions are final
	text, err := b.run(append([]string{"list", "-f", "{{.ImportPath}} {{.Name}} {{.Module.Version}}", program},
		paths...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == program {
			continue
		}
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Path == words[0] })
		switch {
		case i < 0:
			return fmt.Errorf("the go command knows %s by another name: %s", strings.Join(paths, ", "), words[0])
		case words[1] == "main":
			return fmt.Errorf("%s is a program, which cannot be imported", words[0])
		case len(words) > 2 && entries[i].Dir == "":
			if v := entries[i].Version; semver.IsValid(v) && v != words[2] {
				return fmt.Errorf("krrlab or one of the packages requires the module of %s in version %s, not %s",
					words[0], words[2], v)
			}
			entries[i].Version = words[2]
		}
	}
	return b.tables(entries)
}

// tables writes the tables of the packages, and of those that their exported names mention. It notes which are generic.
func (b *builder) tables(entries []Entry) error {
	done := map[string]bool{}
	var next []string
	for _, e := range entries {
		next = append(next, e.Path)
	}
	for len(next) > 0 {
		if _, err := b.run(append([]string{"list", "-deps"}, next...)...); err != nil { // so that go.sum has all
			return err
		}
		ps, err := bindgen.Load(b.dir, next...)
		if err != nil {
			return err
		}
		next = nil
		for _, p := range ps {
			done[p.Path] = true
			src, mentions, err := bindgen.Table(p)
			if err != nil {
				return err
			}
			if src == nil {
				for i := range entries {
					entries[i].Interpreted = entries[i].Interpreted || entries[i].Path == p.Path
				}
				continue
			}
			if err := os.WriteFile(filepath.Join(b.dir, "bind_"+bindgen.Stem(p.Path)+"_.go"), src, 0o644); err != nil {
				return err
			}
			b.written = append(b.written, p.Path)
			for _, path := range mentions {
				if !done[path] && !b.Bound(path) && strings.Contains(path, ".") && !slices.Contains(next, path) {
					next = append(next, path)
				}
			}
		}
	}
	return nil
}

// program builds the program: the laboratory's own main package with the tables.
func (b *builder) program() error {
	text, err := b.run("list", "-f", "{{.Dir}}\n{{range .GoFiles}}{{.}}\n{{end}}", program)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, name := range lines[1:] {
		src, err := os.ReadFile(filepath.Join(lines[0], name))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.dir, name), src, 0o644)
		}
		if err != nil {
			return err
		}
	}
	env := slices.Clone(flags)
	if cgo := setting(b.Program, "CGO_ENABLED"); cgo != "" {
		env = append(env, "CGO_ENABLED="+cgo)
	}
	_, err = run(b.ctx, b.dir, env, "build", "-trimpath", "-buildvcs=false", "-tags="+setting(b.Program, "-tags"),
		"-ldflags=-s -w -X main.tag="+b.Version, "-o", "krrlab", ".")
	if errors.Is(err, b.ctx.Err()) {
		return err
	}
	if err != nil {
		return fmt.Errorf("the kernel does not build: %w", err)
	}
	return nil
}
