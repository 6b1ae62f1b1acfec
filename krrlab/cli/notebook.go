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

	"github.com/krrlab/lab/krrlab/notebook"
)

func (a *app) kernelCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "kernel CONNECTION_FILE",
		Short:  "Serve a Jupyter front end (started by Jupyter)",
		Args:   oneArg("want the connection file, which Jupyter gives"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			packages := a.extended()
			// An interrupt ends the cell, not the kernel.
			interrupt := make(chan os.Signal, 1)
			signal.Notify(interrupt, os.Interrupt)
			defer signal.Stop(interrupt)
			ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), EndSignals()[1:]...)
			defer stop()
			return notebook.Kernel(ctx, args[0], &notebook.Options{Version: a.env.Version, DataDirs: a.dirs(), Packages: packages, Interrupt: interrupt})
		},
	}
}

func (a *app) notebookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notebook",
		Short: "Install the Jupyter kernel, add packages to it, or run a notebook",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.installCommand(), a.uninstallCommand(), a.runCommand(), a.addCommand(), a.removeCommand(), a.listCommand())
	return cmd
}

// place is where a kernel is installed.
type place struct {
	user, sys, force bool
	prefix, name     string
}

func (p *place) add(cmd *cobra.Command, force string) {
	f := cmd.Flags()
	f.BoolVar(&p.user, "user", false, "install for the user (the default)")
	f.StringVar(&p.prefix, "prefix", "", "install into DIR/share/jupyter/kernels")
	f.BoolVar(&p.sys, "sys-prefix", false, "install into the sys.prefix of python3")
	f.StringVar(&p.name, "name", "krrlab", "name of the kernel")
	f.BoolVar(&p.force, "force", false, force)
}

// spec finds the folder, which for the user is that given.
func (p *place) spec(user string) (notebook.Spec, error) {
	s, prefix := notebook.Spec{Data: user, Name: p.name, Force: p.force}, p.prefix
	switch {
	case p.user && p.sys, p.user && p.prefix != "", p.sys && p.prefix != "":
		return s, usagef("--user, --prefix and --sys-prefix exclude each other")
	case p.prefix != "":
	case p.sys:
		out, err := exec.Command("python3", "-c", "import sys; print(sys.prefix)").Output()
		if err != nil {
			return s, fmt.Errorf("--sys-prefix asks python3, which failed: %w", err)
		}
		prefix = strings.TrimSpace(string(out))
	case user == "":
		return s, errors.New("no home folder: use --prefix")
	default:
		return s, nil
	}
	s.Data = filepath.Join(prefix, "share", "jupyter")
	return s, nil
}

func (a *app) installCommand() *cobra.Command {
	p := &place{}
	var interrupt string
	cmd := &cobra.Command{
		Use:   "install [--user | --prefix DIR | --sys-prefix] [--name NAME] [--force]",
		Short: "Register this kernel with Jupyter",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.spec(a.env.JupyterData)
			if err != nil {
				return err
			}
			s.Interrupt = interrupt
			if s.Program, err = os.Executable(); err != nil {
				return err
			}
			dir, err := notebook.Install(s)
			if err == nil {
				a.printf("installed the kernel %s in %s\n", p.name, dir)
			}
			return err
		},
	}
	p.add(cmd, "overwrite another program's kernel of this name")
	cmd.Flags().StringVar(&interrupt, "interrupt", "message", "how Jupyter interrupts the kernel: message or signal")
	return cmd
}

func (a *app) uninstallCommand() *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "uninstall [--user | --prefix DIR | --sys-prefix] [--name NAME] [--force]",
		Short: "Remove this kernel from Jupyter",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := p.spec(a.env.JupyterData)
			if err != nil {
				return err
			}
			dir, err := notebook.Uninstall(s)
			if err == nil {
				a.printf("removed %s\n", dir)
			}
			return err
		},
	}
	p.add(cmd, "remove another program's kernel of this name")
	return cmd
}

func (a *app) runCommand() *cobra.Command {
	var out, page string
	var check bool
	cmd := &cobra.Command{
		Use:   "run FILE.ipynb [--out FILE | --check] [--html FILE]",
		Short: "Run a notebook from top to bottom and keep its outputs",
		Args:  oneArg("want one notebook: krrlab notebook run FILE.ipynb"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := args[0]
			switch {
			case check, page != "" && out == "":
				to = ""
			case out != "":
				to = out
			}
			if err := checkFiles([]namedFile{{"the notebook", args[0]}}, []namedFile{{"--html", page}}); err != nil {
				return err
			}
			if to != "" {
				if err := checkFiles(nil, []namedFile{{"--out", to}, {"--html", page}}); err != nil {
					return err
				}
			}
			err := notebook.Run(cmd.Context(), args[0], to, &notebook.Options{Version: a.env.Version, DataDirs: a.dirs(), Packages: a.extended(), HTML: page})
			if failed := (*notebook.CellError)(nil); errors.As(err, &failed) && to == args[0] {
				return fmt.Errorf("%w; the notebook is as it was: --out FILE keeps what its cells showed", err)
			}
			if err == nil {
				a.printf("ran %s\n", args[0])
			}
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write the notebook with its outputs here instead")
	cmd.Flags().StringVar(&page, "html", "", "write the notebook with its outputs to this file as one page of HTML; without --out nothing else is written")
	cmd.Flags().BoolVar(&check, "check", false, "only check that it runs; write nothing")
	return cmd
}
