// Package bindings links into a program the packages that notebook cells may import:
// those of the laboratory, and the parts of gonum, gonum/plot and gota that go with
// them. Importing it is enough: each file registers one package in gophernotes' registry
// (github.com/gopherdata/gophernotes/imports), where the kernel of krrlab and gophernotes itself look.
//
// The package also holds the documentation of what is bound, signatures and comments as
// they were in the source when the bindings were made: Lookup finds it.
//
// All files but this package's hand-written ones are generated. After a change of an
// exported name in a package that is bound, run
//
//	go generate ./krrlab/notebook/bindgen
//
// See package bindgen for what is bound, what is left out, and why.
package bindings
