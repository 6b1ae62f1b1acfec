// Package modules finds Go packages that are not compiled into the notebook's kernel.
//
// A Finder says where the source of a package lies, so that it can be interpreted: in the module of the current folder
// (its versions, its vendor folder, its local packages), or in the module cache, of which it takes the newest version.
// It uses the network for Download alone, which fills the module cache. Program compiles files that import such
// packages, for cells that are compiled (package native).
//
// All need the go command.
package modules
