package bindings

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"sync"
)

// folder holds DocsFile if it was written before the program was built, and a README, without which the folder could
// not be embedded.
//
//go:embed docs
var folder embed.FS

// DocsFile is the file of the documentation, from this package's folder: JSON of entries by import path and name,
// compressed. It is made by package bindgen and is not in git.
const DocsFile = "docs/docs.json.gz"

// Entry is the declaration and the comment of one name.
type Entry struct {
	Decl string `json:"decl"`
	Doc  string `json:"doc,omitempty"`
}

// entries returns all documentation of this program, nil if it was built without DocsFile.
var entries = sync.OnceValue(func() (all map[string]map[string]Entry) {
	f, err := folder.Open(DocsFile)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil || json.NewDecoder(z).Decode(&all) != nil {
		return nil
	}
	return all
})

// Lookup returns the documentation of one name of the package that cells import by path: "" for the package itself,
// Name, Type.Method or Type.Field. ok is false if the package is not bound, has no such name, or if the program was
// built without documentation.
func Lookup(path, name string) (e Entry, ok bool) {
	e, ok = entries()[path][name]
	return e, ok
}
