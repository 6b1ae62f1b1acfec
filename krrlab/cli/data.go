package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// dataCommand returns the command krrlab data and its subcommands.
func (a *app) dataCommand() *cobra.Command {
	oneName := oneArg("want one name; krrlab data list shows them")
	return parentCommand(&cobra.Command{
		Use:   "data",
		Short: "List, describe, download and pack data sets",
		Long: `Data sets are searched for in --data-dir, then in $KRRLAB_DATA, then in the user's cache.
fetch downloads them into the cache, or into --data-dir if it is set.`,
	}, &cobra.Command{
		Use: "list", Short: "List the data sets, and which of them are on this machine", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return a.dataList() },
	}, &cobra.Command{
		Use: "info NAME", Short: "Describe a data set, and check its files", Args: oneName,
		RunE: func(_ *cobra.Command, args []string) error { return a.dataInfo(args[0]) },
	}, &cobra.Command{
		Use: "fetch NAME", Short: "Download a data set into --data-dir, or the user's cache", Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error { return a.dataFetch(cmd.Context(), args[0]) },
	}, a.packCommand())
}

// packFlags are the flags of krrlab data pack.
type packFlags struct {
	dataFlags
	Memory int64  `flag:"memory" check:">=0" unit:"bytes" help:"memory limit of a file while it is read, such as 20GB"`
	Out    string `flag:"out" help:"folder to write"`
}

// packCommand returns the command krrlab data pack.
func (a *app) packCommand() *cobra.Command {
	f := &packFlags{}
	f.Target = "-1"
	s := schema.Of(f).Remove("keep", "center", "class-weights")
	return flagCommand(&cobra.Command{
		Use:   "pack --data NAME | --train FILE [--test FILE] --out FOLDER",
		Short: "Write data into a folder that loads at once",
		Long: `Pack reads and scales data exactly as fit does with the same flags, and writes them into
a folder. The folder contains arrays in NumPy's format (points that are bytes stay bytes)
and krrlab-data.json, which holds everything else and a SHA-256 checksum of every 4 MiB.
A fit with --data FOLDER gives bit-identical coefficients. The arrays are mapped into
memory instead of being read, and all processes of a machine share them.`,
		Example: `  krrlab data pack --data mnist --out packed
  krrlab data pack --train train.csv --test test.csv --target price --out packed
  krrlab fit --data packed`,
	}, s, f, a.pack)
}

// pack reads and scales the data that the flags select, and writes them into the folder --out.
func (a *app) pack(ctx context.Context, f *packFlags) error {
	if err := asUsageError(f.check()); err != nil {
		return err
	}
	if f.Out == "" {
		return usagef("nowhere to write: want --out FOLDER")
	}
	lab := newLabFlags()
	lab.dataFlags, lab.Memory = f.dataFlags, f.Memory
	data, err := a.readData(ctx, &lab)
	if err != nil {
		return err
	}
	pair := &datasets.TrainTest{Train: data.train, Test: data.test, Target: data.target, Drop: data.drop,
		Info: &datasets.Info{Sigma: data.sigma, Lambda: data.lambda}}
	if err := datasets.Pack(f.Out, pair); err != nil {
		return err
	}
	a.showHints(data)
	a.printf("%s%-8s %s\n", pair, "wrote", f.Out)
	return nil
}

// dataList prints a table of the data sets in the registry, and the folders that were searched for them.
func (a *app) dataList() error {
	table := &plots.Table{Columns: plots.ParseColumns("name", "task", "n", "test", "d", "classes", "here", "what")}
	for _, info := range datasets.Registry() {
		available := "yes"
		if info.BuiltIn() {
			available = "built in"
		} else if _, missing := info.Find(a.dirs()); len(missing) > 0 {
			available = "no"
		}
		var classes any
		if info.Classes > 0 {
			classes = info.Classes
		}
		table.Add(info.Name, info.Task.String(), info.N, info.TestN, info.D, classes, available, info.Title)
	}
	a.printf("%s\n", table.Text())
	a.printf("looked in: %s\n", strings.Join(a.dirs(), ", "))
	return nil
}

// dataInfo prints the description of a data set or of a packed folder. For a data set it verifies the checksums of its
// files on this machine, lists the addresses of missing files, and returns an error if a file is damaged.
func (a *app) dataInfo(name string) error {
	if err := checkDataName(name); err != nil {
		return err
	}
	if datasets.IsPacked(name) {
		packed, err := datasets.Load(context.Background(), name, nil)
		if err == nil {
			a.printf("%s", packed)
		}
		return err
	}
	info, err := datasets.Lookup(name)
	if err != nil {
		return err
	}
	printLine := func(label, text string) {
		if text != "" {
			a.printf("%-9s %s\n", label, text)
		}
	}
	printLine("name", info.Name)
	printLine("title", info.Title)
	printLine("task", info.Describe())
	printLine("split", info.Split)
	printLine("scaling", info.Scale)
	printLine("note", info.Note)
	printLine("license", info.License)
	printLine("page", info.Page)
	if paper := info.Paper; paper != nil {
		printLine("paper", fmt.Sprintf("gaussian σ = %g, λ = %g, s = %d: %s, %g s, error %s", paper.Sigma, paper.Lambda,
			paper.Features, plural.Count(paper.Iterations, "iteration"), paper.Seconds, paperError(info)))
	} else if info.Sigma > 0 {
		printLine("default", fmt.Sprintf("gaussian σ = %g, λ = %g", info.Sigma, info.Lambda))
	}
	var damage error
	for _, file := range info.Files {
		path := file.Find(a.dirs())
		if path == "" {
			printLine("missing", file.Path)
			for _, url := range file.URLs {
				printLine("", url)
			}
			continue
		}
		hasChecksum, err := file.Verify(path)
		switch {
		case err != nil:
			damage = err
			printLine("damaged", path)
		case hasChecksum:
			printLine("file", path+" (checksum right)")
		default:
			printLine("file", path+" (no checksum known)")
		}
	}
	return damage
}

// paperError returns the test error that the paper reports for a data set.
func paperError(info *datasets.Info) string {
	if info.Task == datasets.Regression {
		return fmt.Sprintf("%.3g (‖ŷ−y‖/‖y‖)", info.Paper.Error)
	}
	return fmt.Sprintf("%.2f %%", 100*info.Paper.Error)
}

// dataFetch downloads the missing files of a data set into --data-dir, or into the user's cache.
func (a *app) dataFetch(ctx context.Context, name string) error {
	if err := checkDataName(name); err != nil {
		return err
	}
	dirs := a.dirs()
	if len(dirs) == 0 {
		return fmt.Errorf("no folder to put data in: give --data-dir")
	}
	dir := dirs[len(dirs)-1] // the user's cache
	if a.DataDir != "" {
		dir = a.DataDir
	}
	err := datasets.Fetch(ctx, name, dir, &datasets.FetchOptions{Progress: func(file string, completed, total int64) {
		event := krrlab.Event{Stage: stage.Name(file), Done: int(completed), Total: int(total), Remaining: -1}
		if total <= 0 { // the server has not sent the size
			event.Detail = accel.FormatBytes(completed)
		}
		a.show(event)
	}})
	if err != nil && ctx.Err() != nil {
		a.interruptedNote = "; whole files are kept: run it again for the others"
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	a.printf("%s is in %s\n", name, dir)
	return nil
}
