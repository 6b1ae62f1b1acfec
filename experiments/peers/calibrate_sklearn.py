#!/usr/bin/python3
"""Computes class probabilities with scikit-learn, for comparison with krrlab predict --probabilities.

The classifier is regularized least squares with +-1 coding and the Gaussian kernel
exp(-|x-z|^2/(2 sigma^2)). CalibratedClassifierCV calibrates it with 5 folds, by sigmoid and
by isotonic maps, as an ensemble of five models and as one model. For each combination the
script prints a line of JSON with the log loss and the expected calibration error (ten bins)
on the test file.

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
    """Regularized least-squares classification with the Gaussian kernel, as a scikit-learn estimator."""

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
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


def calibration_error(probabilities, right):
    """Returns the expected calibration error in ten bins of the confidence."""
    confidence = probabilities.max(axis=1)
    bins = np.minimum((10 * confidence).astype(int), 9)
    return sum(abs((confidence - right)[bins == index].sum()) for index in range(10)) / len(probabilities)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in {"train": str, "test": str, "dim": int, "n": int, "tests": int, "sigma": float, "lambda": float}.items():
        parser.add_argument("--" + name, type=kind, required=True)
    args = parser.parse_args()
    x, y = load_svmlight_file(args.train, n_features=args.dim)
    x_test, y_test = load_svmlight_file(args.test, n_features=args.dim)
    x, y, x_test, y_test = x.toarray()[: args.n], y[: args.n], x_test.toarray()[: args.tests], y_test[: args.tests]
    for method in "sigmoid", "isotonic":
        for ensemble in True, False:
            classifier = RLSC(args.sigma, getattr(args, "lambda"))
            model = CalibratedClassifierCV(classifier, method=method, cv=5, ensemble=ensemble).fit(x, y)
            probabilities = np.clip(model.predict_proba(x_test), 1e-15, 1)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            right = model.classes_[probabilities.argmax(axis=1)] == y_test
            print(json.dumps({
                "method": method, "ensemble": ensemble, "log_loss": log_loss(y_test, probabilities, labels=model.classes_),
                "calibration_error": calibration_error(probabilities, right),
            }), flush=True)


if __name__ == "__main__":
    main()
