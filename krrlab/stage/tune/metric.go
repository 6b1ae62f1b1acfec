package tune

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
)

// scores are decision values of rows of known classes.
type scores struct {
	f       *mat.Dense // n×t
	truth   []int      // classes
	v       []float64  // weights of the rows, of mean 1
	of      []float64  // their sums over the rows of each class
	present int        // classes that have rows
}

// step returns the smoothed step from 0 to 1 at 0.
func step(x, width float64) float64 { return 0.5 * math.Erfc(-x/(width*math.Sqrt2)) }

// is returns which rows are of a class.
func (s *scores) is(class int) []bool {
	in := make([]bool, len(s.truth))
	for i, c := range s.truth {
		in[i] = c == class
	}
	return in
}

// alike returns the weights of the rows where all classes count alike.
func (s *scores) alike() []float64 {
	v := make([]float64, len(s.v))
	for i, c := range s.truth {
		v[i] = s.v[i] * float64(len(v)) / (float64(s.present) * s.of[c])
	}
	return v
}

// errors returns the rows of the share of wrong labels, or of the mean of the shares of the classes, of two of them at
// the best threshold.
func (s *scores) errors(m model.Metric) (rows, soft []float64) {
	n, t := s.f.Dims()
	rows, soft = make([]float64, n), make([]float64, n)
	v, threshold, width := s.v, 0.0, softness
	if m == model.BalancedError {
		if v = s.alike(); t == 1 {
			f := mat.Col(nil, 0, s.f)
			threshold, _ = m.BestThreshold(f, s.is(1), s.v)
			width = widthOf(f)
		}
	}
	row := make([]float64, t)
	for i := range n {
		copy(row, s.f.RawRowView(i))
		if t == 1 {
			row[0] -= threshold
		}
		margin := datasets.Margin(row, s.truth[i]) / 2 // of the right label, in units of the coding
		if datasets.Label(row) != s.truth[i] {
			rows[i] = v[i]
		}
		soft[i] = v[i] * step(-margin, width)
	}
	return rows, soft
}

// widthOf returns the width of the smoothed step of scores.
func widthOf(f []float64) float64 {
	if w := softness * math.Sqrt(stat.PopVariance(f, nil)); w > 0 {
		return w
	}
	return softness
}

// f1 returns the rows of 1 − F1, of the positive class of two at the best threshold, or of the mean over more classes.
func (s *scores) f1(positive int) (rows, soft []float64) {
	n, t := s.f.Dims()
	rows, soft = make([]float64, n), make([]float64, n)
	hard, smooth := make([]float64, n), make([]float64, n)
	if t == 1 {
		f := mat.Col(nil, 0, s.f)
		for i := range f {
			f[i] *= float64(2*positive - 1)
		}
		in, width := s.is(positive), widthOf(f)
		threshold, _ := model.F1.BestThreshold(f, in, s.v)
		for i, v := range f {
			hard[i], smooth[i] = 0, step(v-threshold, width)
			if v > threshold {
				hard[i] = 1
			}
		}
		s.addF1(rows, hard, in, 1)
		s.addF1(soft, smooth, in, 1)
		return rows, soft
	}
	for c, w := range s.of {
		if w == 0 {
			continue
		}
		for i := range n {
			row := s.f.RawRowView(i)
			hard[i], smooth[i] = 0, step(datasets.Margin(row, c)/2, softness)
			if datasets.Label(row) == c {
				hard[i] = 1
			}
		}
		in := s.is(c)
		s.addF1(rows, hard, in, 1/float64(s.present))
		s.addF1(soft, smooth, in, 1/float64(s.present))
	}
	return rows, soft
}

// addF1 adds to the rows a share of those of the loss L = 1 − F1 = N/D, N = FP+FN and D = 2TP+FP+FN, where q are how
// much each row is taken for a class: to first order a row that adds n_i to N and d_i to D contributes L +
// (n_i−L·d_i)/D̄.
func (s *scores) addF1(rows, q []float64, in []bool, share float64) {
	var num, den float64
	parts := func(i int) (n, d float64) {
		if in[i] {
			return s.v[i] * (1 - q[i]), s.v[i] * (1 + q[i])
		}
		return s.v[i] * q[i], s.v[i] * q[i]
	}
	for i := range q {
		n, d := parts(i)
		num, den = num+n, den+d
	}
	if den == 0 {
		return
	}
	l := num / den
	for i := range q {
		n, d := parts(i)
		rows[i] += share * (l + (n-l*d)*float64(len(q))/den)
	}
}

// auc returns the rows of 1 − AUC, of several classes of its mean over each against the rest: the share of rows of the
// other side that row i is on the wrong side of, equal scores by half, where both sides count alike (E. R. DeLong, D.
// M. DeLong and D. L. Clarke-Pearson, Biometrics 44, 1988).
func (s *scores) auc() []float64 {
	n, t := s.f.Dims()
	rows, count := make([]float64, n), 0.0
	for j := range t {
		f, in := mat.Col(nil, j, s.f), s.is(max(j, 2-t))
		var all [2]float64 // weights of the others, and of the class
		for i, is := range in {
			all[btoi(is)] += s.v[i]
		}
		if all[0] == 0 || all[1] == 0 {
			continue
		}
		count++
		order := make([]int, n)
		floats.ArgsortStable(f, order)
		var below [2]float64
		for lo, hi := 0, 0; lo < n; lo = hi {
			var equal [2]float64
			for ; hi < n && f[hi] == f[lo]; hi++ {
				equal[btoi(in[order[hi]])] += s.v[order[hi]]
			}
			for _, i := range order[lo:hi] {
				side := btoi(in[i])
				wrong := (below[1-side] + equal[1-side]/2) / all[1-side] // of the class below a row of the others
				if side == 1 {
					wrong = 1 - wrong
				}
				rows[i] += wrong * s.v[i] * float64(n) / (2 * all[side])
			}
			below[0], below[1] = below[0]+equal[0], below[1]+equal[1]
		}
	}
	for i := range rows {
		if rows[i] /= max(count, 1); count == 0 {
			rows[i] = 0.5
		}
	}
	return rows
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// logLoss returns the rows of the mean of −log p of the right label, with p by Platt, fitted to these rows.
func (s *scores) logLoss() []float64 {
	n, t := s.f.Dims()
	p := mat.NewDense(n, t, nil)
	for j := range t {
		f := mat.Col(nil, j, s.f)
		a, b := model.Platt(f, s.is(max(j, 2-t)), s.v)
		for i, v := range f {
			p.Set(i, j, 1/(1+math.Exp(-a*v-b)))
		}
	}
	rows := make([]float64, n)
	for i, c := range s.truth {
		row := p.RawRowView(i)
		right := row[0]
		switch {
		case t > 1:
			right = row[c] / mat.Sum(p.Slice(i, i+1, 0, t))
		case c == 0:
			right = 1 - right
		}
		rows[i] = -s.v[i] * math.Log(max(right, 1e-15))
	}
	return rows
}
