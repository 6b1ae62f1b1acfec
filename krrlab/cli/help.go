package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width that the descriptions of flags are broken at.
const helpWidth = 120

// flagGroups are the flags of all commands by what they are for; what is in none is the command's own.
var flagGroups = []struct{ title, names string }{
	{"Data", "data train test holdout valid in format separator header comment n dim"},
	{"Columns and rows", "target drop task categorical impute weights class-weights scale center keep"},
	{"Kernel and λ", "kernel matrix sigma gamma coef0 degree lambda tune ard"},
	{"Preconditioner", "precond features lambda-p sketch orthogonal neighbors damping form repeat"},
	{"Solve", "solver tol stop max-iter storage tiles residual memory warm seed"},
	{"Checkpoints and ranks", "checkpoint checkpoint-every resume rank-timeout"},
	{"Output", "out calibrate json csv spectrum plot title size help"},
}

// commandGroups are the commands by task.
var commandGroups = []struct{ title, names string }{
	{"Fit and predict:", "fit tune predict verify model data demo"},
	{"Choose λ and the method:", "loo plan race"},
	{"Study kernel systems and preconditioners:", "quality statdim sketch-size lambda-p multilevel"},
	{"The paper:", "check reproduce"},
	{"Notebooks, machines, this program:", "notebook ranks doctor version licenses completion help"},
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
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), flags, "{{grouped .LocalFlags | trimTrailingWhitespaces}}", 1))
}

// grouped returns the usage of flags, those of many under titles.
func grouped(all *pflag.FlagSet) string {
	const few = 10
	var b strings.Builder
	rest, count := pflag.NewFlagSet("", pflag.ContinueOnError), 0
	sets := make([]*pflag.FlagSet, len(flagGroups))
	all.VisitAll(func(f *pflag.Flag) {
		count++
		for i, g := range flagGroups {
			if slices.Contains(strings.Fields(g.names), f.Name) {
				if sets[i] == nil {
					sets[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
				}
				sets[i].AddFlag(f)
				return
			}
		}
		rest.AddFlag(f)
	})
	if all.SortFlags = false; count <= few {
		return "Flags:\n" + all.FlagUsagesWrapped(helpWidth)
	}
	add := func(title string, s *pflag.FlagSet) {
		if s != nil && s.HasAvailableFlags() {
			s.SortFlags = false
			b.WriteString(title + ":\n" + s.FlagUsagesWrapped(helpWidth) + "\n")
		}
	}
	add("Flags", rest)
	for i, g := range flagGroups {
		add(g.title, sets[i])
	}
	return b.String()
}
