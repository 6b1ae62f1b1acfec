package datasets

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// packed returns the text packed in a container of the given kind.
func packed(t testing.TB, kind, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch kind {
	case "gzip":
		return gzipped(text)
	case "xz":
		w, err = xz.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	case "zip":
		return zipped(t, "__MACOSX/._t.csv", "x", "folder/", "", "folder/t.csv", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// zipped returns a zip archive of the given files, each a name followed by its content.
func zipped(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for k := 0; k < len(files); k += 2 {
		w := must(z.Create(files[k]))
		io.WriteString(w, files[k+1])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestContainers checks that a table reads the same from every container, from a file and from a stream. Damaged
// containers are errors of one line, and a canceled context ends the reading.
func TestContainers(t *testing.T) {
	table := strings.Repeat("1,2,3.5\n4,5,6.5\n", 20000)
	for _, kind := range []string{"gzip", "xz", "zstd", "zip", "gzip xz", "zip gzip", "zstd zip"} {
		t.Run(kind, func(t *testing.T) {
			whole := table
			for _, k := range strings.Fields(kind) {
				whole = packed(t, k, whole)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "table")
			read := map[string]func(content string) (*Dataset, error){
				"stream": func(c string) (*Dataset, error) { return Read(strings.NewReader(c), path, nil) },
				"file": func(c string) (*Dataset, error) {
					return ReadFile(t.Context(), put(t, dir, "table", c), nil)
				},
			}
			for source, read := range read {
				d, err := read(whole)
				if err != nil || d.Len() != 40000 || d.Dim() != 2 || d.Target[39999] != 6.5 {
					t.Fatalf("%s, complete: %v, %v", source, d, err)
				}
				if last := kind[strings.LastIndex(kind, " ")+1:]; !strings.Contains(d.ReadReport.String(),
					"unpacked from "+last) {
					t.Errorf("read: %v", d.ReadReport)
				}
				half := len(whole) / 2
				for what, c := range map[string]string{
					"cut": whole[:half], "cut at once": whole[:7], "cut at the end": whole[:len(whole)-3],
					"changed": whole[:half] + string(whole[half]^0x55) + whole[half+1:],
				} {
					if d, err := read(c); err == nil || what != "changed" && !strings.Contains(err.Error(), "get ") ||
						strings.Contains(err.Error(), "\n") {
						t.Errorf("%s, %s: %v, %v, want an error of one line", source, what, d, err)
					}
				}
			}
			read["file"](whole)
			if _, err := ReadFile(&counted{Context: context.Background(), limit: 1}, path, nil); !errors.Is(err,
				context.Canceled) {
				t.Errorf("ended: %v", err)
			}
		})
	}
}

// TestUnreadFormats checks that files of a kind that cannot be read are refused with their kind and a remedy.
func TestUnreadFormats(t *testing.T) {
	encrypted := []byte(zipped(t, "a.csv", "1,2\n"))
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	checkReadings(t, []reading{
		{"", zipped(t, "a.csv", "1,2\n", "b.csv", "1,2\n"), ReadOptions{},
			"!the zip archive has 2 files, a.csv, b.csv: unpack it, and name one"},
		{"", zipped(t, "folder/", ""), ReadOptions{}, "!the zip archive has no file"},
		{"", zipped(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml", "<"), ReadOptions{},
			"!a document of LibreOffice (OpenDocument): open it, and save its spreadsheet as CSV"},
		{"", zipped(t, "[Content_Types].xml", "<", "xl/workbook.xml", "<"), ReadOptions{},
			"!an Excel workbook or another document of Office: save the table as CSV"},
		{"", string(encrypted), ReadOptions{}, "!the zip archive is encrypted: unpack it"},
		{"", "PAR1", ReadOptions{}, `!the program has to import _ "github.com/krrlab/lab/datasets/parquet"`},
		{"", "1,2\n", ReadOptions{Format: "parquet"}, "!the file is of the format parquet: to read it"},
		{"", "7z\xbc\xaf\x27\x1c\x00\x04", ReadOptions{},
			"!neither text nor of a known binary format: save the table as CSV in UTF-8, Parquet or .npz"},
	})
}

// TestRegisterFormat checks that a format is refused if its name or one of its endings is invalid or belongs to
// another format.
func TestRegisterFormat(t *testing.T) {
	read := (*Source).readCSV
	for want, f := range map[string]Format{
		"the name is taken":                               {Name: "csv", Read: read},
		"want a name of lower-case letters":               {Name: "auto", Read: read},
		"no function to read files":                       {Name: "weka"},
		`the ending "arff": want a dot`:                   {Name: "weka", Read: read, Endings: []string{"arff"}},
		`the ending ".gz" is that of a packed`:            {Name: "weka", Read: read, Endings: []string{".gz"}},
		`there is no option "sep"`:                        {Name: "weka", Read: read, Options: []string{"header", "sep"}},
		`the ending ".svm" is taken by the format libsvm`: {Name: "weka", Read: read, Endings: []string{".weka", ".svm"}},
	} {
		fails(t, RegisterFormat(f), want)
	}
}

// TestFormatOptions checks that every format refuses, by name, each option of --format that it does not have, and takes
// those that it has.
func TestFormatOptions(t *testing.T) {
	for _, f := range registered() {
		for option, o := range map[string]ReadOptions{"separator": {Separator: ";"}, "header": {Header: "no"},
			"comment": {Comment: "none"}, "x": {PointsArray: "x"}} {
			o.Format = FormatName(f.Name)
			_, err := Read(strings.NewReader(""), "f", &o)
			text := fmt.Sprintf("a file of format %s does not have the option %s of --format: it has ", f.Name, option)
			if err == nil || strings.Contains(err.Error(), text) == slices.Contains(f.Options, option) {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	fails(t, errOf(Read(strings.NewReader("1 1:2\n-1 1:3\n"), "f", &ReadOptions{Separator: "blank"})),
		"f: a file of format libsvm does not have the option separator of --format: it has comment and dim")
}

// TestContainerVariants checks that sound packed files in the forms that common programs write are read, or refused
// with a command that unpacks them. They must never be called damaged.
func TestContainerVariants(t *testing.T) {
	const table, want, skip = "1,2,3.5\n4,5,6.5\n", "[[1 2] [4 5]] [3.5 6.5] [] [] []", "\x5f\x2a\x4d\x18\x02\x00\x00\x00hi"
	text := func(code string) string { return string(must(base64.StdEncoding.DecodeString(code))) }
	gz, zs, zeros := gzipped(table[:8]), packed(t, "zstd", table), strings.Repeat("\x00", 512)
	bz2 := text("QlpoOTFBWSZTWVs60CUAAARYAAAQAAU/ACAAISgGQgyYhGarb5Eso8XckU4UJBbOtAlA")
	bzipped := text("UEsDBC4AAAAMAAAAIQDGREVNMwAAABAAAAABAAAAdEJaaDkxQVkmU1lbOtAlAAAEWAAAEAAFPwAgACEoBkIMmIRmq2+RLKPF3JFO" +
		"FCQWzrQJQFBLAQIuAy4AAAAMAAAAIQDGREVNMwAAABAAAAABAAAAAAAAAAAAAACAAQAAAAB0UEsFBgAAAAABAAEALwAAAFIAAAAAAA==")
	checkReadings(t, []reading{
		{"gzip members", gz + zeros + gzipped(table[8:]) + "\x00", ReadOptions{}, want},
		{"skippable frames", skip + skip + zs + skip, ReadOptions{}, want},
		{"zip bzip2", bzipped, ReadOptions{}, want},
		{"zip LZMA", text("UEsDBD8AAgAOAAAAIQDGREVNIwAAABAAAAABAAAAdAkEBQBdAACAAAAYiwKpNrRkCObwc3BFh/Okq2vLQ//98JAAUEsBAj8D" +
			"PwACAA4AAAAhAMZERU0jAAAAEAAAAAEAAAAAAAAAAAAAAIABAAAAAHRQSwUGAAAAAAEAAQAvAAAAQgAAAAAA"), ReadOptions{}, want},
		{"zip deflate64", strings.ReplaceAll(bzipped, "\x0c\x00\x00\x00!", "\x09\x00\x00\x00!"), ReadOptions{},
			"!f: not supported: zip: unsupported compression algorithm; unpack the file by unzip f"},
		{"xz with a filter", text("/Td6WFoAAATm1rRGAgEEACEBAADaM60DAQAPMSwyLDMuNQo0LDUsNi41CgA8W9SKi6z8qwABKBDlC2xgH7bzfQEAAAAA" +
			"BFla"), ReadOptions{}, "!f: not supported: xz: unsupported filter count; unpack the file by xz -dc f > f.csv"},
		{"zstd with a dictionary", text("KLUv/SQQNQAAAAEAg0wgLCbzOw=="), ReadOptions{},
			"!f: not supported: zstd data that need a dictionary"},
		{"zstd with a window of 2 GB", text("KLUv/QSogQAAMSwyLDMuNQo0LDUsNi41Ciwm8zs="), ReadOptions{},
			"!f: not supported: window size exceeded; unpack the file by zstd -dc --long=31 f > f.csv"},
		{"bytes after gzip", gz + "x", ReadOptions{}, "!come after the gzip data: if they are padding, unpack the file by " +
			"gzip -dc f > f.csv"},
		{"bytes after bzip2", bz2 + zeros, ReadOptions{}, "!come after the bzip2 data: if they are padding"},
		{"bytes after xz", packed(t, "xz", table) + "more than twelve", ReadOptions{}, "!come after the xz data"},
		{"bytes after zstd", zs + "more", ReadOptions{}, "!come after the zstd data"},
	})
}
