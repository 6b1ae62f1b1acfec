package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// notebookCommand returns the command krrlab notebook, which returns an error on Windows.
func (a *app) notebookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "notebook",
		Short: "Install the Jupyter kernel, or run a notebook (not on Windows)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("notebook: not available on Windows, where the table of packages for cells does not " +
				"build; use Linux (WSL) or macOS")
		},
	}
}

// kernelCommand returns the hidden command krrlab kernel, which returns an error on Windows.
func (a *app) kernelCommand() *cobra.Command {
	cmd := a.notebookCommand()
	cmd.Use, cmd.Hidden = "kernel", true
	return cmd
}
