// Package modules finds Go packages that are not compiled into the notebook's kernel.
//
// A Finder finds the source of a package, so that it can be interpreted. It uses the module of the current folder (with
// its versions, vendor folder and local packages) or else the newest version in the module cache. Only Download
// accesses the network; it fills the module cache. BuildProgram and RunTests compile files that import such packages,
// for compiled cells (package native).
//
// All functions need the go command.
package modules
