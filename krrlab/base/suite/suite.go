package suite

import (
	"os"
	"testing"
)

// variable says how much the tests do: nothing, what make test runs on every change; any text but 1, the long suites
// too, which rows of .ci/machines run; 1, also hundreds of seeds and real data, which make test-long runs.
const variable = "KRRLAB_LONG"

// Scale returns the size of a test, its seeds or problems: for make test and -short, for a long suite, and for make
// test-long.
func Scale(small, suite, many int) int {
	switch long := os.Getenv(variable); {
	case long == "" || testing.Short():
		return small
	case long == "1":
		return many
	}
	return suite
}

// Small reports whether no long suite was asked for, or -short.
func Small() bool { return Scale(0, 1, 1) == 0 }

// Long skips a test of a long suite where none was asked for.
func Long(t testing.TB, what string) {
	t.Helper()
	if Small() {
		t.Skip(what + ": a long suite (make test-long, a row of .ci/machines)")
	}
}

// RealData returns the folder with real data, and skips the test where make test-long or the data are missing.
func RealData(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("KRRLAB_DATA")
	if Scale(0, 0, 1) == 0 || dir == "" {
		t.Skip("needs KRRLAB_LONG=1 (make test-long) and KRRLAB_DATA, a folder with the data sets")
	}
	return dir
}
