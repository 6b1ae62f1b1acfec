#!/usr/bin/python3
"""Probabilities of regularized least-squares classification by scikit-learn, for comparison with krrlab predict --probabilities.

CalibratedClassifierCV with 5 folds over a classifier of +-1 coding and the Gaussian kernel
exp(-|x-z|^2/(2 sigma^2)), by sigmoid and isotonic maps, of five models and of one. Prints a
line of JSON for each: log loss and expected calibration error (ten bins) on the test file.

  calibrate_sklearn.py --train a9a --test a9a.t --dim 123 --n 2000 --tests 5000 --sigma 8 --lambda 0.1

The files are in LIBSVM's format. Needs numpy and scikit-learn; on Debian: apt-get install python3-sklearn
"""

import argparse
import json

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_svmlight_file
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import log_loss


class RLSC(BaseEstimator, ClassifierMixin):
    def __init__(self, sigma=1.0, lam=1.0):
        self.sigma, self.lam = sigma, lam

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        coded = np.where(y[:, None] == self.classes_, 1.0, -1.0)
        self.ridge_ = KernelRidge(alpha=self.lam, kernel="rbf", gamma=1 / (2 * self.sigma**2))
        self.ridge_.fit(x, coded[:, 1] if len(self.classes_) == 2 else coded)
        return self

    def decision_function(self, X):
        return self.ridge_.predict(X)

    def predict(self, X):
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)]


def calibration_error(p, right):
    top = p.max(axis=1)
    bins = np.minimum((10 * top).astype(int), 9)
    return sum(abs((top - right)[bins == b].sum()) for b in range(10)) / len(p)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"train": str, "test": str, "dim": int, "n": int, "tests": int, "sigma": float, "lambda": float}.items():
        ap.add_argument("--" + name, type=kind, required=True)
    o = ap.parse_args()
    x, y = load_svmlight_file(o.train, n_features=o.dim)
    z, w = load_svmlight_file(o.test, n_features=o.dim)
    x, y, z, w = x.toarray()[: o.n], y[: o.n], z.toarray()[: o.tests], w[: o.tests]
    for method in "sigmoid", "isotonic":
        for ensemble in True, False:
            m = CalibratedClassifierCV(RLSC(o.sigma, getattr(o, "lambda")), method=method, cv=5, ensemble=ensemble).fit(x, y)
            p = np.clip(m.predict_proba(z), 1e-15, 1)
            p /= p.sum(axis=1, keepdims=True)
            right = m.classes_[p.argmax(axis=1)] == w
            print(json.dumps({"method": method, "ensemble": ensemble, "log_loss": log_loss(w, p, labels=m.classes_), "calibration_error": calibration_error(p, right)}), flush=True)


if __name__ == "__main__":
    main()
