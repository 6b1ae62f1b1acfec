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

// Env is what a command knows of the world around it.
type Env struct {
	Stdout, Stderr io.Writer
	Terminal       bool       // Stderr is a terminal: show progress
	Width          func() int // its columns, 0 if that is not known; nil: not known
	DataDirs       []string   // folders to look for data in, after --data-dir; the last is the user's cache
	JupyterData    string     // folder of the user's data that Jupyter looks into, "" if there is no home folder
	Version        string
	// UseBLAS installs a BLAS: "auto" (OpenBLAS if it is found), "openblas" (or an
	// error) or "go". The note, if any, says in a line why it is slower than it could be.
	UseBLAS func(ctx context.Context, name string) (note string, err error)
	// Launch says how the process was started as a rank; nil if it was not.
	Launch *comm.Launch
}

// errUsage marks errors of the command line itself.
type errUsage struct{ error }

func (e errUsage) Unwrap() error { return e.error }

// errStatus ends a command with an exit code and no message of its own.
type errStatus int

func (e errStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func usagef(format string, args ...any) error { return errUsage{fmt.Errorf(format, args...)} }

// app is one run of the command.
type app struct {
	env Env
	globalFlags
	flags *schema.Schema // of globalFlags
	party *party         // nil unless the process is a rank
	kept  atomic.Value   // folder of checkpoints, a string
	path  string         // of the command that runs, such as "krrlab fit"
	end   *deadline      // of the command, after its context ends
	args  []string
	left  string // what a command that was interrupted leaves, for its last line
	wrote []string
}

// globalFlags are the flags of all commands.
type globalFlags struct {
	Quiet   bool   `flag:"quiet" help:"print nothing but errors"`
	Threads int    `flag:"threads" check:">=1" help:"cores to use"`
	BLAS    string `flag:"blas" default:"auto" check:"one of auto openblas go" help:"BLAS: auto, openblas or go"`
	CPU     string `flag:"cpu" default:"auto" check:"one of auto portable avx2 avx512"`
	DataDir string `flag:"data-dir"`
}

func (globalFlags) Help() map[string]string {
	return map[string]string{
		"cpu":      "instructions of the inner loops: auto, portable, avx2 or avx512",
		"data-dir": "folder to look for data in first, before $KRRLAB_DATA and the user's cache",
	}
}

// Main runs the command line args (without the program's name) and returns the
// exit code.
func Main(ctx context.Context, args []string, env Env) int {
	out := &output{w: env.Stdout}
	env.Stdout, env.Stderr = out, safe.Writer{W: env.Stderr}
	a := &app{env: env, args: args, end: newDeadline(grace)}
	if env.Launch != nil {
		a.end = newDeadline(rankGrace)
	}
	a.end.follow(ctx)
	code := make(chan int, 1)
	go func() { code <- a.execute(ctx, out) }()
	select {
	case c := <-code:
		a.end.release()
		return c
	case <-a.end.passed:
		return a.abandon()
	}
}

// execute runs the command and returns the exit code.
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
		a.path = cmd.CommandPath()
	}
	code, text := a.verdict(ctx, err)
	if e := out.failure(); e != nil && code == exitOK {
		code, text = exitError, e.Error()
	}
	return a.part(ctx, err, code, text)
}

const nothingWritten = "; nothing was written"

// verdict returns the exit code of a command that ended with err, and what to say of it.
func (a *app) verdict(ctx context.Context, err error) (code int, text string) {
	if status, ok := errors.AsType[errStatus](err); ok {
		return int(status), ""
	}
	_, usage := errors.AsType[errUsage](err)
	switch {
	case err == nil:
		return exitOK, ""
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return exitInterrupted, "interrupted" + cmp.Or(a.left, a.goOnText(), nothingWritten)
	case usage:
		return exitUsage, fmt.Sprintf("%v (see %s --help)", err, a.path)
	}
	return exitError, a.failureText(err)
}

// failureText says what went wrong, and where a checkpoint is left, how to go on.
func (a *app) failureText(err error) string {
	text := ""
	if lost, ok := errors.AsType[*comm.Error](err); ok {
		text = strings.TrimPrefix(lost.Error(), "comm: ")
	} else if unsaved, ok := errors.AsType[*checkpoint.SaveError](err); ok {
		text = unsaved.Error()
	} else if bad, ok := errors.AsType[*datasets.ParseError](err); ok && bad.Flags != nil {
		plain := *bad
		plain.Flags = nil
		return fmt.Sprintf("%v; say %s", &plain, pasted(append(a.args[:len(a.args):len(a.args)], bad.Flags...)))
	} else {
		return strings.TrimPrefix(err.Error(), "krrlab: ")
	}
	return text + a.goOnText()
}

