// Package bindings links the packages that notebook cells can import into a program: those of the laboratory, and
// parts of gonum, gonum/plot and gota. Importing this package is sufficient. Each of its files registers one package in
// the registry of gophernotes (github.com/gopherdata/gophernotes/imports), which the kernel of krrlab and gophernotes
// use.
//
// Lookup returns the declaration and the comment of a bound name, if the program was built by make build or is a
// release. These texts are generated before the program is built, and are not in git.
//
// All bind_*.go files are generated. After a change of an exported name in a bound package, run
//
//	go generate ./krrlab/notebook/bindgen
//
// Package bindgen documents the selection of packages and names.
package bindings
