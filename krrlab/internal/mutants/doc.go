// Package mutants measures whether the tests bite: it breaks the code of a package in many
// small ways, one at a time, and sees whether a test fails.
//
// A mutant is one change of one place: a comparison moved by its boundary, a condition
// negated, + for −, a constant one more or a tenth larger, a statement left out, a function
// that returns at once, an append that is dropped. All mutants of a package are woven into
// one copy of it, each behind a switch that an environment variable sets, and that copy is
// compiled into the tests by the go command's -overlay, so that a package is built once for
// all its mutants and the tree is never touched. Every test runs once without a mutant, to
// learn how long it takes and which mutants it reaches; then a mutant is given to the
// tests that reach it, the quick ones first, until one fails. Tests of other packages
// (Target.Dependants) see what is left.
//
// Which places are changed is drawn by a hash of each place's own text and a seed, so an edit
// changes the mutants of what was edited and few others. A mutant that no test can kill, as
// it computes the same, stands in reasons.txt by package, function and text, with the reason;
// a mutant that survives without one is a failure.
//
// Constants in declarations are changed where they are used. What is not changed: assembly,
// texts of errors, String methods, capacities, and code outside of functions.
package mutants
