package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFlagsBeforeData: what is wrong with a command line is said before any file is looked for, in
// one line that says where its help is.
func TestFlagsBeforeData(t *testing.T) {
	for args, want := range map[string]string{
		"fit --train no.csv --solver qr":                            `"qr"`,
		"fit --train no.csv --precond magic":                        `"magic"`,
		"fit --train no.csv --form Q":                               `"Q"`,
		"fit --train no.csv --storage f32":                          `"f32"`,
		"fit --train no.csv --residual never":                       `"never"`,
		"fit --train no.csv --memory 20X":                           `--memory "20X"`,
		"fit --train no.csv --plot x.jpg":                           "x.jpg",
		"fit --train no.csv --checkpoint x --solver direct":         "--checkpoint keeps the state of an iteration",
		"fit --train no.csv --solver cg --precond nystrom":          "--precond nystrom does not go with it",
		"fit --train no.csv --solver direct --form L":               "--form does not go with it",
		"fit --train no.csv --solver cg --orthogonal":               "--orthogonal does not go with it",
		"fit --train no.csv --solver direct --sketch features:8":    "--sketch does not go with it",
		"fit --train no.csv --precond none --orthogonal":            "--precond none has no preconditioner",
		"quality --train no.csv --precond none --orthogonal":        "--precond none has no preconditioner: --orthogonal does not go with it",
		"statdim --train no.csv --precond nystrom --orthogonal":     "--orthogonal goes with --precond features only",
		"lambda-p --train no.csv --precond nystrom --orthogonal":    "--orthogonal goes with --precond features only",
		"fit --train no.csv --no-such":                              "(see krrlab fit --help)",
		"fit a.csv":                                                 `krrlab: unknown argument or command "a.csv" (see krrlab fit --help)`,
		"fit --data mnits":                                          `unknown data set "mnits"`,
		"fit --data mnist --json -":                                 "--json -: want the name of a file; the output stream is /dev/stdout",
		"quality --data mnits":                                      `unknown data set "mnits"`,
		"quality --train no.csv --storage f32":                      `"f32"`,
		"statdim --train no.csv --memory 20X":                       `--memory "20X"`,
		"statdim --train no.csv --plot x.jpg":                       "x.jpg",
		"statdim --train no.csv --test no.csv":                      "unknown flag: --test",
		"multilevel --train no.csv --confidence 95":                 "krrlab: --confidence 95: want",
		"sketch-size --train no.csv --test no.csv":                  "want kappa or theorem7",
		"verify no.krr --memory 20X":                                `--memory "20X"`,
		"verify no.krr --data mnits":                                `unknown data set "mnits"`,
		"verify no.krr --plot x.jpg":                                "x.jpg",
		"verify":                                                    "krrlab: want one model",
		"predict --model no.krr --in no.csv --format cvs":           `--format "cvs"`,
		"predict --model no.krr --data mnits:test":                  `unknown data set "mnits"`,
		"predict --model no.krr --data mnist":                       "want NAME:test or NAME:train",
		"data info mnits":                                           `unknown data set "mnits"`,
		"data fetch mnits":                                          `unknown data set "mnits"`,
		"data info":                                                 "krrlab: want one name",
		"notebook run":                                              "(see krrlab notebook run --help)",
		"notebook install --user --sys-prefix":                      "--user, --prefix and --sys-prefix exclude each other",
		"ranks --n 2000000000000 --d 3":                             "--n 2000000000000: want 2 to 2^40",
		"ranks --n 100 --d 3 --memory 20X --markdown /nowhere/a.md": `--memory "20X"`,
	} {
		code, out, errs := command(t, strings.Fields(args)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, " --help)") {
			t.Errorf("%s: exit %d, printed %q\n%s", args, code, out, errs)
		}
	}
}

