package feature

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// ChainLevel is one level of Algorithm 2 of the paper (see Chain): the features Z₁, or the sketch of Z_{k−1} to Z_k.
type ChainLevel struct {
	Sketch string `json:"sketch"` // "features" in the first level; "countsketch", "srht" or "gaussian" in the others
	Width  int    `json:"width"`  // s_k
}

// Levels are the levels of a chain, the features first.
type Levels []ChainLevel

// ParseLevels parses a chain such as "features:16000,srht:4000,gaussian:2000".
func ParseLevels(spec string) (Levels, error) {
	var levels Levels
	for _, part := range strings.Split(spec, ",") {
		name, width, ok := strings.Cut(strings.TrimSpace(part), ":")
		s, err := strconv.Atoi(width)
		if !ok || err != nil {
			return nil, fmt.Errorf("level %q: want a name and a width, as in features:16000,srht:4000,gaussian:2000",
				part)
		}
		levels = append(levels, ChainLevel{name, s})
	}
	return levels, levels.Check()
}

// Set parses spec by ParseLevels. It implements flag.Value.
func (levels *Levels) Set(spec string) (err error) {
	*levels, err = ParseLevels(spec)
	return err
}

// String returns the text from which ParseLevels returns these levels.
func (levels Levels) String() string {
	var parts []string
	for _, level := range levels {
		parts = append(parts, fmt.Sprintf("%s:%d", level.Sketch, level.Width))
	}
	return strings.Join(parts, ",")
}

// Hint returns a remark if the chain has no sketch, and "" otherwise.
func (levels Levels) Hint() string {
	if len(levels) != 1 {
		return ""
	}
	return fmt.Sprintf("a chain of one level is %d features without a sketch", levels[0].Width)
}

// Check returns an error unless the first level is "features", all others are sketches, and no level is wider than the
// previous one.
func (levels Levels) Check() error {
	if len(levels) == 0 {
		return fmt.Errorf("no levels: want features:WIDTH first, then sketches, as in " +
			"features:16000,srht:4000,gaussian:2000")
	}
	for k, level := range levels {
		_, err := sketch.Parse(level.Sketch)
		switch {
		case level.Width < 1:
			return fmt.Errorf("level %d, %s:%d: want a width of at least 1", k+1, level.Sketch, level.Width)
		case k == 0 && level.Sketch != "features":
			return fmt.Errorf("level 1 is %q: want features first, then sketches", level.Sketch)
		case k > 0 && err != nil:
			return fmt.Errorf("level %d: %w", k+1, err)
		case k > 0 && level.Width > levels[k-1].Width:
			return fmt.Errorf("level %d, %s:%d, is wider than the %d of the level before it", k+1, level.Sketch,
				level.Width, levels[k-1].Width)
		}
	}
	return nil
}

// ChainFor returns the distribution of Algorithm 2 for a kernel, with the features of For and the sketches of levels.
func ChainFor(k kernel.Kernel, levels Levels) (Chain, error) {
	if err := levels.Check(); err != nil {
		return Chain{}, err
	}
	dist, err := For(k)
	if err != nil {
		return Chain{}, err
	}
	chain := Chain{Features: dist, Width: levels[0].Width}
	for _, level := range levels[1:] {
		sketchDist, _ := sketch.Parse(level.Sketch) // Check has validated the name
		chain.Sketches = append(chain.Sketches, sketch.Level{Dist: sketchDist, Width: level.Width})
	}
	return chain, nil
}

// LevelsOf returns the levels for which ChainFor returns dist for the kernel k, or nil if For returns dist. It returns
// an error for other distributions, which are user-defined.
func LevelsOf(dist Dist, k kernel.Kernel) (levels Levels, err error) {
	var expected Dist
	if chain, ok := dist.(Chain); ok {
		levels = Levels{{"features", chain.Width}}
		for _, level := range chain.Sketches {
			levels = append(levels, ChainLevel{level.Dist.String(), level.Width})
		}
		expected, err = ChainFor(k, levels)
	} else {
		expected, err = For(k)
	}
	if err != nil || !reflect.DeepEqual(dist, expected) {
		return nil, fmt.Errorf("the feature map %v is user-defined", dist)
	}
	return levels, nil
}
