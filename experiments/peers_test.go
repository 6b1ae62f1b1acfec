package experiments

import (
	"os/exec"
	"strings"
	"testing"
)

// python is the interpreter that Debian's packages are for.
const python = "/usr/bin/python3"

// modules skips the test unless python has the modules named.
func modules(t *testing.T, names, install string) {
	t.Helper()
	if err := exec.Command(python, "-c", "import "+names).Run(); err != nil {
		t.Skipf("no %s for %s (apt-get install %s): %v", names, python, install, err)
	}
}

// selfTest runs a script's self-test.
func selfTest(t *testing.T, script string) {
	t.Helper()
	out, err := exec.Command(python, "peers/"+script, "--self-test").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "self-test: ok" {
		t.Errorf("%s: %v: %s", script, err, out)
	}
}

// refuses checks that a script ends each command line with an error, not a traceback.
func refuses(t *testing.T, script string, lines ...[]string) {
	t.Helper()
	for _, args := range lines {
		cmd := exec.Command(python, append([]string{"peers/" + script}, args...)...)
		cmd.Env = append(cmd.Environ(), "KRRLAB_DATA="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err == nil || len(out) == 0 || strings.Contains(string(out), "Traceback") {
			t.Errorf("%s %v: %v: %s", script, args, err, out)
		}
	}
}

// TestPeers checks the script that scikit-learn is compared with by.
func TestPeers(t *testing.T) {
	modules(t, "numpy, sklearn.kernel_ridge", "python3-sklearn")
	selfTest(t, "krr_sklearn.py")
	refuses(t, "krr_sklearn.py", []string{"--lambda", "0"}, []string{"--sigma", "nan"}, []string{"--kernel", "none"}, []string{"--train", "x.npy"},
		[]string{"--train", "none.npy", "--target", "none.npy", "--test", "none.npy", "--out", "none/p.npy"},
		[]string{"--mnist", "0"}, []string{"--mnist", "9", "--kernel", "laplacian"}, []string{"--mnist", "9"})
}

// TestNumPy checks the script that NumPy's speed is compared with by.
func TestNumPy(t *testing.T) {
	modules(t, "numpy", "python3-numpy")
	selfTest(t, "krr_numpy.py")
	refuses(t, "krr_numpy.py", []string{"--n", "0"}, []string{"--lambda", "nan"}, []string{"--precond", "ichol"}, []string{"--seed", "-1"},
		[]string{"--n", "9", "--features", "10", "--precond", "nystrom"}, []string{"--n", "9"})
}
