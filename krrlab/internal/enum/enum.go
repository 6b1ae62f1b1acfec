// Package enum gives the values 0, 1, … of a type names, as flags, files and reports have them. Its functions are
// what String, Parse and UnmarshalText of such a type come down to.
package enum

import (
	"fmt"
	"slices"
	"strings"
)

// Name returns the name of a value, "unknown (v)" if it has none.
func Name[E ~int](names []string, v E) string {
	if v < 0 || int(v) >= len(names) {
		return fmt.Sprintf("unknown (%d)", int(v))
	}
	return names[v]
}

// Parse returns the value of that name. Its error says what it is no value of, and the names there are.
func Parse[E ~int](what string, names []string, name string) (E, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown %s %q: want one of %s", what, name, strings.Join(names, ", "))
	}
	return E(i), nil
}
