// Package modules finds Go packages that are not compiled into the notebook's kernel, and builds kernels with more of
// them.
//
// A Finder says where the source of a package lies, so that it can be interpreted: in the module of a kernel that Add
// has built, in the module of the current folder (its versions, its vendor folder, its local packages), or in the
// module cache, of which it takes the newest version. It never uses the network.
//
// Add builds a program from the laboratory's own main package, the packages named and tables of their exported names
// (package bindgen), in a separate module; the laboratory is taken at this program's version from the module
// cache or proxy, or from a checkout. What is built lies in one folder of the user's cache, and a file that is
// replaced in one step says which folder counts: a build that fails or is interrupted changes nothing. Current
// reads that, and Fresh says whether the program found there is to run instead of another.
//
// Both use the go command and need Go to be installed.
package modules
