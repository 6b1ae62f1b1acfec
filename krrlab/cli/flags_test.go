package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestFlagsBeforeData checks that a wrong command line is reported before any file is opened: the data files and models
// that these commands name do not exist. The replacer requires that each message ends with the command that prints the
// help.
func TestFlagsBeforeData(t *testing.T) {
	runScript(t, strings.ReplaceAll(`
2$ fit --train no.csv --solver qr
	"qr"
2$ fit --train no.csv --precond magic
	"magic"
2$ fit --train no.csv --precond "features form=Q"
	"Q"
2$ fit --train no.csv --storage f32
	"f32"
2$ fit --train no.csv --residual never
	"never"
2$ fit --train no.csv --memory 20X
	--memory "20X"
2$ fit --train no.csv --plot x.jpg
	x.jpg
2$ fit --train no.csv --checkpoint x --solver direct
	--checkpoint and --solver direct exclude each other
2$ fit --train no.csv --solver cg --precond nystrom
	--solver cg has no preconditioner
2$ fit --train no.csv --solver direct --precond "features form=L"
	--solver direct has no preconditioner
2$ fit --train no.csv --precond "none sketch=features:8"
	"sketch=features:8": the preconditioner none has no such option: it has none
2$ fit --data mnist --json -
	--json -: want the name of a file; the output stream is /dev/stdout
2$ quality --data mnits
	unknown data set "mnits"
2$ quality --train no.csv --storage f32
	"f32"
2$ statdim --train no.csv --memory 20X
	--memory "20X"
2$ statdim --train no.csv --plot x.jpg
	x.jpg
2$ statdim --train no.csv --test no.csv
	unknown flag: --test
2$ multilevel --train no.csv --confidence 95
	krrlab: --confidence 95: want
2$ sketch-size --train no.csv --test no.csv
	want one of kappa, theorem7
2$ sketch-size --train no.csv --preset paper
	--preset, --constants and --conditions-up-to go with --test theorem7
2$ sketch-size --train no.csv --conditions-up-to -1
	go with --test theorem7
2$ sketch-size --train no.csv --test theorem7 --kappa-target 5
	--kappa-target goes with --test kappa
2$ verify no.krr --memory 20X
	--memory "20X"
2$ verify no.krr --data mnits
	unknown data set "mnits"
2$ verify no.krr --plot x.jpg
	x.jpg
2$ verify
	krrlab: want one model
2$ predict --model no.krr --in no.csv --format cvs
	--format "cvs"
2$ predict --model no.krr --data mnits:test
	unknown data set "mnits"
2$ predict --model no.krr --data mnist
	want NAME:test or NAME:train
2$ data info mnits
	unknown data set "mnits"
2$ data fetch mnits
	unknown data set "mnits"
2$ data info
	krrlab: want one name
2$ notebook run
	(see krrlab notebook run --help)
2$ notebook install --user --sys-prefix
	--user and --sys-prefix exclude each other
`, "\n\t", "\n\t --help)\n\t"))
}

