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

// python is Debian's Python interpreter, for which its packages python3-nbclient and jupyter-client are installed.
const python = "/usr/bin/python3"

// smokeParameters returns the parameters with which a notebook uses few points, or none in the long suite, which runs
// the notebooks in full.
func smokeParameters(t *testing.T, name string) []string {
	t.Helper()
	if suite.Scale(0, 0, 1) == 1 {
		return nil
	}
	return fewPoints(t, name)
}

// fewPoints returns the parameters, saved in the metadata of a notebook, with which it uses few points.
func fewPoints(t *testing.T, name string) []string {
	t.Helper()
	var file struct {
		Metadata struct{ Krrlab struct{ Smoke []string } }
	}
	content, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Metadata.Krrlab.Smoke
}

// allNotebooks returns the file names of the notebooks.
func allNotebooks(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("*.ipynb")
	if err != nil || len(names) == 0 {
		t.Fatalf("no notebooks: %v", err)
	}
	return names
}

// shortSuite lists the notebooks that make test runs, some of each kind; the long suite runs all.
var shortSuite = []string{"00_start.ipynb", "04_multilevel.ipynb", "09_plan.ipynb", "11_tuning.ipynb",
	"14_panels.ipynb", "table1.ipynb"}

// useOpenBLAS uses OpenBLAS until the test ends, if it is installed.
func useOpenBLAS(t *testing.T) {
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.UseLibrary(lib)
		t.Cleanup(func() { accel.UseLibrary(nil) })
	}
}

// TestRun runs the notebooks with krrlab itself, as the program does, and checks that the outputs saved in them have
// the form of the new ones.
func TestRun(t *testing.T) {
	useOpenBLAS(t)
	names := allNotebooks(t)
	if suite.Small() {
		names = shortSuite
	}
	for _, name := range names {
		start, out := time.Now(), filepath.Join(t.TempDir(), name)
		if err := notebook.Run(t.Context(), name, out, &notebook.Options{Version: "test",
			Parameters: smokeParameters(t, name)}); err != nil {
			t.Error(err)
			continue
		}
		checkSavedForm(t, name, out)
		t.Logf("%s: %.0f seconds", name, time.Since(start).Seconds())
	}
}

// machinePath matches absolute paths, which mean nothing on another machine.
var machinePath = regexp.MustCompile(`/(usr|home|root|tmp|var|work|opt|mnt)/[\w./-]+`)

// TestOutputsKept checks that every notebook was saved after a run from top to bottom without an error, and contains no
// path of the machine that ran it.
func TestOutputsKept(t *testing.T) {
	for _, name := range allNotebooks(t) {
		content, _ := os.ReadFile(name)
		if found := machinePath.Find(content); found != nil {
			t.Errorf("%s: a path of one machine: %s", name, found)
		}
		codeCells, outputs := 0, 0
		for _, cell := range readCells(t, name) {
			if cell.Type != "code" {
				continue
			}
			if codeCells++; cell.Count != codeCells {
				t.Errorf("%s: code cell %d has number %d; run: bin/krrlab notebook run notebooks/%s", name, codeCells, cell.Count,
					name)
				break
			}
			for _, output := range cell.Outputs {
				if outputs++; output.Type == "error" {
					t.Errorf("%s: code cell %d failed", name, codeCells)
				}
			}
		}
		if outputs == 0 {
			t.Errorf("%s: no outputs", name)
		}
	}
}

// TestSource checks two properties of the saved notebooks. No line of code is wider than 102 columns, which fit on a
// screen of 1,280 pixels. An SVG picture is also saved as PNG and in HTML, which are shown by nbconvert and in
// notebooks that are not trusted.
func TestSource(t *testing.T) {
	for _, name := range allNotebooks(t) {
		for _, cell := range readCells(t, name) {
			for line := range strings.Lines(joinText(cell.Source)) {
				if width := len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t",
					"    "))); cell.Type == "code" && width > 102 {
					t.Errorf("%s: a line of %d columns: %s", name, width, line)
				}
			}
			for _, output := range cell.Outputs {
				if output.Data["image/svg+xml"] != nil && (output.Data["image/png"] == nil || output.Data["text/html"] == nil) ||
					strings.Contains(joinText(output.Data["text/html"]), "<svg") {
					t.Errorf("%s: a drawing without an image; run: bin/krrlab notebook run notebooks/%s", name, name)
				}
			}
		}
	}
}

// TestPage checks that each test named on the page docs/notebook.md exists.
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
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(content)
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "`Test") {
			continue
		}
		rows++
		for _, match := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1) {
			if !strings.Contains(tests.String(), "func "+match[1]+"(") {
				t.Errorf("no test %s: %s", match[1], line)
			}
		}
	}
	if rows < 14 {
		t.Errorf("%d rows with a test", rows)
	}
}

// needNbclient skips a test if Debian's nbclient is not installed.
func needNbclient(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import nbclient, jupyter_client").CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Skipf("no nbclient for %s (apt-get install python3-nbclient jupyter-client): %s", python, lines[len(lines)-1])
	}
}

// installKernel builds krrlab, installs its kernel for both ways to interrupt a cell, by message and by signal, and
// returns the environment in which Jupyter finds it.
func installKernel(t *testing.T) []string {
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

// runPython runs a Python script of the folder testdata, which must succeed.
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

// TestJupyter checks the installed kernel with Debian's jupyter_client, and runs notebooks on it with nbclient. The
// default suite checks interruption by message and runs the first notebook; the long suite also checks interruption by
// signal and runs all notebooks.
func TestJupyter(t *testing.T) {
	env := installKernel(t)
	runPython(t, env, "conformance.py", "krrlab-message")
	names := allNotebooks(t)
	if suite.Small() {
		names = names[:1]
	} else {
		runPython(t, env, "conformance.py", "krrlab-signal")
	}
	for _, name := range names {
		runPython(t, env, "execute.py", append([]string{"krrlab-message", name}, smokeParameters(t, name)...)...)
	}
}

// TestGophernotes builds gophernotes, another Go kernel, with the bindings of this project and runs the notebooks on
// it, except those that call Explore, a function of krrlab's own kernel.
func TestGophernotes(t *testing.T) {
	suite.RequireLong(t, "another kernel, built by the Go command")
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
	for _, name := range allNotebooks(t) {
		// Only krrlab's kernel has Explore.
		if content, err := os.ReadFile(name); err != nil || strings.Contains(string(content), "Explore(") {
			continue
		}
		runPython(t, append(os.Environ(), "JUPYTER_PATH="+filepath.Join(dir, "share", "jupyter")), "execute.py",
			append([]string{"gophernotes", name}, smokeParameters(t, name)...)...)
	}
}
