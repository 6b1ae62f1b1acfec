package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// pythonScript fits by the module, and compares its predictions with those of the program.
const pythonScript = `
import subprocess, numpy as np, krrlab
g = np.random.default_rng(1)
X, Z = g.normal(size=(60, 3)) * [1, 10, 100], g.normal(size=(7, 3)) * [1, 10, 100]
y = np.sin(X[:, 0]) + X[:, 1] / 10
gaps = X.copy(); gaps[3, 1] = np.nan
def predicted(path, z, *flags):
    np.save("z.npy", z)
    subprocess.run([krrlab.PROGRAM, "predict", path, "--in", "z.npy", "--out", "f.npy", *flags],
                   check=True, capture_output=True)
    return np.load("f.npy")
for k, (x, t, flags) in enumerate([
    (X, y, {}), (X.astype(np.float32), y, dict(kernel="laplacian")),
    (np.asfortranarray(X), y, dict(kernel="matern52", center="no")),
    (X, y.astype(">f4"), dict(kernel="polynomial", degree=2)), (gaps, y, dict(impute="median", kernel="matern32")),
    (X, (y > 0) * 2 - 1, {}), (X, (y * 2).astype(int).clip(-1, 1), {}),
    ((X * 10).astype(np.int16), y, dict(class_weights="none")),
]):
    m, z = krrlab.fit(x, t, f"m{k}.krr", **flags), Z if k != 4 else np.where(Z > 50, np.nan, Z)
    assert m.x.shape == x.shape
    np.testing.assert_allclose(m.predict(z).astype(float), predicted(f"m{k}.krr", z),
                               rtol=1e-4, atol=1e-6, err_msg=str(k))
words = krrlab.fit(X, np.where(y > 0, "high", "low"), "w.krr")
assert set(words.predict(Z)) == {"high", "low"}, words.predict(Z)
both = predicted("m0.krr", Z, "--interval", "90%", "--method", "jackknife+")
assert both.shape == (7, 3) and (both[:, 1] <= both[:, 0]).all() and (both[:, 0] <= both[:, 2]).all(), both
try:
    predicted("w.krr", Z)
    raise SystemExit("words were written as numbers")
except subprocess.CalledProcessError as e:
    assert b"a .npy file holds numbers only: write a .csv file" in e.stderr, e.stderr
try:
    krrlab.fit(X, y, "m.krr", sigma=-1)
    raise SystemExit("a bad flag passed")
except ValueError as e:
    assert "sigma" in str(e), e
def refused(text, f):
    try:
        raise SystemExit(f"not refused: {f()}, want {text}")
    except ValueError as e:
        assert text in str(e), e
for t in [(y > 0).astype(int), (y > 0) * 2 - 1, y > 0, (y > 0) * 1.0, np.where(y > 0, "1", "0"), np.uint8(y > 0)]:
    p = krrlab.fit(X, t, "l.krr", lambda_=1e-4, sigma=[1, 2, 3]).predict(X)
    assert p.dtype == t.dtype and (p == t).mean() > 0.9, (t.dtype, p)
assert krrlab.Model("l.krr").predict(X).dtype == int
refused("row 1, column 2 (counted from 0): nan", lambda: words.predict([[1, 2, 3], [1, 2, np.nan]]))
refused("y has 1 missing", lambda: krrlab.fit(X, np.where(y == y.max(), np.nan, y), "m.krr"))
assert krrlab.fit(X, np.column_stack([y, -y]), "t.krr").predict(X).shape == (60, 2)
try:
    import pandas
except ImportError:
    raise SystemExit(0)
frame = pandas.DataFrame(X, columns=["a", "b", "y0"])
m = krrlab.fit(frame, pandas.Series(y), "p.krr")
assert (m.predict(frame[["y0", "a", "b"]].assign(more=1)) == m.predict(X)).all()
refused("['b'] of the model are missing", lambda: m.predict(frame[["a", "y0"]]))
refused("row 0, column 'a'", lambda: m.predict(frame.assign(a=pandas.Series([None] * 60, dtype="Int64"))))
refused("add categorical='w'", lambda: krrlab.fit(frame.assign(w="x"), y, "m.krr"))
p = krrlab.fit(frame, pandas.Series(y > 0, dtype="boolean"), "m.krr").predict(frame)
assert p.dtype == bool and (p == (y > 0)).mean() > 0.9, p
`

// TestPythonModule: a model that Python fits by the program predicts the same by NumPy as by the program, for every
// kernel, type of array and task. Labels keep their type, columns of a DataFrame are found by name, and what has no
// prediction is refused.
func TestPythonModule(t *testing.T) {
	python := testkit.Python(t, "numpy", "python3-numpy")
	program := testkit.Must(os.Executable())
	module := testkit.Must(filepath.Abs(filepath.Join("..", "..", "..", "packaging", "python")))
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", pythonScript)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONPATH="+module, "KRRLAB="+program, playVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
