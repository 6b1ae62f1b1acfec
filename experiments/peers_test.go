package experiments

import (
	"os/exec"
	"strings"
	"testing"
)

// TestPeers runs the self-test of the script that scikit-learn is compared with by.
func TestPeers(t *testing.T) {
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import numpy, sklearn.kernel_ridge").Run(); err != nil {
		t.Skipf("no scikit-learn for %s (apt-get install python3-sklearn): %v", python, err)
	}
	out, err := exec.Command(python, "peers/krr_sklearn.py", "--self-test").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "self-test: ok" {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"--lambda", "0"}, {"--sigma", "nan"}, {"--kernel", "none"}, {"--train", "x.npy"},
		{"--train", "none.npy", "--target", "none.npy", "--test", "none.npy", "--out", "none/p.npy"}} {
		if out, err := exec.Command(python, append([]string{"peers/krr_sklearn.py"}, args...)...).CombinedOutput(); err == nil || strings.Contains(string(out), "Traceback") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}
