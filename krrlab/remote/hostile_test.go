package remote

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/hostile"
)

// TestHostileJobs changes each thing in a job file: what it asks for is refused in a line, or can be
// run.
func TestHostileJobs(t *testing.T) {
	levels, err := feature.ParseLevels("features:40,srht:20")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := feature.ChainFor(gauss, false, levels)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	cfg := krrlab.Config{Kernel: gauss, Lambda: 0.3, Seed: 5, Tol: 1e-4, Precond: krrlab.Features{Map: chain, S: 20}, Checkpoint: &krrlab.Checkpoint{Dir: root, EveryIter: 1}}
	for kind, x := range kinds(40, 4) {
		sender := newLab(t, classes(x, 3), withBackend(cfg, testBackend(root)))
		dir := &jobDir{root: root}
		j, err := testBackend(root).writeJob(dir, sender, "statdim", krrlab.StatDimOptions{MaxProbes: 16})
		if err != nil {
			t.Fatal(err)
		}
		tried, refused := 0, 0
		hostile.Each(j, func(what string) {
			text, err := json.Marshal(j)
			if err != nil {
				return // no JSON has it
			}
			if err := os.WriteFile(dir.path(jobFile), text, 0o644); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s, %s: panic: %v", kind, what, p)
				}
			}()
			tried++
			if _, _, err := openJob(t.Context(), dir.path(jobFile), Options{}); err != nil {
				if refused++; strings.Contains(err.Error(), "\n") {
					t.Errorf("%s, %s: %v", kind, what, err)
				}
			}
		})
		t.Logf("%s: %d changes, %d refused", kind, tried, refused)
	}
}

// FuzzJob: no text makes the reader of jobs panic, and what it takes is a job that it would write.
func FuzzJob(f *testing.F) {
	f.Add([]byte(`{"version":1,"stage":"quality","config":{"kernel":{"name":"gaussian","sigma":2},"lambda":0.1,"solver":"pcg","precond":"features",` +
		`"levels":[{"sketch":"features","width":40},{"sketch":"srht","width":20}],"form":"auto","storage":"auto","seed":1,"residual":"auto"},"data":{"n":3,"d":2}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseJob(b)
		if err != nil {
			return
		}
		cfg, err := j.Config.config()
		if err != nil {
			return
		}
		again, err := newConfig(&cfg)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if again.Lambda != j.Config.Lambda || again.Kernel != j.Config.Kernel || !slices.Equal(again.Levels, j.Config.Levels) {
			t.Errorf("%+v comes back as %+v", j.Config, again)
		}
	})
}
