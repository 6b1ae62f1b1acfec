//go:build !windows

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
	"github.com/krrlab/lab/krrlab/schema"
)

// kernels says where kernels with more packages are kept, and which of them counts; inside reports whether this program
// is that one.
func (a *app) kernels() (k *modules.Kernel, now *modules.Added, inside bool, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, false, err
	}
	dir := datasets.CacheDir()
	if dir == "" {
		return nil, nil, false, errors.New("packages are added in the user's cache folder, and there is none")
	}
	k = &modules.Kernel{Dir: filepath.Join(dir, "notebook"), Program: program, Version: a.env.Version}
	now, err = k.Current()
	if now != nil {
		self, e1 := os.Stat(program)
		built, e2 := os.Stat(now.Path())
		if inside = e1 == nil && e2 == nil && os.SameFile(self, built); inside {
			k.Program = now.Program
		}
	}
	k.Bound = func(path string) bool {
		return engine.Packages()[path] != "" && !(inside && slices.Contains(now.Tables, path))
	}
	return k, now, inside, err
}

// extended continues as the kernel with more packages, if this program has one, and returns what can be said about
// packages to cells.
func (a *app) extended() *modules.Kernel {
	k, now, inside, err := a.kernels()
	switch {
	case err != nil:
	case now == nil || inside || a.env.Exec == nil:
		return k
	case now.Fresh(k.Program, k.Version):
		err = a.env.Exec(now.Path())
	default:
		err = errors.New("packages were added to another build of krrlab and are left out; krrlab notebook add adds " +
			"them to this one")
	}
	if err != nil {
		fmt.Fprintf(a.env.Stderr, "krrlab: %v\n", err)
	}
	return k
}

// restart says how notebooks that are open get the packages.
const restart = "kernels that start from now on have them; in a notebook that is open, restart the kernel: its cells " +
	"and outputs stay"

func (a *app) addCommand() *cobra.Command {
	var f struct {
		Source string `flag:"source"`
	}
	s := schema.Of(&f)
	s.Lookup("source").Help = "checkout of github.com/krrlab/lab to build from, if this program's version is not a " +
		"release"
	return withOptions(&cobra.Command{
		Use:   "add [PACKAGE[@VERSION] | ./FOLDER]...",
		Short: "Compile more packages into the kernel; without names, recompile those added before",
		Example: `  krrlab notebook add github.com/google/uuid
  krrlab notebook add github.com/google/uuid@v1.6.0 ./mypackage`,
	}, s, func(ctx context.Context, args []string) error {
		k, _, _, err := a.kernels()
		if err != nil {
			return err
		}
		if f.Source != "" {
			if k.Source, err = filepath.Abs(f.Source); err != nil {
				return err
			}
		}
		if _, err := k.Add(ctx, a.env.Stderr, args...); err != nil {
			return fmt.Errorf("nothing was added: %w", err)
		}
		a.printf("%s\n", restart)
		return nil
	})
}

func (a *app) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove PACKAGE...",
		Short: "Remove packages that notebook add has compiled into the kernel",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want packages; krrlab notebook list shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			k, _, _, err := a.kernels()
			if err == nil {
				_, err = k.Remove(cmd.Context(), a.env.Stderr, args...)
			}
			if err == nil {
				a.printf("removed %s\n", strings.Join(args, ", "))
			}
			return err
		},
	}
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the packages that notebook add has compiled into the kernel",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			k, now, inside, err := a.kernels()
			if err != nil || now == nil {
				return err
			}
			for _, e := range now.Packages {
				a.printf("%s\n", e)
			}
			if !inside && !now.Fresh(k.Program, k.Version) {
				a.printf("added to another build of krrlab (%s, version %s); krrlab notebook add adds them to this "+
					"one\n", now.Program, now.Version)
			}
			return nil
		},
	}
}
