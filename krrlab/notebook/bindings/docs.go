package bindings

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"sync"
)

// docsFolder contains DocsFile if it was written before the program was built. The folder also contains a README,
// because an empty folder cannot be embedded.
//
//go:embed docs
var docsFolder embed.FS

// DocsFile is the path of the documentation, relative to the folder of this package. The file contains compressed JSON:
// an Entry for each import path and name. Package bindgen writes the file, which is not in git.
const DocsFile = "docs/docs.json.gz"

// Entry is the documentation of a name: its declaration and comment.
type Entry struct {
	Decl string `json:"decl"`
	Doc  string `json:"doc,omitempty"`
}

// entries returns the documentation by import path and name, or nil if the program was built without DocsFile.
var entries = sync.OnceValue(func() (all map[string]map[string]Entry) {
	file, err := docsFolder.Open(DocsFile)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	decompressor, err := gzip.NewReader(file)
	if err != nil || json.NewDecoder(decompressor).Decode(&all) != nil {
		return nil
	}
	return all
})

// Lookup returns the documentation of a name in the package that cells import by path. name is Name, Type.Method,
// Type.Field, or "" for the package itself. ok is false if the program has no bindings of the package, if the package
// has no such name, or if the program was built without documentation.
func Lookup(path, name string) (entry Entry, ok bool) {
	entry, ok = entries()[path][name]
	return entry, ok
}
