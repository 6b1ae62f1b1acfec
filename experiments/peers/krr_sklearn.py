#!/usr/bin/python3
"""Kernel ridge regression by scikit-learn, for comparison with krrlab.

Solves (K + lambda*I) C = Y in float64 with sklearn.kernel_ridge.KernelRidge and
writes the predictions k(T, X) C. The arrays are .npy files: X is n x d, Y has n rows and
one or two dimensions, and T is m x d. The predictions have m rows and as many dimensions as
Y. As in krrlab, there is no intercept and nothing is centered.

Kernels (the names and formulas of krrlab):
  gaussian    exp(-|x-z|_2^2 / (2 sigma^2))
  laplacian   exp(-|x-z|_1 / sigma)
  matern32    (1 + sqrt(3) r/sigma) exp(-sqrt(3) r/sigma),               r = |x-z|_2
  matern52    (1 + sqrt(5) r/sigma + 5 r^2/(3 sigma^2)) exp(-sqrt(5) r/sigma)
  polynomial  (gamma x.z + coef0)^degree

With --mnist N the script measures the time on the first N rows of MNIST instead (see
krr_numpy.py), with +-1 coding, the gaussian kernel and a Cholesky factorization in float64.
It prints the seconds, the test error and the peak memory, which is about 16 N^2 bytes
(6.6 GB for N = 20,000).

Needs numpy and scikit-learn; on Debian: apt-get install python3-sklearn
"""

import argparse
import os
import sys
import tempfile

KERNELS = ("gaussian", "laplacian", "matern32", "matern52", "polynomial")


def distances(a, b):
    """Returns the Euclidean distances |a_i - b_j|, computed from differences to avoid cancellation."""
    import numpy as np

    out = np.empty((a.shape[0], b.shape[0]))
    for i, row in enumerate(a):
        out[i] = np.sqrt(((b - row) ** 2).sum(axis=1))
    return out


def matern(a, b, kernel, sigma):
    """Returns the Gram matrix of a Matern kernel."""
    import numpy as np

    r = distances(a, b)
    if kernel == "matern32":
        scaled = np.sqrt(3.0) * r / sigma
        return (1 + scaled) * np.exp(-scaled)
    scaled = np.sqrt(5.0) * r / sigma
    return (1 + scaled + scaled * scaled / 3) * np.exp(-scaled)


def fit_predict(x, y, t, kernel, ridge, sigma=1.0, gamma=1.0, coef0=1.0, degree=3):
    """Fits the model to (x, y) and returns its predictions at the rows of t."""
    from sklearn.kernel_ridge import KernelRidge

    if kernel in ("matern32", "matern52"):
        model = KernelRidge(alpha=ridge, kernel="precomputed")
        model.fit(matern(x, x, kernel, sigma), y)
        return model.predict(matern(t, x, kernel, sigma))
    if kernel == "gaussian":
        model = KernelRidge(alpha=ridge, kernel="rbf", gamma=1 / (2 * sigma**2))
    elif kernel == "laplacian":
        model = KernelRidge(alpha=ridge, kernel="laplacian", gamma=1 / sigma)
    else:
        model = KernelRidge(alpha=ridge, kernel="poly", gamma=gamma, coef0=coef0, degree=degree)
    model.fit(x, y)
    return model.predict(t)


def time_mnist(args):
    """Fits the first rows of MNIST and prints the seconds, the test error and the peak memory."""
    sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
    import krr_numpy
    import numpy as np
    import sklearn
    from sklearn.kernel_ridge import KernelRidge

    clock = krr_numpy.Clock()
    x, labels, t, truth = krr_numpy.mnist(args.mnist, np.float64)
    clock("load")
    model = KernelRidge(alpha=args.ridge, kernel="rbf", gamma=1 / (2 * args.sigma**2))
    model.fit(x, krr_numpy.coding(labels))
    clock("fit")
    predicted = np.concatenate([model.predict(t[i : i + 1024]).argmax(axis=1) for i in range(0, len(t), 1024)])
    clock("predict")
    krr_numpy.publish({
        "program": f"scikit-learn {sklearn.__version__}", "n": args.mnist, "settings": "KernelRidge, float64",
        "test_error": round(float((predicted != truth).mean()), 6), "peak_bytes": krr_numpy.peak_bytes(), "seconds": clock.total(),
    }, args.json)


def kernel_value(kernel, x, z, sigma, gamma, coef0, degree):
    """Returns k(x, z) by the formula, in plain Python."""
    from math import exp, sqrt

    r = sqrt(sum((a - b) ** 2 for a, b in zip(x, z)))
    if kernel == "gaussian":
        return exp(-r * r / (2 * sigma * sigma))
    if kernel == "laplacian":
        return exp(-sum(abs(a - b) for a, b in zip(x, z)) / sigma)
    if kernel == "matern32":
        return (1 + sqrt(3) * r / sigma) * exp(-sqrt(3) * r / sigma)
    if kernel == "matern52":
        return (1 + sqrt(5) * r / sigma + 5 * r * r / (3 * sigma * sigma)) * exp(-sqrt(5) * r / sigma)
    return (gamma * sum(a * b for a, b in zip(x, z)) + coef0) ** degree


