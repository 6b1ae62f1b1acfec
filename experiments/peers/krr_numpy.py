#!/usr/bin/python3
"""Algorithm 1 of Avron, Clarkson and Woodruff in NumPy, to time krrlab against.

Solves (K + lambda*I) C = Y for MNIST, K_ij = exp(-|x_i-x_j|^2 / (2 sigma^2)), Y the
+-1 coding of the ten digits, by preconditioned conjugate gradients, the way a competent
user of NumPy would write it:

  K       n x n in float32, one product X X^T and np.exp in place
  Z       n x s random Fourier features in float32 (--precond features), or the Nystrom
          factor K_nS L^-T, L L^T = K_SS, of s points drawn uniformly (--precond nystrom)
  M       Z Z^T + lambda_p*I by Woodbury's formula: Z^T Z and its Cholesky factor in
          float64, products with Z in float32
  PCG     all right-hand sides at once, one float32 product K P an iteration, alpha and
          beta of each column in float64; a column leaves when |r_j| <= tol*|y_j|

Matrix products run on the BLAS that NumPy is linked to, on all its threads. The data
are the first --n rows of MNIST's training file, pixels divided by 255, and its test
file, from $KRRLAB_DATA/mnist (idx files, packed by gzip or not).

Prints the seconds of each stage, the iterations, the test error and the peak memory.
Exit code 3: not converged. Needs numpy; on Debian: apt-get install python3-numpy
"""

import argparse
import gzip
import json
import os
import sys
import time


def read_idx(folder, name):
    """The array in an idx file of unsigned bytes, packed or not."""
    import numpy as np

    path = os.path.join(folder, name)
    try:
        if os.path.exists(path):
            with open(path, "rb") as f:
                raw = f.read()
        else:
            with gzip.open(path + ".gz") as f:
                raw = f.read()
    except (OSError, EOFError) as e:
        sys.exit(f"krr_numpy.py: cannot read {path}.gz: {getattr(e, 'strerror', None) or e}")
    head = np.frombuffer(raw, ">i4", count=min(len(raw) // 4, 1))
    dims = int(head[0]) - 0x800 if head.size else 0
    if dims not in (1, 3) or len(raw) < 4 + 4 * dims:
        sys.exit(f"krr_numpy.py: {path} is not an idx file of bytes")
    shape = np.frombuffer(raw, ">i4", count=dims, offset=4)
    if len(raw) != 4 + 4 * dims + int(np.prod(shape, dtype=np.int64)):
        sys.exit(f"krr_numpy.py: {path} is cut short")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dims).reshape(shape)


def mnist(n, dtype):
    """The first n training points with their labels, and all test points with theirs."""
    root = os.environ.get("KRRLAB_DATA")
    if not root:
        sys.exit("krr_numpy.py: KRRLAB_DATA is not set; it names the folder that holds mnist/")
    out = []
    for name, rows in (("train", n), ("t10k", None)):
        images = read_idx(os.path.join(root, "mnist"), name + "-images-idx3-ubyte")
        labels = read_idx(os.path.join(root, "mnist"), name + "-labels-idx1-ubyte")
        if rows is not None and rows > len(images):
            sys.exit(f"krr_numpy.py: --n {rows}: MNIST has {len(images)} training points")
        out += [images[:rows].reshape(len(images[:rows]), -1).astype(dtype) / dtype(255), labels[:rows]]
    return out


def coding(labels, classes=10):
    """+1 in the column of the label, -1 elsewhere."""
    import numpy as np

    return np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)


def finish_kernel(k, half_x, half_z):
    """exp(x.z - |x|^2/2 - |z|^2/2) in place for inner products of points over sigma."""
    import numpy as np

    for i in range(0, len(k), 256):  # rows that stay in the caches
        b = k[i : i + 256]
        b -= half_x[i : i + 256, None]
        b -= half_z
        np.minimum(b, 0, out=b)
        np.exp(b, out=b)
    return k


def half_norms(x):
    import numpy as np

    return (np.einsum("ij,ij->i", x, x, dtype=np.float64) / 2).astype(np.float32)


def fourier(x, s, rng):
    """sqrt(2/s) cos(W x + b) for points over sigma, in float32."""
    import numpy as np

    z = x @ rng.standard_normal((s, x.shape[1]), dtype=np.float32).T
    z += rng.random(s, dtype=np.float32) * np.float32(2 * np.pi)
    np.cos(z, out=z)
    z *= np.float32(np.sqrt(2 / s))
    return z


