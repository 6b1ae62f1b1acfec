package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func (a *app) notebookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "notebook",
		Short: "Install the Jupyter kernel, or run a notebook (not on Windows)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("notebook: the tables of packages for cells do not build on Windows; use Linux (WSL) " +
				"or macOS")
		},
	}
}

func (a *app) kernelCommand() *cobra.Command {
	cmd := a.notebookCommand()
	cmd.Use, cmd.Hidden = "kernel", true
	return cmd
}
