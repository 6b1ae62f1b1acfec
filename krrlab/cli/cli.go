package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Exit codes of Main.
const (
	exitOK           = 0
	exitError        = 1
	exitUsage        = 2
	exitNotConverged = 3
	exitInterrupted  = 130
)

// Env is the environment of a command: its streams, its folders, and how the process was started.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool       // whether Stderr is a terminal; progress is shown only on a terminal
	Width          func() int // returns the number of columns of the terminal, or 0 if unknown; may be nil
	DataDirs       []string   // folders that are searched for data after --data-dir; the last is the user's cache
	JupyterData    string     // Jupyter's data folder of the user; "" if there is no home folder
	Version        string
	// UseBLAS installs a BLAS: "auto" uses OpenBLAS if it is found, "openblas" requires it, and "go" uses the Go
	// implementation. The note is "" or one line that explains why a slower BLAS was installed.
	UseBLAS func(ctx context.Context, name string) (note string, err error)
	// Launch describes the rank of a process that an MPI launcher started; it is nil for any other process.
	Launch *comm.Launch
}

// errUsage marks an error in the command line. Such an error ends the command with exitUsage.
type errUsage struct{ error }

// Unwrap returns the error without the mark.
func (e errUsage) Unwrap() error { return e.error }

// errStatus is an error that ends a command with an exit code and without a message.
type errStatus int

