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

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

var (
	inPicture = regexp.MustCompile(`[+−-]?[\d.,]+([e×][\d+−-]+)?( %)?`)
	dataNames = regexp.MustCompile(`synthetic-(regression|classes)|ijcnn1|mnist|cal-housing|houses`)
)

// words returns the texts of a picture without numbers and names of data: its title and caption, axes and legend.
func words(t *testing.T, svg []byte) (all []string) {
	t.Helper()
	dec, text, depth := xml.NewDecoder(strings.NewReader(string(svg))), "", 0
	for {
		token, err := dec.Token()
		if err == io.EOF {
			slices.Sort(all)
			return slices.Compact(all)
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
				text = inPicture.ReplaceAllString(dataNames.ReplaceAllString(text, "DATA"), "#")
				text = strings.TrimSpace(strings.ReplaceAll(text, "##", "#"))
				if text != "" && text != "#" {
					all = append(all, text)
				}
				depth = 0
			}
		}
	}
}

// TestPictures: the words of every kept picture are those that the present code draws, on small data.
func TestPictures(t *testing.T) {
	docs := testkit.Must(filepath.Abs("../../docs"))
	files(t, map[string]string{"houses.csv": strings.Replace(table(60, nil, true), "a,b,c,y", "a,b,c,price", 1)})
	script(t, "$ fit --data synthetic-classes --n 200 --out m.krr")
	lines := strings.Split(string(read(t, filepath.Join(docs, "pictures.txt"))), "\n")
	var listed []string
	for _, line := range lines {
		if line == "" || line[0] == '#' {
			continue
		}
		part := strings.Split(line, "|")
		name, command := strings.TrimSpace(part[0]), strings.TrimSpace(part[1])
		name, old := strings.CutPrefix(name, "~")
		if listed = append(listed, filepath.Join(docs, name)); old {
			t.Logf("%s is older than the code: make pictures", name)
			continue
		}
		small := "$ " + command + " p.svg " + part[2]
		switch {
		case command == "demo":
			small = "$ demo"
		case strings.HasPrefix(command, "verify"):
			small = "$ verify m.krr --data synthetic-classes --plot p.svg"
		case strings.Contains(command, "--data"):
			small = "$ " + command + " p.svg --data synthetic-classes --n 200 " + part[2]
		}
		script(t, small)
		drawn := filepath.Join(".", map[bool]string{true: name, false: "p.svg"}[command == "demo"])
		compareWords(t, filepath.Join(docs, name), drawn)
	}
	all := append(testkit.Must(filepath.Glob(docs+"/*.svg")), testkit.Must(filepath.Glob(docs+"/stages/*.svg"))...)
	for _, name := range all {
		if !slices.Contains(listed, name) && filepath.Base(name) != "low-rank-and-sparse.svg" { // of a notebook
			t.Errorf("%s is not in pictures.txt", name)
		}
	}
	script(t, "$ check --figures figures --trials 20")
	for _, name := range testkit.Must(filepath.Glob(filepath.Join(docs, "../theory/figures/*.svg"))) {
		compareWords(t, name, filepath.Join("figures", filepath.Base(name)))
	}
}

// compareWords compares the words of a kept picture with those of a new one.
func compareWords(t *testing.T, kept, drawn string) {
	t.Helper()
	for _, name := range []string{kept, drawn} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
			return
		}
	}
	if a, b := words(t, read(t, kept)), words(t, read(t, drawn)); !slices.Equal(a, b) {
		t.Errorf("%s is not of the present code: make pictures\nkept %q\n now %q", kept, a, b)
	}
}
