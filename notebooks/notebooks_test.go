package notebooks

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/notebook"
)

// python is the interpreter that Debian's python3-nbclient and jupyter-client are for.
const python = "/usr/bin/python3"

// smoke returns the parameters with which a notebook takes few points, none if everything is to be run whole.
func smoke(t *testing.T, name string) []string {
	t.Helper()
	if suite.Scale(0, 0, 1) == 1 {
		return nil
	}
	return fewPoints(t, name)
}

// fewPoints returns the parameters, in the notebook's metadata, with which it takes few points.
func fewPoints(t *testing.T, name string) []string {
	t.Helper()
	var nb struct {
		Metadata struct{ Krrlab struct{ Smoke []string } }
	}
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &nb)
	}
	if err != nil {
		t.Fatal(err)
	}
	return nb.Metadata.Krrlab.Smoke
}

// all returns the notebooks.
func all(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.ipynb")
	if err != nil || len(names) == 0 {
		t.Fatalf("no notebooks: %v", err)
	}
	return names
}

// short are the notebooks that make test runs, some of each kind; the long suite runs all.
var short = []string{"00_start.ipynb", "04_multilevel.ipynb", "09_plan.ipynb", "11_tuning.ipynb",
	"14_panels.ipynb", "table1.ipynb"}

// useOpenBLAS uses OpenBLAS, where there is one, until the test ends.
func useOpenBLAS(t *testing.T) {
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		t.Cleanup(func() { accel.Use(nil) })
	}
}

// TestRun runs the notebooks by krrlab itself, on OpenBLAS where there is one, as the program
// does.
func TestRun(t *testing.T) {
	useOpenBLAS(t)
	names := all(t)
	if suite.Small() {
		names = short
	}
	for _, name := range names {
		start, out := time.Now(), filepath.Join(t.TempDir(), name)
		if err := notebook.Run(t.Context(), name, out, &notebook.Options{Version: "test",
			Parameters: smoke(t, name)}); err != nil {
			t.Error(err)
			continue
		}
		present(t, name, out)
		t.Logf("%s: %.0f seconds", name, time.Since(start).Seconds())
	}
}

// ownPath is a path that means nothing on another machine.
var ownPath = regexp.MustCompile(`/(usr|home|root|tmp|var|work|opt|mnt)/[\w./-]+`)

// TestOutputsKept makes sure that every notebook was run, from top to bottom, without an
// error.
func TestOutputsKept(t *testing.T) {
	for _, name := range all(t) {
		b, _ := os.ReadFile(name)
		if found := ownPath.Find(b); found != nil {
			t.Errorf("%s: a path of one machine: %s", name, found)
		}
		n, shown := 0, 0
		for _, c := range cells(t, name) {
			if c.Type != "code" {
				continue
			}
			if n++; c.Count != n {
				t.Errorf("%s: code cell %d has number %d; run: bin/krrlab notebook run notebooks/%s", name, n, c.Count,
					name)
				break
			}
			for _, o := range c.Outputs {
				if shown++; o.Type == "error" {
					t.Errorf("%s: code cell %d failed", name, n)
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: no outputs", name)
		}
	}
}

// TestSource makes sure that the code is seen whole on a screen of 1,280 pixels, and that a picture that a
// notebook keeps is kept as PNG and in HTML too, which are seen where the notebook is not trusted, and by nbconvert.
func TestSource(t *testing.T) {
	for _, name := range all(t) {
		for _, c := range cells(t, name) {
			for line := range strings.Lines(joined(c.Source)) {
				if n := len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t",
					"    "))); c.Type == "code" && n > 102 {
					t.Errorf("%s: a line of %d columns: %s", name, n, line)
				}
			}
			for _, o := range c.Outputs {
				if o.Data["image/svg+xml"] != nil && (o.Data["image/png"] == nil || o.Data["text/html"] == nil) ||
					strings.Contains(joined(o.Data["text/html"]), "<svg") {
					t.Errorf("%s: a drawing without an image; run: bin/krrlab notebook run notebooks/%s", name, name)
				}
			}
		}
	}
}

// TestPage makes sure that each test named on the notebook page is there.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/notebook.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../krrlab/notebook/*_test.go", "../krrlab/notebook/*/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(b)
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "`Test") {
			continue
		}
		rows++
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1) {
			if !strings.Contains(tests.String(), "func "+m[1]+"(") {
				t.Errorf("no test %s: %s", m[1], line)
			}
		}
	}
	if rows < 14 {
		t.Errorf("%d rows with a test", rows)
	}
}

// needNbclient skips a test where Debian's nbclient is not installed.
func needNbclient(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import nbclient, jupyter_client").CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("no nbclient for %s (apt-get install python3-nbclient jupyter-client): %s", python, lines[len(lines)-1])
	}
}

// install builds krrlab, installs its kernel for both ways to interrupt, and returns the
// environment in which Jupyter finds it.
func install(t *testing.T) []string {
	t.Helper()
	needNbclient(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "krrlab")
	if out, err := exec.Command("go", "build", "-o", program, "../krrlab/cmd/krrlab").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, mode := range []string{"message", "signal"} {
		if out, err := exec.Command(program, "notebook", "install", "--prefix", dir, "--name", "krrlab-"+mode,
			"--interrupt", mode).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command(program, "notebook", "uninstall", "--prefix", dir, "--name",
			"krrlab-signal").CombinedOutput(); err != nil {
			t.Errorf("uninstall: %v: %s", err, out)
		}
	})
	return append(os.Environ(), "JUPYTER_PATH="+filepath.Join(dir, "share", "jupyter"))
}

// runPython runs a script of testdata.
func runPython(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(python, append([]string{filepath.Join("testdata", name)}, args...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
		return
	}
	t.Logf("%s %v: %s", name, args, strings.TrimSpace(string(out)))
}

// TestJupyter speaks to the installed kernel with Debian's jupyter_client, and runs the
// notebooks on it with nbclient; make test has the one way to interrupt and the first notebook.
func TestJupyter(t *testing.T) {
	env := install(t)
	runPython(t, env, "conformance.py", "krrlab-message")
	names := all(t)
	if suite.Small() {
		names = names[:1]
	} else {
		runPython(t, env, "conformance.py", "krrlab-signal")
	}
	for _, name := range names {
		runPython(t, env, "execute.py", append([]string{"krrlab-message", name}, smoke(t, name)...)...)
	}
}

// TestGophernotes builds gophernotes with the project's bindings and runs every notebook
// on it.
func TestGophernotes(t *testing.T) {
	suite.Long(t, "another kernel, built by the Go command")
	needNbclient(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "gophernotes")
	if out, err := exec.Command("../.ci/gophernotes", program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	spec, err := json.Marshal(map[string]any{"argv": []string{program, "{connection_file}"},
		"display_name": "gophernotes", "language": "go"})
	if err != nil {
		t.Fatal(err)
	}
	kernel := filepath.Join(dir, "share", "jupyter", "kernels", "gophernotes")
	if err := os.MkdirAll(kernel, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kernel, "kernel.json"), spec, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range all(t) {
		if b, err := os.ReadFile(name); err != nil || strings.Contains(string(b), "Explore(") { // a function of our kernel
			continue
		}
		runPython(t, append(os.Environ(), "JUPYTER_PATH="+filepath.Join(dir, "share", "jupyter")), "execute.py",
			append([]string{"gophernotes", name}, smoke(t, name)...)...)
	}
}
