#!/usr/bin/python3
"""Algorithm 1 of Avron, Clarkson and Woodruff in NumPy, for comparing its time with krrlab's.

Solves (K + lambda*I) C = Y for MNIST by preconditioned conjugate gradients, where
K_ij = exp(-|x_i-x_j|^2 / (2 sigma^2)) and Y is the +-1 coding of the ten digits. The
implementation is what a competent user of NumPy would write:

  K       n x n in float32, one product X X^T and np.exp in place
  Z       n x s random Fourier features in float32 (--precond features), or the Nystrom
          factor K_nS L^-T with L L^T = K_SS for s points S drawn uniformly (--precond nystrom)
  M       Z Z^T + lambda_p*I by Woodbury's formula: Z^T Z and its Cholesky factor in
          float64, products with Z in float32
  PCG     all right-hand sides at once, with one float32 product K P per iteration, and
          alpha and beta of each column in float64; a column stops when |r_j| <= tol*|y_j|

Matrix products use the BLAS that NumPy is linked to, with all its threads. The data are
the first --n rows of MNIST's training file and its test file, with the pixels divided by
255, from $KRRLAB_DATA/mnist (idx files, compressed by gzip or not).

Prints the seconds of each stage, the iterations, the test error and the peak memory.
The exit code is 3 if PCG did not converge.

Needs numpy; on Debian: apt-get install python3-numpy
"""

import argparse
import gzip
import json
import os
import sys
import time


def read_idx(folder, name):
    """Returns the array in an idx file of unsigned bytes, compressed by gzip or not."""
    import numpy as np

    path = os.path.join(folder, name)
    try:
        if os.path.exists(path):
            with open(path, "rb") as file:
                raw = file.read()
        else:
            with gzip.open(path + ".gz") as file:
                raw = file.read()
    except (OSError, EOFError) as error:
        sys.exit(f"krr_numpy.py: cannot read {path}.gz: {getattr(error, 'strerror', None) or error}")
    head = np.frombuffer(raw, ">i4", count=min(len(raw) // 4, 1))
    dims = int(head[0]) - 0x800 if head.size else 0
    if dims not in (1, 3) or len(raw) < 4 + 4 * dims:
        sys.exit(f"krr_numpy.py: {path} is not an idx file of bytes")
    shape = np.frombuffer(raw, ">i4", count=dims, offset=4)
    if len(raw) != 4 + 4 * dims + int(np.prod(shape, dtype=np.int64)):
        sys.exit(f"krr_numpy.py: {path} is cut short")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dims).reshape(shape)


def mnist(n, dtype):
    """Returns the first n training points, their labels, all test points and their labels."""
    root = os.environ.get("KRRLAB_DATA")
    if not root:
        sys.exit("krr_numpy.py: KRRLAB_DATA is not set; it names the folder that holds mnist/")
    arrays = []
    for name, rows in (("train", n), ("t10k", None)):
        images = read_idx(os.path.join(root, "mnist"), name + "-images-idx3-ubyte")
        labels = read_idx(os.path.join(root, "mnist"), name + "-labels-idx1-ubyte")
        if rows is not None and rows > len(images):
            sys.exit(f"krr_numpy.py: --n {rows}: MNIST has {len(images)} training points")
        arrays += [images[:rows].reshape(len(images[:rows]), -1).astype(dtype) / dtype(255), labels[:rows]]
    return arrays


def coding(labels, classes=10):
    """Returns a matrix with +1 in the column of each label and -1 elsewhere."""
    import numpy as np

    return np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)


def finish_kernel(k, half_x, half_z):
    """Replaces inner products x.z of points divided by sigma by exp(x.z - |x|^2/2 - |z|^2/2)."""
    import numpy as np

    for i in range(0, len(k), 256):  # blocks of rows that fit the caches
        block = k[i : i + 256]
        block -= half_x[i : i + 256, None]
        block -= half_z
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)
    return k


def half_norms(x):
    """Returns |x_i|^2/2 of each row, summed in float64."""
    import numpy as np

    return (np.einsum("ij,ij->i", x, x, dtype=np.float64) / 2).astype(np.float32)


def fourier(x, s, rng):
    """Returns the features sqrt(2/s) cos(W x + b) of points divided by sigma, in float32."""
    import numpy as np

    z = x @ rng.standard_normal((s, x.shape[1]), dtype=np.float32).T
    z += rng.random(s, dtype=np.float32) * np.float32(2 * np.pi)
    np.cos(z, out=z)
    z *= np.float32(np.sqrt(2 / s))
    return z


