package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/theory"
)

// checkFlags are the flags of krrlab check.
type checkFlags struct {
	theory.Options
	Verbose bool   `flag:"verbose" help:"print the statement of each claim and everything that was measured"`
	JSON    string `flag:"json" file:"write" not:"figures" help:"write the results as JSON to this file"`
	Figures string `flag:"figures" help:"draw the figures of the claims into this folder, and check nothing"`
}

// checkCommand returns the command krrlab check.
func (a *app) checkCommand() *cobra.Command {
	f := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check [CLAIM...]",
		Short: "Check the theory: every theorem, lemma and bound as an experiment",
		Long: `Check tests the claims of the paper, and those of this project, on small matrices. An
identity fails if its error is larger than rounding explains. A bound fails if there is one
counterexample. A claim about a probability fails if the trials contradict its δ (the
99.9 % interval of Clopper and Pearson), or if a mean differs from its derived value. The
margin is 1 minus the largest ratio of the measured to the claimed value. A claim fails if
its margin is negative. Exit code 1 means that a claim failed. theory/README.md explains
the method. The claims are
` + claimList(),
		Example: `  krrlab check
  krrlab check theorem1 lemma4 --verbose
  krrlab check --trials 10000 --json theory.json
  krrlab check theorem1 --figures .`,
		Args: cobra.ArbitraryArgs,
	}
	run := func(ctx context.Context, args []string) error { return a.check(ctx, f, args) }
	return withOptions(cmd, schema.Of(f), run)
}

// claimList returns the names of all claims, each after two spaces, in lines of at most 80 characters.
func claimList() string {
	const lineWidth = 80 - len("  ") - len(".")
	var list strings.Builder
	width := 0
	for _, claim := range theory.Claims() {
		if width > 0 && width+len(claim.Name) > lineWidth {
			list.WriteString("\n")
			width = 0
		}
		fmt.Fprintf(&list, "  %s", claim.Name)
		width += len(claim.Name) + 2
	}
	return list.String() + "."
}

// claims returns the claims with the given names, or all claims if names is empty.
func claims(names []string) ([]theory.Claim, error) {
	if len(names) == 0 {
		return theory.Claims(), nil
	}
	var selected []theory.Claim
	for _, name := range names {
		claim, err := theory.FindClaim(name)
		if err != nil {
			return nil, errUsage{err}
		}
		selected = append(selected, claim)
	}
	return selected, nil
}

// check checks the claims that args names, prints and saves the results, and returns an error if a claim failed. With
// --figures it only draws the figures of the claims.
func (a *app) check(ctx context.Context, f *checkFlags, args []string) error {
	selected, err := claims(args)
	if err != nil {
		return err
	}
	f.Progress = func(claim string, completed, total int) {
		a.show(krrlab.Event{Stage: stage.Name(claim), Done: completed, Total: total})
	}
	options := &f.Options
	if f.Figures != "" {
		return a.checkFigures(ctx, f.Figures, selected, options)
	}
	start := time.Now()
	report, err := theory.CheckClaims(ctx, selected, options, func(r *theory.Result) { a.printResult(f, r) })
	if err != nil && ctx.Err() == nil {
		return err
	}
	if f.JSON != "" {
		if err := stage.WriteJSON(f.JSON, report); err != nil {
			return err
		}
	}
	return a.finishCheck(ctx, f, report, len(selected), time.Since(start))
}

// printResult prints the result of one claim, with --verbose also its statement.
func (a *app) printResult(f *checkFlags, result *theory.Result) {
	if !f.Verbose {
		a.printf("%s\n", result.Line())
		return
	}
	claim, err := theory.FindClaim(result.Claim)
	if err == nil {
		a.printf("%s\n    %s\n    measured: %s\n    fails by: %s\n", claim.Place,
			strings.ReplaceAll(claim.Statement, "\n", "\n    "), claim.Measured, claim.Fails)
	}
	a.printf("%s\n", result)
}

// finishCheck prints the summary of a check that took the time elapsed, with the number of requested claims. It returns
// nil if all claims were checked and passed, and otherwise the error that sets the exit code.
func (a *app) finishCheck(ctx context.Context, f *checkFlags, report *theory.Report, requested int,
	elapsed time.Duration) error {
	if f.JSON != "" {
		a.printf("wrote %s\n", f.JSON)
	}
	failed := report.Failed()
	verdict := "all pass"
	if len(failed) > 0 {
		verdict = "failed: " + strings.Join(failed, ", ")
	}
	a.printf("%d of %d claims checked with %d trials each in %.0f s: %s\n", len(report.Claims), requested,
		report.Trials, elapsed.Seconds(), verdict)
	switch {
	case ctx.Err() != nil:
		a.interruptedNote = fmt.Sprintf(" after %.0f seconds; the above is what was checked until then",
			elapsed.Seconds())
		return ctx.Err()
	case len(failed) > 0:
		return errStatus(exitError)
	}
	return nil
}

// checkFigures draws the figures of the claims into the folder dir. It returns an error if no claim has a figure.
func (a *app) checkFigures(ctx context.Context, dir string, list []theory.Claim, o *theory.Options) error {
	names, err := theory.Figures(ctx, dir, list, o)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("none of these claims has a figure")
	}
	for _, name := range names {
		a.printf("figure: %s\n", name)
	}
	return nil
}
