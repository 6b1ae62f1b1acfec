package lint

import (
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite testdata/json.txt")

// written lists the types that the program writes as JSON, other than the results of stages, and where it writes them.
var written = [][2]string{
	{"krrlab/stage/solve.Solution", "krrlab fit --json"},
	{"krrlab/stage/verify.Verification", "krrlab verify --json"},
	{"krrlab/model/explain.Explanation", "krrlab explain --json"},
	{"krrlab/stage/plan.Scaling", "krrlab plan --nodes --json"},
	{"theory.Report", "krrlab check --json"},
	{"experiments/testbed.Line", "krrlab testbed --out"},
	{"experiments.Report", "krrlab reproduce: report.json"},
	{"krrlab/model.Info", "krrlab fit --out: model.json"},
	{"datasets.manifest", "krrlab data pack: krrlab-data.json"},
	{"krrlab/cli.modelInfo", "krrlab model info --json"},
	{"krrlab/ranks/remote.job", "a stage on ranks: job.json"},
	{"krrlab/stage/sketchsize.Options", "a stage on ranks: the options of sketch-size in job.json"},
	{"krrlab/ranks/remote.outcome", "a stage on ranks: what it returns"},
	{"krrlab/ranks/remote.report", "a stage on ranks: a line of its log"},
}

// foreignKeys lists prefixes of types whose keys are not ours to choose, or that appear only within one HTML page.
var foreignKeys = []string{"krrlab/notebook/", "plots.", "plots/draw."}

// standIns lists types that have their own MarshalJSON method, with the form that it writes.
var standIns = map[string]string{"krrlab/stage.Number": "number or null",
	"krrlab/krylov/estimate.Interval": "krrlab/krylov/estimate.intervalJSON"}

// jsonKeys collects the JSON keys of struct types.
type jsonKeys struct {
	structs map[string]*types.Struct
	text    map[string]bool // types that are written as a string
	keys    map[string][]string
}

// json returns how a type is written as JSON, and adds the structs that it contains.
func (s *jsonKeys) json(t types.Type) string {
	if n, ok := types.Unalias(t).(*types.Named); ok {
		full := qualifiedName(n.Obj())
		if in, ok := standIns[full]; ok {
			s.add(in)
			return in
		}
		if s.text[full] {
			return "string"
		}
		if s.structs[full] != nil {
			s.add(full)
			return full
		}
	}
	switch t := t.Underlying().(type) {
	case *types.Pointer:
		return s.json(t.Elem()) + " or null"
	case *types.Slice:
		if types.Identical(t.Elem(), types.Typ[types.Byte]) {
			return "any"
		}
		return "[]" + s.json(t.Elem())
	case *types.Map:
		return "{string: " + s.json(t.Elem()) + "}"
	case *types.Basic:
		switch {
		case t.Info()&types.IsNumeric != 0:
			return "number"
		case t.Info()&types.IsBoolean != 0:
			return "bool"
		}
	}
	return "string"
}

// add collects the keys of a struct and of the structs that it contains.
func (s *jsonKeys) add(full string) {
	st := s.structs[full]
	if st == nil || s.keys[full] != nil {
		return
	}
	s.keys[full] = []string{}
	for i := range st.NumFields() {
		f := st.Field(i)
		key, opt, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("json"), ",")
		switch {
		case !f.Exported() || key == "-":
			continue
		case f.Embedded() && key == "":
			s.keys[full] = append(s.keys[full], "and those of "+s.json(f.Type()))
			continue
		case key == "":
			key = f.Name()
		}
		if opt != "" {
			key += "?"
		}
		s.keys[full] = append(s.keys[full], fmt.Sprintf("%-24s %s", key, s.json(f.Type())))
	}
}

// checkShadowedKeys fails the test if a struct has the same key as a struct that it embeds, because JSON then omits the
// value of the embedded one.
func (s *jsonKeys) checkShadowedKeys(t *testing.T) {
	t.Helper()
	// ownKeys returns the keys of a struct itself, and the names of the structs that it embeds.
	ownKeys := func(n string) (keys, embedded []string) {
		for _, k := range s.keys[n] {
			if embeddedName, ok := strings.CutPrefix(k, "and those of "); ok {
				embedded = append(embedded, embeddedName)
			} else {
				keys = append(keys, strings.TrimSuffix(strings.Fields(k)[0], "?"))
			}
		}
		return keys, embedded
	}
	for n := range s.keys {
		keys, embedded := ownKeys(n)
		for _, e := range embedded {
			inner, _ := ownKeys(e)
			for _, k := range inner {
				if slices.Contains(keys, k) {
					t.Errorf("%s has the key %q of %s, which it embeds: JSON has the former alone", n, k, e)
				}
			}
		}
	}
}

// TestJSONKeys checks that the keys of all JSON that the program writes are those of testdata/json.txt, so that a
// change is noticed. If a key is removed, CHANGELOG.md must name its successor; the flag -update writes the file.
func TestJSONKeys(t *testing.T) {
	s := &jsonKeys{structs: map[string]*types.Struct{}, text: map[string]bool{}, keys: map[string][]string{}}
	for _, u := range checkedUnits(t) {
		for _, n := range u.pkg.Scope().Names() {
			o, ok := u.pkg.Scope().Lookup(n).(*types.TypeName)
			if !ok || o.IsAlias() || u.test {
				continue
			}
			if st, ok := o.Type().Underlying().(*types.Struct); ok {
				s.structs[qualifiedName(o)] = st
			}
			s.text[qualifiedName(o)] = types.NewMethodSet(types.NewPointer(o.Type())).Lookup(nil, "MarshalText") != nil
		}
	}
	files := map[string]string{}
	writtenTypes := written
	for _, d := range krrlab.Stages() {
		result := reflect.TypeOf(d.Result).Elem()
		writtenTypes = append(writtenTypes, [2]string{strings.TrimPrefix(result.PkgPath(), module+"/") + "." + result.Name(),
			fmt.Sprintf("krrlab %s --json", d.Name)})
	}
	for _, w := range writtenTypes {
		if s.structs[w[0]] == nil {
			t.Errorf("%s (%s) is gone: strike it out of written", w[0], w[1])
		}
		files[w[0]] = ": " + w[1]
		s.add(w[0])
	}
	for n, st := range s.structs {
		tagged := false
		for i := range st.NumFields() {
			tagged = tagged || reflect.StructTag(st.Tag(i)).Get("json") != ""
		}
		if tagged && s.keys[n] == nil && !slices.ContainsFunc(foreignKeys,
			func(p string) bool { return strings.HasPrefix(n, p) }) {
			t.Errorf("%s has keys for JSON and is part of nothing in written: add what writes it in keys_test.go, or remove them", n)
		}
	}
	s.checkShadowedKeys(t)
	var b strings.Builder
	b.WriteString("The keys of all JSON that krrlab writes, by Go type; ? is left out where it is empty.\n")
	for _, n := range slices.Sorted(maps.Keys(s.keys)) {
		fmt.Fprintf(&b, "\n%s%s\n", n, files[n])
		for _, k := range s.keys[n] {
			fmt.Fprintf(&b, "\t%s\n", k)
		}
	}
	golden := filepath.Join("testdata", "json.txt")
	if *update {
		testkit.OK(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, got := strings.Split(readText(t, golden), "\n"), strings.Split(b.String(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("from line %d on the keys are not those of %s: name the successor of an old key in "+
				"CHANGELOG.md and run go test ./krrlab/internal/lint -run JSONKeys -update", i+1, golden)
		}
	}
}