def nystrom(k, s, rng):
    """Returns the n x s factor F with F F^T = K_nS K_SS^-1 K_Sn for s points S drawn uniformly."""
    import numpy as np

    landmarks = np.sort(rng.choice(len(k), s, replace=False))
    columns = k[:, landmarks]
    core = columns[landmarks].astype(np.float64)
    core[np.diag_indices(s)] += s * 2.0**-23  # covers the rounding of K's entries to float32
    return columns @ np.linalg.inv(np.linalg.cholesky(core)).T.astype(np.float32)


def woodbury(z, lambda_p):
    """Returns the inverse L^-1 of the Cholesky factor of Z^T Z + lambda_p*I, computed in float64."""
    import numpy as np

    gram = lambda_p * np.eye(z.shape[1])
    for i in range(0, len(z), 4096):
        block = z[i : i + 4096].astype(np.float64)
        gram += block.T @ block
    return np.linalg.inv(np.linalg.cholesky(gram))


def pcg(k, y, ridge, tol, max_iter, solve):
    """Solves (K + ridge*I) C = Y by PCG, with the right-hand sides in the rows of y.

    Returns C^T, the number of iterations, and whether all right-hand sides converged.
    """
    import numpy as np

    x, r = np.zeros_like(y), y.copy()
    goal = tol * np.linalg.norm(y, axis=1)
    active = np.flatnonzero(np.linalg.norm(r, axis=1) > goal)
    r, iterations = r[active], 0
    z = solve(r)
    p, rz = z.copy(), np.einsum("ij,ij->i", r, z)
    while active.size and iterations < max_iter:
        iterations += 1
        product = (p.astype(np.float32) @ k).astype(np.float64)  # K is symmetric
        product += ridge * p
        alpha = rz / np.einsum("ij,ij->i", p, product)
        x[active] += alpha[:, None] * p
        r -= alpha[:, None] * product
        stay = np.linalg.norm(r, axis=1) > goal[active]
        active, r, p, rz = active[stay], r[stay], p[stay], rz[stay]
        if active.size:
            z = solve(r)
            old, rz = rz, np.einsum("ij,ij->i", r, z)
            p = z + (rz / old)[:, None] * p
    return x, iterations, active.size == 0


def fit(x, y, args, clock):
    """Returns the points divided by sigma, C^T, the number of iterations, and whether PCG converged."""
    import numpy as np

    rng = np.random.default_rng(args.seed)
    x = x.astype(np.float32) / np.float32(args.sigma)
    half = half_norms(x)
    k = finish_kernel(x @ x.T, half, half)
    np.fill_diagonal(k, 1)
    clock("kernel")
    solve = np.copy
    if args.precond != "none":
        z = fourier(x, args.features, rng) if args.precond == "features" else nystrom(k, args.features, rng)
        clock("features")
        inverse = woodbury(z, args.lambda_p)
        clock("factor")

        def solve(r):  # (r - Z (Z^T Z + lambda_p)^-1 Z^T r) / lambda_p
            weights = (r.astype(np.float32) @ z).astype(np.float64) @ inverse.T @ inverse
            return (r - weights.astype(np.float32) @ z.T) / args.lambda_p

    c, iterations, converged = pcg(k, np.ascontiguousarray(y.T, dtype=np.float64), args.ridge, args.tol, args.max_iter, solve)
    clock("solve")
    return x, c, iterations, converged


def predict(x, c, at, sigma):
    """Returns k(at, x) C for points x that are divided by sigma, computed in blocks of rows."""
    import numpy as np

    at = at.astype(np.float32) / np.float32(sigma)
    half_x, half_at = half_norms(x), half_norms(at)
    c = c.T.astype(np.float32)
    return np.vstack([finish_kernel(at[i : i + 1024] @ x.T, half_at[i : i + 1024], half_x) @ c for i in range(0, len(at), 1024)])


class Clock:
    """Measures the seconds of stages that follow each other."""

    def __init__(self):
        self.start = self.last = time.perf_counter()
        self.seconds = {}

    def __call__(self, stage):
        """Records the time since the end of the previous stage as that of this stage."""
        now = time.perf_counter()
        self.seconds[stage] = now - self.last
        self.last = now

    def total(self):
        """Returns the seconds of each stage and of the whole run."""
        self.seconds["total"] = time.perf_counter() - self.start
        return self.seconds


