package datasets

import (
	"bytes"
	"compress/bzip2"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
)

// bzip2File is a bzip2 file in base64 with streams of 5, 0, 1 and 2 blocks.
const bzip2File = `
QlpoMTFBWSZTWZO3DQwAAAJYAAAQAAQ8ACAAMMAIabKIIyeYoKyTKazua7hVgAAtrAAACAACP/AYAI020Ip6YaYqEU/VNsmmoIp4xNEk1eNHVUc/
Kaxe9TEQo0dKmgQxIsYd2gaFUJU+XarNWWJI1ANy73XDu7L6TfsHDISx3SxtKGmcVYpbBw8dWWc7tn434qmJOsxcsp2IcUFKCfHdNLKvNLxVoTeZ
43laIqLFo+p8Pn2xmSQEthkWcfBR6roA6Gi54GJjNvmeQe+rjWIdmejjtey1i2cHbbjtBIb7az5NAORMD3QuNxb5b9KBvrelyDbhUwBCPXRrkfKZ
9uc7/MUFZJlNZ3NdwqwAAW1gAABAABH/gMAEabaEU9MNMVCKfqm2TTUEU8YmiSavGjqqOflNYvepiIUaOlTQIYkWMO7QNCqEqfLtVmrLEkagG5d7
rh3dl9Jv2DhkJY7pY2lDTOKsUtg4eOrLOd2z8b8VTEnWYuWU7EOKClBPjumllXml4q0JvM8bytEVFi0fU+Hz7YzJICWwyLOPgo9V0AdDRc8DExm3
zPIPfVxrEOzPRx2vZaxbODttx2gkN9tZ8mgHImB7oXG4t8t+lA31vS5BtwqYAhHro1yPlM+3Od/mKCskymsyduGhgAAASwAAAgAAh4AEAAYYAQ02
UQRk8xQVkmU1nc13CrAABbWAAAEAAEf+AwARptoRT0w0xUIp+qbZNNQRTxiaJJq8aOqo5+U1i96mIhRo6VNAhiRYw7tA0KoSp8u1WassSRqAbl3u
uHd2X0m/YOGQljuljaUNM4qxS2Dh46ss53bPxvxVMSdZi5ZTsQ4oKUE+O6aWVeaXirQm8zxvK0RUWLR9T4fPtjMkgJbDIs4+Cj1XQB0NFzwMTGbf
M8g99XGsQ7M9HHa9lrFs4O23HaCQ321nyaAciYHuhcbi3y36UDfW9LkG3CpgCEeujXI+Uz7c53+LuSKcKEgql/7FAEJaaDEXckU4UJAAAAAAQlpo
OTFBWSZTWZO3DQwAAAJYAAAQAAQ8ACAAMMAIabKIIyeLuSKcKEhJ24aGAEJaaDExQVkmU1nc13CrAABbWAAAEAAEf+AwARptoRT0w0xUIp+qbZNN
QRTxiaJJq8aOqo5+U1i96mIhRo6VNAhiRYw7tA0KoSp8u1WassSRqAbl3uuHd2X0m/YOGQljuljaUNM4qxS2Dh46ss53bPxvxVMSdZi5ZTsQ4oKU
E+O6aWVeaXirQm8zxvK0RUWLR9T4fPtjMkgJbDIs4+Cj1XQB0NFzwMTGbfM8g99XGsQ7M9HHa9lrFs4O23HaCQ321nyaAciYHuhcbi3y36UDfW9L
kG3CpgCEeujXI+Uz7c53+YoKyTKazJ24aGAAABLAAACAACHgAQABhgBDTZRBGTxdyRThQkCoZ7Fs`

