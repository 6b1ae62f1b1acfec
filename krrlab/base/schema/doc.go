// Package schema reads the options of a stage or a command from its struct: the flags, their help, defaults and checks
// come from the tags of the fields, so that an option is typed in one place.
//
//	type Options struct {
//		Steps int       `flag:"steps" default:"300" check:">=1" help:"maximum number of Lanczos steps"`
//		Grid  []float64 `flag:"grid" check:"positive" help:"values of λ, separated by commas (default: …)"`
//		Exact int       `flag:"exact-below" default:"2000" zero:"-1" help:"largest n for …; -1 for never"`
//	}
//
// A field with a flag, a default or a check is an option; those of an embedded struct are options too.
//
//   - flag is its name on the command line; without one it is for Go callers only.
//   - default is what zero means. Without one, zero is left for whoever knows the data, and help says what it comes to.
//   - check is what a value, or each of a list, must be: "positive", an interval such as "(0,1)" or "(0,1]", ">=1",
//     ">1", or "one of auto yes no", where a word that ends in a colon stands for all that begin with it. A value
//     that is not given is not checked.
//   - zero is what a 0 on the command line stands for, where the zero of a Go caller means the default.
//   - with names options, by their flags, that a given one goes with: "train", or "precond=vecchia"; of several,
//     separated by |, one must hold. not names those that exclude it. Options that are not there are ignored.
//   - unit:"bytes" reads a whole number such as 20GB; file says that the value names a file to "read" or to "write".
//   - symbol is what pictures call the option, such as "λ_p".
//   - hidden:"yes" keeps an option out of help: an older spelling of another.
//   - help is the text of the flag. Longer ones, and those with words that are known at run time only, are in a method
//     Help() map[string]string of the struct, by the name of the flag.
//
// Values are numbers, strings, booleans, durations, lists of numbers or strings, pointers to these, and types that
// read themselves: by Set(string) error, or by UnmarshalText. A type with a method Names() []string, as enumerations
// have, must be one of these names. The items of a list may be in a file: @FILE.
//
// A Go caller's options are settled by [Settle]: zeros are replaced by defaults, and all are checked. A command takes
// the fields of [Of], each a Value of package flag and of pflag, and settles them when the flags are parsed.
package schema
