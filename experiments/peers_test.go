package experiments

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
)

// python is the interpreter for which Debian installs packages.
const python = "/usr/bin/python3"

// requireModules skips the test unless python can import the named modules. install is the package that contains them.
func requireModules(t *testing.T, names, install string) {
	t.Helper()
	if err := exec.Command(python, "-c", "import "+names).Run(); err != nil {
		t.Skipf("no %s for %s (apt-get install %s): %v", names, python, install, err)
	}
}

// checkSelfTest runs the self-test of a script in the folder peers.
func checkSelfTest(t *testing.T, script string) {
	t.Helper()
	out, err := exec.Command(python, "peers/"+script, "--self-test").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "self-test: ok" {
		t.Errorf("%s: %v: %s", script, err, out)
	}
}

// checkRefuses checks that a script ends with an error message, and without a traceback, for each of the command lines.
func checkRefuses(t *testing.T, script string, lines ...[]string) {
	t.Helper()
	for _, args := range lines {
		cmd := exec.Command(python, append([]string{"peers/" + script}, args...)...)
		cmd.Env = append(cmd.Environ(), "KRRLAB_DATA="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err == nil || len(out) == 0 || strings.Contains(string(out), "Traceback") {
			t.Errorf("%s %v: %v, want an error without a traceback: %s", script, args, err, out)
		}
	}
}

// TestPeers checks the script for the comparison with scikit-learn.
func TestPeers(t *testing.T) {
	requireModules(t, "numpy, sklearn.kernel_ridge", "python3-sklearn")
	checkSelfTest(t, "krr_sklearn.py")
	checkRefuses(t, "krr_sklearn.py", []string{"--lambda", "0"}, []string{"--sigma", "nan"}, []string{"--kernel", "none"},
		[]string{"--train", "x.npy"},
		[]string{"--train", "none.npy", "--target", "none.npy", "--test", "none.npy", "--out", "none/p.npy"},
		[]string{"--mnist", "0"}, []string{"--mnist", "9", "--kernel", "laplacian"}, []string{"--mnist", "9"})
}

// TestNumPy checks the script for the comparison with NumPy.
func TestNumPy(t *testing.T) {
	requireModules(t, "numpy", "python3-numpy")
	checkSelfTest(t, "krr_numpy.py")
	checkRefuses(t, "krr_numpy.py", []string{"--n", "0"}, []string{"--lambda", "nan"}, []string{"--precond", "ichol"},
		[]string{"--seed", "-1"},
		[]string{"--n", "9", "--features", "10", "--precond", "nystrom"}, []string{"--n", "9"})
}

// TestBenchPeers runs the benchmark of all programs on a few points in the format of MNIST, and checks its tables.
func TestBenchPeers(t *testing.T) {
	requireModules(t, "numpy, sklearn.kernel_ridge", "python3-sklearn")
	suite.RequireLong(t, "a benchmark of all programs")
	checkRefuses(t, "bench_peers.py", []string{"--n", "0"}, []string{"--krrlab", "none"}, []string{"--krrlab", python})
	dir := t.TempDir()
	krrlab := filepath.Join(dir, "krrlab")
	if out, err := exec.Command("go", "build", "-o", krrlab, "../krrlab/cmd/krrlab").CombinedOutput(); err != nil {
		t.Skipf("cannot build krrlab: %v: %s", err, out)
	}
	for part, n := range map[string]int{"train": 90, "t10k": 30} {
		images, labels := randomDigits(n)
		writeIDX(t, filepath.Join(dir, "mnist", part+"-images-idx3-ubyte.gz"), images, n, 28, 28)
		writeIDX(t, filepath.Join(dir, "mnist", part+"-labels-idx1-ubyte.gz"), labels, n)
	}
	cmd := exec.Command(python, "peers/bench_peers.py", "--krrlab", krrlab, "--n", "80", "--features", "20", "--dir",
		filepath.Join(dir, "out"))
	cmd.Env = append(cmd.Environ(), "KRRLAB_DATA="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"bench-peers.txt", "bench-peers.md"} {
		text := must(os.ReadFile(filepath.Join(dir, "out", name)))
		expectContains(t, string(text), "n = 80, s = 20", "krrlab, random features", "NumPy, Nystrom",
			"scikit-learn takes",
			"times the memory of krrlab", "krrlab, its own choice")
	}
	if strings.Contains(string(out), "failed") || strings.Contains(string(out), "not converged") {
		t.Errorf("a method failed or did not converge:\n%s", out)
	}
}

// randomDigits returns n images of 784 random pixels and their labels. A bright row of an image encodes its label.
func randomDigits(n int) (images, labels []byte) {
	g := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range n {
		labels = append(labels, byte(i%10))
		for pixel := range 784 {
			v := g.IntN(80)
			if pixel/28 == 2*(i%10)+4 {
				v += 150
			}
			images = append(images, byte(v))
		}
	}
	return images, labels
}

// writeIDX writes data of the given shape as an idx file, compressed by gzip.
func writeIDX(t *testing.T, name string, data []byte, shape ...int) {
	t.Helper()
	header := binary.BigEndian.AppendUint32(nil, uint32(0x800+len(shape)))
	for _, v := range shape {
		header = binary.BigEndian.AppendUint32(header, uint32(v))
	}
	var compressed bytes.Buffer
	zipWriter := gzip.NewWriter(&compressed)
	for _, part := range [][]byte{header, data} {
		if _, err := zipWriter.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := zipWriter.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, compressed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
