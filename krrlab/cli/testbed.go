package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/experiments/testbed"
	"github.com/krrlab/lab/krrlab/base/schema"
)

// testbedFlags are the flags of krrlab testbed.
type testbedFlags struct {
	testbed.Options
	Out  string   `flag:"out" file:"write" default:"testbed.jsonl" help:"file of runs, to which new runs are added"`
	Add  []string `flag:"add" file:"read" help:"files of runs to add to --out, separated by commas; nothing is run"`
	Page string   `flag:"page" file:"write" help:"write profiles, filters and a table of all runs to this HTML file"`
}

// testbedCommand returns the command krrlab testbed.
func (a *app) testbedCommand() *cobra.Command {
	f := &testbedFlags{}
	return flagCommand(&cobra.Command{
		Use:   "testbed",
		Short: "Compare preconditioners on many problems by performance profiles",
		Long: `Testbed runs conjugate gradients with preconditioners of several ranks, each with several
random draws, on problems from data sets and from formulas. Each problem is solved with its λ
and with λ/100. A run is a line of JSON in the file --out. Runs in this file are not repeated:
the same command continues an interrupted one.`,
		Example: `  krrlab testbed --out testbed.jsonl --page testbed.html
  krrlab testbed --out testbed.jsonl --add mine.jsonl --page testbed.html`,
	}, schema.Of(f), f, a.testbed)
}

// testbed adds the runs in the files of --add to the file --out or, without --add, makes the runs that are missing
// there. It writes the page if --page is set.
func (a *app) testbed(ctx context.Context, f *testbedFlags) error {
	file, err := testbed.Open(f.Out)
	if err != nil {
		return err
	}
	f.Dirs, f.Notify = a.dirs(), func(text string) { a.notef("%s", text) }
	for _, name := range f.Add {
		if err = file.Add(name); err != nil {
			return err
		}
	}
	for _, text := range file.Notes {
		a.notef("note: %s", text)
	}
	if len(f.Add) > 0 {
		err = file.Save()
	} else {
		err = testbed.Run(ctx, file, f.Options)
	}
	if err == nil && f.Page != "" {
		err = file.WritePage(f.Page)
	}
	if err == nil {
		a.printf("%d runs in %s\n", len(file.Lines), f.Out)
	}
	return err
}
