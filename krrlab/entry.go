package krrlab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Entry implements stage.Bench: rank and λ_p that a text leaves out are those of the configuration.
func (b *bench) Entry(e stage.Entry) (stage.Entry, error) {
	if e.Value != nil {
		if _, ok := e.Value.(Preconditioner); !ok {
			return e, fmt.Errorf("krrlab: %T is no Preconditioner", e.Value)
		}
		return e, nil
	}
	_, text := e.Split()
	spec, err := parsePrecond(text)
	if err == nil {
		if r := b.approximation(); r != nil &&
			slices.Contains([]string{"features", "nystrom", "rpcholesky"}, spec.Name) {
			spec.S = cmp.Or(spec.S, len(spec.Landmarks), r.S)
			spec.LambdaP = cmp.Or(spec.LambdaP, r.LambdaP)
		}
		e.Value, err = spec.Preconditioner(b.cfg.Kernel)
	}
	if err != nil {
		err = fmt.Errorf("krrlab: the preconditioner %q: %w", e.Text, err)
	}
	return e, err
}

// Make implements stage.Bench.
func (b *bench) Make(ctx context.Context, e stage.Entry, draw int) (*stage.Made, error) {
	start, p, l := time.Now(), e.Value.(Preconditioner), b.drawn(draw)
	a, ok := p.(approximation)
	if !ok {
		m, err := p.Make(ctx, l)
		made := &stage.Made{M: m, Seconds: time.Since(start).Seconds()}
		if v, ok := m.(*vecchia.Inverse); ok {
			made.S, made.Seconds, made.Text = v.Rank(), l.v.seconds, v.What()
			made.BuildFlops, made.ApplyFlops = v.Flops()
			made.BuildFlops += l.landmarkFlops(v.Rank())
		}
		if held, ok := m.(interface{ Bytes() int64 }); ok {
			made.Bytes = held.Bytes()
		}
		return made, err
	}
	p, err := a.settled(b.cfg.Kernel, b.train.Len(), b.cfg.Lambda)
	if err != nil {
		return nil, err
	}
	r := p.(approximation).parts()
	f, err := l.factor(ctx, r)
	if err != nil {
		return nil, err
	}
	start = time.Now()
	lambdaP, form := r.LambdaP+f.a.More, cmp.Or(r.Form, precond.FormLInv) // one that can draw N(0, M)
	w, err := precond.New(ctx, f.a.Z, lambdaP, &precond.Options{Form: form, Comm: b.comm})
	if err != nil {
		return nil, err
	}
	n, s := float64(b.train.Len()), float64(r.S)
	made := &stage.Made{M: w, BuildFlops: n*s*s + 2*s*s*s/3, ApplyFlops: 4*n*s + 2*s*s, S: r.S, LambdaP: lambdaP,
		Bytes: w.Bytes(), Text: f.a.Text, Seconds: f.seconds + time.Since(start).Seconds()}
	low := f.a.Low
	if low == nil {
		made.BuildFlops += 2 * n * s * float64(b.train.Dim())
		return made, nil
	}
	made.BuildFlops += l.landmarkFlops(r.S)
	made.Certain = low.CondBound(b.cfg.Lambda, lambdaP)
	if b.k.a != nil {
		made.LambdaMin = bound.LambdaMin(low, b.cfg.Lambda, lambdaP, 2*b.kError(b.k.a))
	}
	return made, nil
}

// drawn returns a lab of the same problem and the same K, but for the seed: the configured one and draw more.
func (l *Lab) drawn(draw int) *Lab {
	if draw == 0 {
		return l
	}
	other := *l
	other.cfg.Seed += uint64(draw)
	p := l.problem
	other.problem = &problem{given: p.given, train: p.train, coding: p.coding, y: p.y, comm: p.comm,
		busy: p.busy, k: p.k, under: p.under, note: p.note}
	return &other
}

// landmarkFlops returns those of a factor of K of rank r: nr columns of K, and nr² of it.
func (l *Lab) landmarkFlops(r int) float64 {
	n, d := float64(l.train.Len()), float64(l.train.Dim())
	return n * float64(r) * (2*d + float64(r))
}

// Given is a matrix M that was made before, n×n.
type Given struct {
	M    pcg.Preconditioner
	Name string // for reports; default: "given"
}

func (g Given) String() string { return cmp.Or(g.Name, "given") }

// Make returns M.
func (g Given) Make(context.Context, *Lab) (pcg.Preconditioner, error) { return g.M, nil }