// TestBzip2 checks that the parallel bzip2 reader gives the bytes and the errors of package compress/bzip2. The file
// has several blocks and streams. It is read unchanged, with other text after it, cut short at many places, and with
// one changed bit. It is also read with a mask of 10 bits, for which about every thousandth bit looks like the start of
// a block.
func TestBzip2(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(3)
	file := string(must(base64.StdEncoding.DecodeString(bzip2File)))
	checkSameAsSequential := func(what, file string) {
		t.Helper()
		want, wantErr := io.ReadAll(bzip2.NewReader(strings.NewReader(file)))
		got, err := io.ReadAll(newBzip2Reader(strings.NewReader(file), int64(len(file))))
		if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %d bytes and %v, want %d and %v", what, len(got), err, len(want), wantErr)
		}
	}
	for _, mask := range []uint64{bzipMagicMask, 1<<10 - 1} {
		defer func(m uint64) { bzipMagicMask = m }(bzipMagicMask)
		bzipMagicMask = mask
		checkSameAsSequential("whole", file)
		checkSameAsSequential("more after it", file+"BZ")
		checkSameAsSequential("text after it", file+"1,2\n3,4\n")
	}
	bzipMagicMask = 1<<bzipMagicBits - 1
	for k := 0; k < len(file); k += suite.Scale(11, 1, 1) {
		checkSameAsSequential(fmt.Sprint("cut at ", k), file[:k])
		flipped := []byte(file)
		flipped[k] ^= 1 << (k % 8)
		checkSameAsSequential(fmt.Sprint("bit of byte ", k), string(flipped))
	}
	checkSameAsSequential("no file", "BZh0123456789")
}

// TestReadThreads checks that a text of many blocks gives the same rows, notes and line numbers of errors on four
// threads as on one. Quoted cells, comments and missing cells lie across the ends of blocks.
func TestReadThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n = 9000
	plainRow := func(i int) string { return fmt.Sprintf("%d.25,%d,%d", i, i*i%97, i%3) }
	rows := joinLines(n, plainRow)
	for name, c := range map[string]struct {
		text    string
		options ReadOptions
	}{
		"plain":      {text: rows},
		"first rows": {rows + "x", ReadOptions{MaxRows: 7000}},
		"bad cell":   {text: "a,b,y\n" + rows + "1,x,\n2,\"3\n\",z\n" + rows},
		"ragged":     {text: rows + "\n\n1,2\n" + rows},
		"bare quote": {text: rows + "1\"2,3,1\n" + rows},
		"open quote": {text: rows + "\"2,3,1\n" + rows},
		"quoted lines": {joinLines(n, func(i int) string { return fmt.Sprintf("%d,\"a\n%d\"\"\",2\n", i, i%2) }),
			ReadOptions{ColumnCodings: []ColumnCoding{{Column: "1"}}}},
		"comments": {joinLines(n, func(i int) string { return "% it's 5\" wide\n" + plainRow(i) }),
			ReadOptions{Comment: "%"}},
		"missing": {joinLines(n, func(i int) string { return fmt.Sprintf("%d,,1\r\n,%d.5,0\r", i, i) }),
			ReadOptions{KeepMissing: true}},
		"one column": {joinLines(n, func(i int) string { return fmt.Sprintf("%d\n\n", i) }),
			ReadOptions{AnswersOnly: true}},
		"blanks":        {text: joinLines(n, func(i int) string { return fmt.Sprintf(" %d\t %d 1 ", i, i%5) })},
		"Latin-1 words": {text: joinLines(n, func(i int) string { return fmt.Sprintf("%d,%d,\xfc%d", i*i, i%7, i%3) })},
		"libsvm": {text: joinLines(n, func(i int) string {
			return fmt.Sprintf("%d 1:%d %d:.5", i%2, i,
				2+i%900)
		})},
		"libsvm, index": {text: joinLines(n, func(i int) string { return fmt.Sprintf("1 1:%d\n\n# %d", i, i) }) +
			"1 2:3 1:4\n1\n"},
		"libsvm, unread end": {joinLines(n, func(i int) string { return fmt.Sprintf("1 1:%d", i) }) + "1 2:3 x",
			ReadOptions{MaxRows: n}},
	} {
		read := func(threads int) string {
			accel.SetThreads(threads)
			d, err := Read(strings.NewReader(c.text), "f", &c.options)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%x %v %v %v", d.Fingerprint(), d.ReadReport, d.Columns, d.ColumnCodings)
		}
		if single, parallel := read(1), read(4); single != parallel {
			t.Errorf("%s: with four threads\n%s\nwith one thread\n%s", name, parallel, single)
		}
	}
}
