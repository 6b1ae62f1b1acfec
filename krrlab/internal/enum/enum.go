// Package enum converts between the values 0, 1, … of an integer type and their names in flags, files and reports. The
// methods String and UnmarshalText of such a type call Name and Parse.
package enum

import (
	"fmt"
	"slices"
	"strings"
)

// Name returns the name of a value, or "unknown (v)" if it has none.
func Name[E ~int](names []string, v E) string {
	if v < 0 || int(v) >= len(names) {
		return fmt.Sprintf("unknown (%d)", int(v))
	}
	return names[v]
}

// Parse returns the value with the given name. If there is none, the error contains typeName and the valid names.
func Parse[E ~int](typeName string, names []string, name string) (E, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown %s %q: want one of %s", typeName, name, strings.Join(names, ", "))
	}
	return E(i), nil
}
