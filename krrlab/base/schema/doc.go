// Package schema defines the options of a stage or a command by the fields of a struct. Flags, help texts, defaults
// and checks are in the tags of the fields, so each option is written down only once.
//
//	type Options struct {
//		Steps int       `flag:"steps" default:"300" check:">=1" help:"maximum number of Lanczos steps"`
//		Grid  []float64 `flag:"grid" check:"positive" help:"values of λ, separated by commas (default: …)"`
//		Exact int       `flag:"exact-below" default:"2000" zero:"-1" help:"largest n for …; -1 for never"`
//	}
//
// A field with a flag, a default or a check is an option. The fields of an embedded struct are options too.
//
//   - flag is the name on the command line. An option without it can be set by Go callers only.
//   - default is the value that replaces zero. Without it, code that knows the data replaces the zero, and the help
//     describes the result.
//   - check is a condition on the value, or on each element of a list: "positive", an interval such as "(0,1)" or
//     "(0,1]", ">=1", ">1", or "one of auto yes no", where a word that ends in a colon matches all words that begin
//     with it. A value that is not set is not checked.
//   - zero is the value that replaces a 0 on the command line. The zero of a Go caller always means the default.
//   - with lists options by their flags, as "train" or "precond=vecchia", separated by |. If this option is set, at
//     least one of them must be set, or have this value. not lists options that must not be set together with this
//     one. Options that the struct does not have are ignored.
//   - unit:"bytes" parses a whole number such as 20GB; file states that the value names a file to
//     "read", to "write" or, for a "picture", to draw to.
//   - symbol is the name of the option in plots, such as "λ_p".
//   - in:"plot title" states that the option is written in the flag of another, by a key (default: its own flag), as in
//     --plot "fit.svg title=Prices". Its own flag is shown only in commands without the other, and hidden elsewhere.
//   - options:"own" states that a value may have further words name=value, which are no error here. The contents of
//     FILE replace @FILE in a word name=@FILE.
//   - empty states what to write in the flag of another option instead of an empty value, which is an error there:
//     empty:"a character, or blank".
//   - help is the text for the flag. Long texts, and texts that depend on run-time values, are returned by a method
//     Help() map[string]string of the struct, by the name of the flag.
//
// Values are numbers, strings, booleans, durations, lists of numbers or strings, pointers to these, and types that
// parse their own text with Set(string) error or UnmarshalText. If a type has a method Names() []string, as
// enumerations do, the value must be one of these names. The elements of a list may be read from a file: @FILE.
//
// [Complete] completes the options of a Go caller: it replaces zeros by defaults and checks all values. A command
// registers the fields of [Of], each of which is a Value of packages flag and pflag, and calls Schema.Complete after
// the flags have been parsed.
package schema
