#!/usr/bin/python3
"""Tunes kernel ridge regression with scikit-learn, for comparison with krrlab fit --tune.

GridSearchCV searches over a pipeline of StandardScaler and KernelRidge(kernel="rbf"), with
5 folds of rows in random order, gamma = g/d for g = 0.03, 0.1, ..., 10 and alpha = 0.001,
..., 10. Classes are coded by +-1 with one column each and scored by accuracy; regression is
scored by the mean squared error. Prints one JSON object: the seconds of the search with its
last fit, the error on the test file and the chosen parameters.

  tune_sklearn.py --train train.csv --test test.csv --target y

The files are csv with a header. Numbers in the target column are answers of a
regression, words are classes. Needs numpy and scikit-learn; on Debian:
apt-get install python3-sklearn
"""

import argparse
import csv
import json
import time


def read(name, target):
    """Returns the features, the answers and whether they are classes."""
    import numpy as np

    with open(name, newline="") as f:
        rows = list(csv.reader(f))
    target_column = rows[0].index(target)
    y = [r[target_column] for r in rows[1:]]
    x = np.array([[float(v) for j, v in enumerate(r) if j != target_column] for r in rows[1:]])
    try:
        return x, np.array([float(v) for v in y]), False
    except ValueError:
        return x, np.array(y), True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1, whose BLAS has all cores)")
    args = parser.parse_args()

    import numpy as np
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y, classes = read(args.train, args.target)
    x_test, y_test, _ = read(args.test, args.target)
    scoring = "neg_mean_squared_error"
    if classes:
        labels = sorted(set(y))
        coded = np.where(y[:, None] == labels, 1.0, -1.0)

        def scoring(model, a, b):
            return np.mean(model.predict(a).argmax(1) == b.argmax(1))
    else:
        coded = y
    d = x.shape[1]
    grid = {
        "kernelridge__gamma": [g / d for g in (0.03, 0.1, 0.3, 1, 3, 10)],
        "kernelridge__alpha": [1e-3, 1e-2, 0.1, 1, 10],
    }
    start = time.time()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")), grid, scoring=scoring,
        cv=KFold(5, shuffle=True, random_state=0), n_jobs=args.jobs,
    ).fit(x, coded)
    seconds = time.time() - start
    predictions = search.predict(x_test)
    if classes:
        error = float(np.mean(np.array(labels)[predictions.argmax(1)] != y_test))
    else:
        error = float(np.sqrt(np.mean((predictions - y_test) ** 2)))
    gamma = search.best_params_["kernelridge__gamma"]
    print(json.dumps({
        "n": len(y), "d": d, "seconds": seconds, "error": error, "gamma": gamma,
        "sigma": (2 * gamma) ** -0.5, "lambda": search.best_params_["kernelridge__alpha"],
    }))


if __name__ == "__main__":
    main()
