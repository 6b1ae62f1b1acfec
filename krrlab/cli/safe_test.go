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

// TestForeignNames checks that control characters in names of files, columns, labels and flags never reach the
// terminal, in the results and errors of every command that prints them. Otherwise a data file could send commands to
// the terminal.
func TestForeignNames(t *testing.T) {
	dir := t.TempDir()
	evil := "\x1b[2J\u009b1m\x1b]0;x\a"
	rows := strings.ReplaceAll(table(60, []string{"lo", "hi" + evil}, false), "hi", "\"hi") // in quotes
	rows = "a" + evil + ",b,c,y" + evil + "\n" + strings.ReplaceAll(rows, evil+"\n", evil+"\"\n")
	train, m, out := write(t, dir, "t"+evil+".csv", rows), filepath.Join(dir, "m"+evil+".krr"), filepath.Join(dir,
		"p"+evil+".csv")
	for _, args := range [][]string{
		{"fit", "--train", train, "--holdout", "0.3", "--out", m}, {"fit", "--train", train, "--target", "0" +
			evil}, {"tune", "--train", train},
		{"model", "info", m}, {"model", "info", m + evil}, {"verify", m, "--train", train}, {"predict", m, "--in",
			train, "--out", out},
		{"predict", m, "--in", train, "--out", out, "--interval", "80%", "--probabilities"}, {"fit", "--train", train,
			"--target", "a" + evil}, {evil}, {"loo", "--train", train},
		{"fit", "--train", train, "--solver", evil},
	} {
		_, out, errs := command(t, args...)
		if text := out + errs; text == "" || strings.ContainsFunc(text,
			func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("%q: %q", args, text)
		}
	}
}

// TestPasted checks that the command line that tune prints is quoted correctly: bash must pass the same values of the
// data flags to krrlab fit, for names full of special characters.
func TestPasted(t *testing.T) {
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
	again := pflag.NewFlagSet("fit", pflag.ContinueOnError)
	addOptions(again, schema.Of(&dataFlags{}))
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if err := again.Parse(words[2:]); err != nil || words[1] != "fit" {
		t.Fatalf("%q: %v", words, err)
	}
	set.Visit(func(f *pflag.Flag) {
		testkit.Equal(t, again.Lookup(f.Name).Value.String(), f.Value.String(), f.Name, f.Value, line)
	})
}
