package bindings

import "github.com/gopherdata/gophernotes/imports"

// merge adds names to the table of a package. If gomacro has a table for this package, merge first creates the maps
// that the table lacks.
func merge(path string, names imports.PackageUnderlying) {
	if table, ok := imports.Packages[path]; ok {
		table.LazyInit(path)
		imports.Packages[path] = table
	}
	imports.Packages.MergePackage(path, names)
}