def peak_bytes():
    """Returns the peak resident memory of this process in bytes."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def publish(report, name=None):
    """Prints a report, and writes it to a JSON file if a name is given."""
    for key in ("program", "n", "settings", "status", "iterations", "test_error"):
        if report.get(key) is not None:
            print(f"{key.replace('_', ' '):<12} {report[key]}")
    print("seconds      " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in report["seconds"].items()))
    print(f"peak memory  {report['peak_bytes'] / 1e9:.2f} GB")
    if not name:
        return
    try:
        with open(name + ".part", "w") as file:
            json.dump(report, file, indent=2)
        os.replace(name + ".part", name)
    except OSError as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: cannot write {name}: {error.strerror}")


def self_test():
    """Checks every preconditioner on a small random problem against numpy.linalg.solve."""
    import numpy as np

    rng = np.random.default_rng(1)
    x, t, y = rng.random((300, 20)), rng.random((40, 20)), rng.normal(size=(300, 3))

    def gram(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(axis=2) / (2 * 1.5**2))

    want = gram(t, x) @ np.linalg.solve(gram(x, x) + 0.05 * np.eye(300), y)
    iterations = {}
    for precond in ("none", "features", "nystrom"):
        args = options(["--precond", precond, "--sigma", "1.5", "--lambda", "0.05", "--features", "150", "--tol", "1e-6"])
        clock = Clock()
        points, c, iterations[precond], converged = fit(x, y, args, clock)
        error = np.abs(predict(points, c, t, 1.5) - want).max() / np.abs(want).max()
        if not converged or not error < 1e-4:
            sys.exit(f"self-test: {precond}: {iterations[precond]} iterations, relative error {error:.1e}")
        if clock.total()["total"] < sum(clock.seconds.values()) / 2:
            sys.exit(f"self-test: {precond}: the stages take more than the total: {clock.seconds}")
    if iterations["nystrom"] >= iterations["none"]:
        sys.exit(f"self-test: the preconditioner does not help: {iterations}")
    z = fourier((x / 1.5).astype(np.float32), 20000, rng)
    if np.abs(z @ z.T - gram(x, x)).max() > 0.05:
        sys.exit("self-test: Z Z^T is not near K")
    print("self-test: ok")


def positive(text):
    """Converts an option's text to a positive number."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def whole(text):
    """Converts an option's text to an integer that is at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def options(words):
    """Parses the command line (None: that of the process) and sets the defaults that depend on other options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=whole, default=20000, help="training points (20000)")
    parser.add_argument("--sigma", type=positive, default=8.5, help="width of the kernel (8.5)")
    parser.add_argument("--lambda", dest="ridge", type=positive, default=1e-2, help="ridge lambda (0.01)")
    parser.add_argument("--lambda-p", type=positive, help="ridge of the preconditioner (lambda)")
    parser.add_argument("--features", type=whole, help="features, or rank, s (n/10)")
    parser.add_argument("--tol", type=positive, default=1e-3, help="tolerance of |r_j|/|y_j| (1e-3)")
    parser.add_argument("--max-iter", type=whole, default=1000, help="most iterations (1000)")
    parser.add_argument("--precond", choices=("features", "nystrom", "none"), default="features")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random numbers (1)")
    parser.add_argument("--json", metavar="FILE", help="write the report to this file too")
    parser.add_argument("--self-test", action="store_true", help="check this script, print ok and stop")
    parsed = parser.parse_args(words)
    parsed.lambda_p = parsed.lambda_p or parsed.ridge
    parsed.features = parsed.features or max(parsed.n // 10, 1)
    if parsed.precond == "nystrom" and parsed.features > parsed.n:
        parser.error(f"--features {parsed.features}: there are only {parsed.n} points")
    if parsed.seed < 0:
        parser.error(f"--seed {parsed.seed}: want at least 0")
    return parsed


def main(words=None):
    args = options(words)
    if args.self_test:
        return self_test()
    import numpy as np

    clock = Clock()
    x, labels, t, truth = mnist(args.n, np.float32)
    clock("load")
    points, c, iterations, converged = fit(x, coding(labels), args, clock)
    predicted = predict(points, c, t, args.sigma).argmax(axis=1)
    clock("predict")
    settings = f"{args.precond}, s = {args.features}, lambda_p = {args.lambda_p:g}" if args.precond != "none" else "no preconditioner"
    publish({
        "program": f"numpy {np.__version__}", "n": args.n, "settings": settings,
        "status": "converged" if converged else "not converged", "iterations": iterations,
        "test_error": round(float((predicted != truth).mean()), 6), "peak_bytes": peak_bytes(), "seconds": clock.total(),
    }, args.json)
    if not converged:
        sys.exit(3)


if __name__ == "__main__":
    main()
