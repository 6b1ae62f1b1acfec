//go:build !windows

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/notebook"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// kernelCommand returns the hidden command krrlab kernel, which Jupyter starts.
func (a *app) kernelCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "kernel CONNECTION_FILE",
		Short:  "Serve a Jupyter front end (started by Jupyter)",
		Args:   oneArg("want the connection file, which Jupyter gives"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			// An interrupt, the first of EndSignals, ends the running cell, but not the kernel. The context of the
			// command ends with an interrupt, so the kernel has another context, which the other signals end.
			interrupt := make(chan os.Signal, 1)
			signal.Notify(interrupt, os.Interrupt)
			defer signal.Stop(interrupt)
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), EndSignals()[1:]...)
			defer stop()
			a.deadline.follow(ctx)
			return notebook.ServeKernel(ctx, args[0], &notebook.Options{Version: a.env.Version, DataDirs: a.dirs(),
				Interrupt: interrupt})
		},
	}
}

// notebookCommand returns the command krrlab notebook and its subcommands.
func (a *app) notebookCommand() *cobra.Command {
	return parentCommand(&cobra.Command{
		Use:   "notebook",
		Short: "Install the Jupyter kernel, download packages for it, run a notebook, or make a program of it",
	}, a.installCommand(), a.uninstallCommand(), a.runCommand(), a.exportCommand(), a.importCommand(), a.addCommand())
}

// installFlags select the location and the name of an installed kernel.
type installFlags struct {
	User   bool   `flag:"user" not:"prefix|sys-prefix" help:"install for the user (the default)"`
	Prefix string `flag:"prefix" not:"sys-prefix" help:"install into DIR/share/jupyter/kernels"`
	Sys    bool   `flag:"sys-prefix" help:"install into the sys.prefix of python3"`
	Name   string `flag:"name" default:"krrlab" help:"name of the kernel"`
	Force  bool   `flag:"force" help:"also replace or remove a kernel of this name that belongs to another program"`
}

// spec returns the description of the kernel for package notebook. Its folder is userData, Jupyter's data folder of the
// user, unless flags select another one. spec returns an error if userData is "" then, or if --sys-prefix cannot run
// python3.
func (f *installFlags) spec(userData string) (notebook.KernelSpec, error) {
	spec, prefix := notebook.KernelSpec{Data: userData, Name: f.Name, Force: f.Force}, f.Prefix
	switch {
	case prefix != "":
	case f.Sys:
		output, err := exec.Command("python3", "-c", "import sys; print(sys.prefix)").Output()
		if err != nil {
			return spec, fmt.Errorf("--sys-prefix asks python3, which failed: %w", err)
		}
		prefix = strings.TrimSpace(string(output))
	case userData == "":
		return spec, errors.New("no home folder: use --prefix")
	default:
		return spec, nil
	}
	spec.Data = filepath.Join(prefix, "share", "jupyter")
	return spec, nil
}

// installCommand returns the command krrlab notebook install.
func (a *app) installCommand() *cobra.Command {
	var f struct {
		installFlags
		Interrupt string `flag:"interrupt" default:"message" check:"one of message signal"`
	}
	flags := schema.Of(&f)
	flags.Lookup("interrupt").Help = "how Jupyter interrupts the kernel: message or signal"
	const short = "Register this kernel with Jupyter"
	return a.kernelSpecCommand("install", short, &f.installFlags, flags, func(spec notebook.KernelSpec) (err error) {
		spec.Interrupt = f.Interrupt
		if spec.Program, err = os.Executable(); err != nil {
			return err
		}
		dir, err := notebook.InstallKernel(spec)
		if err == nil {
			a.printf("installed the kernel %s in %s\n", f.Name, dir)
		}
		return err
	})
}

// uninstallCommand returns the command krrlab notebook uninstall.
func (a *app) uninstallCommand() *cobra.Command {
	f := &installFlags{}
	const short = "Remove this kernel from Jupyter"
	return a.kernelSpecCommand("uninstall", short, f, schema.Of(f), func(spec notebook.KernelSpec) error {
		dir, err := notebook.UninstallKernel(spec)
		if err == nil {
			a.printf("removed %s\n", dir)
		}
		return err
	})
}

// kernelSpecCommand returns a command that applies an action to the kernel that f describes. flags are all options of
// the command, those of f and possibly more.
func (a *app) kernelSpecCommand(name, short string, f *installFlags, flags *schema.Schema,
	action func(notebook.KernelSpec) error) *cobra.Command {
	return withOptions(&cobra.Command{
		Use:   name + " [--user | --prefix DIR | --sys-prefix] [--name NAME] [--force]",
		Short: short,
		Args:  noArgs,
	}, flags, func(context.Context, []string) error {
		spec, err := f.spec(a.env.JupyterData)
		if err != nil {
			return err
		}
		return action(spec)
	})
}

