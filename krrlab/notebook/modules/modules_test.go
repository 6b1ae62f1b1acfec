package modules

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// published are the modules of the test's proxy: module@version, then files.
var published = map[string]map[string]string{
	"example.test/plain@v1.0.0": {"go.mod": "module example.test/plain\n\ngo 1.21\n",
		"plain.go": "package plain\n\nfunc One() int { return 1 }\n"},
	"example.test/plain@v1.1.0": {"go.mod": "module example.test/plain\n\ngo 1.21\n", "plain.go": plainSource,
		"fast.go": "//go:build !purego\n\npackage plain\n\nfunc fast() int\n", "fast.s": "",
		"pure.go":          "//go:build purego\n\npackage plain\n\nfunc fast() int { return 2 }\n",
		"sub/sub.go":       "package sub\n\ntype T struct{ N int }\n",
		"cmd/tool/main.go": "package main\n\nfunc main() {}\n"},
	"example.test/gen@v0.2.0": {"go.mod": "module example.test/gen\n\ngo 1.22\n\nrequire example.test/plain v1.1.0\n",
		"gen.go": "package gen\n\nimport \"example.test/plain\"\n\nfunc Map[T, U any](x []T, f func(T) U) (out " +
			"[]U) { for _, v := range x { out = append(out, f(v)) }; return out }\n\nvar One = plain.One()\n"},
	"example.test/floats@v1.0.0": {"go.mod": "module example.test/floats\n\ngo 1.21\n\nrequire golang.org/x/mod " +
		"v0.99.0\n",
		"floats.go": "package floats\n\nimport \"golang.org/x/mod/semver\"\n\nvar Sum = semver.Compare\n"},
	"example.test/base@v0.9.0": {"go.mod": "module example.test/base\n", "base.go": "package base\n"},
	"example.test/base@v1.0.0": {"go.mod": "module example.test/base\n", "base.go": "package base\n"},
	"example.test/base@v1.1.0": {"go.mod": "module example.test/base\n", "base.go": "package base\n",
		"more/more.go": "package more\n\nvar X = 1\n"},
	"github.com/gopherdata/gophernotes@v0.9.9": {"go.mod": "module github.com/gopherdata/gophernotes\n",
		"imports/imports.go": "package imports\n\nimport \"reflect\"\n\ntype Package struct { Name string; Binds " +
			"map[string]reflect.Value; Types, Proxies map[string]reflect.Type; Wrappers map[string][]string; " +
			"Untypeds map[string]string }\n\nvar Packages = map[string]Package{}\n"},
	"golang.org/x/mod@v0.99.0": {"go.mod": "module golang.org/x/mod\n",
		"semver/semver.go": "package semver\n\nfunc Compare(a, b string) int { return 0 }\n"},
}

const plainSource = `package plain

import "example.test/plain/sub"

// Big is no int.
const Big = 1 << 70

type Shape interface{ Area() float64 }

type Square struct{ Side float64 }

func (s Square) Area() float64 { return s.Side * s.Side }

func One() int { return 1 }

func Make() sub.T { return sub.T{N: 7} }
`

