package cli

import (
	"fmt"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/accel"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/experiments"
)

// reportFlags are the flags of krrlab report.
type reportFlags struct{ results, out string }

func (a *app) reportCommand() *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Make one HTML page of the experiments' results",
		Long: `Report makes one page from the reports that krrlab reproduce wrote to a folder: text,
figures, tables, claims and where the numbers come from. The page is one file that needs
no network, is read on a phone as well as on a screen, light or dark, and prints.`,
		Example: `  krrlab report
  krrlab report --results out/reproduce --out page.html`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.report(f) },
	}
	p := cmd.Flags()
	p.StringVar(&f.results, "results", filepath.Join("experiments", "results"), "folder of reports")
	p.StringVar(&f.out, "out", filepath.Join("out", "report.html"), "file to write")
	p.SortFlags = false
	return cmd
}

func (a *app) report(f *reportFlags) error {
	reports, err := experiments.LoadReports(f.results)
	if err != nil {
		return err
	}
	if len(reports) == 0 {
		return fmt.Errorf("no reports in %s: krrlab reproduce all leaves them in its --out; say which with --results", f.results)
	}
	if err := makeRoom(f.out); err != nil {
		return err
	}
	text, err := experiments.Page(reports)
	if err != nil {
		return err
	}
	if err := writeText(f.out, text); err != nil {
		return err
	}
	plural := "s"
	if len(reports) == 1 {
		plural = ""
	}
	a.printf("wrote %s: %d report%s, %s\n", f.out, len(reports), plural, accel.Bytes(int64(len(text))))
	return nil
}
