package cli

import (
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/accel"
)

// machineShare is the part of the machine's memory that a solve may take by default.
const machineShare = 0.9

// units are the suffixes of --memory.
var units = []struct {
	name  string
	bytes float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3},
	{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"K", 1e3}, {"B", 1},
}

// checkMemory refuses a --memory that is no number of bytes.
func checkMemory(text string) error {
	_, err := memoryLimit(text)
	return err
}

// memoryLimit returns the bytes that --memory allows; by default nine tenths of the
// machine's, or of its control group's.
func memoryLimit(text string) (int64, error) {
	if text == "" {
		limit, _ := accel.MemoryLimit()
		return int64(machineShare * float64(limit)), nil
	}
	number, unit := text, 1.0
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v*unit >= 1) || v*unit > 1<<60 {
		return 0, usagef("--memory %q: want a number of bytes such as 20GB, 512MiB or 8e9", text)
	}
	return int64(v * unit), nil
}
