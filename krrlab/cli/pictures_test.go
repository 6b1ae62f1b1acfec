package cli

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

var (
	numbers   = regexp.MustCompile(`[+−-]?[\d.,]+([e×][\d+−-]+)?( %)?`)
	dataNames = regexp.MustCompile(`synthetic-(regression|classes)|ijcnn1|mnist|cal-housing|houses`)
)

// pictureWords returns the sorted texts of an SVG picture: title, caption, axes and legend. Numbers are replaced by "#"
// and names of data sets by "DATA".
func pictureWords(t *testing.T, svg []byte) (texts []string) {
	t.Helper()
	decoder, text, depth := xml.NewDecoder(strings.NewReader(string(svg))), "", 0
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			slices.Sort(texts)
			return slices.Compact(texts)
		}
		testkit.OK(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			if slices.Contains([]string{"text", "title", "desc"}, token.Name.Local) {
				text, depth = "", 1
			}
		case xml.CharData:
			text += string(token)
		case xml.EndElement:
			if depth == 1 && token.Name.Local != "tspan" {
				text = numbers.ReplaceAllString(dataNames.ReplaceAllString(text, "DATA"), "#")
				text = strings.TrimSpace(strings.ReplaceAll(text, "##", "#"))
				if text != "" && text != "#" {
					texts = append(texts, text)
				}
				depth = 0
			}
		}
	}
}

// TestPictures checks that the pictures in docs are up to date: their words, without numbers, must be those of a
// picture that the present code draws from small data. The file docs/pictures.txt lists the command of each picture; a
// name with "~" in front is known to be out of date.
func TestPictures(t *testing.T) {
	docs := testkit.Must(filepath.Abs("../../docs"))
	enterTempFolder(t,
		map[string]string{"houses.csv": strings.Replace(randomTable(60, nil), "a,b,c,y", "a,b,c,price", 1)})
	runScript(t, "$ fit --data synthetic-classes --n 200 --out m.krr")
	lines := strings.Split(string(readFile(t, filepath.Join(docs, "pictures.txt"))), "\n")
	var listed []string
	for _, line := range lines {
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "|")
		name, command := strings.TrimSpace(columns[0]), strings.TrimSpace(columns[1])
		name, outdated := strings.CutPrefix(name, "~")
		if listed = append(listed, filepath.Join(docs, name)); outdated {
			t.Logf("%s is older than the code: make pictures", name)
			continue
		}
		smallCommand := "$ " + command + " p.svg " + columns[2]
		switch {
		case command == "demo":
			smallCommand = "$ demo"
		case strings.HasPrefix(command, "verify"):
			smallCommand = "$ verify m.krr --data synthetic-classes --plot p.svg"
		case strings.Contains(command, "--data"):
			smallCommand = "$ " + command + " p.svg --data synthetic-classes --n 200 " + columns[2]
		}
		runScript(t, smallCommand)
		drawn := "p.svg"
		if command == "demo" {
			drawn = name // the command demo chooses the names of its pictures
		}
		compareWords(t, filepath.Join(docs, name), drawn)
	}
	pictures := append(testkit.Must(filepath.Glob(docs+"/*.svg")), testkit.Must(filepath.Glob(docs+"/stages/*.svg"))...)
	for _, name := range pictures {
		// A notebook draws the picture low-rank-and-sparse.svg.
		if !slices.Contains(listed, name) && filepath.Base(name) != "low-rank-and-sparse.svg" {
			t.Errorf("%s is not in pictures.txt", name)
		}
	}
	claims := ""
	if suite.Small() { // the figures that take a few seconds
		claims = "proposition2 lemma4 theorem7 lambda-p iterations fixed16"
	}
	runScript(t, "$ check "+claims+" --figures figures --trials 20")
	drawn := testkit.Must(filepath.Glob("figures/*.svg"))
	kept := testkit.Must(filepath.Glob(filepath.Join(docs, "../theory/figures/*.svg")))
	if len(drawn) < 5 || !suite.Small() && len(drawn) != len(kept) {
		t.Errorf("figures %q are drawn, %q kept", drawn, kept)
	}
	for _, name := range drawn {
		compareWords(t, filepath.Join(docs, "../theory", name), name)
	}
}

// compareWords reports an error if a picture in docs and a newly drawn picture have different words, or if one of the
// files is missing.
func compareWords(t *testing.T, kept, drawn string) {
	t.Helper()
	for _, name := range []string{kept, drawn} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
			return
		}
	}
	if keptWords, drawnWords := pictureWords(t, readFile(t, kept)), pictureWords(t,
		readFile(t, drawn)); !slices.Equal(keptWords, drawnWords) {
		t.Errorf("%s is not of the present code: make pictures\nkept %q\n now %q", kept, keptWords, drawnWords)
	}
}