def self_test():
    """Checks every kernel against its formula in plain Python and a dense solve."""
    import numpy as np

    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(40, 3)), rng.normal(size=(7, 3))
    params = dict(sigma=1.3, gamma=0.4, coef0=0.7, degree=3)
    for kernel in KERNELS:
        gram = np.array([[kernel_value(kernel, a, b, **params) for b in x] for a in x])
        cross = np.array([[kernel_value(kernel, a, b, **params) for b in x] for a in t])
        for y in (rng.normal(size=40), rng.normal(size=(40, 3))):
            want = cross @ np.linalg.solve(gram + 0.05 * np.eye(40), y)
            got = fit_predict(x, y, t, kernel, 0.05, **params)
            error = np.abs(got - want).max() / np.abs(want).max()
            if got.shape != want.shape or not error < 1e-9:
                sys.exit(f"self-test: {kernel}: shape {got.shape}, relative error {error:.1e}")
    with tempfile.TemporaryDirectory() as folder:
        files = {k: os.path.join(folder, k + ".npy") for k in ("x", "y", "t", "p")}
        np.save(files["x"], x)
        np.save(files["y"], y)
        np.save(files["t"], t)
        main(["--train", files["x"], "--target", files["y"], "--test", files["t"], "--kernel", "matern52",
              "--sigma", "1.3", "--lambda", "0.05", "--out", files["p"]])
        if not np.array_equal(np.load(files["p"]), fit_predict(x, y, t, "matern52", 0.05, sigma=1.3)):
            sys.exit("self-test: the files do not hold what fit_predict returns")
    print("self-test: ok")


def positive(text):
    """Converts an option's text to a positive number."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def read(name, dims):
    """Returns the finite array of a .npy file that has one of the given numbers of dimensions."""
    import numpy as np

    try:
        array = np.load(name, allow_pickle=False)
    except (OSError, ValueError) as error:
        sys.exit(f"krr_sklearn.py: cannot read {name}: {error}")
    if array.ndim not in dims or array.shape[0] == 0:
        sys.exit(f"krr_sklearn.py: {name} has the shape {array.shape}; want {' or '.join(map(str, dims))} dimensions and at least one row")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        sys.exit(f"krr_sklearn.py: {name} has values that are not finite")
    return array


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", metavar="X.npy", help="points to fit, n x d")
    parser.add_argument("--target", metavar="Y.npy", help="values to fit, n or n x t")
    parser.add_argument("--test", metavar="T.npy", help="points to predict at, m x d")
    parser.add_argument("--out", metavar="P.npy", help="where the predictions go")
    parser.add_argument("--kernel", choices=KERNELS, default="gaussian")
    parser.add_argument("--sigma", type=positive, default=1.0, help="width of all but the polynomial kernel (1)")
    parser.add_argument("--gamma", type=positive, default=1.0, help="factor of the polynomial kernel (1)")
    parser.add_argument("--coef0", type=float, default=1.0, help="constant of the polynomial kernel (1)")
    parser.add_argument("--degree", type=int, default=3, help="degree of the polynomial kernel (3)")
    parser.add_argument("--lambda", dest="ridge", type=positive, default=1e-2, help="ridge lambda (0.01)")
    parser.add_argument("--mnist", metavar="N", type=int, help="time the gaussian kernel on the first N rows of MNIST")
    parser.add_argument("--json", metavar="FILE", help="with --mnist: write the report to this file too")
    parser.add_argument("--self-test", action="store_true", help="check this script, print ok and stop")
    args = parser.parse_args(words)
    if args.self_test:
        return self_test()
    if args.mnist is not None:
        if args.mnist < 1 or args.kernel != "gaussian":
            parser.error("--mnist wants a positive number and --kernel gaussian")
        return time_mnist(args)
    missing = ["--" + k for k in ("train", "target", "test", "out") if getattr(args, k) is None]
    if missing:
        parser.error("missing " + ", ".join(missing))
    import numpy as np

    x, y, t = read(args.train, (2,)), read(args.target, (1, 2)), read(args.test, (2,))
    if x.shape[0] != y.shape[0] or x.shape[1] != t.shape[1]:
        sys.exit(f"krr_sklearn.py: shapes do not fit: train {x.shape}, target {y.shape}, test {t.shape}")
    predictions = fit_predict(x, y, t, args.kernel, args.ridge, args.sigma, args.gamma, args.coef0, args.degree)
    part = args.out + ".part"
    try:
        with open(part, "wb") as file:
            np.save(file, predictions)
        os.replace(part, args.out)
    except OSError as error:
        sys.exit(f"krr_sklearn.py: cannot write {args.out}: {error.strerror}")


if __name__ == "__main__":
    main()
