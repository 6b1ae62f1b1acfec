// Package lint has tests that check the conventions of this project: the allowed imports of each package
// (floors_test.go; docs/adr/0001-floors.md has the reasons), the packages that may print, read the environment or
// exit, the users and comments of exported names, and the content of the documentation and of the list of JSON keys.
// Each violation is reported in one line that tells how to fix it.
//
// The packages form layers, which are called floors, and each package imports only from floors below its own. A new
// package needs a line in the table floors: the lowest floor above everything that it imports. A new rule is a function
// of its input, with a table of inputs that it must reject, so that the rule is known to be able to fail.
package lint
