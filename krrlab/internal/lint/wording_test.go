package lint

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// vagueNames lists words that say nothing when they are the whole name of a function, type, field or variable.
var vagueNames = strings.Fields(`left own near kept held told lost came begun made most least of by at laid wider finer
	beside instead said seen given taken gone done here there then whole part more less rest none some other others
	both each same such enough few many again once until since from to with without as so yet still ever never always
	known unknown meant sought found won hope slow dear look looked looks sees tells knows owes asked asks wants wanted
	goes nearer nearest farther earlier later before after first last next apart away ahead behind beyond within among
	between ended coming come went what which where when whose who why how that this these those it they them ready
	alike different several single twice mostly hardly nearly`)

var (
	// invertedSentences finds sentences that begin with a clause in place of a subject.
	invertedSentences = regexp.MustCompile(`(?:^|[.;:] )(?:What|That|Of|By|Where|Whose|How|Which|As many|So many) [a-z]`)
	// setPhrases finds set phrases that a reader has to decode.
	setPhrases = regexp.MustCompile(`(?i)\b(?:next to nothing|sees to it|goes? over to|(?:is|are) told|beside|held against|` +
		`looked? at|(?:is|are) had|takes what|says? (?:less|little|what)|tells? (?:less|little|what)|in its place|` +
		`of its own|as it is (?:stored|kept|held)|by itself|is (?:dear|cheap) |is off by|takes? off|` +
		`what (?:is|was|it|they|a|the) )`)
)

var updateWording = flag.Bool("wording", false, "write the counts of TestWording")

// TestWording counts, in each package, names and sentences that readers had to decode, and keeps the counts from
// growing. The counts are in testdata/wording.txt; after an improvement run
//
//	go test ./krrlab/internal/lint -run Wording -wording
func TestWording(t *testing.T) {
	file := filepath.Join("testdata", "wording.txt")
	counts, places := map[string]int{}, map[string][]string{}
	testkit.OK(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "bindings" ||
			name == "out") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			folder := testkit.Must(filepath.Rel(root, filepath.Dir(path)))
			found := vagueWording(t, path)
			counts[folder], places[folder] = counts[folder]+len(found), append(places[folder], found...)
		}
		return nil
	}))
	if *updateWording {
		var text strings.Builder
		for _, folder := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(&text, "%s %d\n", folder, counts[folder])
		}
		testkit.OK(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	allowedCounts := map[string]int{}
	for line := range strings.Lines(string(testkit.Must(os.ReadFile(file)))) {
		folder, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		allowedCounts[folder] = testkit.Must(strconv.Atoi(count))
	}
	for folder, count := range counts {
		if count > allowedCounts[folder] {
			t.Errorf("%s has %d vague names and inverted or worn sentences, %d before: use standard names and plain "+
				"sentences\n%s", folder, count, allowedCounts[folder], strings.Join(places[folder], "\n"))
		}
	}
}

// vagueWording returns the places of vague names that a file declares, and of inverted or worn sentences in its
// comments.
func vagueWording(t *testing.T, path string) (places []string) {
	positions := token.NewFileSet()
	file := testkit.Must(parser.ParseFile(positions, path, nil, parser.ParseComments))
	if ast.IsGenerated(file) {
		return nil
	}
	addVague := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if slices.Contains(vagueNames, strings.ToLower(ident.Name)) {
				places = append(places, fmt.Sprintf("%v: %s", positions.Position(ident.Pos()), ident.Name))
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			addVague(node.Name)
		case *ast.TypeSpec:
			addVague(node.Name)
		case *ast.ValueSpec:
			addVague(node.Names...)
		case *ast.Field:
			addVague(node.Names...)
		case *ast.AssignStmt:
			for _, expr := range node.Lhs {
				if ident, ok := expr.(*ast.Ident); ok && node.Tok == token.DEFINE {
					addVague(ident)
				}
			}
		}
		return true
	})
	for _, c := range file.Comments {
		text := strings.ReplaceAll(c.Text(), "\n", " ")
		for _, phrase := range append(invertedSentences.FindAllString(text, -1),
			setPhrases.FindAllString(text, -1)...) {
			places = append(places, fmt.Sprintf("%v: %q", positions.Position(c.Pos()), phrase))
		}
	}
	return places
}
