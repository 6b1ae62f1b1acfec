package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// modelFlag is the model file of a command. It is the command's argument or the value of --model.
type modelFlag struct {
	Model string `flag:"model" file:"read" help:"model file written by fit, if it is not the argument"`
}

// takeModelArg sets f.Model to the command's argument, unless --model is set. It returns an error if there is no model,
// or if there are further arguments.
func (f *modelFlag) takeModelArg(cmd *cobra.Command, args []string) error {
	switch {
	case f.Model == "" && len(args) == 0:
		return usagef("want one model: %s FILE, or --model FILE", cmd.CommandPath())
	case f.Model == "":
		f.Model, args = args[0], args[1:]
	}
	return noArgs(cmd, args)
}

// loadModel reads the model file, on all ranks together. memory is the limit of this process in bytes, 0 for its share
// of the available memory. loadModel returns an error on all ranks if one of them could not read the file, or if they
// did not read the same model.
func (a *app) loadModel(ctx context.Context, file string, memory int64) (*model.Model, error) {
	m, err := model.LoadWithin(file, accel.AvailableMemory(memory, a.processesHere()))
	if err = a.agree(ctx, err); err == nil {
		err = a.requireSame(ctx, model.Digest(file), "the model read here is not that of rank 0")
	}
	return m, err
}

// modelInfoFlags are the flags of krrlab model info.
type modelInfoFlags struct {
	modelFlag
	JSON string `flag:"json" file:"write" help:"write all metadata as JSON to this file"`
}

// modelInfo is the output of krrlab model info: the metadata of the model and the size of its file.
type modelInfo struct {
	*model.Info
	Bytes int64 `json:"file_bytes"`
}

// modelCommand returns the command krrlab model and its subcommand.
func (a *app) modelCommand() *cobra.Command {
	f := &modelInfoFlags{}
	return parentCommand(&cobra.Command{
		Use:   "model",
		Short: "Show the contents of a model file",
	}, flagCommand(&cobra.Command{
		Use:   "info FILE",
		Short: "Print kernel, λ, sizes, scaling, columns, origin and bounds of a model file",
		Long: `Info reads the whole model file, and detects a damaged file. It prints the kernel, the
training data, the status of the solve, and, if it is known, a bound on the distance of the
coefficients from the exact solution. --json writes all metadata of the file.`,
		Args: f.takeModelArg,
	}, schema.Of(f), f, a.modelInfo))
}

// modelInfo prints the metadata of a model file and writes it as JSON if --json is set.
func (a *app) modelInfo(_ context.Context, f *modelInfoFlags) error {
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	fileInfo, err := os.Stat(f.Model)
	if err != nil {
		return err
	}
	info := &modelInfo{Bytes: fileInfo.Size()}
	if info.Info, err = m.Info(); err != nil {
		return err
	}
	a.printf("%s", info.text(m))
	err = a.writeOutput(f.JSON, func(file string) error { return stage.WriteJSON(file, info) })
	a.printWritten(labelWidth, nil)
	return err
}

// text returns the lines that krrlab model info prints for the model m.
func (info *modelInfo) text(m *model.Model) string {
	lines := stage.Lines{Width: labelWidth}
	sum := "Σ c_i k(x_i, x)"
	if info.Mean != nil {
		sum = "mean + " + sum
	}
	lines.Add("model", "%s, f(x) = %s", info.Task, sum)
	lines.Add("kernel", "%v, λ = %g", m.Kernel, info.Lambda)
	if precomputed := kernel.AsPrecomputed(m.Kernel); precomputed != nil {
		lines.Add("points", "none: n = %d rows of a precomputed K, which predict takes as K(test, train), m×%d", info.N,
			precomputed.N())
	} else {
		lines.Add("points", "n = %d, d = %d, %s", info.N, info.D, info.Points)
	}
	targets := fmt.Sprintf("t = %d", info.T)
	if len(m.Targets) > 0 {
		targets += ", columns " + joinNames(m.Targets)
	} else if origin := info.Origin; origin.Target != "" {
		targets += ", column " + origin.Target
	}
	if info.Labels != nil {
		targets += fmt.Sprintf("; %d classes: %s", len(info.Labels), joinNames(info.Labels))
	}
	lines.Add("targets", "%s%s", targets, stage.CenteringText(info.Mean))
	lines.Add("scaling", "%v", info.Scaling)
	if info.Threshold != 0 {
		lines.Add("threshold", "f(x) above %.6g stands for %s", info.Threshold, safe.Name(info.Labels[1]))
	}
	if info.Weighted {
		lines.Add("weights", "the rows had weights at the fit, which residual and error below heed")
	}
	if info.Columns != nil {
		lines.Add("columns", "%s", joinNames(info.Columns))
	}
	lines.Add("origin", "%s", originText(&info.Origin))
	residual := "true residual not known"
	if trueResidual := info.Origin.TrueResidual; trueResidual != nil {
		residual = fmt.Sprintf("true residual %.2e", *trueResidual)
	}
	lines.Add("fit", "%s by %s, %s, asked %.4g, seed %d", info.Origin.Status,
		cmp.Or(info.Origin.Method, info.Origin.Solver), residual, info.Origin.Tol, info.Origin.Seed)
	if bounds := info.ErrorBounds; bounds != nil {
		lines.Add("error", "‖c−c*‖_A ≤ %s of every column (%s)", outward.Up(slices.Max(bounds.ANorm), 3),
			certainty(bounds))
	} else {
		lines.Add("error", "not known")
	}
	if calibration := m.Calibration; calibration != nil {
		lines.Add("intervals", "%s, %s", calibration.Method, plural.Count(calibration.Scores.RawMatrix().Rows, "score"))
	}
	lines.Add("file", "%s, version %d, written by krrlab %s at %s", accel.FormatBytes(info.Bytes), info.Version,
		info.Origin.Version, info.Origin.Created)
	return lines.String()
}

// originText describes the data that the model was fitted to.
func originText(origin *model.Origin) string {
	text := origin.Dataset
	if origin.Rows > 0 {
		text += fmt.Sprintf(", %g %% of %s held out", 100*origin.Holdout, plural.Count(origin.Rows, "row"))
	}
	if len(origin.Drop) > 0 {
		text += ", without column " + joinNames(origin.Drop)
	}
	return text
}

// joinNames returns the names separated by commas, safe to print. If there are more than maxShown, it returns the first
// maxShown and the number of all.
func joinNames(names []string) string {
	const maxShown = 12
	var shown []string
	for _, name := range names[:min(maxShown, len(names))] {
		shown = append(shown, safe.Name(name))
	}
	if len(names) > maxShown {
		shown = append(shown, fmt.Sprintf("… (%d in all)", len(names)))
	}
	return strings.Join(shown, ", ")
}
