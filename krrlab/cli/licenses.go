package cli

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

//go:generate sh -c "../../packaging/licenses | gzip -9n >licenses.txt.gz"

// licenses is the gzip-compressed output of the script packaging/licenses.
//
//go:embed licenses.txt.gz
var licenses []byte

// licensesCommand returns the command that prints the licenses of krrlab and of the packages that it is linked with.
func (a *app) licensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of krrlab and of all packages that it contains",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text []byte
			reader, err := gzip.NewReader(bytes.NewReader(licenses))
			if err == nil {
				text, err = io.ReadAll(reader)
			}
			if err != nil {
				return fmt.Errorf("the licenses in this program are damaged: %w", err)
			}
			fmt.Fprintf(a.env.Stdout, "%s", text)
			return nil
		},
	}
}