// TestDidYouMean checks the suggestion "did you mean" after a mistyped command, flag or data set, and that there is
// none if no name is similar.
func TestDidYouMean(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": "1,2\n"})
	runScript(t, `
2$ fti
	krrlab: unknown argument or command "fti"; did you mean fit? (see krrlab --help)
2$ data lsit
	krrlab: unknown argument or command "lsit"; did you mean list? (see krrlab data --help)
2$ lambda_p
	krrlab: unknown argument or command "lambda_p"; did you mean lambda-p? (see krrlab --help)
2$ help fti
	krrlab: unknown argument or command "fti"; did you mean fit? (see krrlab help --help)
2$ help data lsit
	krrlab: unknown argument or command "lsit"; did you mean list? (see krrlab help --help)
2$ regress
	krrlab: unknown argument or command "regress" (see krrlab --help)
2$ fit a.csv
	krrlab: unknown argument or command "a.csv"; did you mean --train a.csv? (see krrlab fit --help)
2$ predict a.csv
	krrlab: nothing to predict: want --data NAME:test or --in FILE (see krrlab predict --help)
2$ predict --model m.krr a.csv
	krrlab: unknown argument or command "a.csv"; did you mean --in a.csv? (see krrlab predict --help)
2$ predict m.krr a.csv
	krrlab: unknown argument or command "a.csv"; did you mean --in a.csv? (see krrlab predict --help)
2$ fti --train a.csv
	krrlab: unknown argument or command "fti"; did you mean fit? (see krrlab --help)
2$ fit --sigma abc
	krrlab: --sigma "abc": want a number, one for each feature separated by commas, or a file of numbers
2$ fit --n 1.5
	krrlab: --n "1.5": want a whole number (see krrlab fit --help)
2$ fit --seed -1
	krrlab: --seed "-1": want a whole number, at least 0 (see krrlab fit --help)
2$ fit --rank-timeout 5
	krrlab: --rank-timeout "5": want a time such as 30s or 5m (see krrlab fit --help)
2$ fit --resume=x
	krrlab: --resume "x": want true or false (see krrlab fit --help)
2$ fit --data synthetic-regression --stop labels=5
	krrlab: --stop: labels=5: want a share above 0 and below 1, such as labels=1% (see krrlab fit --help)
2$ fit b.csv
	krrlab: unknown argument or command "b.csv" (see krrlab fit --help)
2$ fit --trian a.csv
	krrlab: unknown flag: --trian; did you mean --train? (see krrlab fit --help)
2$ fit --thread 2
	krrlab: unknown flag: --thread; did you mean --threads? (see krrlab fit --help)
2$ fit --epochs 2
	krrlab: unknown flag: --epochs (see krrlab fit --help)
2$ fit -q
	krrlab: unknown shorthand flag: 'q' in -q (see krrlab fit --help)
2$ fit --data mnits
	krrlab: unknown data set "mnits": krrlab data list shows the names; did you mean mnist? (see krrlab fit --help)
2$ data info iris
	krrlab: unknown data set "iris": krrlab data list shows the names (see krrlab data info --help)
2$ fit --train a --sigma 0
	krrlab: --sigma "0": want a positive number (see krrlab fit --help)
2$ fit --train a --sigma -Inf
	krrlab: --sigma "-Inf": want a positive number (see krrlab fit --help)
2$ fit --train a.csv --alpha 1
	did you mean --lambda?
2$ fit --train a.csv --sep ;
	krrlab: unknown flag: --sep; say separator=… in --format (see krrlab fit --help)
1$ fit --train a.csv --separator ;
	with cells separated by a semicolon
2$ fit --train a.csv --neighbors 9
	unknown flag: --neighbors; say --precond "vecchia neighbors=…" (see
2$ fit --train a.csv --degree 2
	unknown flag: --degree; say --kernel "polynomial degree=…" (see
2$ predict m.krr --degree 2
	unknown flag: --degree (see
2$ predict --input a.csv
	unknown flag
1$ fit --train -
	want a file; /dev/stdin is what is piped in
2$ fit --train a.csv --format separator=ab
	want auto, one character, or comma
2$ fit --train a.csv --format header=maybe
	want one of auto, yes, no
1$ fit --train a.csv --format comment=//
	want one character, or none
2$ fit --data moons --format comment=%
	--format comment goes with --train`)
}

// plainPrecond is a user-defined kind of preconditioner without optional methods, M = I.
type plainPrecond struct {
	X int `flag:"x"`
}

func (plainPrecond) String() string { return "plain" }

func (plainPrecond) Make(context.Context, stage.Bench) (pcg.Preconditioner, error) { return nil, nil }

var registerPlain = sync.OnceValue(func() error {
	return stage.RegisterPreconditioner(stage.Kind{Name: "mylab.plain", Zero: plainPrecond{}})
})

// TestHelp checks that the help lists the exit codes and a preconditioner that the program has registered, and that the
// help of a flag without a default shows no empty default.
func TestHelp(t *testing.T) {
	testkit.Contains(t, runScript(t, "$ help"), "Exit codes: 0 done; 1 error; 2 command line; 3 tolerance not reached")
	testkit.OK(t, registerPlain())
	testkit.Contains(t, strings.Join(strings.Fields(runScript(t, "$ fit --help")), " "), "mylab.plain")
	for _, name := range []string{"statdim", "lambda-p", "sketch-size"} {
		if _, out, _ := runCommand(t, name, "--help"); strings.Contains(out, "(default [])") ||
			strings.Contains(out, "(default )") || !strings.Contains(out, "--train") {
			t.Errorf("the help of %s shows an empty default, or no --train:\n%s", name, out)
		}
	}
	testkit.Contains(t, stage.KindNamed("mylab.plain").AdviceIfBroken, "krrlab compare --with 'mylab.plain…'")
}

// TestOutputBeforeNotebook checks that a notebook is not run if its output file cannot be written.
func TestOutputBeforeNotebook(t *testing.T) {
	enterTempFolder(t, map[string]string{"n.ipynb": `{"cells": [{"cell_type": "code", "metadata": {}, "source": ` +
		`"import \"os\"\nos.WriteFile(\"ran\", nil, 0o644)"}], ` +
		`"metadata": {}, "nbformat": 4, "nbformat_minor": 5}`})
	runScript(t, `
1$ notebook run n.ipynb --out no/x.ipynb
	krrlab: cannot write no/x.ipynb: no such file or directory`)
	if _, err := os.Stat("ran"); err == nil {
		t.Error("the notebook was run")
	}
}

