package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLicenses checks that krrlab licenses names exactly the modules that are linked into the command on Linux, macOS
// and Windows, and prints a license text for each of them.
func TestLicenses(t *testing.T) {
	code, out, stderr := runCommand(t, "licenses")
	if code != exitOK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	table, texts, _ := strings.Cut(out, "\n\n")
	var got []string
	// The first three rows are the heading, krrlab and the standard library.
	for _, row := range strings.Split(table, "\n")[3:] {
		columns := strings.Fields(row)
		module := strings.Join(columns[len(columns)-2:], " ")
		got = append(got, module)
		if !strings.Contains(texts, "\n==== "+module+": ") {
			t.Errorf("no license text of %s", module)
		}
		if strings.Contains(module, "/gomacro ") && columns[0] != "MPL-2.0" {
			t.Errorf("gomacro's license is %s, want MPL-2.0", columns[0])
		}
	}
	var want []string
	for _, system := range []string{"linux", "darwin", "windows"} {
		goList := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "../cmd/krrlab")
		goList.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		modules, err := goList.Output()
		if err != nil {
			t.Skipf("go list: %v", err)
		}
		want = append(want, strings.Fields(strings.ReplaceAll(string(modules), " ", "@"))...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " ", "@")
	}
	if !slices.Equal(got, want) {
		t.Errorf("krrlab licenses has\n%s\nlinked are\n%s\nrun go generate ./krrlab/cli", strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
}