def nystrom(k, s, rng):
    """F, n x s, with F F^T = K_nS K_SS^-1 K_Sn for s points S drawn uniformly."""
    import numpy as np

    at = np.sort(rng.choice(len(k), s, replace=False))
    c = k[:, at]
    w = c[at].astype(np.float64)
    w[np.diag_indices(s)] += s * 2.0**-23  # the rounding of K's entries
    return c @ np.linalg.inv(np.linalg.cholesky(w)).T.astype(np.float32)


def woodbury(z, lambda_p):
    """The inverse L^-1 of the Cholesky factor of Z^T Z + lambda_p*I, all in float64."""
    import numpy as np

    c = lambda_p * np.eye(z.shape[1])
    for i in range(0, len(z), 4096):
        p = z[i : i + 4096].astype(np.float64)
        c += p.T @ p
    return np.linalg.inv(np.linalg.cholesky(c))


def pcg(k, y, ridge, tol, max_iter, solve):
    """C^T for (K + ridge*I) C = Y by PCG, with the right-hand sides in the rows of y.

    Returns the solutions in rows, the iterations, and whether every one converged.
    """
    import numpy as np

    x, r = np.zeros_like(y), y.copy()
    goal = tol * np.linalg.norm(y, axis=1)
    live = np.flatnonzero(np.linalg.norm(r, axis=1) > goal)
    r, done = r[live], 0
    z = solve(r)
    p, rz = z.copy(), np.einsum("ij,ij->i", r, z)
    while live.size and done < max_iter:
        done += 1
        q = (p.astype(np.float32) @ k).astype(np.float64)  # K is symmetric
        q += ridge * p
        alpha = rz / np.einsum("ij,ij->i", p, q)
        x[live] += alpha[:, None] * p
        r -= alpha[:, None] * q
        stay = np.linalg.norm(r, axis=1) > goal[live]
        live, r, p, rz = live[stay], r[stay], p[stay], rz[stay]
        if live.size:
            z = solve(r)
            old, rz = rz, np.einsum("ij,ij->i", r, z)
            p = z + (rz / old)[:, None] * p
    return x, done, live.size == 0


def fit(x, y, a, clock):
    """The points over sigma, C^T, the iterations, and whether they were enough."""
    import numpy as np

    rng = np.random.default_rng(a.seed)
    x = x.astype(np.float32) / np.float32(a.sigma)
    h = half_norms(x)
    k = finish_kernel(x @ x.T, h, h)
    np.fill_diagonal(k, 1)
    clock("kernel")
    solve = np.copy
    if a.precond != "none":
        z = fourier(x, a.features, rng) if a.precond == "features" else nystrom(k, a.features, rng)
        clock("features")
        inverse = woodbury(z, a.lambda_p)
        clock("factor")

        def solve(r):  # (r - Z (Z^T Z + lambda_p)^-1 Z^T r) / lambda_p
            v = (r.astype(np.float32) @ z).astype(np.float64) @ inverse.T @ inverse
            return (r - v.astype(np.float32) @ z.T) / a.lambda_p

    c, iterations, converged = pcg(k, np.ascontiguousarray(y.T, dtype=np.float64), a.ridge, a.tol, a.max_iter, solve)
    clock("solve")
    return x, c, iterations, converged


def predict(x, c, at, sigma):
    """k(at, x) C for points x over sigma, a block of rows at a time."""
    import numpy as np

    at = at.astype(np.float32) / np.float32(sigma)
    hx, ht = half_norms(x), half_norms(at)
    c = c.T.astype(np.float32)
    return np.vstack([finish_kernel(at[i : i + 1024] @ x.T, ht[i : i + 1024], hx) @ c for i in range(0, len(at), 1024)])


class Clock:
    """Seconds of the stages, each from the end of the one before."""

    def __init__(self):
        self.start = self.last = time.perf_counter()
        self.seconds = {}

    def __call__(self, stage):
        now = time.perf_counter()
        self.seconds[stage] = now - self.last
        self.last = now

    def total(self):
        self.seconds["total"] = time.perf_counter() - self.start
        return self.seconds


