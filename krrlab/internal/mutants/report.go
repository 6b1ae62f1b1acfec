package mutants

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed reasons.txt
var reasonsText string

// Reasons reads the reviewed list: a line that begins at its margin is the Key of a mutant,
// the indented lines below it are the reason why it may live; # begins a comment.
func Reasons() (map[string]string, error) { return readReasons(strings.NewReader(reasonsText)) }

func readReasons(r io.Reader) (map[string]string, error) {
	out := map[string]string{}
	key, line := "", 0
	for s := bufio.NewScanner(r); s.Scan(); {
		line++
		text := strings.TrimSpace(s.Text())
		switch indented := strings.HasPrefix(s.Text(), "\t"); {
		case text == "" || strings.HasPrefix(text, "#"):
		case indented && key == "":
			return nil, fmt.Errorf("mutants: reasons.txt:%d: a reason before any mutant", line)
		case indented:
			out[key] = strings.TrimSpace(out[key] + " " + text)
		default:
			if key != "" && out[key] == "" {
				return nil, fmt.Errorf("mutants: reasons.txt:%d: no reason for %s", line, key)
			}
			if _, twice := out[text]; twice {
				return nil, fmt.Errorf("mutants: reasons.txt:%d: twice: %s", line, text)
			}
			key, out[text] = text, ""
		}
	}
	if key != "" && out[key] == "" {
		return nil, fmt.Errorf("mutants: reasons.txt: no reason for %s", key)
	}
	return out, nil
}

// Tally counts what became of mutants.
type Tally struct {
	Sites, Broken, Mutants, Killed, TimedOut, Lived, Excused int
}

func (t *Tally) add(p Package) {
	t.Sites += p.Sites
	t.Broken += p.Broken
	for i := range p.Mutants {
		t.Mutants++
		switch x := &p.Mutants[i]; {
		case x.lives() && x.Reason != "":
			t.Excused++
			t.Lived++
		case x.lives():
			t.Lived++
		case x.State == timedOut:
			t.TimedOut++
			t.Killed++
		default:
			t.Killed++
		}
	}
}

// Share is the part that was killed, 1 of none.
func (t Tally) Share() float64 {
	if t.Mutants == 0 {
		return 1
	}
	return float64(t.Killed) / float64(t.Mutants)
}

// Total counts over all packages.
func Total(packages []Package) Tally {
	var t Tally
	for _, p := range packages {
		t.add(p)
	}
	return t
}

// Write writes the table by package and the list of survivors.
func Write(w io.Writer, packages []Package) error {
	b := bufio.NewWriter(w)
	row := func(name string, t Tally) {
		fmt.Fprintf(b, "%-26s %6d %8d %7d %10d %9d %12d %13d %6.1f %%\n", name, t.Sites, t.Mutants, t.Killed, t.TimedOut, t.Lived, t.Excused, t.Broken, 100*t.Share())
	}
	fmt.Fprintf(b, "%-26s %6s %8s %7s %10s %9s %12s %13s\n", "package", "places", "mutants", "killed", "of these", "survived", "of these", "not compiled")
	fmt.Fprintf(b, "%-26s %6s %8s %7s %10s %9s %12s %13s\n", "", "", "", "", "by time", "", "with reason", "")
	for _, p := range packages {
		var t Tally
		t.add(p)
		row(p.Path, t)
	}
	row("all", Total(packages))
	for _, p := range packages {
		for i := range p.Mutants {
			if x := &p.Mutants[i]; x.lives() {
				fmt.Fprintf(b, "\n%s: %s/%s:%d\n%s\n", x.State, x.Package, x.File, x.Line, x.Key())
				if x.Reason != "" {
					fmt.Fprintf(b, "\t%s\n", x.Reason)
				}
			}
		}
	}
	for _, p := range packages {
		for _, name := range p.Failing {
			fmt.Fprintf(b, "\nnot used, it fails without a mutant: %s\n", name)
		}
		for _, key := range p.Stale {
			fmt.Fprintf(b, "\nin reasons.txt, but no longer in the code: %s\n", key)
		}
	}
	return b.Flush()
}
