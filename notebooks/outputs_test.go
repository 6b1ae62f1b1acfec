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

// cell is a cell of a notebook file.
type cell struct {
	Type     string `json:"cell_type"` // code, markdown or raw
	Source   any    `json:"source"`    // see joinText
	Count    int    `json:"execution_count"`
	Metadata struct{ Tags []string }
	Outputs  []struct {
		Type string `json:"output_type"`
		Text any    `json:"text"`
		Data map[string]any
	}
}

// readCells reads the cells of a notebook, except a cell that assigns parameters of a run.
func readCells(t *testing.T, name string) []cell {
	t.Helper()
	content, err := os.ReadFile(name)
	var file struct{ Cells []cell }
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return slices.DeleteFunc(file.Cells, func(c cell) bool { return slices.Contains(c.Metadata.Tags, "injected-parameters") })
}

// joinText returns a text that a notebook file stores either as one string or as a list of lines.
func joinText(v any) string {
	lines, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprint(&text, line)
	}
	return text.String()
}

var (
	// A cell that showed its progress keeps a line with the time that it took.
	progressLine = regexp.MustCompile(`^[\d.]+ seconds$`)
	// A line in the output of a stage has a name, at least two blanks, and a value. Group 1 is the name.
	labeledLine = regexp.MustCompile(`(?m)^([\pL][\pL ()⁻¹₂‖]*?)  +\S`)
	// Group 1 is the start of the header of a column.
	columnHeader = regexp.MustCompile(`<th[^>]*>\s*([^<]+)`)
)

// outputForm describes the outputs of a cell by properties that depend neither on the number of points nor on the speed
// of the machine: the representations of each output, the names of its lines, and the columns of its tables.
func outputForm(c cell) (out []string) {
	for _, output := range c.Outputs {
		text := joinText(output.Data["text/plain"])
		if progressLine.MatchString(text) {
			continue
		}
		line := output.Type
		if output.Type != "stream" {
			line += " " + strings.Join(slices.Sorted(maps.Keys(output.Data)), " ")
		}
		names := map[string]bool{}
		for _, match := range labeledLine.FindAllStringSubmatch(text, -1) {
			names[strings.TrimPrefix(match[1], "milli")] = true
		}
		for _, match := range columnHeader.FindAllStringSubmatch(joinText(output.Data["text/html"]), -1) {
			names[strings.TrimPrefix(match[1], "milli")] = true
		}
		// These lines are printed for data from files, and a notebook with few points takes a built-in problem.
		for _, fileLine := range []string{"read", "errors", "classes", "confusion"} {
			delete(names, fileLine)
		}
		out = append(out, line+": "+strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return slices.Compact(out)
}

// checkSavedForm checks that the outputs saved in a notebook have the same form as those of a new run with the present
// code.
func checkSavedForm(t *testing.T, name, run string) {
	t.Helper()
	saved, now := readCells(t, name), readCells(t, run)
	for i, cell := range saved {
		if oldForm, newForm := outputForm(cell), outputForm(now[i]); !slices.Equal(oldForm, newForm) {
			t.Errorf("%s: the outputs of cell [%d] are not those of the present code; run: bin/krrlab notebook "+
				"run notebooks/%s\nkept %q\n now %q", name, cell.Count, name, oldForm, newForm)
		}
	}
}

// TestPictures converts notebooks with Debian's nbconvert. Web pages and slides must show every picture of the
// notebook, and scripts must contain the code of all cells. By default only two notebooks are converted to web pages;
// KRRLAB_LONG=1 converts all of them to all formats. If an SVG picture has no other form in the notebook, nbconvert
// shows it as an svg element without a path, which does not count as shown.
func TestPictures(t *testing.T) {
	if out, err := exec.Command(python, "-m", "nbconvert", "--version").CombinedOutput(); err != nil {
		t.Skipf("no nbconvert for %s (apt-get install python3-nbconvert): %s", python, out)
	}
	picture := regexp.MustCompile(`<img\b|<svg\b`)
	shown := regexp.MustCompile(`<img\b[^>]*\bsrc="data:image/[^"]{100,}|<svg\b[^>]*>\s*<`)
	dir, names, formats := t.TempDir(), allNotebooks(t), []string{"html", "slides", "script"}
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
		for _, cell := range readCells(t, name) {
			if cell.Type == "code" {
				code = append(code, joinText(cell.Source))
			}
			for _, output := range cell.Outputs {
				count := len(picture.FindAllString(joinText(output.Data["text/html"]), -1))
				if output.Data["image/png"] != nil || output.Data["image/svg+xml"] != nil {
					count = max(count, 1)
				}
				want += count
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
