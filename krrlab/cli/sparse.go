package cli

import "github.com/spf13/pflag"

// sparseFlags are those of the sparse inverse, --precond vecchia.
type sparseFlags struct {
	neighbors int
	damping   float64
}

func (f *sparseFlags) add(p *pflag.FlagSet) {
	p.IntVar(&f.neighbors, "neighbors", 0, "neighbors k of a point in the sparse inverse vecchia (default: 15 to 120, by a rule)")
	p.Float64Var(&f.damping, "damping", 0, "its damping ω in (0, 1] (default: by a rule)")
	wantAtLeast(p, 0, "neighbors")
	wantPositive(p, "damping")
}

// check refuses them beside another preconditioner, and those of others beside vecchia.
func (f *sparseFlags) check(set *pflag.FlagSet, precond string) error {
	names := []string{"neighbors", "damping"}
	if precond == "vecchia" {
		names = []string{"lambda-p", "form"}
	}
	for _, name := range names {
		if set.Changed(name) {
			if precond == "vecchia" {
				return usagef("--precond vecchia has no λ_p and one form: --%s does not go with it", name)
			}
			return usagef("--%s goes with --precond vecchia only", name)
		}
	}
	if f.damping > 1 {
		return usagef("--damping %g: want at most 1", f.damping)
	}
	return nil
}

// asked returns what Vecchia takes for the number of neighbors.
func (f *sparseFlags) asked(set *pflag.FlagSet) int {
	if set.Changed("neighbors") && f.neighbors == 0 {
		return -1
	}
	return f.neighbors
}
