package bindgen

import (
	"bytes"
	"fmt"
	"go/types"
	"runtime"
	"strings"

	"github.com/cosmos72/gomacro/imports"
)

// stdRelease is the release of Go whose standard library is bound, that of go.mod.
const stdRelease = "go1.26"

// Std are the packages of the standard library of which the interpreter, whose table is that of Go 1.18, gets
// the names that came later, and packages that did. None of them depends on the platform.
var Std = []string{
	"bufio", "bytes", "context", "encoding/base64", "encoding/binary", "encoding/csv", "encoding/hex", "encoding/json", "errors", "fmt",
	"hash/crc32", "hash/fnv", "hash/maphash", "io", "io/fs", "log", "log/slog", "math", "math/big", "math/bits", "math/cmplx", "math/rand",
	"math/rand/v2", "net/url", "os", "path", "path/filepath", "reflect", "regexp", "sort", "strconv", "strings", "sync", "sync/atomic",
	"text/tabwriter", "text/template", "time", "unicode", "unicode/utf16", "unicode/utf8",
}

// StdFiles returns the files of the packages Std: in each what the interpreter's own table lacks and can carry, which
// no generics are. It returns nil under another release of Go, whose library is another.
func StdFiles(dir string) (map[string][]byte, error) {
	if v := runtime.Version(); v != stdRelease && !strings.HasPrefix(v, stdRelease+".") && !strings.HasPrefix(v, stdRelease+"-") {
		return nil, nil
	}
	ps, err := Load(dir, Std...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, p := range ps {
		skip := Skip{}
		names := 0
		for _, o := range p.exported() {
			if has(p.Path, o.Name()) || carriable(p, o) != nil {
				skip[p.Path+"."+o.Name()] = "the interpreter has it, or cannot carry it"
				continue
			}
			names++
		}
		if names == 0 {
			continue
		}
		src, _, err := Source("bindings", p, skip)
		if err != nil {
			return nil, err
		}
		assign := fmt.Sprintf("imports.Packages[%q] = imports.Package{", p.Path)
		merge := fmt.Sprintf("imports.Packages.MergePackage(%q, imports.PackageUnderlying{", p.Path)
		src = bytes.Replace(src, []byte(assign), []byte(merge), 1)
		files["bind_std_"+Stem(p.Path)+".go"] = bytes.Replace(src, []byte("\n\t}\n}\n"), []byte("\n\t})\n}\n"), 1)
	}
	return files, nil
}

// has reports whether the interpreter's own table has a name.
func has(path, name string) bool {
	p, ok := imports.Packages[path]
	if !ok {
		return false
	}
	_, typ := p.Types[name]
	return typ || p.Binds[name].IsValid()
}

// carriable returns why the interpreter cannot carry a name.
func carriable(p *Package, o types.Object) error {
	w := &writer{pkg: p, imports: map[string]string{}, taken: map[string]bool{"r": true, "imports": true}}
	return w.object(o)
}
