package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

var measure = flag.Bool("model", false,
	"compare the times that plan predicts for ranks with measured ones; on a quiet "+
		"machine, in minutes")

// TestModel compares the times that plan predicts with measured times of fits of three sizes, on 1, 2 and 4 ranks. More
// than one rank runs on two hosts whose network link is limited to a given speed, and plan measures that network. All
// ranks share the processors of this machine. The sum of the predicted times must be within 30 % of the measured one;
// the bytes sent are only printed.
func TestModel(t *testing.T) {
	if !*measure || os.Getenv("KRRLAB_DATA") == "" {
		t.Skip("measures seconds, with MNIST in $KRRLAB_DATA: -model")
	}
	const d, columns, s = 784, 10, 2000
	h := newHosts(t)
	threads := accel.Threads()
	options := plan.Options{Nodes: 1, Cores: threads, Bandwidth: 1, Latency: 1}
	candidate := cost.Candidate{Solver: cost.BlockPCG, Preconditioner: recipe.Features{S: s}, Storage: gram.Float32}
	machine := testkit.Must(options.Scale(t.Context(), stage.Header{N: 8000, D: d, T: columns}, true,
		candidate)).Machines
	fmt.Printf("%+v\n     n ranks      link  iterations   seconds predicted  ratio    kernel    features      factor       solve"+
		"       bytes predicted\n", machine)
	for _, link := range []struct {
		name  string
		ranks []int
	}{{"veth", []int{1, 2, 4}}, {"1gbit", []int{2, 4}}, {"100mbit", []int{2}}} {
		if link.name != "veth" {
			for _, host := range []int{h.pidA, h.pidB} {
				mustRun(t, h.commandOnA(t.Context(), "nsenter", "-t", fmt.Sprint(host), "--net", "tc", "qdisc",
					"replace", "dev", "krr0", "root", "tbf", "rate", link.name, "burst", "256kb", "latency", "50ms"))
			}
		}
		for _, rankCount := range link.ranks {
			var measured plan.Plan
			if file := filepath.Join(h.dir, "plan.json"); rankCount > 1 {
				mustRun(t, h.krrlabOnRanks(testContext(t), rankCount/2, 30, "plan", "--data", "mnist", "--n", "4000",
					"--threads", fmt.Sprint(max(1, threads/rankCount)), "--json", file))
				testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(file)), &measured))
				fmt.Printf("%+v\n", measured.Rates)
			}
			for _, n := range []int{8000, 16000, 32000} {
				file := filepath.Join(h.dir, "sol.json")
				args := []string{"fit", "--data", "mnist", "--n", fmt.Sprint(n), "--precond",
					fmt.Sprintf("features features=%d lambda-p=0.1", s), "--solver", "block-pcg", "--storage",
					"float32", "--residual", "stored",
					"--threads", fmt.Sprint(max(1, threads/rankCount)), "--json", file}
				if rankCount == 1 {
					mustRun(t, krrlab(testContext(t), t, -1, 1, args...))
				} else {
					mustRun(t, h.krrlabOnRanks(testContext(t), rankCount/2, 30, args...))
				}
				var sol solve.Solution
				testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(file)), &sol))
				perRank, ranks := machine, float64(rankCount)
				perRank.Nodes, perRank.Cores = rankCount, max(1, threads/rankCount)
				perRank.Read, perRank.Gemm32, perRank.Gemm64, perRank.Exp = perRank.Read/ranks, perRank.Gemm32/ranks,
					perRank.Gemm64/ranks, perRank.Exp/ranks
				perRank.EntrySeconds, perRank.ExactEntrySeconds = perRank.EntrySeconds*ranks,
					perRank.ExactEntrySeconds*ranks
				perRank.Network = measured.Rates.Network
				candidate.Iterations = sol.Iterations
				predicted := perRank.Scale(stage.Header{N: sol.N, D: sol.D, T: sol.T},
					cost.Model{N: sol.N, D: sol.D, T: sol.T, PointBytes: int64(sol.N * sol.D)}, candidate).Requested
				got, want := sol.Seconds, predicted.Seconds
				measuredSeconds := got.Kernel + got.Features + got.Factor + got.Solve
				predictedSeconds := want.Kernel + want.Features + want.Factor + want.Solve
				var sent int64
				if sol.Ranks != nil {
					sent = sol.Ranks.Bytes
				}
				fmt.Printf("%6d %5d %9s %11d %9.2f %9.2f %6.2f %5.2f/%4.2f %6.2f/%4.2f %6.2f/%4.2f %6.2f/%5.2f %11d %9d\n", n,
					rankCount, link.name, sol.Iterations, measuredSeconds, predictedSeconds,
					predictedSeconds/measuredSeconds,
					want.Kernel, got.Kernel, want.Features, got.Features,
					want.Factor, got.Factor, want.Solve, got.Solve, sent, predicted.SentBytes)
				if predictedSeconds < 0.7*measuredSeconds || predictedSeconds > 1.3*measuredSeconds {
					t.Errorf("n = %d on %d ranks, %s: %.2f s, predicted %.2f", n, rankCount, link.name, measuredSeconds,
						predictedSeconds)
				}
			}
		}
	}
}
