package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/experiments"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// reproduceFlags are the flags of krrlab reproduce.
type reproduceFlags struct {
	Scale  string `flag:"scale" default:"smoke" check:"one of smoke laptop paper" help:"smoke, laptop or paper"`
	Memory int64  `flag:"memory" unit:"bytes"`
	List   bool   `flag:"list"`
	Yes    bool   `flag:"yes" help:"confirm that scale paper is to be run"`
	From   string `flag:"from" help:"make tables and figures from the reports in this folder; run nothing"`
	Into   string `flag:"into" not:"from"`
	Page   string `flag:"page" with:"from|into"`

	flags *schema.Schema // all options of the command
}

// Help returns the help texts of flags whose tags have none.
func (reproduceFlags) Help() map[string]string {
	return map[string]string{
		"memory": "memory limit of a case, such as 20GB (default: what the machine allows)",
		"list":   "list the cases with their predicted time and memory; run nothing",
		"into": "folder for reports, tables and figures; cases whose results are in the reports there are not run " +
			"again (default: out/reproduce)",
		"page": "with --from or --into: replace the table of results between the markers in this file",
	}
}

// reproduceCommand returns the command krrlab reproduce.
func (a *app) reproduceCommand() *cobra.Command {
	f := &reproduceFlags{}
	f.flags = schema.Of(f)
	return withOptions(&cobra.Command{
		Use:   "reproduce (ID... | all)",
		Short: "Compute the paper's tables and figures, and compare them with the published ones",
		Long: `Reproduce runs the experiments of section 6 of the paper. For each it prints a table with
our numbers, the published numbers and their ratio, the cases that were not run and why, and
the origin of the numbers. A case that several tables need is run once. Each result is saved
in the reports in --into as soon as its case ends, and is not measured again: the same
command continues an interrupted run. Remove a report to run its cases again.

Scale smoke takes seconds and needs no data. Scale laptop takes about an hour per experiment
on two cores with 24 GiB. Scale paper has the published sizes; it prints a plan and starts
only with --yes. With --from DIR nothing is run: tables and figures are made from the reports
in DIR.

Exit code 0 means that every case that could be run has succeeded. The experiments are
  ` + strings.Join(experiments.IDs(), " ") + `.`,
		Example: `  krrlab reproduce table1 --scale smoke
  krrlab reproduce all --scale laptop
  krrlab reproduce all --from experiments/results`,
		Args: cobra.ArbitraryArgs,
	}, f.flags, func(ctx context.Context, args []string) error { return a.reproduce(ctx, f, args) })
}

// reproduce prints the plan of the experiments that args name, and runs it unless --list is set. With --from it only
// makes tables and figures from the reports in that folder. It sets f.Into to the default folder if f.Into is "".
func (a *app) reproduce(ctx context.Context, f *reproduceFlags, args []string) error {
	ids, err := experimentIDs(f, args)
	if err != nil {
		return err
	}
	scale := experiments.Scale(f.Scale)
	if f.From != "" {
		return a.renderReports(f, ids)
	}
	f.Into = cmp.Or(f.Into, filepath.Join("out", "reproduce"))
	options := &experiments.Options{Dirs: a.dirs(), Out: f.Into, Memory: a.memoryLimit(f.Memory),
		Version: a.env.Version}
	if scale != experiments.Smoke || f.List { // predictions for scale smoke need no measured rates
		rates, err := cost.ReadRates(ctx)
		if err != nil {
			return err
		}
		options.Rates = &rates
	}
	var plans []*experiments.Report
	for _, id := range ids {
		experiment, err := experiments.Find(id)
		if err != nil {
			return err
		}
		plans = append(plans, experiments.NewPlan(experiment, scale))
	}
	if err := a.printPlan(ctx, f, scale, plans, options); err != nil || f.List {
		return err
	}
	return a.runPlans(ctx, f, ids, plans, options)
}