// pasted returns the command line of the arguments as a shell takes it.
func pasted(args []string) string {
	text := "krrlab"
	for _, arg := range args {
		text += " " + safe.Shell(arg)
	}
	return text
}

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
		Args:              noArgs,
		PersistentPreRunE: a.setUp,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = a.versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolP("version", "v", false, "print the version")
	a.Threads = runtime.GOMAXPROCS(0)
	a.flags = schema.Of(&a.globalFlags)
	addOptions(root.PersistentFlags(), a.flags)
	root.AddCommand(a.fitCommand(), a.predictCommand(), a.verifyCommand(), a.modelCommand(),
		a.dataCommand(), a.demoCommand(),
		a.checkCommand(), a.reproduceCommand(), a.testbedCommand(),
		a.notebookCommand(), a.doctorCommand(), a.versionCommand(), a.licensesCommand(),
		a.kernelCommand(), a.jobCommand())
	for _, d := range krrlab.Stages() {
		root.AddCommand(a.stageCommand(&d))
	}
	arrange(root)
	strictHelp(root)
	return root
}

// strictHelp makes help refuse what is no command.
func strictHelp(root *cobra.Command) {
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err)
	}
	show := help.Run
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		if of, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return noArgs(of, rest)
		}
		show(cmd, args)
		return nil
	}
}

// noArgs refuses positional arguments, naming the first.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unknown argument or command %q%s", args[0], commandMeant(cmd, args[0]))
	}
	return nil
}

// oneArg refuses all but one positional argument, with a text that says what it is.
func oneArg(text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s", text)
		}
		return nil
	}
}

// setUp acts on the flags that all commands share.
func (a *app) setUp(cmd *cobra.Command, _ []string) error {
	if a.idle(cmd) {
		return errStatus(exitOK)
	}
	a.setThreads(a.Threads)
	if err := useCPU(a.CPU); err != nil {
		return err
	}
	if slices.Contains(plain, cmd.CommandPath()) {
		return nil
	}
	note, err := a.env.UseBLAS(cmd.Context(), a.BLAS)
	if note != "" {
		a.note("%s", note)
	}
	return err
}

func (a *app) setThreads(n int) {
	a.Threads = n
	runtime.GOMAXPROCS(n)
	accel.SetThreads(n)
}

// note is say, unless --quiet.
func (a *app) note(format string, args ...any) {
	if !a.Quiet {
		a.say(format, args...)
	}
}

// say says something on the stream of errors; of ranks the first does.
func (a *app) say(format string, args ...any) {
	if a.first() {
		fmt.Fprintf(a.env.Stderr, "krrlab: "+format+"\n", args...)
	}
}

// plain are the commands that compute nothing: for them no BLAS is loaded.
var plain = []string{
	"krrlab", "krrlab version", "krrlab licenses", "krrlab data", "krrlab data list", "krrlab data info",
	"krrlab data fetch",
	"krrlab model", "krrlab model info", "krrlab notebook", "krrlab notebook install", "krrlab notebook uninstall",
	"krrlab notebook add",
}

// useCPU makes the inner loops run on the instructions named.
func useCPU(name string) error {
	paths := simd.Paths()
	if name == "auto" {
		simd.Use(paths[len(paths)-1])
		return nil
	}
	p, err := simd.ParsePath(name)
	if err != nil {
		return err
	}
	if !slices.Contains(paths, p) { // of ranks, those on other machines may run it
		return fmt.Errorf("--cpu %s: this processor runs %v", name, paths)
	}
	simd.Use(p)
	return nil
}

// printf writes a result unless --quiet was given, for a terminal.
func (a *app) printf(format string, args ...any) {
	if !a.Quiet {
		fmt.Fprintf(safe.Writer{W: a.env.Stdout}, format, args...)
	}
}

// dirs returns the folders to look for data in, in order.
func (a *app) dirs() []string {
	if a.DataDir != "" {
		return append([]string{a.DataDir}, a.env.DataDirs...)
	}
	return a.env.DataDirs
}

func (a *app) versionText() string {
	return fmt.Sprintf("krrlab %s, %s %s/%s", a.env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

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
