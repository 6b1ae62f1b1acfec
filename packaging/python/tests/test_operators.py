"""Compares linear operators of the program with NumPy, and tests preconditioners of Python in comparisons."""
import os
import shlex
import sys
import unittest

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, cg

from krrlab import _operators, compare, gram, preconditioner, quality

LONG = os.environ.get("KRRLAB_LONG", "") != ""
rng = np.random.default_rng(5)
n, lam, kernel = 300, 0.01, "gaussian sigma=1.5"
X = rng.normal(size=(n, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
K = np.exp(-((X[:, None] - X) ** 2).sum(2) / (2 * 1.5 ** 2))


class Landmarks:
    """The preconditioner M = FFᵀ + lam I by Nyström, with the landmarks of experiments/peers/nystrom_process.py."""

    def __init__(self, rank, seed):
        landmarks = np.random.default_rng(seed).choice(n, rank, replace=False)
        C, W = K[:, landmarks], K[np.ix_(landmarks, landmarks)]
        shift = 1e-10 * np.trace(W) - 2 * min(0, np.linalg.eigvalsh(W)[0])
        self.F = np.linalg.solve(np.linalg.cholesky(W + shift * np.eye(rank)), C.T).T
        self.inner = np.linalg.inv(self.F.T @ self.F + lam * np.eye(rank))

    def __matmul__(self, R):
        return (R - self.F @ (self.inner @ (self.F.T @ R))) / lam

    def draw(self, rng):
        return self.F @ rng.standard_normal(self.F.shape[1]) + np.sqrt(lam) * rng.standard_normal(n)


class Operators(unittest.TestCase):
    def test_gram(self):
        A, V = gram(X, kernel, lam), rng.normal(size=(n, 4))
        np.testing.assert_allclose(A @ V, K @ V + lam * V, atol=1e-11)
        np.testing.assert_allclose(A @ V[:, 0], A.T @ V[:, 0])
        np.testing.assert_allclose(A @ V[:, :1], (A @ V)[:, :1], atol=1e-11)
        np.testing.assert_allclose(gram(csr_matrix(X), kernel, lam) @ V, A @ V, atol=1e-11)
        np.testing.assert_array_equal(gram(X, "rbf sigma=1.5", lam) @ V, A @ V)
        np.testing.assert_allclose(gram(X, "linear", lam) @ V, X @ (X.T @ V) + lam * V, atol=1e-10)
        self.assertEqual((A @ V[:, :0]).shape, (n, 0))

    def test_cg(self):
        """SciPy's cg with operators of the program takes as many iterations as the program, within one."""
        for kind in ("vecchia", "nystrom features=40")[:2 if LONG else 1]:
            A, M = gram(X, kernel, lam), preconditioner(X, kernel, lam, kind)
            self.assertEqual(len({id(p) for p in _operators._problems.values()}), 1)  # one process
            iterates = []
            x, failed = cg(A, y, tol=1e-8, atol=0, M=M, callback=iterates.append)
            self.assertEqual(failed, 0)
            np.testing.assert_allclose(K @ x + lam * x, y, atol=1e-6)
            ours = quality(X, kernel, lam, kind, y=y, tol=1e-8, steps=5).report["iterations"]
            self.assertLessEqual(abs(len(iterates) - ours), 1, (kind, len(iterates), ours))

    def test_symmetric(self):
        M = preconditioner(X, kernel, lam, "rpcholesky features=30") @ np.eye(n)
        np.testing.assert_allclose(M, M.T, atol=1e-6)
        self.assertGreater(np.linalg.eigvalsh(M)[0], 0)

    def test_restart(self):
        """A process that has ended is replaced. The process ends with its last operator."""
        A, v = gram(X, kernel, lam), np.ones(n)
        want, problem = A @ v, next(iter(_operators._problems.values()))
        problem.process.kill()
        with self.assertRaises(ValueError):
            A @ v
        np.testing.assert_array_equal(A @ v, want)
        process = problem.process
        del A, problem
        self.assertIsNotNone(process.poll())

    def test_fork(self):
        A, v = gram(X, kernel, lam), np.ones(n)
        want = A @ v
        if (child := os.fork()) == 0:
            os._exit(0 if (A @ v == want).all() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_array_equal(A @ v, want)

    def test_errors(self):
        for text, call in [
            ("want one of .*nystrom", lambda: preconditioner(X, kernel, lam, "nystroem")),
            ("gausian.*want one of gaussian", lambda: gram(X, "gausian", lam)),
            ("lam", lambda: gram(X, kernel, -1)),
            ("kernel == None, must be a str", lambda: gram(X, None, lam)),
            ("^an array with NaN in row 0", lambda: gram(X, kernel, lam) @ np.full(n, np.nan)),
            ("NaN: column 1, row 0.$", lambda: gram(np.where(X == X[0, 1], np.nan, X), kernel, lam)),
        ]:
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text) as caught:
                call()
            self.assertNotRegex(str(caught.exception), r"--[a-z]|/tmp|npz")

    def test_compare(self):
        """A preconditioner of Python has the same iterations and intervals as in its own process."""
        script = os.path.join(os.path.dirname(__file__), "../../../experiments/peers/nystrom_process.py")
        table = compare(X, y, kernel, lam, {"my landmarks": Landmarks(40, 1)}, seed=1, width=0.01, to=1e-8,
                        storage="float64", kinds=["process:" + shlex.join([sys.executable, os.path.abspath(script),
                                                                           "40"])])
        none, mine, theirs = table.to_dict("records")
        self.assertEqual([none["name"], mine["name"], mine["why"]], ["none", "my landmarks", ""])
        self.assertEqual(mine["iterations"], theirs["iterations"])
        self.assertLess(mine["iterations"], none["iterations"])
        for end in "kappa_low", "kappa_high":
            self.assertLess(abs(mine[end] / theirs[end] - 1), 1e-4)
        M = Landmarks(40, 1) @ np.eye(n)
        values = np.linalg.eigvals(M @ (K + lam * np.eye(n))).real
        kappa = values.max() / values.min()
        self.assertTrue(mine["kappa_low"] * (1 - 1e-6) <= kappa <= mine["kappa_high"], (mine, kappa))

    def test_failures(self):
        """The row of a preconditioner that fails has its error. Other objects are refused before the run."""
        class Short:
            def __matmul__(self, R):
                return R[:5]

        class Gap:
            def __matmul__(self, R):
                return R * np.nan

        class Broken:
            def __matmul__(self, R):
                raise ZeroDivisionError("no M")
        table = compare(X, y, kernel, lam, {"short": Short(), "fine": np.eye(n), "gap": Gap(), "broken": Broken()},
                        kinds="nystrom")
        self.assertEqual(table.name.tolist(), ["none", "short", "fine", "gap", "broken", "nystrom"])
        self.assertEqual([status == "failed" for status in table.status], [bool(why) for why in table.why])
        for why, want in zip(table.why, ["^$", r"^ValueError: .* \(300, (\d+)\) has shape \(5, \1\)$", "^$", "has NaN",
                                         "^ZeroDivisionError: no M$", "^$"]):
            self.assertRegex(why, want)
        for text, call in [("must be a dict", lambda: compare(X, y, kernel, lam, [Gap()])),
                           (r"preconditioners\['f'\] == .*by @", lambda: compare(X, y, kernel, lam, {"f": len})),
                           ("precond == None", lambda: quality(X, kernel, lam, None))]:
            with self.assertRaisesRegex(TypeError, text):
                call()
        with self.assertRaisesRegex(ValueError, r"\['w'\] has shape \(5, 5\), must be \(300, 300\)"):
            compare(X, y, kernel, lam, {"w": np.eye(5)})

    def test_quality(self):
        interval = quality(X, kernel, lam, LinearOperator((n, n), matvec=lambda v: v, matmat=lambda v: v), steps=n)
        self.assertEqual(interval.high, np.inf)  # it cannot draw
        values = np.linalg.eigvalsh(K + lam * np.eye(n))
        self.assertLessEqual(interval.low, values[-1] / values[0] * (1 + 1e-9))

        class Broken:
            def __matmul__(self, R):
                raise ZeroDivisionError("no M")
        with self.assertRaisesRegex(ZeroDivisionError, "no M"):
            quality(X, kernel, lam, Broken())