def peak_bytes():
    """The largest resident memory of this process so far."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def publish(report, name=None):
    """Prints a report, and writes it to a file of JSON if that has a name."""
    for key in ("program", "n", "settings", "status", "iterations", "test_error"):
        if report.get(key) is not None:
            print(f"{key.replace('_', ' '):<12} {report[key]}")
    print("seconds      " + ", ".join(f"{k} {v:.2f}" for k, v in report["seconds"].items()))
    print(f"peak memory  {report['peak_bytes'] / 1e9:.2f} GB")
    if not name:
        return
    try:
        with open(name + ".part", "w") as f:
            json.dump(report, f, indent=2)
        os.replace(name + ".part", name)
    except OSError as e:
        sys.exit(f"{os.path.basename(sys.argv[0])}: cannot write {name}: {e.strerror}")


def self_test():
    """Solves a small random problem with every preconditioner, and compares with numpy.linalg.solve."""
    import numpy as np

    rng = np.random.default_rng(1)
    x, t, y = rng.random((300, 20)), rng.random((40, 20)), rng.normal(size=(300, 3))

    def gram(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * 1.5**2))

    want = gram(t, x) @ np.linalg.solve(gram(x, x) + 0.05 * np.eye(300), y)
    count = {}
    for precond in ("none", "features", "nystrom"):
        a = options(["--precond", precond, "--sigma", "1.5", "--lambda", "0.05", "--features", "150", "--tol", "1e-6"])
        clock = Clock()
        points, c, count[precond], converged = fit(x, y, a, clock)
        error = np.abs(predict(points, c, t, 1.5) - want).max() / np.abs(want).max()
        if not converged or not error < 1e-4:
            sys.exit(f"self-test: {precond}: {count[precond]} iterations, relative error {error:.1e}")
        if clock.total()["total"] < sum(clock.seconds.values()) / 2:
            sys.exit(f"self-test: {precond}: the stages take more than the total: {clock.seconds}")
    if count["nystrom"] >= count["none"]:
        sys.exit(f"self-test: the preconditioner does not help: {count}")
    z = fourier((x / 1.5).astype(np.float32), 20000, rng)
    if np.abs(z @ z.T - gram(x, x)).max() > 0.05:
        sys.exit("self-test: Z Z^T is not near K")
    print("self-test: ok")


def positive(text):
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def options(args):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--n", type=whole, default=20000, help="training points (20000)")
    ap.add_argument("--sigma", type=positive, default=8.5, help="width of the kernel (8.5)")
    ap.add_argument("--lambda", dest="ridge", type=positive, default=1e-2, help="ridge lambda (0.01)")
    ap.add_argument("--lambda-p", type=positive, help="ridge of the preconditioner (lambda)")
    ap.add_argument("--features", type=whole, help="features, or rank, s (n/10)")
    ap.add_argument("--tol", type=positive, default=1e-3, help="tolerance of |r_j|/|y_j| (1e-3)")
    ap.add_argument("--max-iter", type=whole, default=1000, help="most iterations (1000)")
    ap.add_argument("--precond", choices=("features", "nystrom", "none"), default="features")
    ap.add_argument("--seed", type=int, default=1, help="seed of all random numbers (1)")
    ap.add_argument("--json", metavar="FILE", help="write the report to this file too")
    ap.add_argument("--self-test", action="store_true", help="check this script, print ok and stop")
    a = ap.parse_args(args)
    a.lambda_p = a.lambda_p or a.ridge
    a.features = a.features or max(a.n // 10, 1)
    if a.precond == "nystrom" and a.features > a.n:
        ap.error(f"--features {a.features}: there are only {a.n} points")
    if a.seed < 0:
        ap.error(f"--seed {a.seed}: want at least 0")
    return a


def main(args=None):
    a = options(args)
    if a.self_test:
        return self_test()
    import numpy as np

    clock = Clock()
    x, labels, t, truth = mnist(a.n, np.float32)
    clock("load")
    points, c, iterations, converged = fit(x, coding(labels), a, clock)
    guess = predict(points, c, t, a.sigma).argmax(axis=1)
    clock("predict")
    settings = f"{a.precond}, s = {a.features}, lambda_p = {a.lambda_p:g}" if a.precond != "none" else "no preconditioner"
    publish({
        "program": f"numpy {np.__version__}", "n": a.n, "settings": settings,
        "status": "converged" if converged else "not converged", "iterations": iterations,
        "test_error": round(float((guess != truth).mean()), 6), "peak_bytes": peak_bytes(), "seconds": clock.total(),
    }, a.json)
    if not converged:
        sys.exit(3)


if __name__ == "__main__":
    main()