// Error implements error. The text is for programmers: the command prints nothing.
func (e errStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usagef returns an error in the command line with the formatted message.
func usagef(format string, args ...any) error { return errUsage{fmt.Errorf(format, args...)} }

// app is one run of the command.
type app struct {
	env Env
	globalFlags
	flags           *schema.Schema // the fields of globalFlags as options
	ranks           *rankGroup     // the ranks of this run, after joinRanks; nil for a single process
	checkpointDir   atomic.Value   // folder of checkpoints, a string; atomic because abandon reads it during the run
	commandPath     string         // name of the command that ran, such as "krrlab fit"; set when it has ended
	progress        *progress      // the progress line, which is removed before any other output
	deadline        *deadline      // expires some time after the command's context ended
	args            []string       // the command line without the program's name
	interruptedNote string         // results that an interrupted command has produced, for its last line of output
	writtenFiles    []string       // names of the files written so far
}

// globalFlags are the flags of all commands.
type globalFlags struct {
	Quiet   bool   `flag:"quiet" help:"print nothing but errors"`
	Threads int    `flag:"threads" check:">=1" help:"cores to use"`
	BLAS    string `flag:"blas" default:"auto" check:"one of auto openblas go" help:"BLAS: auto, openblas or go"`
	CPU     string `flag:"cpu" default:"auto" check:"one of auto portable avx2 avx512"`
	DataDir string `flag:"data-dir"`
}

// Help returns the help texts of flags whose tags have none.
func (globalFlags) Help() map[string]string {
	return map[string]string{
		"cpu":      "instruction set of the inner loops: auto, portable, avx2 or avx512",
		"data-dir": "folder to search for data first, before $KRRLAB_DATA and the user's cache",
	}
}

// Main runs the command line args (without the program's name) and returns the exit code. If the command does not end
// within a delay after ctx has ended, Main abandons it and returns while its goroutines may still run.
func Main(ctx context.Context, args []string, env Env) int {
	progressLine := &progress{w: safe.Writer{W: env.Stderr}, columns: env.Width}
	stdout := &output{w: env.Stdout, progress: progressLine}
	env.Stdout, env.Stderr = stdout, &output{w: progressLine.w, progress: progressLine}
	a := &app{env: env, args: args, progress: progressLine, deadline: newDeadline(grace)}
	if env.Launch != nil {
		a.deadline = newDeadline(rankGrace)
	}
	a.deadline.follow(ctx)
	exitCode := make(chan int, 1)
	go func() { exitCode <- a.execute(ctx, stdout) }()
	select {
	case code := <-exitCode:
		a.deadline.release()
		return code
	case <-a.deadline.expired:
		return a.abandon()
	}
}

// execute runs the command, prints the message of its error and returns the exit code. A failed write to out, the
// output stream, is an error too.
func (a *app) execute(ctx context.Context, out *output) int {
	root := a.root()
	root.SetArgs(a.args)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	var cmd *cobra.Command
	err := accel.CatchFaults(func() (err error) {
		cmd, err = root.ExecuteContextC(ctx)
		return err
	})
	if cmd != nil {
		a.commandPath = cmd.CommandPath()
	}
	a.progress.clear()
	code, text := a.exitStatus(ctx, err)
	if failure := out.failure(); failure != nil && code == exitOK {
		code, text = exitError, failure.Error()
	}
	return a.endRank(ctx, err, code, text)
}

// nothingWritten is the end of the message about an interrupted command that has neither results nor a checkpoint.
const nothingWritten = "; nothing was written"

// exitStatus returns the exit code and the message, "" for none, of a command that ended with err.
func (a *app) exitStatus(ctx context.Context, err error) (code int, text string) {
	if status, ok := errors.AsType[errStatus](err); ok {
		return int(status), ""
	}
	_, isUsage := errors.AsType[errUsage](err)
	switch {
	case err == nil:
		return exitOK, ""
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted, "interrupted" + cmp.Or(a.interruptedNote, a.resumeHint(), nothingWritten)
	case isUsage:
		return exitUsage, fmt.Sprintf("%v (see %s --help)", err, a.commandPath)
	}
	return exitError, a.failureText(err)
}

// failureText returns the message of an error, without the name of the package that it comes from. If the run has left
// a checkpoint and err is a lost rank or a failed save, the message also explains how to continue from the checkpoint.
// If further flags are needed to read a file, the message contains the command line with these flags.
func (a *app) failureText(err error) string {
	if rankErr, ok := errors.AsType[*comm.Error](err); ok {
		return strings.TrimPrefix(rankErr.Error(), "comm: ") + a.resumeHint()
	}
	if saveErr, ok := errors.AsType[*checkpoint.SaveError](err); ok {
		return saveErr.Error() + a.resumeHint()
	}
	if parseErr, ok := errors.AsType[*datasets.ParseError](err); ok && parseErr.Flags != nil {
		withoutFlags := *parseErr
		withoutFlags.Flags = nil
		text := fmt.Sprintf("%v; say krrlab", &withoutFlags)
		for _, arg := range slices.Concat(a.args, parseErr.Flags) {
			text += " " + safe.Shell(arg)
		}
		return text
	}
	return strings.TrimPrefix(err.Error(), "krrlab: ")
}

// root returns the command krrlab with all its subcommands and the global flags.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "krrlab",
		Short: "Kernel ridge regression by sketching and preconditioning",
		Long: `krrlab solves kernel ridge regression, (K+λI)c = y, to a stated residual by
conjugate gradients with random-features preconditioning (Avron, Clarkson and
Woodruff, "Faster Kernel Ridge Regression Using Sketching and Preconditioning").

Exit codes: 0 done; 1 error; 2 command line; 3 tolerance not reached, results written;
130 interrupted (Ctrl-C, SIGTERM or SIGHUP).`,
		Example: `  krrlab demo                                   solve the built-in problems
  krrlab fit --train a.csv --holdout 0.2 --tune --out m.krr
  krrlab predict m.krr --in new.csv --keep id --out predictions.csv
  krrlab fit --data mnist --n 10000             the paper's MNIST, first 10,000 rows
  krrlab doctor                                 what this machine has, what to install`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: a.setUp,
	}
	root.Version = a.versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, a.flags, err) })
	root.Flags().BoolP("version", "v", false, "print the version")
	a.Threads = runtime.GOMAXPROCS(0)
	a.flags = schema.Of(&a.globalFlags)
	addOptions(root.PersistentFlags(), a.flags)
	parentCommand(root, a.fitCommand(), a.predictCommand(), a.mapCommand(), a.explainCommand(), a.serveCommand(),
		a.verifyCommand(), a.modelCommand(), a.dataCommand(), a.demoCommand(),
		a.checkCommand(), a.reproduceCommand(), a.testbedCommand(),
		a.notebookCommand(), a.doctorCommand(), a.versionCommand(), a.licensesCommand(),
		a.kernelCommand(), a.jobCommand(), a.operatorsCommand())
	for _, definition := range krrlab.Stages() {
		root.AddCommand(a.stageCommand(&definition))
	}
	groupCommands(root)
	strictHelp(root)
	return root
}

