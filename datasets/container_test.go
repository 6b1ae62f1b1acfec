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

// packText returns the text packed in a container of the given kind.
func packText(t testing.TB, kind, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	var w io.WriteCloser
	var err error
	switch kind {
	case "gzip":
		return gzipText(text)
	case "xz":
		w, err = xz.NewWriter(&buffer)
	case "zstd":
		w, err = zstd.NewWriter(&buffer)
	case "zip":
		return zipFiles(t, "__MACOSX/._t.csv", "x", "folder/", "", "folder/t.csv", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// zipFiles returns a zip archive of the given files, each a name followed by its content.
func zipFiles(t testing.TB, files ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for k := 0; k < len(files); k += 2 {
		w := must(archive.Create(files[k]))
		io.WriteString(w, files[k+1])
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

// TestContainers checks that a table reads the same from every container, from a file and from a stream. Damaged
// containers are errors of one line, and a canceled context ends the reading.
func TestContainers(t *testing.T) {
	table := strings.Repeat("1,2,3.5\n4,5,6.5\n", 20000)
	for _, kind := range []string{"gzip", "xz", "zstd", "zip", "gzip xz", "zip gzip", "zstd zip"} {
		t.Run(kind, func(t *testing.T) {
			packedTable := table
			for _, k := range strings.Fields(kind) {
				packedTable = packText(t, k, packedTable)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "table")
			read := map[string]func(content string) (*Dataset, error){
				"stream": func(c string) (*Dataset, error) { return Read(strings.NewReader(c), path, nil) },
				"file": func(c string) (*Dataset, error) {
					return ReadFile(t.Context(), writeFile(t, dir, "table", c), nil)
				},
			}
			for source, read := range read {
				d, err := read(packedTable)
				if err != nil || d.Len() != 40000 || d.Dim() != 2 || d.Target[39999] != 6.5 {
					t.Fatalf("%s, complete: %v, %v", source, d, err)
				}
				if last := kind[strings.LastIndex(kind, " ")+1:]; !strings.Contains(d.ReadReport.String(),
					"unpacked from "+last) {
					t.Errorf("read: %v", d.ReadReport)
				}
				half := len(packedTable) / 2
				for damage, c := range map[string]string{
					"cut": packedTable[:half], "cut at once": packedTable[:7],
					"cut at the end": packedTable[:len(packedTable)-3],
					"changed":        packedTable[:half] + string(packedTable[half]^0x55) + packedTable[half+1:],
				} {
					if d, err := read(c); err == nil || damage != "changed" && !strings.Contains(err.Error(), "get ") ||
						strings.Contains(err.Error(), "\n") {
						t.Errorf("%s, %s: %v, %v, want an error of one line", source, damage, d, err)
					}
				}
			}
			read["file"](packedTable)
			if _, err := ReadFile(&countdownContext{Context: context.Background(), limit: 1}, path,
				nil); !errors.Is(err,
				context.Canceled) {
				t.Errorf("ended: %v", err)
			}
		})
	}
}

// TestUnsupportedFormats checks that files of a kind that cannot be read are refused with their kind and a remedy.
func TestUnsupportedFormats(t *testing.T) {
	encrypted := []byte(zipFiles(t, "a.csv", "1,2\n"))
	encrypted[bytes.Index(encrypted, []byte("PK\x01\x02"))+8] |= 1
	checkReadings(t, []reading{
		{"", zipFiles(t, "a.csv", "1,2\n", "b.csv", "1,2\n"), ReadOptions{},
			"!the zip archive has 2 files, a.csv, b.csv: unpack it, and name one"},
		{"", zipFiles(t, "folder/", ""), ReadOptions{}, "!the zip archive has no file"},
		{"", zipFiles(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml", "<"),
			ReadOptions{},
			"!a document of LibreOffice (OpenDocument): open it, and save its spreadsheet as CSV"},
		{"", zipFiles(t, "[Content_Types].xml", "<", "xl/workbook.xml", "<"), ReadOptions{},
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
		wantError(t, RegisterFormat(f), want)
	}
}

// TestFormatOptions checks that every format refuses, by name, each option of --format that it does not have, and takes
// those that it has.
func TestFormatOptions(t *testing.T) {
	for _, f := range registered() {
		for option, options := range map[string]ReadOptions{"separator": {Separator: ";"}, "header": {Header: "no"},
			"comment": {Comment: "none"}, "x": {PointsArray: "x"}} {
			options.Format = FormatName(f.Name)
			_, err := Read(strings.NewReader(""), "f", &options)
			text := fmt.Sprintf("a file of format %s does not have the option %s of --format: it has ", f.Name, option)
			if err == nil || strings.Contains(err.Error(), text) == slices.Contains(f.Options, option) {
				t.Errorf("%s: %v", f.Name, err)
			}
		}
	}
	wantError(t, errorFrom(Read(strings.NewReader("1 1:2\n-1 1:3\n"), "f", &ReadOptions{Separator: "blank"})),
		"f: a file of format libsvm does not have the option separator of --format: it has comment and dim")
}

// TestContainerVariants checks that sound packed files in the forms that common programs write are read, or refused
// with a command that unpacks them. They must never be called damaged.
func TestContainerVariants(t *testing.T) {
	const table, want, skippableFrame = "1,2,3.5\n4,5,6.5\n", "[[1 2] [4 5]] [3.5 6.5] [] [] []",
		"\x5f\x2a\x4d\x18\x02\x00\x00\x00hi"
	decode := func(base64Text string) string { return string(must(base64.StdEncoding.DecodeString(base64Text))) }
	gzipFile, zstdFile, zeros := gzipText(table[:8]), packText(t, "zstd", table), strings.Repeat("\x00", 512)
	bzip2Data := decode("QlpoOTFBWSZTWVs60CUAAARYAAAQAAU/ACAAISgGQgyYhGarb5Eso8XckU4UJBbOtAlA")
	zippedBzip2 := decode("UEsDBC4AAAAMAAAAIQDGREVNMwAAABAAAAABAAAAdEJaaDkxQVkmU1lbOtAlAAAEWAAAEAAFPwAgACEoBkIMmIRmq2+RLKPF3JFO" +
		"FCQWzrQJQFBLAQIuAy4AAAAMAAAAIQDGREVNMwAAABAAAAABAAAAAAAAAAAAAACAAQAAAAB0UEsFBgAAAAABAAEALwAAAFIAAAAAAA==")
	checkReadings(t, []reading{
		{"gzip members", gzipFile + zeros + gzipText(table[8:]) + "\x00", ReadOptions{}, want},
		{"skippable frames", skippableFrame + skippableFrame + zstdFile + skippableFrame, ReadOptions{}, want},
		{"zip bzip2", zippedBzip2, ReadOptions{}, want},
		{"zip LZMA",
			decode("UEsDBD8AAgAOAAAAIQDGREVNIwAAABAAAAABAAAAdAkEBQBdAACAAAAYiwKpNrRkCObwc3BFh/Okq2vLQ//98JAAUEsBAj8D" +
				"PwACAA4AAAAhAMZERU0jAAAAEAAAAAEAAAAAAAAAAAAAAIABAAAAAHRQSwUGAAAAAAEAAQAvAAAAQgAAAAAA"), ReadOptions{}, want},
		{"zip deflate64", strings.ReplaceAll(zippedBzip2, "\x0c\x00\x00\x00!", "\x09\x00\x00\x00!"), ReadOptions{},
			"!f: not supported: zip: unsupported compression algorithm; unpack the file by unzip f"},
		{"xz with a filter",
			decode("/Td6WFoAAATm1rRGAgEEACEBAADaM60DAQAPMSwyLDMuNQo0LDUsNi41CgA8W9SKi6z8qwABKBDlC2xgH7bzfQEAAAAA" +
				"BFla"), ReadOptions{}, "!f: not supported: xz: unsupported filter count; unpack the file by xz -dc f > f.csv"},
		{"zstd with a dictionary", decode("KLUv/SQQNQAAAAEAg0wgLCbzOw=="), ReadOptions{},
			"!f: not supported: zstd data that need a dictionary"},
		{"zstd with a window of 2 GB", decode("KLUv/QSogQAAMSwyLDMuNQo0LDUsNi41Ciwm8zs="), ReadOptions{},
			"!f: not supported: window size exceeded; unpack the file by zstd -dc --long=31 f > f.csv"},
		{"bytes after gzip", gzipFile + "x", ReadOptions{},
			"!come after the gzip data: if they are padding, unpack the file by " +
				"gzip -dc f > f.csv"},
		{"bytes after bzip2", bzip2Data + zeros, ReadOptions{}, "!come after the bzip2 data: if they are padding"},
		{"bytes after xz", packText(t, "xz", table) + "more than twelve", ReadOptions{}, "!come after the xz data"},
		{"bytes after zstd", zstdFile + "more", ReadOptions{}, "!come after the zstd data"},
	})
}
