package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestStageCommands checks that the command of each stage, with various flags, prints its data and outputs, draws a
// picture, and writes the listed keys to its JSON report.
func TestStageCommands(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(200, []string{"a", "b", "c"})})
	for args, keys := range map[string]string{
		`quality --precond "features features=60 lambda-p=0.1"`:                              "kappa kappa_exact",
		`lambda-p --precond "features features=40" --points 4`:                               "sweeps best_s",
		`lambda-p --precond "features features=40" --map --points 3`:                         "sweeps best_s",
		"lambda-p --sizes 10,20 --grid 0.1,1":                                                "sweeps",
		"statdim":                                                                            "estimate",
		`statdim --method slq --precond "features features=50"`:                              "estimate",
		"statdim --method free --grid 0.1,1,10":                                              "estimate curve",
		"multilevel --levels features:99,srht:50":                                            "levels one_level",
		"multilevel --levels features:150,srht:20":                                           "levels one_level",
		"loo --grid 10,1,0.1":                                                                "scores",
		"loo --exact-below -1 --rank 80 --seed 3":                                            "scores",
		"sketch-size --first 16":                                                             "rungs",
		"sketch-size --first 16 --max 64 --test theorem7 --preset kappa10":                   "rungs",
		"sketch-size --first 16 --max 64 --test theorem7 --constants 0.1,0.2,0.3":            "rungs",
		"compare --features 60":                                                              "rows",
		"race --with rpcholesky --with vecchia --seeds 2 --to 1e-4":                          "rows",
		"multilevel --kernel polynomial --levels features:128,countsketch:64 --lambda-p 0.5": "levels",
	} {
		if !strings.Contains(args, "--kernel") {
			args += " --sigma 2"
		}
		var stageReport map[string]any
		out := runStageCommand(t, &stageReport, append(splitLine(args), "--train", "train.csv", "--lambda", "0.1")...)
		checkKeys(t, stageReport, keys)
		testkit.Contains(t, out, "data ", "wrote ")
	}
}

