// Package bindings links into a program the packages that notebook cells may import:
// those of the laboratory, and the parts of gonum, gonum/plot and gota that go with
// them. Importing it is enough: each file registers one package in gophernotes' registry
// (github.com/gopherdata/gophernotes/imports), where the kernel of krrlab and gophernotes itself look.
//
// Lookup returns the declaration and the comment of a bound name, if the program was built by make build or is a
// release. These texts are written before the program is built, and are not in git.
//
// All bind_*.go files are generated. After a change of an exported name in a package that is bound, run
//
//	go generate ./krrlab/notebook/bindgen
//
// See package bindgen for what is bound, what is left out, and why.
package bindings
