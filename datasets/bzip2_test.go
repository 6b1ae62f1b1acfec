package datasets

import (
	"bytes"
	"compress/bzip2"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
)

// bz2Long is 400 digits and other signs packed by bzip2 -1.
const bz2Long = "QlpoMTFBWSZTWdzXcKsAAFtYAAAQAAR/4DABGm2hFPTDTFQin6ptk01BFPGJokmrxo6qjn5TWL3qYiFGjpU0CGJFjDu0DQqhKny7" +
	"VZqyxJGoBuXe64d3ZfSb9g4ZCWO6WNpQ0zirFLYOHjqyznds/G/FUxJ1mLllOxDigpQT47ppZV5peKtCbzPG8rRFRYtH1Ph8+2My" +
	"SAlsMizj4KPVdAHQ0XPAxMZt8zyD31caxDsz0cdr2WsWzg7bcdoJDfbWfJoByJge6FxuLfLfpQN9b0uQbcKmAIR66Ncj5TPtznf4" +
	"u5IpwoSG5ruFWA=="

// bits writes bytes as zeros and ones.
func bits(b []byte) (s string) {
	for _, c := range b {
		s += fmt.Sprintf("%08b", c)
	}
	return s
}

// bz2Stream returns a stream of the blocks of files that have one each.
func bz2Stream(files ...string) string {
	s, sum := bits([]byte("BZh1")), uint32(0)
	for _, f := range files {
		b := bits([]byte(f))
		own, _ := strconv.ParseUint(b[80:112], 2, 32)
		sum = (sum<<1 | sum>>31) ^ uint32(own)
		b = b[32:]
		s += b[:strings.LastIndex(b, fmt.Sprintf("%048b", bzipEndMagic))]
	}
	s += fmt.Sprintf("%048b%032b0000000", bzipEndMagic, sum)
	out := make([]byte, len(s)/8)
	for i := range out {
		v, _ := strconv.ParseUint(s[8*i:8*i+8], 2, 8)
		out[i] = byte(v)
	}
	return string(out)
}

// TestBzip2: files of several blocks and streams, whole, cut short and with a bit turned, are read as package
// compress/bzip2 reads them, with the same errors; also where every thousandth bit begins what looks like a block.
func TestBzip2(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(3)
	long, err := base64.StdEncoding.DecodeString(bz2Long)
	if err != nil {
		t.Fatal(err)
	}
	a, b := bz2, string(long)
	file := bz2Stream(a, b, b, a, b) + bz2Stream() + a + bz2Stream(b, a)
	same := func(what, file string) {
		t.Helper()
		want, wrong := io.ReadAll(bzip2.NewReader(strings.NewReader(file)))
		got, err := io.ReadAll(newBzip2Reader(strings.NewReader(file), int64(len(file))))
		if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wrong) {
			t.Errorf("%s: %d bytes and %v, want %d and %v", what, len(got), err, len(want), wrong)
		}
	}
	for _, mask := range []uint64{bzipMagicMask, 1<<10 - 1} {
		defer func(m uint64) { bzipMagicMask = m }(bzipMagicMask)
		bzipMagicMask = mask
		same("whole", file)
		same("more after it", file+"BZ")
		same("text after it", file+"1,2\n3,4\n")
	}
	bzipMagicMask = 1<<bzipMagicBits - 1
	for k := 0; k < len(file); k += suite.Scale(11, 1, 1) {
		same(fmt.Sprint("cut at ", k), file[:k])
		flipped := []byte(file)
		flipped[k] ^= 1 << (k % 8)
		same(fmt.Sprint("bit of byte ", k), string(flipped))
	}
	same("no file", "BZh0123456789")
}

// TestBlocks: files of many blocks are read as they are by one thread: rows, lines of errors and of what is skipped,
// where cells in quotes, comments and gaps lie across the ends of blocks.
func TestBlocks(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	const n = 9000
	plain := func(i int) string { return fmt.Sprintf("%d.25,%d,%d", i, i*i%97, i%3) }
	rows := lines(n, plain)
	for name, c := range map[string]struct {
		text string
		o    ReadOptions
	}{
		"plain":      {text: rows},
		"first rows": {rows + "x", ReadOptions{MaxRows: 7000}},
		"bad cell":   {text: "a,b,y\n" + rows + "1,x,\n2,\"3\n\",z\n" + rows},
		"ragged":     {text: rows + "\n\n1,2\n" + rows},
		"bare quote": {text: rows + "1\"2,3,1\n" + rows},
		"open quote": {text: rows + "\"2,3,1\n" + rows},
		"quoted lines": {lines(n, func(i int) string { return fmt.Sprintf("%d,\"a\n%d\"\"\",2\n", i, i%2) }),
			ReadOptions{Categorical: []Category{{Column: "1"}}}},
		"comments": {lines(n, func(i int) string { return "% it's 5\" wide\n" + plain(i) }), ReadOptions{Comment: "%"}},
		"missing": {lines(n, func(i int) string { return fmt.Sprintf("%d,,1\r\n,%d.5,0\r", i, i) }),
			ReadOptions{KeepMissing: true}},
		"one column":    {lines(n, func(i int) string { return fmt.Sprintf("%d\n\n", i) }), ReadOptions{AnswersOnly: true}},
		"blanks":        {text: lines(n, func(i int) string { return fmt.Sprintf(" %d\t %d 1 ", i, i%5) })},
		"Latin-1 words": {text: lines(n, func(i int) string { return fmt.Sprintf("%d,%d,\xfc%d", i*i, i%7, i%3) })},
		"libsvm":        {text: lines(n, func(i int) string { return fmt.Sprintf("%d 1:%d %d:.5", i%2, i, 2+i%900) })},
		"libsvm, index": {text: lines(n, func(i int) string { return fmt.Sprintf("1 1:%d\n\n# %d", i, i) }) +
			"1 2:3 1:4\n1\n"},
		"libsvm, a rest": {lines(n, func(i int) string { return fmt.Sprintf("1 1:%d", i) }) + "1 2:3 x",
			ReadOptions{MaxRows: n}},
	} {
		read := func(threads int) string {
			accel.SetThreads(threads)
			d, err := Read(strings.NewReader(c.text), "f", &c.o)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%x %v %v %v", d.Fingerprint(), d.Read, d.Columns, d.Categories)
		}
		if one, four := read(1), read(4); one != four {
			t.Errorf("%s: %s, with one thread %s", name, four, one)
		}
	}
}
