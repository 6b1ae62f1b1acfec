// Package lint turns the rules of the house into tests.
//
// The packages of this module stand on floors, and a package imports only from floors
// below its own. What else holds is in Rules: below the bench nothing prints, only the
// commands read the environment or exit, every package has a manual and every exported
// name a comment, and every Go file is formatted. The rules are checked by this
// package's test over the whole module, with the standard library alone; each
// violation is one line that names the file and the line and says what to do.
//
// # Adding a package
//
// Add its path and its floor to floors in floors.go. Choose the lowest floor that is
// above everything it imports. Two packages on one floor do not import each other,
// but for the pairs in allowed, each of which has its reason beside it.
//
// # Adding a rule
//
// Write a function of one package that returns violations, add it to Rules, and add to
// the test a small tree that breaks it: a rule that cannot fail is no rule.
//
// See docs/adr/0001-floors.md for why there are floors.
package lint
