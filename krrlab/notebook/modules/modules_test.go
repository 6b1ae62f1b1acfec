package modules

import (
	"archive/zip"
	"bytes"
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

// publishedModules are the modules of the test's module proxy: the files of each module@version.
var publishedModules = map[string]map[string]string{
	"example.test/plain@v1.1.0": {"go.mod": "module example.test/plain\n\ngo 1.21\n",
		"plain.go": "package plain\n\nfunc One() int { return 1 }\n",
		"fast.go":  "//go:build !purego\n\npackage plain\n\nfunc fast() int\n", "fast.s": "",
		"pure.go": "//go:build purego\n\npackage plain\n\nfunc fast() int { return 2 }\n",
	},
	"example.test/gen@v0.2.0": {"go.mod": "module example.test/gen\n\ngo 1.22\n\nrequire example.test/plain v1.1.0\n",
		"gen.go": "package gen\n\nimport \"example.test/plain\"\n\nfunc Map[T, U any](x []T, f func(T) U) (out " +
			"[]U) { for _, v := range x { out = append(out, f(v)) }; return out }\n\nvar One = plain.One()\n"},
	"example.test/floats@v1.0.0": {"go.mod": "module example.test/floats\n\ngo 1.21\n\nrequire golang.org/x/mod " +
		"v0.99.0\n",
		"floats.go": "package floats\n\nimport \"golang.org/x/mod/semver\"\n\nvar Sum = semver.Compare\n"},
	"example.test/base@v0.9.0": {"go.mod": "module example.test/base\n", "base.go": "package base\n\nvar V = 0.9\n"},
	"example.test/base@v1.0.0": {"go.mod": "module example.test/base\n", "base.go": "package base\n\nvar V = 1.0\n"},
	"example.test/base@v1.1.0-rc.1": {"go.mod": "module example.test/base\n",
		"base.go": "package base\n\nvar V = 1.1\n"},
	"golang.org/x/mod@v0.99.0": {"go.mod": "module golang.org/x/mod\n",
		"semver/semver.go": "package semver\n\nfunc Compare(a, b string) int { return 0 }\n"},
}

// serveModules serves publishedModules by a proxy in a folder, and gives the test an empty module cache. The test is
// skipped if there is no go command.
func serveModules(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	dir := t.TempDir()
	for name, files := range publishedModules {
		modulePath, version, _ := strings.Cut(name, "@")
		var archive bytes.Buffer
		zipWriter := zip.NewWriter(&archive)
		for file, text := range files {
			fileWriter, err := zipWriter.Create(name + "/" + file)
			if err == nil {
				_, err = fileWriter.Write([]byte(text))
			}
			testkit.OK(t, err)
		}
		testkit.OK(t, zipWriter.Close())
		versions := filepath.Join(dir, filepath.FromSlash(modulePath), "@v")
		testkit.OK(t, os.MkdirAll(versions, 0o755))
		list, _ := os.ReadFile(filepath.Join(versions, "list"))
		for file, text := range map[string][]byte{"list": append(list, version+"\n"...),
			version + ".info": []byte(`{"Version":"` + version + `"}`), version +
				".mod": []byte(files["go.mod"]), version + ".zip": archive.Bytes()} {
			testkit.OK(t, os.WriteFile(filepath.Join(versions, file), text, 0o644))
		}
	}
	cache := t.TempDir()
	t.Cleanup(func() { // the go command makes the folders of the cache read-only, so that they could not be removed
		_ = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
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

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		testkit.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

// noneCompiled returns false: no package is compiled into the program.
func noneCompiled(string) bool { return false }

// TestFind checks that packages are found in the module cache, in the module of the working directory, and in its
// vendor folder, without using the proxy. Files with assembly are replaced by their pure Go versions.
func TestFind(t *testing.T) {
	serveModules(t)
	t.Chdir(t.TempDir())
	finder := &Finder{IsCompiled: noneCompiled}
	defer finder.Close()
	if _, err := finder.Find(t.Context(), "example.test/gen"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it was downloaded: %v", err)
	}
	writeFiles(t, ".", map[string]string{"go.mod": "module here\n\ngo 1.21\n\nrequire example.test/gen v0.2.0\n",
		"x.go": "package x\n\nimport _ \"example.test/gen\"\n", "mine/m.go": "package mine\n"})
	testkit.Must(runGo(t.Context(), ".", []string{"GOFLAGS=-mod=mod"}, "mod", "tidy"))
	t.Setenv("GOPROXY", "off")
	dir := testkit.Must(os.Getwd())
	t.Chdir(t.TempDir())
	pkg, err := finder.Find(t.Context(), "example.test/gen")
	if err != nil || pkg.Module != "example.test/gen v0.2.0" || pkg.GoVersion != "go1.22" ||
		!slices.Equal(pkg.Files, []string{"gen.go"}) || !pkg.Requested {
		t.Errorf("the package example.test/gen is %+v, %v", pkg, err)
	}
	text, err := finder.Doc(t.Context(), "example.test/plain", "One")
	if err != nil || !strings.Contains(text, "func One() int") {
		t.Errorf("documentation of a package in the module cache: %q, %v", text, err)
	}
	pkg, err = finder.Find(t.Context(), "example.test/plain")
	if err != nil || pkg.Module != "example.test/plain v1.1.0" ||
		!slices.Equal(pkg.Files, []string{"plain.go", "pure.go"}) || pkg.Requested {
		t.Errorf("what it imports: %+v, %v", pkg, err)
	}
	if _, err := finder.Find(t.Context(), "example.test/none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	t.Chdir(dir)
	if pkg, err := finder.Find(t.Context(), "./mine"); err != nil || pkg.Path != "here/mine" || pkg.Module != "here" {
		t.Errorf("./mine is %+v, %v, want here/mine", pkg, err)
	}
	testkit.Fails(t, testkit.ErrOf(finder.Find(t.Context(), "./nowhere")), "nowhere")
	testkit.Must(runGo(t.Context(), ".", nil, "mod", "vendor"))
	t.Setenv("GOMODCACHE", t.TempDir())
	vendorFinder := &Finder{IsCompiled: noneCompiled}
	if pkg, err := vendorFinder.Find(t.Context(), "example.test/gen"); err != nil ||
		pkg.Dir != filepath.Join(dir, "vendor", "example.test", "gen") {
		t.Errorf("from the vendor folder: %+v, %v", pkg, err)
	}
}

// TestBuildProgram builds and runs programs that use the standard library, the module of the working directory, and the
// module cache. Packages that are missing, and errors in the code, are reported in one line, and no temporary files may
// be left.
func TestBuildProgram(t *testing.T) {
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the system can't start this program, which an emulator runs")
	}
	serveModules(t)
	moduleDir := t.TempDir()
	writeFiles(t, moduleDir, map[string]string{"go.mod": "module example.test/here/v2\n",
		"sub.go":         "package here\n\nimport \"example.test/gen\"\n\nvar Three = gen.One + 2\n",
		"apart/apart.go": "package apart\n\nimport \"example.test/none\"\n\nvar Four = none.Four\n"})
	for _, args := range []string{"get example.test/gen@v0.2.0 example.test/base@v0.9.0",
		"mod download example.test/gen@v0.2.0 example.test/plain@v1.1.0 example.test/base@v1.0.0"} {
		testkit.Must(runGo(t.Context(), moduleDir, nil, strings.Fields(args)...))
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOOS", "js") // settings for the user's own builds, which must not apply
	t.Setenv("GOARCH", "wasm")
	t.Chdir(moduleDir)
	tempDir := t.TempDir()
	t.Setenv("TMPDIR", tempDir)
	finder := &Finder{IsCompiled: noneCompiled}
	for _, test := range []struct{ imports, code, want string }{
		{"", "fmt.Print(1)", "1"},
		{"example.test/here/v2", "fmt.Print(here.Three)", "3"},
		{"example.test/here/v2/apart", "fmt.Print(apart.Four)", "example.test/here/v2/apart: not in the module cache"},
		// The failed build must not affect the next one.
		{"example.test/here/v2", "fmt.Print(here.Three)", "3"},
		{"example.test/gen", "fmt.Print(gen.Map([]int{1, 2}, func(i int) int { return i + gen.One }))", "[2 3]"},
		// The module of the folder requires this version, which is not the newest one.
		{"example.test/base", "fmt.Print(base.V)", "0.9"},
		{"example.test/none", "", "example.test/none: not in the module cache"},
		{"", "nosuch()", "undefined: nosuch"},
	} {
		files := map[string]string{"main.go": "package main\n\nimport \"fmt\"\nimport \"notebook/cell\"\n\nfunc " +
			"main() { cell.F(); fmt.Print() }\n",
			"cell/c.go": "package cell\n\nimport \"fmt\"\n\nfunc F() {" + test.code + "; fmt.Print() }\n"}
		var imports []string
		if test.imports != "" {
			imports = []string{test.imports}
			files["cell/c.go"] = strings.Replace(files["cell/c.go"], "import",
				"import \""+test.imports+"\"\n\nimport", 1)
		}
		dir, err := finder.BuildProgram(t.Context(), files, imports)
		if err != nil {
			if !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want %s in one line", test.code, err, test.want)
			}
			continue
		}
		output, err := exec.CommandContext(t.Context(), filepath.Join(dir, "program")).Output()
		if string(output) != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", test.code, output, err, test.want)
		}
		_ = os.RemoveAll(dir)
	}
	if err := finder.Close(); err != nil {
		t.Error(err)
	}
	if leftFiles, _ := os.ReadDir(tempDir); len(leftFiles) > 0 {
		t.Errorf("%v are left", leftFiles)
	}
}

// TestVersionConflict checks that a package that requires a newer version of a module that is compiled into the program
// is reported.
func TestVersionConflict(t *testing.T) {
	serveModules(t)
	t.Chdir(t.TempDir())
	writeFiles(t, ".", map[string]string{"go.mod": "module here\n\ngo 1.21\n\nrequire example.test/floats v1.0.0\n",
		"x.go": "package x\n\nimport _ \"example.test/floats\"\n"})
	testkit.Must(runGo(t.Context(), ".", []string{"GOFLAGS=-mod=mod"}, "mod", "tidy"))
	original := linkedVersions
	defer func() { linkedVersions = original }()
	// A test binary does not know the versions of its own modules.
	linkedVersions = func() map[string]string { return map[string]string{"golang.org/x/mod": "v0.32.0"} }
	finder := &Finder{IsCompiled: func(path string) bool { return path == "golang.org/x/mod/semver" }}
	defer finder.Close()
	pkg, err := finder.Find(t.Context(), "example.test/floats")
	if err != nil || len(pkg.VersionConflicts) != 1 ||
		!strings.Contains(pkg.VersionConflicts[0], "golang.org/x/mod v0.") ||
		!strings.HasSuffix(pkg.VersionConflicts[0], ", not v0.99.0") {
		t.Errorf("want one conflict of versions, with v0.99.0: %+v, %v", pkg, err)
	}
}

// TestDownload checks which version Download selects, which version later imports find, and the errors for packages
// that need no download or do not exist.
func TestDownload(t *testing.T) {
	serveModules(t)
	t.Chdir(t.TempDir())
	finder := &Finder{IsCompiled: func(path string) bool { return path == "example.test/bound" }}
	defer finder.Close()
	for _, test := range []struct{ name, wantModule, wantError string }{
		{"example.test/base@v1.1.0-rc.1", "example.test/base v1.1.0-rc.1", ""},
		{"example.test/base", "example.test/base v1.0.0", ""},
		{"example.test/base@v0.9.0", "", "example.test/base v0.9.0 was downloaded, but imports take example.test/base v1.0.0: "},
		{"example.test/gen", "example.test/gen v0.2.0", ""},
		{"example.test/bound", "", "example.test/bound needs no download: import it"},
		{"./mine", "", "./mine needs no download"},
		{"math/big", "", "math/big needs no download"},
		{"example.test/none", "", "example.test/none"},
		{"example.test/plain@v9", "", "v9"},
		{"example.test/plain/nowhere", "", "example.test/plain/nowhere"},
	} {
		pkg, err := finder.Download(t.Context(), test.name)
		if test.wantError != "" {
			testkit.Fails(t, err, test.wantError)
		} else if err != nil || pkg.Module != test.wantModule {
			t.Errorf("%s: %+v, %v, want module %s", test.name, pkg, err, test.wantModule)
		}
	}
	t.Setenv("GOPROXY", "off")
	pkg, err := finder.Download(t.Context(), "example.test/gen")
	if err != nil || pkg.Module != "example.test/gen v0.2.0" {
		t.Errorf("without a network: %+v, %v", pkg, err)
	}
	testkit.Fails(t, testkit.ErrOf(finder.Download(t.Context(), "example.test/gen@v0.1.0")), "v0.1.0")
}

// TestBuildEndsWithKilledProgram checks that a build does not outlive the program that started it. A child process
// starts a fake go command, which holds a named pipe open; the test kills the child and waits until the pipe is closed.
func TestBuildEndsWithKilledProgram(t *testing.T) {
	const childEnv = "KRRLAB_TEST_START_BUILD"
	if os.Getenv(childEnv) != "" {
		// A signal that this process catches has its default effect in the build, even if the test runs in the
		// background.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		_, _ = (&Finder{}).BuildProgram(t.Context(), map[string]string{"main.go": "package main"}, nil)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the builds of a killed program")
	}
	dir := t.TempDir()
	pipeName := filepath.Join(dir, "alive")
	testkit.OK(t, syscall.Mkfifo(pipeName, 0o600))
	fakeGo := "#!/bin/sh\n[ $1 = build ] || exit 0\nexec 9>" + pipeName + "\necho started >&9\nexec sleep 600\n"
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755))
	cmd := exec.Command(os.Args[0], "-test.run=^TestBuildEndsWithKilledProgram$")
	cmd.Env = append(os.Environ(), childEnv+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
	testkit.OK(t, cmd.Start())
	pipe, err := os.Open(pipeName) // returns when the build has opened the pipe
	if err == nil {
		defer pipe.Close()
		_, err = io.ReadFull(pipe, make([]byte, len("started\n")))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	testkit.OK(t, err)
	_ = pipe.SetReadDeadline(time.Now().Add(5 * time.Minute))
	if _, err := pipe.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a build continues: %v", err)
	}
}