// TestMeant: a mistyped command, flag or data set is answered with the nearest, if one is near.
func TestMeant(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "a.csv", "1,2\n")
	for args, want := range map[string]string{
		"fti":                         `unknown argument or command "fti"; did you mean fit? (see krrlab --help)`,
		"data lsit":                   `unknown argument or command "lsit"; did you mean list? (see krrlab data --help)`,
		"lambda_p":                    `unknown argument or command "lambda_p"; did you mean lambda-p? (see krrlab --help)`,
		"help fti":                    `unknown argument or command "fti"; did you mean fit? (see krrlab help --help)`,
		"help data lsit":              `unknown argument or command "lsit"; did you mean list? (see krrlab help --help)`,
		"regress":                     `unknown argument or command "regress" (see krrlab --help)`,
		"fit a.csv":                   `unknown argument or command "a.csv"; did you mean --train a.csv? (see krrlab fit --help)`,
		"predict a.csv":               "nothing to predict: want --data NAME:test or --in FILE (see krrlab predict --help)",
		"predict --model m.krr a.csv": `unknown argument or command "a.csv"; did you mean --in a.csv? (see krrlab predict --help)`,
		"predict m.krr a.csv":         `unknown argument or command "a.csv"; did you mean --in a.csv? (see krrlab predict --help)`,
		"fti --train a.csv":           `unknown argument or command "fti"; did you mean fit? (see krrlab --help)`,
		"fit --sigma abc":             `--sigma "abc": want a number, one for each feature separated by commas, or a file of numbers (see krrlab fit --help)`,
		"fit --n 1.5":                 `--n "1.5": want a whole number (see krrlab fit --help)`,
		"fit --seed -1":               `--seed "-1": want a whole number, at least 0 (see krrlab fit --help)`,
		"fit --rank-timeout 5":        `--rank-timeout "5": want a time such as 30s or 5m (see krrlab fit --help)`,
		"fit --resume=x":              `--resume "x": want true or false (see krrlab fit --help)`,
		"fit --data synthetic-regression --stop labels=5": `--stop: labels=5: want a share above 0 and below 1, such as labels=1% (see krrlab fit --help)`,
		"fit b.csv":                  `unknown argument or command "b.csv" (see krrlab fit --help)`,
		"fit --trian a.csv":          `unknown flag: --trian; did you mean --train? (see krrlab fit --help)`,
		"fit --thread 2":             `unknown flag: --thread; did you mean --threads? (see krrlab fit --help)`,
		"fit --epochs 2":             `unknown flag: --epochs (see krrlab fit --help)`,
		"fit -q":                     `unknown shorthand flag: 'q' in -q (see krrlab fit --help)`,
		"fit --data mnits":           `unknown data set "mnits": krrlab data list shows the names; did you mean mnist? (see krrlab fit --help)`,
		"data info iris":             `unknown data set "iris": krrlab data list shows the names (see krrlab data info --help)`,
		"fit --train a --sigma 0":    `--sigma 0: want a positive number (see krrlab fit --help)`,
		"fit --train a --sigma -Inf": `--sigma -Inf: want a positive number (see krrlab fit --help)`,
	} {
		code, out, errs := command(t, strings.Fields(args)...)
		if want = "krrlab: " + want + "\n"; code != exitUsage || out != "" || errs != want {
			t.Errorf("%s: exit %d, printed %q\n%swant\n%s", args, code, out, errs, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"fit", "", 3}, {"", "fit", 3}, {"fti", "fit", 1}, {"kappa", "kapa", 1}, {"σ", "s", 1}, {"abc", "ca", 3}} {
		if got := typos(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestHelp: the exit codes are told, no default is told twice.
func TestHelp(t *testing.T) {
	if _, out, _ := command(t, "help"); !strings.Contains(out, "Exit codes: 0 done; 1 error; 2 command line; 3 tolerance not reached") {
		t.Error(out)
	}
	for _, name := range []string{"statdim", "lambda-p", "sketch-size"} {
		if _, out, _ := command(t, name, "--help"); strings.Contains(out, "(default [])") || strings.Contains(out, "(default )") || !strings.Contains(out, "--train") {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// TestOutputsFirst: where an output cannot be written nothing is run.
func TestOutputsFirst(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "file", "")
	write(t, dir, "n.ipynb", `{"cells": [{"cell_type": "code", "metadata": {}, "source": "import \"os\"\nos.WriteFile(\"ran\", nil, 0o644)"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`)
	for args, want := range map[string]string{
		"notebook run n.ipynb --out no/x.ipynb": "cannot write no/x.ipynb: no such file or directory",
	} {
		if code, out, errs := command(t, strings.Fields(args)...); code != exitError || out != "" || errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: exit %d, %s%swant %s", args, code, out, errs, want)
		}
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("the notebook was run")
	}
}

// TestNothingDropped: what would have no effect is refused, or said.
func TestNothingDropped(t *testing.T) {
	data := "--data synthetic-classes --n 80 "
	poly := "no orthogonal random features for polynomial(gamma=0.01, coef0=1, degree=3): gaussian, matern32, matern52 and user-defined kernels with a method Spread have them"
	for args, want := range map[string]string{
		"fit --kernel polynomial --orthogonal":                                     poly,
		"fit --kernel polynomial --orthogonal --sketch features:40":                poly,
		"lambda-p --kernel polynomial --orthogonal":                                poly,
		"multilevel --kernel polynomial --orthogonal --levels features:40,srht:20": poly,
		"fit --kernel laplacian --orthogonal":                                      "feature: " + strings.Replace(poly, "polynomial(gamma=0.01, coef0=1, degree=3)", "laplacian(sigma=SIGMA)", 1),
		"fit --precond nystrom --orthogonal":                                       "--orthogonal goes with --precond features only (see krrlab fit --help)",
		"lambda-p --precond rpcholesky --orthogonal":                               "--orthogonal goes with --precond features only (see krrlab lambda-p --help)",
		"lambda-p --columns 99":                                                    "iterations counted with 99 right-hand sides: there are 5; take at most as many (Columns, --columns)",
	} {
		_, _, errs := command(t, strings.Fields(args+" "+data)...)
		errs = regexp.MustCompile(`sigma=[0-9.]+`).ReplaceAllString(errs, "sigma=SIGMA")
		if errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
	for args, want := range map[string]string{
		"fit --sketch features:40":                    "note: a chain of one level is 40 features without a sketch\n",
		"fit --sketch features:40,srht:20":            "",
		"multilevel --levels features:40":             "note: a chain of one level is 40 features without a sketch\n",
		"multilevel --levels features:40,srht:20":     "",
		"fit --features 40 --solver pcg --orthogonal": "",
	} {
		code, out, errs := command(t, strings.Fields(args+" "+data)...)
		if head, _, _ := strings.Cut(out, "data  "); code != exitOK || head != want {
			t.Errorf("%s: exit %d, %s%s, want %s", args, code, head, errs, want)
		}
	}
}

// TestOutputsApart: no output takes the place of the data or of another output.
func TestOutputsApart(t *testing.T) {
	dir := t.TempDir()
	text := table(40, nil, false)
	train := write(t, dir, "a.csv", text)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("a.csv", link); err != nil {
		t.Skip(err)
	}
	other := filepath.Join(dir, "other.json")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fit", "--train", train, "--out", train}, "the file of --train"},
		{[]string{"fit", "--train", train, "--json", link}, "the file of --train"},
		{[]string{"fit", "--train", train, "--out", other, "--json", dir + "/../" + filepath.Base(dir) + "/other.json"}, "the file of --out"},
		{[]string{"statdim", "--train", train, "--json", train}, "the file of --train"},
		{[]string{"verify", train, "--json", link}, "the file of the model"},
		{[]string{"predict", "--model", other, "--in", train, "--out", link}, "the file of --in"},
	} {
		code, _, errs := command(t, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
	}
	if b, err := os.ReadFile(train); err != nil || string(b) != text {
		t.Errorf("the training data are changed: %v", err)
	}
	if code, _, errs := command(t, "fit", "--train", train, "--test", train, "--out", os.DevNull, "--json", os.DevNull); code != exitOK {
		t.Errorf("devices: exit %d, %s", code, errs)
	}
}

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: errors.New("no space left")}
}

// TestOutputLost: results that could not be printed are an error.
func TestOutputLost(t *testing.T) {
	for _, args := range []string{"version", "licenses", "help", "data list"} {
		var errs strings.Builder
		code := Main(t.Context(), strings.Fields(args), Env{Stdout: full{}, Stderr: &errs, UseBLAS: func(context.Context, string) (string, error) { return "", nil }})
		if code != exitError || errs.String() != "krrlab: cannot write the output: no space left\n" {
			t.Errorf("%s: exit %d, %s", args, code, errs.String())
		}
	}
	if code := Main(t.Context(), []string{"version"}, Env{Stdout: io.Discard, Stderr: io.Discard, UseBLAS: func(context.Context, string) (string, error) { return "", nil }}); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// TestIterationsAsked: flags that mean an iteration are not dropped by the choice of the solver.
func TestIterationsAsked(t *testing.T) {
	js := filepath.Join(t.TempDir(), "r.json")
	for args, want := range map[string]string{
		"":                                      "direct",
		"--orthogonal":                          "pcg",
		"--form L":                              "pcg",
		"--checkpoint " + t.TempDir() + "/kept": "pcg",
	} {
		words := append([]string{"fit", "--data", "synthetic-regression", "--n", "60", "--lambda", "1", "--json", js}, strings.Fields(args)...)
		if code, _, errs := command(t, words...); code != exitOK {
			t.Fatalf("%s: exit %d, %s", args, code, errs)
		}
		if got := report(t, js)["solver"]; got != want {
			t.Errorf("%s: solver %v, want %s", args, got, want)
		}
	}
}

// TestQuietEnds: --quiet leaves why a model is not verified, and no notes of checkpoints.
func TestQuietEnds(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(100, nil, false))
	m, kept := filepath.Join(dir, "m.krr"), filepath.Join(dir, "kept")
	fit := []string{"fit", "--train", train, "--solver", "cg", "--sigma", "3", "--lambda", "1e-6", "--out", m,
		"--checkpoint", kept, "--checkpoint-every", "1it", "--quiet", "--resume", "--max-iter"}
	for _, most := range []string{"3", "5"} {
		if code, out, errs := command(t, append(fit, most)...); code != exitNotConverged || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "not converged") {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
	}
	code, out, errs := command(t, "verify", m, "--train", train, "--quiet")
	if code != exitNotConverged || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "fitted to 1e-05") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestFetchInterrupted: it says how to go on.
func TestFetchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := commandContext(t, ctx, "data", "fetch", "mnist"); code != exitInterrupted || !strings.Contains(errs, "run it again to continue") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// TestNotebookInterrupted ends a cell that would run for ever; the notebook stays as it was.
func TestNotebookInterrupted(t *testing.T) {
	dir := t.TempDir()
	text := `{"cells": [
 {"cell_type": "code", "metadata": {}, "source": "import \"os\"\nos.WriteFile(\"begun\", nil, 0o644)\nfor { }"},
 {"cell_type": "code", "metadata": {}, "source": "os.WriteFile(\"second\", nil, 0o644)"}
], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`
	file := write(t, dir, "f.ipynb", text)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, errs := commandContext(t, ctx, "notebook", "run", file)
	if code != exitInterrupted || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != text {
		t.Errorf("the notebook is changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("the next cell was run")
	}
}

// TestNoEffect: fit says which flags have none without a preconditioner, and fits.
func TestNoEffect(t *testing.T) {
	solver := regexp.MustCompile(`(?m)^solver +pcg, `)
	for args, want := range map[string]string{
		"--precond features": "", "--precond nystrom": "", "--precond rpcholesky --features 9": "",
		"--solver cg --features 9 --lambda-p 2":    "note: --features, --lambda-p: of no effect without a preconditioner\n",
		"--solver pcg --features 9 --repeat 2":     "",
		"--precond none --features 9 --solver pcg": "note: --features: of no effect",
	} {
		code, out, errs := command(t, append([]string{"fit", "--data", "synthetic-classes", "--n", "60", "--lambda", "1"}, strings.Fields(args)...)...)
		if code != 0 || strings.HasPrefix(args, "--precond") && want == "" && !solver.MatchString(out) || !strings.Contains(errs, want) || want == "" && errs != "" {
			t.Errorf("%s: exit %d, %q", args, code, errs)
		}
	}
}
