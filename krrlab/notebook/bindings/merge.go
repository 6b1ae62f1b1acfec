package bindings

import "github.com/gopherdata/gophernotes/imports"

// merge adds names to the table of a package. If gomacro has a table for this package, its missing maps are created
// first.
func merge(path string, names imports.PackageUnderlying) {
	if p, ok := imports.Packages[path]; ok {
		p.LazyInit(path)
		imports.Packages[path] = p
	}
	imports.Packages.MergePackage(path, names)
}
