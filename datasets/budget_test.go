package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestBudget counts what answers take, the text of each once, and ends at the limit.
func TestBudget(t *testing.T) {
	s, a := &source{reading: &Reading{}, name: "f"}, &answers{}
	var want int64
	for i, text := range []string{"three", "", "three", "another", "another", ""} {
		if err := a.add(s, text, i+1); err != nil {
			t.Fatal(err)
		}
		want += answerGrowth
		if i == 0 || i == 1 || i == 3 {
			want += 16 + int64(len(text))
		}
		if s.held != want || a.text[i] != text || a.lines[i] != i+1 {
			t.Errorf("answer %d: %d bytes are held, want %d", i, s.held, want)
		}
	}
	for format, c := range map[string]struct {
		read func(s *source) error
		text string
		want int64
	}{
		"idx":    {func(s *source) error { _, err := s.idxBytes(5, 2, "images"); return err }, "0123456789", 10 * (byteGrowth + 4)},
		"csv":    {func(s *source) error { _, err := s.csv(&ReadOptions{Target: "none"}); return err }, "1,2,3\n4,5,6\n", 6 * float64Growth},
		"libsvm": {func(s *source) error { _, err := s.libsvm(&ReadOptions{Target: "none"}); return err }, "1 1:2 3:4\n1 2:1\n", 3*(float64Growth+int32Growth) + 2*(intGrowth+answerGrowth) + 17},
	} {
		s := &source{reading: &Reading{}, name: "f", r: bufio.NewReader(strings.NewReader(c.text))}
		if err := c.read(s); err != nil || s.held != c.want {
			t.Errorf("%s: %d bytes are held, want %d; %v", format, s.held, c.want, err)
		}
	}
	const index = small/(8*vectorsHeld) + 1
	for memory, want := range map[int64]bool{8 * vectorsHeld * index: true, 8*vectorsHeld*index - 1: false} {
		_, err := Read(strings.NewReader(fmt.Sprintf("1.5 %d:1\n", index)), "f", &ReadOptions{Format: "libsvm", Memory: memory})
		if (err == nil) != want || !want && !strings.Contains(err.Error(), "number the features without gaps") {
			t.Errorf("%d features in %d bytes: %v", index, memory, err)
		}
	}
	s = &source{reading: &Reading{}, name: "f", limit: 100, held: 40}
	if err := s.take(60, 7); err != nil {
		t.Error(err)
	}
	if err := s.take(1, 7); err == nil || !strings.Contains(err.Error(), "more than 7 rows takes more than 100 B") {
		t.Errorf("%v", err)
	}
	s = &source{} // the machine is not asked about little
	if err := s.take(small, 1); err != nil || s.asked {
		t.Errorf("asked %v, %v", s.asked, err)
	}
	if err := s.take(1, 1); err != nil || !s.asked {
		t.Errorf("asked %v, %v", s.asked, err)
	}
	s = &source{reading: &Reading{}, asked: true} // nothing is known
	if err := s.take(2*small, 1); err != nil {
		t.Error(err)
	}
}

// TestLongLines: a line may take a part of the memory, and half a megabyte in any case.
func TestLongLines(t *testing.T) {
	for _, c := range []struct {
		limit, bytes int64
		ok           bool
	}{
		{1, small / lineShare, true}, {1, small/lineShare + 1, false}, {1 << 30, 1 << 30 / lineShare, true}, {1 << 30, 1<<30/lineShare + 1, false},
		{0, 1 << 30, true}, {0, 1<<30 + 1, false},
	} {
		s := &source{reading: &Reading{}, name: "f", limit: c.limit, asked: true}
		err := s.checkLine(3, c.bytes)
		var pe *ParseError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &pe) || pe.Line != 3 || !strings.Contains(err.Error(), "the line is longer than")) {
			t.Errorf("%d bytes of %d: %v", c.bytes, c.limit, err)
		}
		g := &lineGuard{s: s, r: strings.NewReader("abc"), bytes: c.bytes - 3}
		if _, err := g.Read(make([]byte, 3)); (err == nil) != c.ok {
			t.Errorf("%d bytes of %d in parts: %v", c.bytes, c.limit, err)
		}
		if g.reset(); g.bytes != 0 {
			t.Errorf("%d bytes after a line's end", g.bytes)
		}
	}
}

