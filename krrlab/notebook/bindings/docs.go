package bindings

import (
	"embed"
	"encoding/json"
	"strings"
	"sync"
)

//go:embed docs/*.json
var docs embed.FS

// Entry is the declaration and the comment of one name.
type Entry struct {
	Decl string `json:"decl"`
	Doc  string `json:"doc"`
}

var (
	mu     sync.Mutex
	loaded = map[string]map[string]Entry{}
)

// stem is the name of a package's files; package bindgen names them so.
var stem = strings.NewReplacer("github.com/krrlab/lab/", "", "/", "_", ".", "_", "-", "_")

// Docs returns the documentation of one package by name: "" for the package itself,
// Name, Type.Method and Type.Field. It is nil if the package is not bound here. It must
// not be changed.
func Docs(path string) map[string]Entry {
	mu.Lock()
	defer mu.Unlock()
	if d, ok := loaded[path]; ok {
		return d
	}
	var d map[string]Entry
	if js, err := docs.ReadFile("docs/" + stem.Replace(path) + ".json"); err == nil {
		if json.Unmarshal(js, &d) != nil {
			d = nil
		}
	}
	loaded[path] = d
	return d
}

// Lookup returns the documentation of a name (see Docs) of a package.
func Lookup(path, name string) (Entry, bool) {
	e, ok := Docs(path)[name]
	return e, ok
}