// TestStageArguments checks that each wrong argument of a stage gets one line that names it. If the argument can be
// judged without the data, this happens before the data are read: the file missing.csv does not exist.
func TestStageArguments(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(100, nil)})
	runScript(t, `
2$ quality --train missing.csv --confidence 1
	confidence 1
2$ quality --train missing.csv --width 0
	--width 0
2$ quality --train missing.csv --steps 0
	--steps 0
2$ quality --train missing.csv --precond "features lambda-p=-1"
	lambda-p -1
2$ quality --train missing.csv --tol 1
	--tol 1
2$ quality --train missing.csv --max-iter 0
	--max-iter 0
2$ quality --train missing.csv --precond magic
	magic
2$ quality --train missing.csv --exact-below -7
	--exact-below -7
2$ lambda-p --train missing.csv --grid 0.1,0
	--grid 0
2$ lambda-p --train missing.csv --grid ""
	--grid "": want numbers separated by commas
2$ lambda-p --train missing.csv --sizes 0
	--sizes 0
2$ lambda-p --train missing.csv --confidence 0
	confidence 0
2$ lambda-p --train missing.csv --points 1
	--points 1: want at least 2
2$ lambda-p --train missing.csv --precond none
	take one of features, nystrom, rpcholesky
2$ lambda-p --train missing.csv --width -1
	--width -1
2$ lambda-p --train missing.csv --precond "features features=0"
	features 0
2$ lambda-p --train missing.csv --tol 2
	--tol 2
1$ quality --train train.csv --target y --precond "features features=101"
	s = 101
1$ lambda-p --train train.csv --target y --precond "features features=101"
	s = 101
1$ lambda-p --train train.csv --target y --sizes 10,101
	s = 101
2$ statdim --train train.csv --method guess
	guess
2$ statdim --train train.csv --confidence 1
	confidence
2$ statdim --train train.csv --confidence 0
	confidence
2$ statdim --train train.csv --width 0
	--width 0
2$ statdim --train train.csv --max-probes 3
	--max-probes 3
2$ statdim --train train.csv --grid 1,0
	--grid 0
2$ statdim --train train.csv --grid ""
	--grid
2$ statdim --train train.csv --precond "features lambda-p=0"
	lambda-p 0
2$ statdim --train train.csv --lambda -1
	--lambda -1
2$ statdim --train train.csv --precond "features features=0"
	features 0
2$ statdim --train train.csv --method hutchinson --grid 1,2
	exclude each other
2$ statdim --train train.csv --precond magic
	magic
1$ statdim --train train.csv --precond "features features=101"
	1 ≤ s ≤ n
2$ multilevel --train train.csv --target y --lambda 0.1 --levels ""
	--levels
2$ multilevel --train train.csv --target y --lambda 0.1 --levels srht:5
	features first
2$ multilevel --train train.csv --target y --lambda 0.1 --levels features:50,srht:60
	wider
2$ multilevel --train train.csv --target y --lambda 0.1 --levels features:50,fft:20
	unknown sketch
2$ multilevel --train train.csv --target y --lambda 0.1 --confidence 1
	--confidence
2$ multilevel --train train.csv --target y --lambda 0.1 --lambda-p 0
	--lambda-p 0
2$ multilevel --train train.csv --target y --lambda 0.1 --tol 1
	--tol 1
2$ multilevel --train train.csv --target y --lambda 0.1 --max-iter 0
	--max-iter 0
2$ multilevel --train train.csv --target y --lambda 0.1 --work -1
	--work -1
1$ multilevel --train train.csv --target y --lambda 0.1 --levels features:200,srht:150
	s = 150 for n = 100
2$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --precond "features sketch=features:50 features=20"
	"features sketch=features:50 features=20": features and sketch exclude each other
2$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --precond "nystrom sketch=features:50"
	"sketch=features:50": the preconditioner nystrom has no such option
2$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --precond "features sketch=features:50,srht:60"
	wider
1$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --precond "features sketch=features:700,srht:400"
	s = 400 features for n = 100
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --test theorem8
	theorem8
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --preset kappa7
	kappa7
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --constants 0.1,0.2
	want θ,α,γ
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --constants 0.1,0.2,1
	γ=1
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --constants 0.1,0.2,0.3 --preset paper
	exclude
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --confidence 2
	--confidence 2
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --kappa-target 1
	--kappa-target 1
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --first 0
	--first 0
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --lambda-p 0
	--lambda-p 0
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --conditions-up-to -2
	--conditions-up-to -2
2$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --plot x.gif
	gif
1$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --first 100
	s = 100 for n = 100
1$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --max 100
	s = 100
1$ sketch-size --train train.csv --target y --sigma 2 --lambda 0.1 --lambda-p 1 --test theorem7
	λ_p = 1
2$ loo --train train.csv --target y --sigma 2 --exact-below -1 --grid -1
	--grid -1: want a positive number
2$ loo --train train.csv --target y --sigma 2 --exact-below -1 --precond features
	--precond features: want one of landmarks, such as nystrom or rpcholesky
2$ loo --train train.csv --target y --sigma 2 --exact-below -1 --probes 2
	--probes 2: want
2$ loo --train train.csv --target y --sigma 2 --exact-below -1 --confidence 95
	--confidence 95: want
1$ loo --train train.csv --target y --sigma 2 --exact-below -1 --rank 1000
	1000
1$ compare --train train.csv --target y --with magic
	magic
2$ compare --train missing.csv --features 0
	--features 0
2$ compare --train missing.csv --lambda-p 0
	--lambda-p 0
2$ compare --train missing.csv --to 1
	--to 1
2$ compare --train missing.csv --max-iter 0
	--max-iter 0
2$ tune --train missing.csv --kernels gaussian --kernel laplacian
	exclude each other
2$ tune --train missing.csv --kernels cosine
	kernel "cosine"
2$ tune --train missing.csv --rows 3
	--rows 3
2$ tune --train missing.csv --gain 0
	--gain 0
2$ fit --tune=distance=yes --train missing.csv
	--tune distance "yes"
2$ fit --data synthetic-regression --plot "p.svg size=5"
	want width and height
2$ fit --data synthetic-regression --plot "p.svg size=0x3"
	want width
2$ fit --data synthetic-regression --plot "p.svg size=5x3in"
	want width
2$ fit --data synthetic-regression --plot title=a
	goes with --plot
2$ fit --data synthetic-regression --plot size=5x3
	goes with --plot
2$ reproduce
	want an experiment: table1, table2
2$ reproduce table9
	unknown experiment "table9"; there are table1, table2
2$ reproduce table1 --scale huge
	want one of smoke, laptop, paper
2$ reproduce table1 --page x
	--page goes with --from
2$ reproduce table1 --memory much
	--memory
1$ reproduce table2 --into /dev/null/x
	/dev/null
2$ check theorem8
	theorem8
2$ check --trials 3
	at least 20
2$ check --json a --figures b
	exclude
1$ check --json /nowhere/a.json
	/nowhere
1$ check proposition2 --figures f
	figure
2$ fit --data synthetic-classes --n 50 --resume
	--resume goes with --checkpoint
2$ fit --data synthetic-classes --n 50 --checkpoint every=3it
	--checkpoint every goes with --checkpoint
2$ fit --data synthetic-classes --n 50 --checkpoint "x every=3"
	want a time such as 30s
2$ fit --data synthetic-classes --n 50 --checkpoint "x every=0it"
	want a time such as 30s
2$ fit --data synthetic-classes --n 50 --checkpoint "x every=-2s"
	want a time such as 30s
2$ fit --data synthetic-classes --n 50 --rank-timeout 0s
	want a positive time`)
}

// TestFitSketch checks the number of features and their description in the report of a fit with a chain of three
// sketches of the random features.
func TestFitSketch(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(300, nil)})
	runScript(t, "$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --precond \"features "+
		"sketch=features:400,srht:100,gaussian:50\" --json r.json")
	if report := readReport(t, "r.json"); report["s"] != 50.0 || !strings.HasSuffix(report["features"].(string),
		"to 400 → srht to 100 → gaussian to 50") {
		t.Errorf("want 50 features by three sketches in the report: %v", report)
	}
}