// proxied makes a proxy of the published modules, and a module cache of the test's own.
func proxied(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	dir := t.TempDir()
	for name, files := range published {
		mod, version, _ := strings.Cut(name, "@")
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for file, text := range files {
			w, err := z.Create(name + "/" + file)
			if err == nil {
				_, err = w.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, filepath.FromSlash(mod), "@v")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		list, _ := os.ReadFile(filepath.Join(at, "list"))
		for file, text := range map[string][]byte{"list": append(list, version+"\n"...),
			version + ".info": []byte(`{"Version":"` + version + `"}`), version +
				".mod": []byte(files["go.mod"]), version + ".zip": b.Bytes()} {
			if err := os.WriteFile(filepath.Join(at, file), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	cache := t.TempDir()
	t.Cleanup(func() { // the go command makes its folders read-only
		_ = filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
	})
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOPROXY", "file://"+dir)
}

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func none(string) bool { return false }

// TestFind finds packages in the module cache, without a proxy and without assembly, in the module of the folder and
// in its vendor folder.
func TestFind(t *testing.T) {
	proxied(t)
	t.Chdir(t.TempDir())
	f := &Finder{Compiled: none}
	defer f.Close()
	if _, err := f.Find(t.Context(), "example.test/gen"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it was downloaded: %v", err)
	}
	write(t, ".", map[string]string{"go.mod": "module here\n\ngo 1.21\n\nrequire example.test/gen v0.2.0\n",
		"x.go": "package x\n\nimport _ \"example.test/gen\"\n", "mine/m.go": "package mine\n"})
	if _, err := run(t.Context(), ".", []string{"GOFLAGS=-mod=mod"}, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	p, err := f.Find(t.Context(), "example.test/gen")
	if err != nil || p.Module != "example.test/gen v0.2.0" || p.Go != "go1.22" ||
		!slices.Equal(p.Files, []string{"gen.go"}) || !p.Asked {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = f.Find(t.Context(), "example.test/plain")
	if err != nil || p.Module != "example.test/plain v1.1.0" ||
		!slices.Equal(p.Files, []string{"plain.go", "pure.go"}) || p.Asked {
		t.Errorf("what it imports: %+v, %v", p, err)
	}
	if _, err := f.Find(t.Context(), "example.test/none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	t.Chdir(dir)
	if p, err := f.Find(t.Context(), "./mine"); err != nil || p.Path != "here/mine" || p.Module != "here" {
		t.Errorf("%+v, %v", p, err)
	}
	testkit.Fails(t, testkit.ErrOf(f.Find(t.Context(), "./nowhere")), "nowhere")
	if _, err := run(t.Context(), ".", nil, "mod", "vendor"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMODCACHE", t.TempDir())
	g := &Finder{Compiled: none}
	if p, err := g.Find(t.Context(), "example.test/gen"); err != nil ||
		p.Dir != filepath.Join(dir, "vendor", "example.test", "gen") {
		t.Errorf("from the vendor folder: %+v, %v", p, err)
	}
}

// TestProgram builds programs of the standard library, and of the module cache.
func TestProgram(t *testing.T) {
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system can't start this program, which an emulator runs")
	}
	proxied(t)
	at := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.test/here/v2\n",
		"sub.go":         "package here\n\nimport \"example.test/gen\"\n\nvar Three = gen.One + 2\n",
		"apart/apart.go": "package apart\n\nimport \"example.test/none\"\n\nvar Four = none.Four\n"} {
		err := os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(at, name), []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t.Context(), at, nil, "get", "example.test/gen@v0.2.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), at, nil, "mod", "download", "example.test/gen@v0.2.0",
		"example.test/plain@v1.1.0"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOOS", "js") // of the reader's own builds
	t.Setenv("GOARCH", "wasm")
	t.Chdir(at)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	f := &Finder{Compiled: none}
	for _, c := range []struct{ imports, text, want string }{
		{"", "fmt.Print(1)", "1"},
		{"example.test/here/v2", "fmt.Print(here.Three)", "3"},
		{"example.test/here/v2/apart", "fmt.Print(apart.Four)", "example.test/here/v2/apart: not in the module cache"},
		{"example.test/here/v2", "fmt.Print(here.Three)", "3"},
		{"example.test/gen", "fmt.Print(gen.Map([]int{1, 2}, func(i int) int { return i + gen.One }))", "[2 3]"},
		{"example.test/none", "", "example.test/none: not in the module cache"},
		{"", "nosuch()", "undefined: nosuch"},
	} {
		files := map[string]string{"main.go": "package main\n\nimport \"fmt\"\nimport \"notebook/cell\"\n\nfunc " +
			"main() { cell.F(); fmt.Print() }\n",
			"cell/c.go": "package cell\n\nimport \"fmt\"\n\nfunc F() {" + c.text + "; fmt.Print() }\n"}
		var imports []string
		if c.imports != "" {
			imports = []string{c.imports}
			files["cell/c.go"] = strings.Replace(files["cell/c.go"], "import", "import \""+c.imports+"\"\n\nimport", 1)
		}
		dir, err := f.Program(t.Context(), files, imports)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "program")).Output()
		if string(out) != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.text, out, err)
		}
		_ = os.RemoveAll(dir)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestNewer: a package that asks for a newer version of what is compiled in is reported.
func TestNewer(t *testing.T) {
	proxied(t)
	t.Chdir(t.TempDir())
	write(t, ".", map[string]string{"go.mod": "module here\n\ngo 1.21\n\nrequire example.test/floats v1.0.0\n",
		"x.go": "package x\n\nimport _ \"example.test/floats\"\n"})
	if _, err := run(t.Context(), ".", []string{"GOFLAGS=-mod=mod"}, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	was := linked
	defer func() { linked = was }()
	// a test's program does not know
	linked = func() map[string]string { return map[string]string{"golang.org/x/mod": "v0.32.0"} }
	f := &Finder{Compiled: func(path string) bool { return path == "golang.org/x/mod/semver" }}
	defer f.Close()
	p, err := f.Find(t.Context(), "example.test/floats")
	if err != nil || len(p.Newer) != 1 || !strings.Contains(p.Newer[0], "golang.org/x/mod v0.") ||
		!strings.HasSuffix(p.Newer[0], ", not v0.99.0") {
		t.Errorf("%+v, %v", p, err)
	}
}

// kernel is one that is built of a small laboratory.
func kernel(t *testing.T) *Kernel {
	t.Helper()
	lab := t.TempDir()
	write(t, lab, map[string]string{
		"go.mod": "module github.com/krrlab/lab\n\ngo 1.26.0\n\nrequire example.test/base " +
			"v1.0.0\n\nrequire github.com/gopherdata/gophernotes v0.9.9\n",
		"bin/krrlab": "",
		"krrlab/cmd/krrlab/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t_ " +
			"\"example.test/base\"\n\t\"github.com/gopherdata/gophernotes/imports\"\n)\n\nvar tag string\n\nfunc " +
			"main() { fmt.Println(tag, len(imports.Packages)) }\n",
	})
	if _, err := run(t.Context(), lab, []string{"GOFLAGS=-mod=mod"}, "mod", "tidy"); err != nil {
		t.Fatal(err)
	}
	return &Kernel{Dir: filepath.Join(t.TempDir(), "notebook"), Program: filepath.Join(lab, "bin", "krrlab"),
		Version: "devel-1a2b3c", Bound: none}
}

// TestAdd builds kernels: versions, tables, what is generic, a local package; from the proxy, and without it.
func TestAdd(t *testing.T) {
	proxied(t)
	k := kernel(t)
	local := t.TempDir()
	write(t, local, map[string]string{"go.mod": "module mine/v2\n\ngo 1.21\n\nrequire example.test/plain v1.0.0\n",
		"sub/s.go": "package sub\n\nimport \"example.test/plain\"\n\nfunc Two() int { return 2 * plain.One() }\n"})
	var log bytes.Buffer
	a, err := k.Add(t.Context(), &log, "example.test/plain/sub", "example.test/gen@v0.2.0", "example.test/base")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Packages; got[0].Version != "v1.1.0" || got[0].Interpreted || !got[1].Interpreted ||
		got[2].Version != "v1.0.0" {
		t.Errorf("%v", got)
	}
	if !strings.Contains(log.String(), "adding example.test/gen v0.2.0 (interpreted: its API is generic)\n") {
		t.Error(log.String())
	}
	t.Setenv("GOPROXY", "off")
	a, err = k.Add(t.Context(), &log, filepath.Join(local, "sub"), "example.test/plain@v1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Packages; len(got) != 5 || got[3].Path != "mine/v2/sub" || got[3].Dir != local ||
		got[4].Version != "v1.1.0" {
		t.Errorf("%v", got)
	}
	out, err := exec.CommandContext(t.Context(), a.Path()).Output()
	if err != nil || string(out) != "devel-1a2b3c 4\n" || !a.Fresh(k.Program, k.Version) {
		t.Errorf("%q, %v", out, err)
	}
	text, err := os.ReadFile(filepath.Join(a.Module(), "bind_example_test_plain_.go"))
	for _, want := range []string{"package main", `"Square": r.TypeOf((*plain.Square)(nil)).Elem()`,
		`"Big": "int:1180591620717411303424"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v, no %s in\n%s", err, want, text)
		}
	}
	if strings.Contains(string(text), "proxy") {
		t.Error("proxies, which only gophernotes needs")
	}
	if old, _ := filepath.Glob(filepath.Join(k.Dir, "kernel-*")); len(old) != 1 {
		t.Errorf("%v: of kernels one is left", old)
	}
	f := &Finder{Dir: a.Module(), Compiled: none}
	if p, err := f.Find(t.Context(), "example.test/gen"); err != nil || p.Module != "example.test/gen v0.2.0" {
		t.Errorf("what is generic, from the module of the kernel: %+v, %v", p, err)
	}
	if a, err = k.Remove(t.Context(), &log, "mine/v2/sub", "example.test/plain", "example.test/base",
		"example.test/gen"); err != nil || len(a.Packages) != 1 ||
		!slices.Equal(a.Tables, []string{"example.test/plain/sub"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = k.Remove(t.Context(), &log, "example.test/plain/sub"); a != nil || err != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if left, _ := os.ReadDir(k.Dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestRefused: what cannot be added is reported in one line, and nothing is left of it.
func TestRefused(t *testing.T) {
	proxied(t)
	k := kernel(t)
	k.Bound = func(path string) bool { return path == "fmt" }
	add := func(names ...string) error { _, err := k.Add(t.Context(), new(bytes.Buffer), names...); return err }
	for want, err := range map[string]error{
		"fmt is in the kernel already":                  add("fmt"),
		"name packages one by one":                      add("example.test/..."),
		"no package was added before":                   add(),
		"requires example.test/plain@v1.1.0, not":       add("example.test/plain@v1.0.0", "example.test/gen@v0.2.0"),
		"krrlab requires example.test/base@v1.0.0, not": add("example.test/base@v0.9.0"),
		"example.test/plain/cmd/tool is a program":      add("example.test/plain/cmd/tool@v1.1.0"),
		"example.test/none":                             add("example.test/none"),
		"go.mod file not found":                         add(t.TempDir()),
		"is not a checkout of github.com/krrlab/lab":    (&builder{Kernel: &Kernel{Source: t.TempDir()}}).laboratory(),
		"name a checkout of it by --source": (&builder{Kernel: &Kernel{Program: "/bin/krrlab",
			Version: "devel-1a2b3c"}}).laboratory(),
		"github.com/x/y was not added": func() error { _, err := k.Remove(t.Context(), nil, "github.com/x/y"); return err }(),
		"context canceled": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
			_, err := k.Add(ctx, new(bytes.Buffer), "example.test/plain")
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if left, _ := os.ReadDir(k.Dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if a, err := k.Current(); a != nil || err != nil {
		t.Errorf("%v, %v", a, err)
	}
}

// TestRelease takes the laboratory of a released version as a module.
func TestRelease(t *testing.T) {
	proxied(t)
	proxy, _, _ := strings.Cut(os.Getenv("GOPROXY"), ",")
	at := filepath.Join(strings.TrimPrefix(proxy, "file://"), "github.com", "krrlab", "lab", "@v")
	mod := "module github.com/krrlab/lab\n\ngo 1.26.0\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{"go.mod": mod,
		"krrlab/cmd/krrlab/main.go": "package main\n\nfunc main() {}\n"} {
		w, err := z.Create("github.com/krrlab/lab@v0.9.1/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, at, map[string]string{"list": "v0.9.1\n", "v0.9.1.info": `{"Version":"v0.9.1"}`, "v0.9.1.mod": mod,
		"v0.9.1.zip": b.String()})
	for range 2 { // from the proxy, then from the module cache
		d := &builder{Kernel: &Kernel{Program: "/bin/krrlab", Version: "v0.9.1", Bound: none}, ctx: t.Context(),
			dir: t.TempDir()}
		entries := []Entry{{Path: "example.test/plain", Version: "v1.1.0"}}
		if err := d.module(entries); err != nil || d.version != "v0.9.1" || !checkout(d.lab) {
			t.Errorf("%v, %s of %s", err, d.version, d.lab)
		}
		t.Setenv("GOPROXY", "off")
	}
	d := &builder{Kernel: &Kernel{Program: "/bin/krrlab", Version: "v0.8.0"}, ctx: t.Context(), dir: t.TempDir()}
	testkit.Fails(t, d.module(nil), "the source of krrlab v0.8.0 cannot be downloaded")
}

// TestFresh: a kernel is that of one program, as it was when it was built.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"krrlab": "", "kernel-1/krrlab": "",
		"current.json": `{"program": "` + filepath.ToSlash(filepath.Join(dir,
			"krrlab")) + `", "version": "v1", "folder": "kernel-1"}`})
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "krrlab"), before, before); err != nil {
		t.Fatal(err)
	}
	a, err := (&Kernel{Dir: dir}).Current()
	if err != nil || !a.Fresh(filepath.Join(dir, "krrlab"), "v1") {
		t.Fatalf("%+v, %v", a, err)
	}
	if a.Fresh(filepath.Join(dir, "krrlab"), "v2") || a.Fresh(filepath.Join(dir, "other"), "v1") {
		t.Error("of another program")
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "krrlab"), later, later); err != nil ||
		a.Fresh(filepath.Join(dir, "krrlab"), "v1") {
		t.Error("of an older build", err)
	}
	write(t, dir, map[string]string{"current.json": "{"})
	testkit.Fails(t, testkit.ErrOf((&Kernel{Dir: dir}).Current()), "remove it to start again")
}

// TestKilled: a build does not outlive a program that is killed, nor one whose context ends.
func TestKilled(t *testing.T) {
	const child = "KRRLAB_TEST_BUILDS"
	if os.Getenv(child) != "" {
		// what is caught has its default in a build, even in the background
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		_, _ = (&Finder{}).Program(t.Context(), map[string]string{"main.go": "package main"}, nil)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("builds outlive a program that is killed, but under Linux")
	}
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := "#!/bin/sh\n[ $1 = build ] || exit 0\nexec 9>" + alive + "\necho begun >&9\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), child+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(alive) // returns when the build has opened it
	if err == nil {
		defer held.Close()
		_, err = io.ReadFull(held, make([]byte, len("begun\n")))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	_ = held.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if _, err := held.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a build continues: %v", err)
	}
}
