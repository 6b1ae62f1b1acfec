package cli

import (
	"os"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The scripts of runScript have these rules: "$" begins a command line, and "2$" one that must exit with the status 2.
// The lines below a command must appear in its output. A line that begins with "!" must not appear.

// TestPlanCommand runs krrlab plan on data and checks its text, its JSON report and its picture. Every candidate must
// have the preconditioner and the number of features that the flags set. A preconditioner without the methods of a cost
// model is refused. An option process-timeout within --with of krrlab compare leads to a hint at --process-timeout.
func TestPlanCommand(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(150, []string{"a", "b", "c"})})
	t.Setenv("XDG_CACHE_HOME", ".")
	var plan map[string]any
	out := runStageCommand(t, &plan, "plan", "--train", "train.csv", "--target", "y", "--holdout", "0.2", "--sigma",
		"2")
	testkit.Contains(t, out, "choice", "direct, float64", "runner-up", "--solver direct --storage float64", "wrote")
	checkKeys(t, plan, "choice runner_up predicted_bytes candidates flags")
	seconds := plan["predicted_seconds"]
	checkKeys(t, seconds, "kernel features factor solve predict total")
	if seconds.(map[string]any)["predict"].(float64) <= 0 {
		t.Error("the predicted time of the test points is 0")
	}
	runScript(t, "$ plan --train train.csv --target y --sigma 2 --precond \"nystrom features=40\" --json p.json")
	for _, value := range readReport(t, "p.json")["candidates"].([]any) {
		if candidate := value.(map[string]any); candidate["precond"] != "nystrom" || candidate["s"] != 40.0 {
			t.Errorf("the flags fix nystrom with s = 40; a candidate is %v", candidate)
		}
	}
	runScript(t, `$ plan --train train.csv --target y --sigma 2 --precond "nystrom landmarks=3,1,4 spectral=true"
    by name        --solver pcg --precond 'nystrom features=3 lambda-p=0.01 spectral=true landmarks=3,1,4'
$ plan --train train.csv --target y --sigma 2 --precond "vecchia neighbors=7 damping=0.5"
    by name        --solver pcg --precond 'vecchia neighbors=7 damping=0.5'
2$ plan --train train.csv --target y --sigma 2 --precond "auto spectral=true"
    "spectral=true": the preconditioner auto has no such option: want one of features, lambda-p
1$ plan --train train.csv --target y --sigma 2 --precond process:cat
    the preconditioner process:cat has no methods Cost and Iterations`)
	testkit.OK(t, registerPlain())
	runScript(t, `1$ plan --train train.csv --target y --sigma 2 --precond mylab.plain
    the preconditioner mylab.plain has no methods Cost and Iterations`)
	_, _, stderr := runCommand(t, "compare", "--train", "train.csv", "--target", "y", "--sigma", "2", "--with",
		"process:cat process-timeout=5s")
	testkit.Contains(t, stderr, "say --process-timeout")
}

// TestPlanForMachines checks plans for several machines. For data at hand the number of iterations is predicted by a
// rule; for a problem that is given by its size alone, --iterations must give it. The scripts also check the machine
// description, sizes too large to count, and missing flags.
func TestPlanForMachines(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(150, []string{"a", "b", "c"})})
	t.Setenv("XDG_CACHE_HOME", ".")
	var plan map[string]any
	out := runStageCommand(t, &plan, "plan", "--train", "train.csv", "--target", "y", "--sigma", "2", "--nodes", "2")
	testkit.Contains(t, out, "by the rule", "2 of", "limits")
	checkKeys(t, plan, "machines choice on strong weak")
	runScript(t,
		`$ plan --problem 1000000,784,10 --nodes 8 --cores 32 --memory 64GB --precond "auto features=20000" --iterations 100 `+
			`--price 2 --rates gemm32=3000,gemm64=1500,read=100,exp=40,entry=11 --plot p.svg
    pcg, features, s = 20000, K recompute; 100 iterations, as given
    8 of 32 cores and 64 GB, 10 Gbit/s, 50 µs; 3e+03 and 1.5e+03 Gflop/s, 100 GB/s (as given)
    money
$ plan --data mnist-1m --nodes 42 --rates gemm32=640,gemm64=320,read=90,exp=22,entry=0.64
    s = 35000, K float32; 189 iterations, the paper's of this s
$ plan --data mnist-1m --nodes 42 --precond "features features=9000" --rates gemm32=640,gemm64=320,read=90,exp=22,entry=0.64
    s = 9000, K float32; 189 iterations, the paper's of another preconditioner
$ plan --data mnist-1m --nodes 42 --precond vecchia --rates gemm32=640,gemm64=320,read=90,exp=22,entry=0.64
    189 iterations, the paper's of another preconditioner
$ plan --problem 1000000,3,1 --nodes 8 --iterations 9 --rates gemm32=640,gemm64=320,read=90,exp=22,entry=0.64
    pcg, features, s = 10000, K
$ plan --problem 1000000000,20,1 --nodes 3 --iterations 9 --storage recompute
    1000000000 points
2$ plan --problem 1000000000000,20,1 --nodes 64 --iterations 9
    n = 1000000000000, d = 20, t = 1, s = 10000: up to 4e+24 bytes, more than a plan counts (2⁶²): take fewer points
2$ plan --problem 1000,1000000000000000000,1 --nodes 8 --iterations 9
    more than a plan counts
2$ plan --problem 1000,3,1 --nodes 1000000000 --iterations 9
    want a number from 1 to 65536
2$ plan --nodes 8
    want --data NAME, --train FILE, or --problem n,d,t
2$ plan --problem 1000,3,1 --nodes 8
    want --iterations
2$ plan --problem 1000,3,1 --nodes 8 --iterations 9 --rates speed=1
    want name=number`)
	testkit.Contains(t, string(testkit.Must(os.ReadFile("p.svg"))), ">1000000 points, features: predicted seconds<")
}
