package bindings

import "github.com/gopherdata/gophernotes/imports"

// merge adds names to a table. That of gomacro lacks the maps in which it lists nothing.
func merge(path string, names imports.PackageUnderlying) {
	if p, ok := imports.Packages[path]; ok {
		p.LazyInit(path)
		imports.Packages[path] = p
	}
	imports.Packages.MergePackage(path, names)
}
