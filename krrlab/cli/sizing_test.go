package cli

import (
	"strings"
	"testing"
)

// TestSizing plans ranks: the table, the least number that is enough, and what is in the way.
func TestSizing(t *testing.T) {
	files(t, nil)
	script(t, `
$ ranks --n 60000 --d 784 --t 10 --features 6000 --memory 3GB --counts 1,8 --markdown t.md
	s = 6000, K as float32
	7.2
	288 MB
	enough
	ranks, each at most
1$ ranks --n 1000000 --d 10 --features 50000 --memory 8GB
	the factor of ZᵀZ+λ_pI
1$ ranks --n 1000000 --d 10000 --features 100 --memory 8GB
	the points, all of them on each rank
2$ ranks --n 1000000 --d 10000 --nnz 1 --precond none --memory x
	--memory
2$ ranks --d 3
	--n N --d D
2$ ranks --n 10 --d 3 --storage auto
	name a storage
2$ ranks --n 10 --d 3 --storage x
	--storage "x": want one of auto
2$ ranks --n 10 --d 3 --features 11
	want 1 to n
2$ ranks --n 10 --d 3 --precond vecchia --features 11
	--features 11: want 1 to n
2$ ranks --n 10 --d 3 --precond vecchia --features -1
	--features -1: want at least 0
2$ ranks --n 10 --d 3 --counts 0
	--counts 0
2$ ranks --n 10 --d 3 --nnz 31
	want 1 to n·d
2$ ranks --n 10 --d 3 --precond x
	--precond "x": want one of
2$ ranks --n 10 --d 3 --precond none --t 0
	--t 0
1$ ranks --n 10 --d 3 --markdown /nowhere/a.b
	cannot write`)
	if b := string(read(t, "t.md")); strings.Count(b, "\n|") < 3 {
		t.Error(b)
	}
}
