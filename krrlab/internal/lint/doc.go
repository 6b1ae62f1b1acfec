// Package lint holds the rules of the house as tests: which packages import which (floors_test.go, with
// docs/adr/0001-floors.md for the reasons), what may print, read the environment or exit, which exported names have
// users and comments, what the pages and the keys of JSON say. Each broken rule is one line that says what to do.
//
// A new package gets its line in floors: the lowest floor above everything it imports. A new rule is a function
// of what it judges, with a table of what it refuses: a rule that cannot fail is no rule.
package lint
