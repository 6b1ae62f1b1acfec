package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// benchFlags are the flags of krrlab bench.
type benchFlags struct {
	n, d, features, repeat int
	check                  bool
	json, markdown         string
}

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the inner loops against what the machine can do",
		Long: `Bench measures each inner loop of the solver against its floor: the time to read the same
bytes from memory, or the matrix library's time for the same products. Floor and loop
alternate --repeat times. Each repetition counts the best time within about a fifth of a
second, since other processes can only slow it down. The table has the medians over the
repetitions, the median of their ratios, and the ratio of the best times. The points are
uniform numbers in [0, 0.6], with the norms of MNIST's. Small matrices fit a cache, and
ratios to reading memory then say little: take n = 20,000 or more. docs/benchmarks.md says
how to read the table. The measurements are kept in the user's cache, in bench.jsonl; the column
"last" has the ratios of the last run on a like machine with the same sizes. With --check a ratio of
the best times above its bound ends the command with exit code 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.bench(cmd.Context(), f) },
	}
	p := cmd.Flags()
	p.IntVar(&f.n, "n", 20000, "points")
	p.IntVar(&f.d, "d", 784, "dimension d of the points")
	p.IntVar(&f.features, "features", 0, "random features (default: n/5)")
	p.IntVar(&f.repeat, "repeat", 5, "repetitions")
	p.BoolVar(&f.check, "check", false, "fail if a ratio of the best times is above its bound")
	p.StringVar(&f.json, "json", "", "write the measurements as JSON to this file")
	p.StringVar(&f.markdown, "markdown", "", "write the table as Markdown to this file")
	wantAtLeast(p, 64, "n")
	wantAtLeast(p, 0, "features")
	wantAtLeast(p, 1, "d", "repeat")
	p.SortFlags = false
	return cmd
}

// settle refuses sizes that cannot be measured, and fills in the default.
func (f *benchFlags) settle() error {
	f.features = cmp.Or(f.features, f.n/5)
	need := f.bytes()
	if have := accel.MemoryAvailable(); have > 0 && need > have {
		return fmt.Errorf("--n %d takes about %s, and %s are available: take a smaller --n", f.n, accel.Bytes(need), accel.Bytes(have))
	}
	return makeRoom(given(f.json, f.markdown)...)
}

// bytes returns about the memory that is needed: the points; and K in all its storages,
// or Z and what M⁻¹ is made of; and a buffer to read.
func (f *benchFlags) bytes() int64 {
	n, d, s := int64(f.n), int64(f.d), int64(f.features)
	return 4*n*d + max(7*n*n, 4*n*s+24*s*s) + 512<<20
}

// benchReport is what krrlab bench found. Its JSON is what --json writes.
type benchReport struct {
	Version string      `json:"krrlab_version,omitempty"`
	Time    time.Time   `json:"time"`
	CPU     string      `json:"cpu"`
	Path    string      `json:"instructions"` // of the inner loops
	BLAS    string      `json:"blas"`
	Threads int         `json:"threads"`
	N       int         `json:"n"`
	D       int         `json:"d"`
	S       int         `json:"s"`
	Repeat  int         `json:"repeat"`
	Rates   []benchRate `json:"rates"`
	Loops   []benchLoop `json:"loops"`
	Notes   []string    `json:"notes,omitempty"` // what was left out, and why
}

// benchRate is what the machine can do, in units per second: the median over the
// measurements, the least and the largest.
type benchRate struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// benchLoop is one row: medians over the repetitions.
type benchLoop struct {
	Name    string   `json:"loop"`
	Floor   string   `json:"floor"` // what it is compared with
	Seconds float64  `json:"seconds"`
	AtLeast float64  `json:"floor_seconds"`
	Ratio   float64  `json:"ratio"`         // of each repetition, their median
	Best    float64  `json:"ratio_of_best"` // of the least seconds of all repetitions
	Asked   *float64 `json:"at_most"`       // what the project asks of the ratio of the best; null: nothing
	Last    *float64 `json:"last"`          // Best of the last run on a like machine; null: none
}

func (a *app) bench(ctx context.Context, f *benchFlags) error {
	if err := f.settle(); err != nil {
		return err
	}
	start := time.Now()
	progress := a.newProgress()
	defer progress.clear()
	r, err := newLoopBench(ctx, f, func(stage string) { progress.show(krrlab.Event{Stage: "measuring", Detail: stage}) }).measure()
	if err != nil {
		return err
	}
	progress.clear()
	r.Version, r.Time = a.env.Version, start.UTC().Truncate(time.Second)
	if note := r.remember(a.history()); note != "" {
		r.Notes = append(r.Notes, note)
	}
	if f.json != "" {
		if err := stage.WriteJSON(f.json, r); err != nil {
			return err
		}
	}
	table := r.table()
	if f.markdown != "" {
		if err := atomicfile.Put(f.markdown, table.Markdown()); err != nil {
			return err
		}
	}
	a.printf("%s\n", table.Text())
	for _, s := range r.Notes {
		a.printf("%s\n", s)
	}
	for _, name := range given(f.json, f.markdown) {
		a.printf("wrote %s\n", name)
	}
	a.printf("%.0f seconds in all, peak memory %s\n", time.Since(start).Seconds(), accel.Bytes(accel.PeakRSS()))
	if f.check {
		return r.beyond()
	}
	return nil
}

// table returns the rows with the machine below them.
func (r *benchReport) table() *plots.Table {
	t := &plots.Table{
		Title: fmt.Sprintf("Inner loops against their floors: n = %d, d = %d, s = %d, medians of %d", r.N, r.D, r.S, r.Repeat),
		Columns: []plots.Column{{Name: "loop"}, {Name: "time", Align: plots.Right}, {Name: "floor"}, {Name: "its time", Align: plots.Right},
			{Name: "ratio", Format: "%.2f"}, {Name: "of the best", Format: "%.2f"}, {Name: "at most", Format: "%.2f"}, {Name: "last", Format: "%.2f"}},
	}
	for _, l := range r.Loops {
		row := []any{l.Name, duration(l.Seconds), l.Floor, duration(l.AtLeast), l.Ratio, l.Best}
		for _, v := range []*float64{l.Asked, l.Last} {
			if v == nil {
				row = append(row, "")
			} else {
				row = append(row, *v)
			}
		}
		t.Add(row...)
	}
	t.Caption = fmt.Sprintf("%s, %s, inner loops on %s, BLAS %s", cmp.Or(r.CPU, "unnamed processor"), plural.Count(r.Threads, "thread"), r.Path, r.BLAS)
	for _, v := range r.Rates {
		t.Caption += fmt.Sprintf("; %s %.3g %s (%.3g to %.3g)", v.Name, v.Median/1e9, v.Unit, v.Min/1e9, v.Max/1e9)
	}
	t.Caption += "."
	return t
}

func duration(s float64) string {
	units := []string{"s", "ms", "µs", "ns"}
	i := 0
	for ; s < 0.9995 && i < len(units)-1; i++ {
		s *= 1000
	}
	return fmt.Sprintf("%.3g %s", s, units[i])
}

// median returns the median of v, which it sorts.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
