package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width that the descriptions of flags are broken at.
const helpWidth = 120

// flagGroups are the flags of all commands by what they are for, in the order of help; what is in none is the command's
// own.
var flagGroups = []struct{ title, names string }{
	{"Flags", ""},
	{"Data", "data train format x separator header comment dim n test holdout in valid"},
	{"Columns and rows", "target drop task scale center weights class-weights categorical dates date-order impute repeats " +
		"groups keep"},
	{"Kernel and λ", "kernel matrix sigma gamma coef0 degree lambda tune ard metric threshold"},
	{"Preconditioner", "precond race features lambda-p spectral landmarks sketch neighbors damping form process-timeout"},
	{"Solve", "tol stop max-iter solver storage tiles memory residual seed"},
	{"Checkpoints and ranks", "rank-timeout checkpoint checkpoint-every resume"},
	{"Output", "out calibrate spectrum json csv plot plot-solve title size help"},
}

// study is the group of stages.
const study = "Study kernel systems and preconditioners:"

// commandGroups are the commands by task.
var commandGroups = []struct{ title, names string }{
	{"Fit and predict:", "fit tune predict verify model data demo"},
	{"Choose λ and the method:", "loo plan"},
	{study, "testbed"}, // and stages that are in no other
	{"The paper:", "check reproduce"},
	{"Notebooks, machines, this program:", "notebook doctor version licenses completion help"},
}

// arrange puts the commands of root and their flags into groups.
func arrange(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.names), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	cobra.AddTemplateFunc("grouped", grouped)
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), flags,
		"{{grouped .LocalFlags | trimTrailingWhitespaces}}", 1))
}

// grouped returns the usage of flags, those of many under titles.
func grouped(all *pflag.FlagSet) string {
	const few = 12
	groups, count := slices.Clone(flagGroups), 0
	all.VisitAll(func(f *pflag.Flag) {
		in := func(g struct{ title, names string }) bool { return slices.Contains(strings.Fields(g.names), f.Name) }
		if f.Hidden {
			return
		}
		if count++; !slices.ContainsFunc(flagGroups, in) {
			groups[0].names += " " + f.Name
		}
	})
	if all.SortFlags = false; count <= few {
		return "Flags:\n" + all.FlagUsagesWrapped(helpWidth)
	}
	var b strings.Builder
	for _, g := range groups {
		s := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, name := range strings.Fields(g.names) {
			if f := all.Lookup(name); f != nil {
				s.AddFlag(f)
			}
		}
		if s.SortFlags = false; s.HasAvailableFlags() {
			b.WriteString(g.title + ":\n" + s.FlagUsagesWrapped(helpWidth) + "\n")
		}
	}
	return b.String()
}
