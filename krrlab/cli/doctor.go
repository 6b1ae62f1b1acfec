package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// doctorCommand returns the command krrlab doctor.
func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Report what this machine has, how fast it is, and what to install",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// doctor prints a line for each component that krrlab can use, such as the processor, the BLAS and MPI. It measures the
// speed of the machine, which takes some seconds, and saves the rates for krrlab plan.
func (a *app) doctor(ctx context.Context) error {
	printLine := func(label, format string, args ...any) {
		a.printf("%-10s "+format+"\n", append([]any{label}, args...)...)
	}
	printLine("krrlab", "%s, %s %s/%s", a.env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	cpu := accel.CPU()
	printLine("cpu", "%s, %s, %s in use; %s; inner loops on %v", cpu.Model, plural.Count(runtime.NumCPU(), "core"),
		plural.Count(accel.Threads(), "thread"), strings.Join(cpu.Features, " "), simd.CurrentPath())
	limit, source := accel.MemoryLimit()
	printLine("memory", "limit %s (%s), available now %s", accel.FormatBytes(limit), source,
		accel.FormatBytes(accel.MemoryAvailable()))
	rates := cost.Measure(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	printLine("reading", "%s on %s", rateText(rates.Read, "GB/s"), plural.Count(accel.Threads(), "thread"))
	blas := accel.CurrentBLAS()
	printLine("blas", "%v: dgemm %s, sgemm %s", blas, rateText(rates.Gemm64, "GFLOP/s"),
		rateText(rates.Gemm32, "GFLOP/s"))
	printLine("mpi", "%s", cmp.Or(findProgram("mpirun", "mpiexec", "srun"),
		"not found (for runs on ranks: sudo apt-get install openmpi-bin)"))
	printLine("jupyter", "%s", cmp.Or(findProgram("jupyter-notebook", "jupyter-lab", "jupyter"),
		"not found (for notebooks: sudo apt-get install jupyter-notebook)"))
	for i, dir := range a.dirs() {
		printLine([]string{"data", ""}[min(i, 1)], "%s", dir) // only the first line has the label
	}
	if blas.Name != "openblas" && a.BLAS != "go" { // --blas go uses the slower BLAS on purpose
		printLine("install", "sudo apt-get install libopenblas0")
		printLine("", "(factorizations and eigenvalue problems then run faster)")
	} else {
		printLine("install", "nothing: the fast matrix library is here")
	}
	rates.Save() // krrlab plan reads them
	return nil
}

// rateText formats a rate in units of 10⁹ per second. A rate that is not positive and finite was not measured.
func rateText(rate float64, unit string) string {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return "(not measured)"
	}
	return fmt.Sprintf("%.3g %s", rate/1e9, unit)
}

// findProgram returns the path of the first of the programs that is installed, or "" if none is.
func findProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
