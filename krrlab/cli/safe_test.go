package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestControlCharacters checks that control characters in names of files, columns, labels and flags never reach the
// terminal, in the results and errors of every command that prints them. Otherwise a data file could send commands to
// the terminal.
func TestControlCharacters(t *testing.T) {
	dir := t.TempDir()
	control := "\x1b[2J\u009b1m\x1b]0;x\a"
	rows := strings.ReplaceAll(randomRows(60, []string{"lo", "hi" + control}), "hi", "\"hi") // in quotes
	rows = "a" + control + ",b,c,y" + control + "\n" + strings.ReplaceAll(rows, control+"\n", control+"\"\n")
	train, modelFile, out := writeFile(t, dir, "t"+control+".csv", rows), filepath.Join(dir, "m"+control+".krr"),
		filepath.Join(dir, "p"+control+".csv")
	for _, args := range [][]string{
		{"fit", "--train", train, "--holdout", "0.3", "--out", modelFile}, {"fit", "--train", train, "--target", "0" +
			control}, {"tune", "--train", train},
		{"model", "info", modelFile}, {"model", "info", modelFile + control}, {"verify", modelFile, "--train", train},
		{"predict", modelFile, "--in",
			train, "--out", out},
		{"predict", modelFile, "--in", train, "--out", out, "--interval", "80%", "--probabilities"}, {"fit", "--train",
			train, "--target", "a" + control}, {control}, {"loo", "--train", train},
		{"fit", "--train", train, "--solver", control},
	} {
		_, out, stderr := runCommand(t, args...)
		if text := out + stderr; text == "" || strings.ContainsFunc(text,
			func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("%q prints nothing, or control characters: %q", args, text)
		}
	}
}

// TestQuotedCommandLine checks that the command line that tune prints is quoted correctly: bash must pass the same
// values of the data flags to krrlab fit, for names full of special characters.
func TestQuotedCommandLine(t *testing.T) {
	f, set := newFitFlags(), pflag.NewFlagSet("tune", pflag.ContinueOnError)
	addOptions(set, f.flags)
	args := []string{"--train", "a`id`; it's \"$HOME\" \\ é.csv", "--test", "[ab]*.csv", "--drop", `"a,b",[c],d e`,
		"--target", "-1", "--weights", "~!{a,b}\x1b\n#"}
	testkit.OK(t, set.Parse(args))
	line := f.fitCommandLine()
	out, err := exec.Command("bash", "-c", "printf '%s\\0' "+line).Output()
	if err != nil {
		t.Skip("there is no bash")
	}
	parsed := pflag.NewFlagSet("fit", pflag.ContinueOnError)
	addOptions(parsed, schema.Of(&dataFlags{}))
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if err := parsed.Parse(words[2:]); err != nil || words[1] != "fit" {
		t.Fatalf("%q: %v", words, err)
	}
	set.Visit(func(f *pflag.Flag) {
		testkit.Equal(t, parsed.Lookup(f.Name).Value.String(), f.Value.String(), f.Name, f.Value, line)
	})
}
