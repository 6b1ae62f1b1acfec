package schema

import (
	"errors"
	"strconv"
	"strings"
)

// units are the suffixes of numbers of bytes, those that end in others first.
var units = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
	{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"K", 1e3}, {"B", 1},
}

// parseBytes reads a number of bytes such as 20GB.
func parseBytes(text string) (int64, error) {
	number, unit := text, 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v*unit >= 1) || v*unit > 1<<60 {
		return 0, errors.New("want a number of bytes such as 20GB, 512MiB or 8e9")
	}
	return int64(v * unit), nil
}
