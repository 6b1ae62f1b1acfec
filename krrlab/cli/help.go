package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the number of columns at which the descriptions of flags are wrapped.
const helpWidth = 120

// kernelGroup is the title of the flags that choose the kernel and λ, in commands with the flag kernel.
const kernelGroup = "Kernel and λ"

// flagGroups lists the flags of all commands by purpose, in the order of the help text; names are separated by spaces.
// Flags in none of the groups are shown first, under the title "Flags", as are those of kernelGroup in commands without
// the flag kernel.
var flagGroups = []struct{ title, names string }{
	{"Flags", ""},
	{"Data", "data train test holdout extend in valid target n format"},
	{kernelGroup, "kernel sigma lambda tune distance metric threshold folds"},
	{"Output", "out grid no-std calibrate json csv plot verbose help"},
	{"Columns and rows", "drop space keep categorical dates impute scale task center weights class-weights repeats " +
		"groups"},
	{"Solve", "solver precond features lambda-p process-timeout tol stop max-iter storage residual memory seed"},
	{"Checkpoints and ranks", "checkpoint resume rank-timeout"},
}

// studyGroup is the title of the command group that contains the stages.
const studyGroup = "Study kernel systems and preconditioners:"

// commandGroups lists the commands by purpose, in the order of the help text; names are separated by spaces.
var commandGroups = []struct{ title, names string }{
	{"Fit and predict:", "fit tune predict map explain serve verify model data demo"},
	{"Choose λ and the method:", "loo plan"},
	{studyGroup, "testbed"}, // and all stages that are in no other group
	{"The paper:", "check reproduce"},
	{"Notebooks, machines, this program:", "notebook doctor version licenses completion help"},
}

// groupCommands divides the commands of root, and the flags of each command, into groups with titles in the help texts.
func groupCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, group := range commandGroups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range root.Commands() {
			if slices.Contains(strings.Fields(group.names), command.Name()) {
				command.GroupID = group.title
			}
		}
	}
	cobra.AddTemplateFunc("grouped", groupedUsage)
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), flags,
		"{{grouped .LocalFlags | trimTrailingWhitespaces}}", 1))
}

// groupedUsage returns the help text of the flags that are not hidden. More than maxUngrouped flags are divided into
// groups with titles. groupedUsage changes flags.SortFlags to false.
func groupedUsage(flags *pflag.FlagSet) string {
	const maxUngrouped = 12
	groups, count := slices.Clone(flagGroups), 0
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		count++
		inGroup := func(group struct{ title, names string }) bool {
			return slices.Contains(strings.Fields(group.names), flag.Name)
		}
		if !slices.ContainsFunc(flagGroups, inGroup) {
			groups[0].names += " " + flag.Name
		}
	})
	// The command explain, for example, has a flag metric that does not concern a kernel.
	if flags.Lookup("kernel") == nil {
		for i, group := range groups {
			if group.title == kernelGroup {
				groups[0].names, groups[i].names = groups[0].names+" "+group.names, ""
			}
		}
	}
	flags.SortFlags = false
	if count <= maxUngrouped {
		return "Flags:\n" + flags.FlagUsagesWrapped(helpWidth)
	}
	var usage strings.Builder
	for _, group := range groups {
		groupSet := pflag.NewFlagSet("", pflag.ContinueOnError)
		groupSet.SortFlags = false
		for _, name := range strings.Fields(group.names) {
			if flag := flags.Lookup(name); flag != nil {
				groupSet.AddFlag(flag)
			}
		}
		if groupSet.HasAvailableFlags() {
			usage.WriteString(group.title + ":\n" + groupSet.FlagUsagesWrapped(helpWidth) + "\n")
		}
	}
	return usage.String()
}
