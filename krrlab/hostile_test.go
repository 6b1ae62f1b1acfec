package krrlab

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/hostile"
)

// TestHostileCheckpoints changes each thing in a checkpoint but the iteration's state (which pcg
// tests), signs it anew and goes on from it: that is refused in a line, or the answer is right.
func TestHostileCheckpoints(t *testing.T) {
	accel.Use(nil)
	for name, cfg := range map[string]Config{
		"repeated": {Repeat: 3, Storage: gram.Float64, Tol: 1e-8},
		"refined":  {Storage: gram.Fixed16, Tol: 1e-7},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Kernel, cfg.Lambda, cfg.Seed, cfg.Precond, cfg.Solver = gauss, 0.1, 5, Features{S: 20}, PCG
			solve := func() (*Solution, error) {
				lab := newLab(t, ranksProblem(60), cfg)
				lab.exactUpTo = -1 // refine after the rows are checked
				return lab.Solve(t.Context())
			}
			want, err := solve()
			if err != nil || !want.Converged() {
				t.Fatalf("%v, %v", want, err)
			}
			cfg.Checkpoint = &Checkpoint{Dir: t.TempDir(), EveryIter: 1, Resume: true}
			if _, err := solve(); err != nil {
				t.Fatal(err)
			}
			owner := newLab(t, ranksProblem(60), cfg).owner()
			kept, _ := filepath.Glob(filepath.Join(cfg.Checkpoint.Dir, "*"))
			store := func(do func(s *checkpoint.Store)) {
				s, err := checkpoint.Open(cfg.Checkpoint.Dir, owner)
				if err != nil {
					t.Fatal(err)
				}
				do(s)
				s.Close()
			}
			k := &checkpoints{}
			store(func(s *checkpoint.Store) {
				b, _, err := s.Load()
				if err == nil {
					err = k.decode(b)
				}
				if err != nil || k.now.Run == 0 || len(k.now.History) == 0 {
					t.Fatalf("%v: %+v, %v; not what was meant", kept, k.now, err)
				}
			})
			cfg.Checkpoint.EveryIter = 1e9
			tried, refused := 0, 0
			hostile.Each(&k.now, func(what string) {
				var head bytes.Buffer
				if err := gob.NewEncoder(&head).Encode(k.now); err != nil {
					t.Fatal(err)
				}
				b := append(binary.LittleEndian.AppendUint64(nil, uint64(head.Len())), head.Bytes()...)
				store(func(s *checkpoint.Store) {
					if err := s.Save(append(b, k.state...)); err != nil {
						t.Fatal(err)
					}
				})
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: panic: %v", what, p)
					}
				}()
				tried++
				sol, err := solve()
				if err != nil {
					if refused++; strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: %v", what, err)
					}
					return
				}
				var diff mat.Dense
				diff.Sub(sol.Model.C, want.Model.C)
				if rel := mat.Norm(&diff, 2) / mat.Norm(want.Model.C, 2); sol.Converged() && rel > 1e-4 {
					t.Errorf("%s: coefficients that differ by %.2g are said to have converged", what, rel)
				}
				if _, err := json.Marshal(sol); err != nil || sol.String() == "" {
					t.Errorf("%s: %v", what, err)
				}
			})
			t.Logf("%d changes, %d refused", tried, refused)
		})
	}
}

// FuzzCheckpoint: no bytes are taken for a checkpoint that the solve cannot go on from.
func FuzzCheckpoint(f *testing.F) {
	train := ranksProblem(20)
	lab, err := New(train, Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 10}, Repeat: 2})
	if err != nil {
		f.Fatal(err)
	}
	var head bytes.Buffer
	n, _, t := lab.Dims()
	p := progress{1, [][]float64{make([]float64, n*t)}, 3, []HistRow{{Residual: 1, Columns: make([]float64, t), Bound: 1}}, gram.Choice{Storage: gram.Float64}}
	if err := gob.NewEncoder(&head).Encode(p); err != nil {
		f.Fatal(err)
	}
	f.Add(append(binary.LittleEndian.AppendUint64(nil, uint64(head.Len())), head.Bytes()...))
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &checkpoints{lab: lab}
		if k.decode(b) != nil || k.now.check(lab) != nil {
			return
		}
		for leg := range k.from {
			if k.answer(leg) == nil && k.state != nil {
				t.Errorf("no answer of solve %d of %+v", leg, k.now)
			}
		}
	})
}

// FuzzLevels: what ParseLevels takes is a chain, and formatLevels writes it.
func FuzzLevels(f *testing.F) {
	f.Add("features:16000,srht:4000,gaussian:2000")
	f.Add(" features:3, countsketch:3")
	f.Fuzz(func(t *testing.T, spec string) {
		levels, err := feature.ParseLevels(spec)
		if err != nil {
			return
		}
		again, err := feature.ParseLevels(levels.String())
		if err != nil || !slices.Equal(again, levels) {
			t.Errorf("%q: %v, then %v, %v", spec, levels, again, err)
		}
		c, err := feature.ChainFor(gauss, true, levels)
		if err != nil || c.Width != levels[0].Width || len(c.Sketches) != len(levels)-1 {
			t.Errorf("%q: %v, %v", spec, c, err)
		}
	})
}