// TestColumns: which column is the target, and which are dropped, of those that there are.
func TestColumns(t *testing.T) {
	first := []string{"a", "b", "c"}
	for _, c := range []struct {
		o     ReadOptions
		left  int
		want  int
		named bool
	}{
		{ReadOptions{}, 3, 2, false}, {ReadOptions{}, 0, 2, false}, {ReadOptions{Dim: 3}, 3, -1, false}, {ReadOptions{Dim: 2}, 3, 2, false},
		{ReadOptions{Target: "0", Dim: 3}, 3, 0, false}, {ReadOptions{Target: "0", Dim: 3, TargetOptional: true}, 3, -1, false},
		{ReadOptions{Target: "0", Dim: 2, TargetOptional: true}, 3, 0, false}, {ReadOptions{Target: "b"}, 3, 1, true}, {ReadOptions{Target: "none"}, 3, -1, false},
		{ReadOptions{Dim: 2}, 2, -1, false}, {ReadOptions{Target: "-3"}, 3, 0, false},
	} {
		if col, named, err := targetColumn(&c.o, first, c.left); err != nil || col != c.want || named != c.named {
			t.Errorf("%+v, %d left: column %d, %v, %v", c.o, c.left, col, named, err)
		}
	}
	for target, want := range map[string]string{"d": `target: no column is named "d"`, "3": "target: column 3"} {
		if _, _, err := targetColumn(&ReadOptions{Target: target}, first, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
	}
	o := &ReadOptions{Target: "d", TargetOptional: true, Dim: 4, DimOf: "the model"}
	if _, _, err := targetColumn(o, first, 3); err == nil || !strings.Contains(err.Error(), `points have 3 features, the model has 4, and no column is named "d"`) {
		t.Errorf("neither the features nor the target are there: %v", err)
	}
	for _, c := range []struct {
		o    ReadOptions
		want string
	}{
		{ReadOptions{}, "map[] false"}, {ReadOptions{Drop: []string{"0", "-1"}}, "map[0:true 2:true] false"}, {ReadOptions{Drop: []string{"b", "0"}}, "map[0:true 1:true] true"},
		{ReadOptions{Drop: []string{"0"}, TargetOptional: true, Dim: 3}, "map[] false"}, {ReadOptions{Drop: []string{"0"}, TargetOptional: true, Dim: 2}, "map[0:true] false"},
		{ReadOptions{Drop: []string{"0"}, Dim: 3}, "map[0:true] false"},
		{ReadOptions{Drop: []string{"d", "a"}, TargetOptional: true}, "map[0:true] true"}, {ReadOptions{Drop: []string{"d"}}, `drop: no column is named "d"`},
		{ReadOptions{Drop: []string{"5"}, TargetOptional: true}, "drop: column 5"},
	} {
		dropped := map[int]bool{}
		named, err := (&csvReader{o: &c.o, read: &Reading{}}).drop(first, dropped)
		got := fmt.Sprint(dropped, named)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
	}
}

// TestHeaderRow: a row of words is a header; one with a number is none, where there are no others to compare it with.
func TestHeaderRow(t *testing.T) {
	for row, want := range map[string]string{
		"a,b,y": "true [0 1]", "1,2,3": "false [0 1]", "1,2,y": "false [0 1]", "a,b,3": "false [0 1]", "NA,?,y": "false [0 1]", "NA,?,3": "false [0 1]", "NA,b,y": "true [0 1]",
		"1,b,y": "false [0 1]", "a,2,y": "false [0 1]", "1e999,2,3": "false [0 1]", "x,1e999,3": "false [0 1]", "1 000,2,3": "false [0 1]", " a , b,y": "true [0 1]", "inf,nan,3": "false [0 1]",
	} {
		c := &csvReader{read: &Reading{}, s: &source{reading: &Reading{}, name: "f"}, o: &ReadOptions{}}
		header, err := c.begin(strings.Split(row, ","), 1)
		got := fmt.Sprint(header, c.keep)
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Line != 1 {
				t.Errorf("%s: %v", row, err)
			}
			got = fmt.Sprintf("error at %d: %v", pe.Column, err)
		}
		for _, part := range strings.SplitN(want, ": ", 2) {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s, want %s", row, got, want)
			}
		}
		if header && !reflect.DeepEqual(c.header, []string{"a", "b", "y"}) && row != "NA,b,y" {
			t.Errorf("%s: header %q", row, c.header)
		}
	}
	for want, o := range map[string]ReadOptions{"no column is left for a feature": {Drop: []string{"0", "1"}}, "column 2, is among those dropped": {Drop: []string{"2"}}} {
		c := &csvReader{read: &Reading{}, s: &source{reading: &Reading{}, name: "f"}, o: &o}
		if _, err := c.begin([]string{"1", "2", "3"}, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	one := &csvReader{read: &Reading{}, s: &source{reading: &Reading{}, name: "f"}, o: &ReadOptions{}}
	if _, err := one.begin([]string{"1"}, 1); err == nil || !strings.Contains(err.Error(), "one column only") {
		t.Errorf("%v", err)
	}
	none := &csvReader{read: &Reading{}, s: &source{reading: &Reading{}, name: "f"}, o: &ReadOptions{Target: "none"}}
	if _, err := none.begin([]string{"1"}, 1); err != nil || len(none.keep) != 1 {
		t.Errorf("%v", err)
	}
}