// exportCommand returns the command krrlab notebook export.
func (a *app) exportCommand() *cobra.Command {
	return a.convertCommand(&cobra.Command{
		Use:   "export FILE.ipynb MAIN.go",
		Short: "Write a notebook as a Go program",
		Long: "Write a notebook as a program for go run, which prints what the cells show and writes their " +
			"pictures to files.",
		Example: "  krrlab notebook export notebooks/00_start.ipynb main.go\n  go run main.go",
	}, func(source, target string) error {
		notes, err := notebook.ExportProgram(source, target, a.dirs())
		for _, note := range notes {
			fmt.Fprintln(a.env.Stderr, note)
		}
		return err
	})
}

// importCommand returns the command krrlab notebook import.
func (a *app) importCommand() *cobra.Command {
	return a.convertCommand(&cobra.Command{
		Use:   "import MAIN.go FILE.ipynb",
		Short: "Write a Go program as a notebook",
		Long: "Write a program of krrlab notebook export as a notebook again, or any other program as a notebook " +
			"of one cell.",
		Example: "  krrlab notebook import main.go main.ipynb\n  krrlab notebook run main.ipynb",
	}, notebook.ImportProgram)
}

// convertCommand completes and returns cmd, a command that reads the file of its first argument and writes that of its
// second one.
func (a *app) convertCommand(cmd *cobra.Command, convert func(source, target string) error) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usagef("want two files: krrlab notebook %s", cmd.Use)
		}
		return checkFiles([]namedFile{{"the input", args[0]}}, []namedFile{{"the output", args[1]}})
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		err := convert(args[0], args[1])
		if err == nil {
			a.printf("wrote %s\n", args[1])
		}
		return err
	}
	return cmd
}

// addCommand returns the command krrlab notebook add.
func (a *app) addCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add PACKAGE[@VERSION]...",
		Short: "Download packages for notebooks to import",
		Example: `  krrlab notebook add github.com/google/uuid
  krrlab notebook add github.com/google/uuid@v1.6.0 golang.org/x/text/collate`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want packages, such as github.com/google/uuid")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			finder := &modules.Finder{IsCompiled: engine.IsCompiled}
			defer finder.Close()
			for _, name := range args {
				pkg, err := finder.Download(cmd.Context(), name)
				if err != nil {
					return err
				}
				a.printf("%s (%s) can be imported\n", pkg.Path, pkg.Module)
			}
			return nil
		},
	}
}

// runCommand returns the command krrlab notebook run.
func (a *app) runCommand() *cobra.Command {
	var f struct {
		Out   string `flag:"out" not:"check" help:"write the notebook with its outputs to this file instead of FILE.ipynb"`
		HTML  string `flag:"html"`
		Check bool   `flag:"check" help:"only check that all cells run; write nothing"`
	}
	flags := schema.Of(&f)
	flags.Lookup("html").Help =
		"write the notebook with its outputs to this file as one HTML page; FILE.ipynb is then not " +
			"changed"
	var parameters []string
	cmd := withOptions(&cobra.Command{
		Use:   "run FILE.ipynb [--out FILE | --check] [--html FILE] [-p NAME=VALUE]",
		Short: "Run a notebook from top to bottom and save its outputs",
		Args:  oneArg("want one notebook: krrlab notebook run FILE.ipynb"),
	}, flags, func(ctx context.Context, args []string) error {
		outFile := args[0] // the notebook with its outputs; "" writes none
		switch {
		case f.Check, f.HTML != "" && f.Out == "":
			outFile = ""
		case f.Out != "":
			outFile = f.Out
		}
		html := namedFile{"--html", f.HTML}
		err := checkFiles([]namedFile{{"the notebook", args[0]}}, []namedFile{html})
		if err == nil && outFile != "" {
			err = checkFiles(nil, []namedFile{{"--out", outFile}, html})
		}
		if err != nil {
			return err
		}
		options := &notebook.Options{Version: a.env.Version, DataDirs: a.dirs(), HTML: f.HTML, Parameters: parameters}
		err = notebook.Run(ctx, args[0], outFile, options)
		if cellError := (*notebook.CellError)(nil); errors.As(err, &cellError) && outFile == args[0] {
			return fmt.Errorf("%w; the notebook is as it was: --out FILE keeps what its cells showed", err)
		}
		if err == nil {
			a.printf("ran %s\n", args[0])
		}
		return err
	})
	cmd.Flags().StringArrayVarP(&parameters, "parameter", "p", nil,
		"NAME=VALUE, assigned in a new cell after the cell with the tag parameters, as papermill does; once for each")
	return cmd
}