// experimentIDs returns the IDs of the experiments that the arguments name, without duplicates. Without arguments it
// returns all IDs if nothing is run (--list or --from), and otherwise an error.
func experimentIDs(f *reproduceFlags, args []string) ([]string, error) {
	if len(args) == 0 {
		if f.List || f.From != "" {
			return experiments.IDs(), nil
		}
		return nil, usagef("reproduce: want an experiment: %s, or all", strings.Join(experiments.IDs(), ", "))
	}
	var ids []string
	for _, id := range args {
		if id == "all" {
			return experiments.IDs(), nil
		}
		if _, err := experiments.Find(id); err != nil {
			return nil, errUsage{err}
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// printPlan prints the number of cases of the plans with their predicted time and memory, with --list or at a scale
// other than smoke also a table of the cases. At scale paper it returns an error unless --yes or --list is set.
func (a *app) printPlan(ctx context.Context, f *reproduceFlags, scale experiments.Scale, plans []*experiments.Report,
	options *experiments.Options) error {
	estimate, err := experiments.Predict(ctx, plans, options)
	if err != nil {
		return err
	}
	// Scale smoke takes seconds and does not need its cases with real data, so these details do not matter there.
	detailed := f.List || scale != experiments.Smoke
	if detailed {
		a.printf("%s\n", estimate.Table.Text())
	}
	a.printf("%d cases, predicted %s, at most %s of memory; %d done before, %d not to be run\n",
		estimate.Cases, experiments.FormatSeconds(estimate.Seconds), accel.FormatBytes(estimate.Bytes),
		estimate.CasesDone, estimate.CasesSkipped)
	if detailed && len(estimate.MissingData) > 0 {
		a.printf("left out because data are missing: %s (krrlab data fetch NAME downloads, krrlab data info NAME lists "+
			"other sources; then --data-dir or $KRRLAB_DATA)\n", strings.Join(estimate.MissingData, ", "))
	}
	if scale == experiments.Paper && !f.Yes && !f.List {
		return usagef("nothing was started: scale paper starts with --yes")
	}
	return nil
}

// runPlans runs the plans, prints their reports, writes tables and figures, and updates the page of --page. It returns
// an error if a case failed. ids are the IDs of the experiments, for the command line that continues an interrupted
// run.
func (a *app) runPlans(ctx context.Context, f *reproduceFlags, ids []string, plans []*experiments.Report,
	options *experiments.Options) error {
	options.Monitor = func(p experiments.Progress) {
		a.showText(func() string { return reproduceProgressText(p) }, updateInterval)
	}
	options.CaseFinished = func(c experiments.Case, result *experiments.Result) {
		a.printf("%s\n", finishedText(c, result))
	}
	reports, err := experiments.Run(ctx, plans, options)
	if err != nil && ctx.Err() != nil {
		a.interruptedNote = fmt.Sprintf("; finished cases are kept; to continue: krrlab reproduce %s%s",
			strings.Join(ids, " "), commandLine(f.flags))
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, report := range reports {
		a.printf("\n%s", report)
		names, err := report.WriteFiles(f.Into)
		if err != nil {
			return err
		}
		a.printf("wrote %s and %s next to it\n", filepath.Join(f.Into, report.FileName()),
			plural.Count(len(names), "file"))
		if !report.OK() {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("cases of %d of %d experiments failed; the tables say why", failed, len(reports))
	}
	return a.updatePage(f.Page, f.Into)
}

// renderReports writes the tables and figures of the reports in the folder --from, and updates the page of --page.
func (a *app) renderReports(f *reproduceFlags, ids []string) error {
	if info, err := os.Stat(f.From); err != nil || !info.IsDir() {
		return fmt.Errorf("--from %s: there is no such folder", f.From)
	}
	reports, err := experiments.LoadReports(f.From)
	if err != nil {
		return err
	}
	for _, report := range reports {
		if !slices.Contains(ids, report.ID) {
			continue
		}
		names, err := report.WriteFiles(f.From)
		if err != nil {
			return err
		}
		for _, name := range names {
			a.printf("wrote %s\n", name)
		}
	}
	if len(reports) == 0 {
		a.printf("%s has no reports\n", f.From)
	}
	return a.updatePage(f.Page, f.From)
}

// updatePage replaces the table of results between the markers in the file page by the results of the reports in dir.
// It does nothing if page is "". It returns an error if the page has no markers, or if dir has no reports but the table
// has rows.
func (a *app) updatePage(page, dir string) error {
	if page == "" {
		return nil
	}
	reports, err := experiments.LoadReports(dir)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	updated, err := experiments.UpdateSection(string(text), experiments.Section(reports))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	_, section, _ := strings.Cut(string(text), experiments.SectionBegin)
	hasRows := strings.Contains(section, "\n|")
	if len(reports) == 0 && updated != string(text) && hasRows {
		return fmt.Errorf("%s has no reports, so the table in %s is not replaced; delete it by hand if it should be "+
			"empty", dir, page)
	}
	if updated == string(text) {
		return nil
	}
	if err := atomicfile.WriteFile(page, updated); err != nil {
		return err
	}
	a.printf("wrote %s\n", page)
	return nil
}

// reproduceProgressText returns the progress line of a run: the case, its stage, and the remaining time of the run.
func reproduceProgressText(p experiments.Progress) string {
	text := fmt.Sprintf("[%d/%d] %v: %v", p.Index, p.Total, p.Case, p.Event)
	if i := strings.Index(text, ", about "); i >= 0 { // drop the remaining time of the stage; that of the run follows
		text = text[:i]
	}
	if p.Remaining > 0 {
		text += fmt.Sprintf(", about %v left in all", p.Remaining.Round(time.Second))
	}
	return text
}

// finishedText returns the line that is printed when a case has ended: its status and main results.
func finishedText(c experiments.Case, result *experiments.Result) string {
	text := fmt.Sprintf("%v: %s", c, result.Status)
	if result.Reason != "" {
		return text + ": " + result.Reason
	}
	if result.Iterations > 0 {
		text += fmt.Sprintf(", %s", plural.Count(result.Iterations, "iteration"))
	}
	switch {
	case result.TestError != nil:
		text += fmt.Sprintf(", error %.2f %%", 100**result.TestError)
	case result.RelErr != nil:
		text += fmt.Sprintf(", relative error %.3g", *result.RelErr)
	}
	return text + fmt.Sprintf(", %.1f s", result.TrainSeconds())
}
