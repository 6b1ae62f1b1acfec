package notebooks

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cell is one of a notebook's file.
type cell struct {
	Type     string `json:"cell_type"`
	Source   any    `json:"source"`
	Count    int    `json:"execution_count"`
	Metadata struct{ Tags []string }
	Outputs  []struct {
		Type string `json:"output_type"`
		Text any    `json:"text"`
		Data map[string]any
	}
}

// cells reads a notebook, without the cell that assigns parameters.
func cells(t *testing.T, name string) []cell {
	t.Helper()
	b, err := os.ReadFile(name)
	var nb struct{ Cells []cell }
	if err == nil {
		err = json.Unmarshal(b, &nb)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return slices.DeleteFunc(nb.Cells, func(c cell) bool { return slices.Contains(c.Metadata.Tags, "injected-parameters") })
}

// joined is a text that a notebook keeps whole or by lines.
func joined(v any) string {
	lines, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprint(&b, l)
	}
	return b.String()
}

var (
	took = regexp.MustCompile(`^[\d.]+ seconds$`) // what is left of a line of progress
	// a line of a stage: its name, two blanks or more, and what it says
	labeled = regexp.MustCompile(`(?m)^([\pL][\pL ()⁻¹₂‖]*?)  +\S`)
	columns = regexp.MustCompile(`<th[^>]*>\s*([^<]+)`)
)

// form is what a cell's outputs have in common however many points it takes and however fast the machine is: in what
// representations each is, the names of its lines, and the columns of its tables.
func form(c cell) (out []string) {
	for _, o := range c.Outputs {
		text := joined(o.Data["text/plain"])
		if took.MatchString(text) {
			continue
		}
		line := o.Type
		if o.Type != "stream" {
			line += " " + strings.Join(slices.Sorted(maps.Keys(o.Data)), " ")
		}
		names := map[string]bool{}
		for _, m := range labeled.FindAllStringSubmatch(text, -1) {
			names[strings.TrimPrefix(m[1], "milli")] = true
		}
		for _, m := range columns.FindAllStringSubmatch(joined(o.Data["text/html"]), -1) {
			names[strings.TrimPrefix(m[1], "milli")] = true
		}
		for _, ofFiles := range []string{"read", "errors", "classes", "confusion"} { // not of the built-in problem
			delete(names, ofFiles)
		}
		out = append(out, line+": "+strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return slices.Compact(out)
}

// present reports where the outputs kept of a notebook have not the form that the present code gives them.
func present(t *testing.T, name, run string) {
	t.Helper()
	kept, now := cells(t, name), cells(t, run)
	for i, c := range kept {
		if a, b := form(c), form(now[i]); !slices.Equal(a, b) {
			t.Errorf("%s: the outputs of cell [%d] are not those of the present code; run: bin/krrlab notebook "+
				"run notebooks/%s\nkept %q\n now %q", name, c.Count, name, a, b)
		}
	}
}

// TestPictures converts notebooks with Debian's nbconvert, all of them where time is no matter: pages and slides have
// every picture of the notebook, and scripts have the code of all cells. nbconvert shows an SVG that has no other form
// beside it as an svg element without a path.
func TestPictures(t *testing.T) {
	if out, err := exec.Command(python, "-m", "nbconvert", "--version").CombinedOutput(); err != nil {
		t.Skipf("no nbconvert for %s (apt-get install python3-nbconvert): %s", python, out)
	}
	picture, shown := regexp.MustCompile(`<img\b|<svg\b`), regexp.MustCompile(`<img\b[^>]*\bsrc="data:image/[^"]{100,}|<svg\b[^>]*>\s*<`)
	dir, names, formats := t.TempDir(), all(t), []string{"html", "slides", "script"}
	if os.Getenv("KRRLAB_LONG") == "" {
		names, formats = []string{"00_start.ipynb", "02_statistical_dimension.ipynb"}, formats[:1]
	}
	for _, format := range formats {
		if out, err := exec.Command(python, append([]string{"-m", "nbconvert", "--to", format, "--output-dir", dir},
			names...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", format, err, out)
		}
	}
	pictures := 0
	for _, name := range names {
		want, code := 0, []string{}
		for _, c := range cells(t, name) {
			if c.Type == "code" {
				code = append(code, joined(c.Source))
			}
			for _, o := range c.Outputs {
				n := len(picture.FindAllString(joined(o.Data["text/html"]), -1))
				if o.Data["image/png"] != nil || o.Data["image/svg+xml"] != nil {
					n = max(n, 1)
				}
				want += n
			}
		}
		for _, format := range formats {
			suffix := map[string]string{"html": ".html", "slides": ".slides.html", "script": ".go"}[format]
			text, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(name, ".ipynb")+suffix))
			if err != nil {
				t.Fatal(err)
			}
			if format == "script" {
				for _, source := range code {
					if !strings.Contains(string(text), strings.TrimSpace(source)) {
						t.Errorf("%s: the script lacks %s", name, source)
					}
				}
			} else if got := len(shown.FindAll(text, -1)); got != want {
				t.Errorf("%s: nbconvert to %s shows %d of %d pictures", name, format, got, want)
			}
		}
		pictures += want
	}
	if pictures < len(names) {
		t.Errorf("%d pictures in %d notebooks", pictures, len(names))
	}
	t.Logf("%d pictures of %d notebooks, in %v", pictures, len(names), formats)
}
