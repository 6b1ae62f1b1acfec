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

// writtenAsJSON lists the types that the program writes as JSON, other than the results of stages, and where it writes
// them.
var writtenAsJSON = [][2]string{
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
	{"krrlab/ranks/remote.outcome", "a stage on ranks: the result of the stage"},
	{"krrlab/ranks/remote.report", "a stage on ranks: a line of its log"},
}

// foreignKeys lists prefixes of types whose keys are not ours to choose, or that appear only within one HTML page.
var foreignKeys = []string{"krrlab/notebook/", "plots.", "plots/draw."}

// marshaledForms lists types that have their own MarshalJSON method, with the form that it writes.
var marshaledForms = map[string]string{"krrlab/stage.Number": "number or null",
	"krrlab/krylov/estimate.Interval": "krrlab/krylov/estimate.intervalJSON"}

// jsonKeys collects the JSON keys of struct types.
type jsonKeys struct {
	structs map[string]*types.Struct
	text    map[string]bool // types that are written as a string
	keys    map[string][]string
}

// json returns how a type is written as JSON, and adds the structs that it contains.
func (s *jsonKeys) json(t types.Type) string {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		full := qualifiedName(named.Obj())
		if form, ok := marshaledForms[full]; ok {
			s.add(form)
			return form
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
	structType := s.structs[full]
	if structType == nil || s.keys[full] != nil {
		return
	}
	s.keys[full] = []string{}
	for i := range structType.NumFields() {
		field := structType.Field(i)
		key, options, _ := strings.Cut(reflect.StructTag(structType.Tag(i)).Get("json"), ",")
		switch {
		case !field.Exported() || key == "-":
			continue
		case field.Embedded() && key == "":
			s.keys[full] = append(s.keys[full], "and those of "+s.json(field.Type()))
			continue
		case key == "":
			key = field.Name()
		}
		if options != "" {
			key += "?"
		}
		s.keys[full] = append(s.keys[full], fmt.Sprintf("%-24s %s", key, s.json(field.Type())))
	}
}

// checkShadowedKeys fails the test if a struct has the same key as a struct that it embeds, because JSON then omits the
// value of the embedded one.
func (s *jsonKeys) checkShadowedKeys(t *testing.T) {
	t.Helper()
	// ownKeys returns the keys of a struct itself, and the names of the structs that it embeds.
	ownKeys := func(name string) (keys, embedded []string) {
		for _, key := range s.keys[name] {
			if embeddedName, ok := strings.CutPrefix(key, "and those of "); ok {
				embedded = append(embedded, embeddedName)
			} else {
				keys = append(keys, strings.TrimSuffix(strings.Fields(key)[0], "?"))
			}
		}
		return keys, embedded
	}
	for name := range s.keys {
		keys, embedded := ownKeys(name)
		for _, embeddedStruct := range embedded {
			inner, _ := ownKeys(embeddedStruct)
			for _, key := range inner {
				if slices.Contains(keys, key) {
					t.Errorf("%s has the key %q of %s, which it embeds: JSON has the former alone", name, key,
						embeddedStruct)
				}
			}
		}
	}
}

// TestJSONKeys checks that the keys of all JSON that the program writes are those of testdata/json.txt, so that a
// change is noticed. If a key is removed, CHANGELOG.md must name its successor; the flag -update writes the file.
func TestJSONKeys(t *testing.T) {
	collected := &jsonKeys{structs: map[string]*types.Struct{}, text: map[string]bool{}, keys: map[string][]string{}}
	for _, u := range checkedUnits(t) {
		for _, name := range u.pkg.Scope().Names() {
			typeName, ok := u.pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || typeName.IsAlias() || u.test {
				continue
			}
			if structType, ok := typeName.Type().Underlying().(*types.Struct); ok {
				collected.structs[qualifiedName(typeName)] = structType
			}
			collected.text[qualifiedName(typeName)] = types.NewMethodSet(types.NewPointer(typeName.Type())).Lookup(nil,
				"MarshalText") != nil
		}
	}
	files := map[string]string{}
	writtenTypes := writtenAsJSON
	for _, definition := range krrlab.Stages() {
		result := reflect.TypeOf(definition.Result).Elem()
		writtenTypes = append(writtenTypes,
			[2]string{strings.TrimPrefix(result.PkgPath(), module+"/") + "." + result.Name(),
				fmt.Sprintf("krrlab %s --json", definition.Name)})
	}
	for _, entry := range writtenTypes {
		if collected.structs[entry[0]] == nil {
			t.Errorf("%s (%s) is gone: remove it from writtenAsJSON", entry[0], entry[1])
		}
		files[entry[0]] = ": " + entry[1]
		collected.add(entry[0])
	}
	for name, structType := range collected.structs {
		tagged := false
		for i := range structType.NumFields() {
			tagged = tagged || reflect.StructTag(structType.Tag(i)).Get("json") != ""
		}
		if tagged && collected.keys[name] == nil && !slices.ContainsFunc(foreignKeys,
			func(p string) bool { return strings.HasPrefix(name, p) }) {
			t.Errorf("%s has keys for JSON and is part of nothing in writtenAsJSON: add what writes it in "+
				"keys_test.go, or remove them", name)
		}
	}
	collected.checkShadowedKeys(t)
	var text strings.Builder
	text.WriteString("The keys of all JSON that krrlab writes, by Go type; ? is left out where it is empty.\n")
	for _, name := range slices.Sorted(maps.Keys(collected.keys)) {
		fmt.Fprintf(&text, "\n%s%s\n", name, files[name])
		for _, key := range collected.keys[name] {
			fmt.Fprintf(&text, "\t%s\n", key)
		}
	}
	golden := filepath.Join("testdata", "json.txt")
	if *update {
		testkit.OK(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, got := strings.Split(readText(t, golden), "\n"), strings.Split(text.String(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("from line %d on the keys are not those of %s: name the successor of an old key in "+
				"CHANGELOG.md and run go test ./krrlab/internal/lint -run JSONKeys -update", i+1, golden)
		}
	}
}