// TestFlagsWithoutEffect checks that a flag without effect is either refused or reported by a note, and that flags with
// an effect get no such note.
func TestFlagsWithoutEffect(t *testing.T) {
	runScript(t, strings.NewReplacer("DATA", "--data synthetic-classes --n 80").Replace(`
1$ lambda-p DATA --columns 99
	krrlab: iterations counted with 99 right-hand sides: there are 5; take at most as many (Columns, --columns)
$ fit DATA --precond "features sketch=features:40"
	note: a chain of one level is 40 features without a sketch
$ fit DATA --precond "features sketch=features:40,srht:20"
	!note:
$ multilevel DATA --levels features:40
	note: a chain of one level is 40 features without a sketch
$ sketch-size DATA --test theorem7 --first 8 --max 16
	Theorem 7, kappa5
$ sketch-size --help
	!--holdout
$ multilevel DATA --levels features:40,srht:20
	!note:
$ fit DATA --lambda 1 --precond features
	solver       pcg,
	!note:
$ fit DATA --lambda 1 --precond nystrom
	solver       pcg,
	!note:
2$ fit DATA --lambda 1 --solver cg --precond "auto features=9"
	--solver cg has no preconditioner: leave --precond out
2$ fit DATA --lambda 1 --precond "none features=9" --solver pcg
	the preconditioner none has no such option: it has none`))
}

// TestOutputOverwritesInput checks that an output that would overwrite an input or another output is refused, also
// through a symbolic link or another spelling of the path. The null device may be named twice.
func TestOutputOverwritesInput(t *testing.T) {
	text := randomRows(40, nil)
	enterTempFolder(t, map[string]string{"a.csv": text})
	if err := os.Symlink("a.csv", "link"); err != nil {
		t.Skip(err)
	}
	dir := testkit.Must(os.Getwd())
	runScript(t, `
2$ fit --train a.csv --out a.csv
	the file of --train
2$ fit --train a.csv --json link
	the file of --train
2$ fit --train a.csv --out other.json --json ../`+filepath.Base(dir)+`/other.json
	the file of --json
2$ statdim --train a.csv --json a.csv
	the file of --train
2$ plan --train a.csv --json p.svg --plot p.svg
	the file of --json
2$ verify a.csv --json link
	the file of --model
2$ predict --model other.json --in a.csv --out link
	the file of --in
$ fit --train a.csv --test a.csv --out `+os.DevNull+" --json "+os.DevNull)
	testkit.Equal(t, string(readFile(t, "a.csv")), text)
}

// fullDisk is an output stream on a full disk: every write fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no space left")}
}

// TestFullDisk checks that a command exits with an error if its results cannot be printed.
func TestFullDisk(t *testing.T) {
	for _, args := range []string{"version", "licenses", "help", "data list"} {
		var stderr strings.Builder
		code := Main(t.Context(), strings.Fields(args),
			Env{Stdout: fullDisk{}, Stderr: &stderr, UseBLAS: useGoBLAS})
		if code != exitError || stderr.String() != "krrlab: cannot write the output: no space left\n" {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
	}
	testkit.Equal(t, Main(t.Context(), []string{"version"}, Env{Stdout: io.Discard, Stderr: io.Discard,
		UseBLAS: useGoBLAS}), exitOK)
}

// TestFlagsOfIterations checks that flags that apply only to an iterative solver make the automatic choice of the
// solver an iterative one.
func TestFlagsOfIterations(t *testing.T) {
	enterTempFolder(t, nil)
	for args, want := range map[string]string{"": "direct", `--precond "features form=L"`: "pcg",
		"--checkpoint kept": "pcg"} {
		runScript(t, "$ fit --data synthetic-regression --n 60 --lambda 1 --json r.json "+args)
		testkit.Equal[any](t, readReport(t, "r.json")["solver"], want, args)
	}
}

// TestQuiet checks that --quiet suppresses everything but the one line that says why a fit or a verification failed;
// notes about resumed checkpoints do not appear either.
func TestQuiet(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomRows(100, nil)})
	if code, out, stderr := runCommand(t, "fit", "--train", "train.csv", "--quiet"); code != 0 || out != "" ||
		stderr != "" {
		t.Errorf("exit %d, printed %q %q", code, out, stderr)
	}
	for _, args := range []string{"fit --max-iter 3", "fit --max-iter 5", "verify m.krr"} {
		args += " --train train.csv --quiet"
		if strings.HasPrefix(args, "fit") {
			args += " --solver cg --sigma 3 --lambda 1e-6 --out m.krr --checkpoint \"kept every=1it\" --resume"
		}
		testkit.Equal(t, runScript(t, "3$ "+args+"\n!resum"), "", args)
	}
}

