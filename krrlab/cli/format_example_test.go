package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/cli"
)

// arff is the format of Weka: lines @attribute NAME TYPE, a line @data, and rows whose cells are separated by commas.
// Lines that begin with % are comments.
var arff = datasets.Format{Name: "arff", Endings: []string{".arff"}, IsText: true, Recognize: isARFF, Read: readARFF}

var registerARFF = sync.OnceValue(func() error { return datasets.RegisterFormat(arff) })

func isARFF(s *datasets.Source) (why string, ok bool) {
	for line := range bytes.Lines(bytes.ToLower(s.Head())) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
			return "it begins with @relation", bytes.HasPrefix(line, []byte("@relation"))
		}
	}
	return "", false
}

func readARFF(s *datasets.Source, o *datasets.ReadOptions) (*datasets.Dataset, error) {
	var columns []datasets.Column
	for line := 1; ; line++ {
		text, err := s.Reader().ReadString('\n')
		if err != nil {
			return nil, s.Fault(line, 0, "want a line @data, and rows after it")
		}
		words := strings.Fields(text)
		switch first := strings.ToLower(strings.Join(words[:min(len(words), 1)], "")); {
		case first == "@attribute" && len(words) > 2:
			isNumber := strings.EqualFold(words[2], "numeric") || strings.EqualFold(words[2], "real")
			columns = append(columns, datasets.Column{Name: words[1], IsText: !isNumber})
		case first == "@data":
			rows := *o
			rows.Separator, rows.Comment = "comma", "%"
			return s.ReadDelimited(columns, line+1, &rows)
		}
	}
}

// This example registers the ARFF file format, which every command of krrlab can then read.
func ExampleMain_format() {
	if err := registerARFF(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(datasets.RegisterFormat(datasets.Format{Name: "weka", Endings: []string{".arff"}, Read: readARFF}))
	dir, err := os.MkdirTemp("", "arff")
	if err != nil {
		fmt.Println(err)
	}
	defer os.RemoveAll(dir)
	head := "% houses\n@relation houses\n\n@attribute area real\n@attribute town {ulm, bonn}\n@attribute price numeric\n\n@data\n"
	rows := strings.Repeat("100,ulm,3.5\n120,bonn,4.5\n% a comment\n150,ulm,5.25\n80,bonn,2.75\n", 3)
	good, bad := filepath.Join(dir, "houses.arff"), filepath.Join(dir, "bad.arff")
	for name, text := range map[string]string{good: head + rows, bad: head + "100,ulm,3.5\n12O,bonn,4.5\n150,ulm,5.25\n"} {
		err = errors.Join(err, os.WriteFile(name, []byte(text), 0o600))
	}
	if err != nil {
		fmt.Println(err)
	}
	fit := "fit --target price --categorical town --sigma 1 --lambda 0.1 --task regression --train "
	for _, c := range []struct{ line, show string }{
		{"help fit", `format of the files: .*`},
		{fit + good + " --out DIR/m.krr", `houses.arff: arff .*? features`},
		{"predict DIR/m.krr --in " + good + " --out DIR/p.csv", `houses.arff: arff .*? features`},
		{"tune --target price --categorical town --task regression --train " + good, `houses.arff: arff .*? features`},
		{"data pack --target price --categorical town --task regression --scale none --train " + good + " --out DIR/packed", "training houses: .*d = 3"},
		{fit + bad, ".*"},
		{fit + good + " --format weka", ".*"},
	} {
		var out strings.Builder
		args := strings.Fields(strings.ReplaceAll(c.line, "DIR", dir))
		code := cli.Main(context.Background(), args, cli.Env{Stdout: &out, Stderr: &out,
			UseBLAS: func(context.Context, string) (note string, err error) { return "", nil }})
		printed := strings.ReplaceAll(out.String(), dir+string(filepath.Separator), "")
		fmt.Println(args[0], code, regexp.MustCompile(c.show).FindString(printed))
	}
	// Output:
	// datasets: RegisterFormat("weka"): the ending ".arff" is taken by the format arff
	// help 0 format of the files: auto, arff, csv, idx, libsvm, npy, parquet; options after it, such as
	// fit 0 houses.arff: arff (it begins with @relation); separator comma (as the format has it); header yes (the columns have names); 12 rows of 3 features
	// predict 0 houses.arff: arff (it begins with @relation); separator comma (as the format has it); header yes (the columns have names); 12 rows of 3 features
	// tune 0 houses.arff: arff (it begins with @relation); separator comma (as the format has it); header yes (the columns have names); 12 rows of 3 features
	// data 0 training houses: regression, n = 12, d = 3
	// fit 1 krrlab: bad.arff, line 10, column 1: area: "12O" is not a number
	// fit 2 krrlab: --format "weka": want one of auto, arff, csv, idx, libsvm, npy, parquet (see krrlab fit --help)
}
