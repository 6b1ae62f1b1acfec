package experiments

import (
	"fmt"
	"slices"
	"strings"
)

// Scale says how large the cases of an experiment are.
type Scale string

const (
	// Smoke takes seconds an experiment: built-in data, or the first rows of real data that
	// is at hand. It shows that everything runs; its numbers say nothing of the paper's.
	Smoke Scale = "smoke"
	// Laptop takes at most laptopSeconds an experiment, figure 1 at most half as much again, on two
	// cores with laptopMemory: real data, whole where n² numbers fit, named subsets and stand-ins elsewhere.
	Laptop Scale = "laptop"
	// Paper is the published n, s and λ_p. Its plan says what it takes.
	Paper Scale = "paper"
)

const (
	// laptopSeconds is the most that the plan of one experiment may be predicted to take
	// at scale Laptop. Figure 1 is the exception: five seeds at every s, up to s = n and, on
	// fewer points, 8n, take longer, and fewer seeds would not show how far apart they are.
	laptopSeconds = 3600
	// laptopMemory is the memory, in bytes, that one case may be predicted to take there.
	laptopMemory = 20 << 30
)

// Scales returns the scales, from the smallest.
func Scales() []Scale { return []Scale{Smoke, Laptop, Paper} }

// ParseScale returns the scale of that name.
func ParseScale(name string) (Scale, error) {
	if s := Scale(name); slices.Contains(Scales(), s) {
		return s, nil
	}
	var names []string
	for _, s := range Scales() {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("unknown scale %q; there are %s", name, strings.Join(names, ", "))
}