// TestFetchInterrupted checks that an interrupted download says that complete files are kept and how to continue.
func TestFetchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := runCommandContext(t, ctx, "data", "fetch", "mnist"); code != exitInterrupted ||
		!strings.Contains(stderr, "whole files are kept: run it again for the others") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestNotebookInterrupted interrupts a notebook in a cell with an endless loop. The command must exit with the
// interruption code, not run the next cell, and leave the notebook file unchanged.
func TestNotebookInterrupted(t *testing.T) {
	dir := t.TempDir()
	text := `{"cells": [
 {"cell_type": "code", "metadata": {}, "source": "import \"os\"\nos.WriteFile(\"begun\", nil, 0o644)\nfor { }"},
 {"cell_type": "code", "metadata": {}, "source": "os.WriteFile(\"second\", nil, 0o644)"}
], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`
	file := writeFile(t, dir, "f.ipynb", text)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, stderr := runCommandContext(t, ctx, "notebook", "run", file)
	if code != exitInterrupted || !strings.Contains(stderr, "interrupted") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != text {
		t.Errorf("the notebook is changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("the next cell was run")
	}
}

// TestOptionsInFlags checks options that are written inside the value of another flag, such as --format "csv
// separator=;". Their errors must name the flag and the option. Each also has a hidden flag with the same effect. In
// the table of errors, "|" ends an argument.
func TestOptionsInFlags(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": strings.ReplaceAll(randomRows(40, nil), ",", ";")})
	runScript(t,
		`$ fit --train a.csv --lambda 1 --json out.json --plot "a.svg size=3x2 title=A b" --format "csv separator=; `+
			`header=no" --kernel "polynomial gamma=0.1 degree=2" --storage "float64 tiles=dense"`)
	fitReport := readReport(t, "out.json")
	testkit.Contains(t, fmt.Sprint(fitReport["read"]), "separator:semicolon (--format separator)",
		"header:no (--format header)")
	testkit.Equal(t, fmt.Sprint(fitReport["kernel"]), "map[coef0:1 degree:2 gamma:0.1 name:polynomial]")
	runScript(t,
		`$ fit --train a.csv --lambda 1 --json hidden.json --plot b.svg --size 3x2 --title "A b" --format csv `+
			`--separator ; --header no --kernel "polynomial gamma=0.1 degree=2" --storage float64 --tiles dense`)
	sameOptions := readReport(t, "hidden.json")
	for _, key := range []string{"kernel", "read", "storage", "true_residual"} {
		testkit.Equal(t, fmt.Sprint(sameOptions[key]), fmt.Sprint(fitReport[key]), key)
	}
	testkit.Contains(t, string(readFile(t, "a.svg")), "A b", `width="216pt"`)
	enterTempFolder(t, map[string]string{" b.csv": strings.ReplaceAll(randomRows(40, nil), ",", " ")})
	runScript(t, `$ fit --train " b.csv" --format separator=blank --json b.json`)
	testkit.Contains(t, fmt.Sprint(readReport(t, "b.json")["read"]), "separator:blank (--format separator)")
	for args, want := range map[string]string{
		"--format|csv separator= header=no":         "--format separator \"\": want a character, or blank for a blank",
		"--plot|a.svg solv=b.svg":                   "there is no option solv=: want title= or size= or solve=",
		"--checkpoint|ck evry=30s":                  "there is no option evry=: want every=",
		"--storage|auto tiles=dense|--tiles|sparse": `--storage tiles: both "dense" and "sparse" are given`,
		"--separator|":                              "--format separator \"\": want a character, or blank for a blank",
		"--dates|a order=day|--dates|b order=month": `--dates order: both "day" and "month" are given`,
		"--format|comment=":                         "--format comment \"\": want one character, or none",
		"--format|separator=ab":                     "separator \"ab\": want auto, one character",
		"--tune=distance=far":                       "--tune distance \"far\": want one of",
		"--precond|auto race=none race=nope":        "--precond \"nope\": want one of",
		"--plot|a.svg size=5":                       "--plot size \"5\": want width and height",
	} {
		code, _, stderr := runCommand(t, append([]string{"fit", "--train", "a.csv"}, strings.Split(args, "|")...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, want %d and %q: %s", args, code, exitUsage, want, stderr)
		}
	}
}
