package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

var (
	root         = filepath.Join("..", "..", "..")
	codeBlock    = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// pages returns the paths of the Markdown files of the project.
func pages(t *testing.T) []string {
	var names []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			d.Name() == "out" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 20 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	return names
}

// readText returns the text of a file, or ends the test.
func readText(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(name)))
}

// anchors returns the anchors that GitHub makes for the headings of a page.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, line := range strings.Split(codeBlock.ReplaceAllString(text, ""), "\n") {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			out[strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title))] = true
		}
	}
	return out
}

// TestLinks checks that each link of a page to a file of the project, and to a heading in it, has a target.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text := codeBlock.ReplaceAllString(readText(t, page), "")
		for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			name, heading, _ := strings.Cut(match[1], "#")
			target := filepath.Join(filepath.Dir(page), name)
			if name == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, match[1])
			} else if heading != "" && !anchors(readText(t, target))[heading] {
				t.Errorf("%s: the link %s leads to no heading", page, match[1])
			}
		}
	}
}

// TestDocumentedPrograms checks the programs in the documentation. The program of docs/go.md must print the output that
// the page shows, and the Go code of the README must run as a program once the imports that it uses are added.
func TestDocumentedPrograms(t *testing.T) {
	var program, output string
	for _, match := range codeBlock.FindAllStringSubmatch(readText(t, filepath.Join(root, "docs", "go.md")), -1) {
		switch match[1] {
		case "go":
			program += match[2]
		case "text":
			output += match[2]
		}
	}
	testkit.Equal(t, runProgram(t, program), output)
	for _, match := range codeBlock.FindAllStringSubmatch(readText(t, filepath.Join(root, "README.md")), -1) {
		if match[1] == "go" {
			imports := ""
			for _, path := range []string{"context", "fmt", "log", "datasets", "krrlab", "krrlab/kernel"} {
				if strings.Contains(match[2], path[strings.LastIndex(path, "/")+1:]+".") {
					if strings.Contains(path, "/") || path == "datasets" || path == "krrlab" {
						path = "github.com/krrlab/lab/" + path
					}
					imports += fmt.Sprintf("import %q\n", path)
				}
			}
			testkit.Contains(t, runProgram(t, "package main\n"+imports+"func main() {\n"+match[2]+"}\n"), "converged")
		}
	}
}

// runProgram builds and runs a program of one file within this module and returns its output.
func runProgram(t *testing.T, program string) string {
	t.Helper()
	file, dir := filepath.Join(t.TempDir(), "main.go"), t.TempDir()
	testkit.OK(t, os.WriteFile(file, []byte(program), 0o644))
	exe := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-ldflags=-s", "-o", exe, file)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, program)
	}
	cmd := exec.Command(exe)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestPinnedActions checks that the workflows of the hosted CI pin each action to a commit, because a tag can be moved
// to other code.
func TestPinnedActions(t *testing.T) {
	names := testkit.Must(filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml")))
	uses := regexp.MustCompile(`uses: (\S+)`)
	pinned := regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40}$`)
	found := 0
	for _, name := range names {
		for _, match := range uses.FindAllStringSubmatch(readText(t, name), -1) {
			if found++; !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s is not pinned by a commit", filepath.Base(name), match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no workflow was found")
	}
}
