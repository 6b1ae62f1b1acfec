package suite

import (
	"os"
	"testing"
)

// sizeVariable is the environment variable that selects the size of the tests. If it is empty, tests have the size for
// make test. If it is 1, they have hundreds of seeds and use real data, for make test-long. Any other text also runs
// the long suites, for the rows of .ci/machines.
const sizeVariable = "KRRLAB_LONG"

// Scale returns the size of a test, such as a number of seeds: small for make test and -short, long for a long suite,
// and full for make test-long.
func Scale(small, long, full int) int {
	switch value := os.Getenv(sizeVariable); {
	case value == "" || testing.Short():
		return small
	case value == "1":
		return full
	}
	return long
}

// Small reports whether the tests have the size for make test, or -short is set.
func Small() bool { return Scale(0, 1, 1) == 0 }

// RequireLong skips the test, with the given description, unless long suites run.
func RequireLong(t testing.TB, description string) {
	t.Helper()
	if Small() {
		t.Skip(description + ": a long suite (make test-long, a row of .ci/machines)")
	}
}

// RealData returns the folder of the real data sets, the value of KRRLAB_DATA. It skips the test unless tests have the
// size for make test-long and KRRLAB_DATA is set.
func RealData(t testing.TB) string {
	t.Helper()
	folder, isFull := os.Getenv("KRRLAB_DATA"), Scale(0, 0, 1) == 1
	if !isFull || folder == "" {
		t.Skip("needs KRRLAB_LONG=1 (make test-long) and KRRLAB_DATA, a folder with the data sets")
	}
	return folder
}
