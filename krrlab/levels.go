package krrlab

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/sketch"
)

// ChainLevel is one level of Algorithm 2: what makes Z_k of Z_{k−1}, and its width s_k.
type ChainLevel struct {
	Sketch string `json:"sketch"` // "features" for the first level; "countsketch", "srht" or "gaussian" after
	Width  int    `json:"width"`
}

// ParseLevels reads a chain such as "features:16000,srht:4000,gaussian:2000".
func ParseLevels(spec string) ([]ChainLevel, error) {
	var levels []ChainLevel
	for _, part := range strings.Split(spec, ",") {
		name, width, ok := strings.Cut(strings.TrimSpace(part), ":")
		s, err := strconv.Atoi(width)
		if !ok || err != nil {
			return nil, fmt.Errorf("level %q: want a name and a width, as in features:16000,srht:4000,gaussian:2000", part)
		}
		levels = append(levels, ChainLevel{name, s})
	}
	return levels, checkLevels(levels)
}

// formatLevels is the inverse of ParseLevels.
func formatLevels(levels []ChainLevel) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, fmt.Sprintf("%s:%d", l.Sketch, l.Width))
	}
	return strings.Join(parts, ",")
}

// checkLevels returns an error unless the chain starts with features, goes on with sketches,
// and no level is wider than the one before.
func checkLevels(levels []ChainLevel) error {
	if len(levels) == 0 {
		return fmt.Errorf("no levels: want features:WIDTH first, then sketches, as in features:16000,srht:4000,gaussian:2000")
	}
	for k, l := range levels {
		_, err := sketch.Parse(l.Sketch)
		switch {
		case l.Width < 1:
			return fmt.Errorf("level %d, %s:%d: want a width of at least 1", k+1, l.Sketch, l.Width)
		case k == 0 && l.Sketch != "features":
			return fmt.Errorf("level 1 is %q: want features first, then sketches", l.Sketch)
		case k > 0 && err != nil:
			return fmt.Errorf("level %d: %w", k+1, err)
		case k > 0 && l.Width > levels[k-1].Width:
			return fmt.Errorf("level %d, %s:%d, is wider than the %d of the level before it", k+1, l.Sketch, l.Width, levels[k-1].Width)
		}
	}
	return nil
}

// ChainFor returns the distribution of Algorithm 2 for a kernel: the paper's features for it,
// orthogonal ones if asked for, and the sketches of levels.
func ChainFor(k kernel.Kernel, orthogonal bool, levels []ChainLevel) (feature.Chain, error) {
	if err := checkLevels(levels); err != nil {
		return feature.Chain{}, err
	}
	dist, err := featuresFor(k, orthogonal)
	if err != nil {
		return feature.Chain{}, err
	}
	c := feature.Chain{Features: dist, Width: levels[0].Width}
	for _, l := range levels[1:] {
		d, _ := sketch.Parse(l.Sketch) // checkLevels has
		c.Sketches = append(c.Sketches, sketch.Level{Dist: d, Width: l.Width})
	}
	return c, nil
}

// noFeatures reports whether there are no random features for a kernel.
func noFeatures(k kernel.Kernel) bool {
	_, err := feature.For(k)
	return err != nil
}

// featuresFor returns the paper's features for a kernel, orthogonal ones if asked for; that there are
// none is an error.
func featuresFor(k kernel.Kernel, orthogonal bool) (feature.Dist, error) {
	dist, err := feature.For(k)
	if err != nil || !orthogonal {
		return dist, err
	}
	f, ok := dist.(feature.Fourier)
	if !ok {
		return nil, fmt.Errorf("krrlab: no orthogonal random features for %v: gaussian, matern32, matern52 and user-defined kernels with a method Spread have them", k)
	}
	f.Orthogonal = true
	return f, nil
}