// strictHelp makes krrlab help return an error for an argument that is not a command.
func strictHelp(root *cobra.Command) {
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err)
	}
	runHelp := help.Run
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		if command, unknownArgs, err := root.Find(args); err != nil || len(unknownArgs) > 0 {
			return noArgs(command, unknownArgs)
		}
		runHelp(cmd, args)
		return nil
	}
}

// noArgs returns an error if there are positional arguments. The error names the first one.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown argument or command %q%s", args[0], suggestCommand(cmd, args[0]))
	}
	return nil
}

// oneArg returns a check for cobra.Command.Args that there is exactly one positional argument. Its error message is
// text.
func oneArg(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s", text)
		}
		return nil
	}
}

// setUp applies the global flags before a command runs: it sets the number of threads, the instruction set and the
// BLAS. On a rank for which there is no work it returns an error that ends the command with exitOK.
func (a *app) setUp(cmd *cobra.Command, _ []string) error {
	if a.isIdleRank(cmd) {
		return errStatus(exitOK)
	}
	a.setThreads(a.Threads)
	if err := useCPU(a.CPU); err != nil {
		return err
	}
	if slices.Contains(commandsWithoutBLAS, cmd.CommandPath()) {
		return nil
	}
	note, err := a.env.UseBLAS(cmd.Context(), a.BLAS)
	if note != "" {
		a.notef("%s", note)
	}
	return err
}

// setThreads limits Go's scheduler and the BLAS to n threads.
func (a *app) setThreads(n int) {
	a.Threads = n
	runtime.GOMAXPROCS(n)
	accel.SetThreads(n)
}

// notef writes a line to the error stream, as warnf does, unless --quiet is set.
func (a *app) notef(format string, args ...any) {
	if !a.Quiet {
		a.warnf(format, args...)
	}
}

// warnf writes a line to the error stream. On ranks other than the first it does nothing.
func (a *app) warnf(format string, args ...any) {
	if a.isFirstRank() {
		fmt.Fprintf(a.env.Stderr, "krrlab: "+format+"\n", args...)
	}
}

// commandsWithoutBLAS lists the commands for which no BLAS is loaded, because they compute nothing.
var commandsWithoutBLAS = []string{
	"krrlab", "krrlab version", "krrlab licenses", "krrlab data", "krrlab data list", "krrlab data info",
	"krrlab data fetch",
	"krrlab model", "krrlab model info", "krrlab notebook", "krrlab notebook install", "krrlab notebook uninstall",
	"krrlab notebook add", "krrlab notebook export", "krrlab notebook import",
}

// useCPU selects the instruction set of the inner loops, "auto" for the best that the processor has. It returns an
// error if the processor lacks the instructions.
func useCPU(name string) error {
	paths := simd.Paths()
	if name == "auto" {
		simd.UsePath(paths[len(paths)-1])
		return nil
	}
	path, err := simd.ParsePath(name)
	if err != nil {
		return err
	}
	if !slices.Contains(paths, path) {
		return fmt.Errorf("--cpu %s: this processor runs %v", name, paths)
	}
	simd.UsePath(path)
	return nil
}

// printf writes a result to the output stream, with control characters made harmless for a terminal. With --quiet it
// writes nothing.
func (a *app) printf(format string, args ...any) {
	if !a.Quiet {
		fmt.Fprintf(safe.Writer{W: a.env.Stdout}, format, args...)
	}
}

// dirs returns the folders to search for data, in order.
func (a *app) dirs() []string {
	if a.DataDir != "" {
		return append([]string{a.DataDir}, a.env.DataDirs...)
	}
	return a.env.DataDirs
}

// versionText returns the versions of krrlab and of Go, and the system.
func (a *app) versionText() string {
	return fmt.Sprintf("krrlab %s, %s %s/%s", a.env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionCommand returns the command krrlab version.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(a.env.Stdout, a.versionText())
			return nil
		},
	}
}
