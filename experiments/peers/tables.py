#!/usr/bin/python3
"""Compares krrlab's first fit and its tuned fit with scikit-learn on seven tables.

rides and fraud are generated; California, abalone, protein, ADULT and USPS are read from the
folder of --data (krrlab data list names them). Each table is split at random into at
most --rows training rows and --rows test rows. krrlab gets the CSV files; scikit-learn gets
numbers: words one-hot, dates as days, hour, weekday and day of the year, standardized.

  tables.py --krrlab ./krrlab --data data                 # krrlab only: first fit and --tune
  tables.py --krrlab ./krrlab --data data --sklearn       # HistGradientBoosting by default, and
                                                          # KernelRidge, SVM by 3-fold grid search

The error is the RMSE, the share of wrong labels, or for fraud 1 - AUC. Seconds are processor
seconds of whole commands, or of fit and predict in scikit-learn. Prints a table in Markdown.
"""

import argparse
import csv
import gzip
import json
import os
import resource
import subprocess
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait for each other take processor time
import numpy as np  # noqa: E402


def rides(rng, n):
    """Generates the minutes of taxi rides by time, place, distance, passengers and weather."""
    minute = rng.integers(0, 366 * 1440, n)
    when = np.datetime64("2024-01-01T00:00") + minute.astype("timedelta64[m]")
    hour, weekday, day = minute % 1440 / 60, minute // 1440 % 7, minute / 1440
    start, end = rng.normal(0, 4, (n, 2)), rng.normal(0, 6, (n, 2))
    weather = rng.choice(["dry", "rain", "snow"], n, p=[0.7, 0.25, 0.05])
    passengers = rng.integers(1, 7, n)
    work = weekday < 5
    rush = work * (np.exp(-((hour - 8.5) / 1.3) ** 2) + 1.2 * np.exp(-((hour - 17.5) / 1.8) ** 2))
    center = np.exp(-(start**2).sum(1) / 20) + np.exp(-(end**2).sum(1) / 20)
    slow = 1 + 0.8 * rush * center + 0.15 * np.cos(2 * np.pi * day / 366)
    slow *= np.select([weather == "rain", weather == "snow"], [1.15, 1.5], 1.0)
    minutes = 3 + 2.2 * np.abs(start - end).sum(1) * slow + 0.2 * passengers
    minutes *= np.exp(rng.normal(0, 0.18, n))
    return dict(pickup=when.astype(str), x=start[:, 0].round(3), y=start[:, 1].round(3), to_x=end[:, 0].round(3),
                to_y=end[:, 1].round(3), passengers=passengers, weather=weather, minutes=minutes.round(2))


def fraud(rng, n):
    """Generates payments, of which about 3 % are fraud."""
    x = rng.normal(size=(n, 8))
    amount = np.exp(3 + rng.normal(size=n))
    kind = rng.choice(["card", "transfer", "cash"], n, p=[0.6, 0.3, 0.1])
    night = rng.random(n) < 0.2
    z = 1.1 * x[:, 0] * x[:, 1] + 0.9 * (x[:, 2] > 1) * (np.log(amount) > 3.5) + 0.8 * np.sin(2 * x[:, 3])
    z += 0.7 * night * (kind == "transfer") + 0.5 * x[:, 4] - 4.6
    bad = rng.random(n) < 1 / (1 + np.exp(-1.6 * z - 1.3))
    return dict({f"v{j}": x[:, j].round(4) for j in range(8)}, amount=amount.round(2), night=night.astype(int), kind=kind,
                label=np.where(bad, "fraud", "ok"))


def read(name, target):
    """Returns the features and the answers of a gzipped file of numbers, separated by commas or blanks, or in LIBSVM's format."""
    with gzip.open(name, "rt") as f:
        rows = [line.replace(",", " ").split() for line in f]
    if ":" not in rows[0][1]:
        x = np.array(rows, dtype=float)
        return np.delete(x, target, axis=1), x[:, target]
    cells = [(i, *word.split(":")) for i, row in enumerate(rows) for word in row[1:]]
    x = np.zeros((len(rows), max(int(j) for _, j, _ in cells)))
    for i, j, v in cells:
        x[i, int(j) - 1] = float(v)
    return x, np.array([float(row[0]) for row in rows])


def tables(data, n, seed=1):
    """Yields name, columns, flags of krrlab, date columns and word columns."""
    rng = np.random.default_rng(seed)
    yield "rides", rides(rng, 2 * n), ["--dates", "pickup", "--categorical", "weather"], ["pickup"], ["weather"]
    yield "fraud", fraud(rng, 2 * n), ["--categorical", "kind", "--metric", "auc"], [], ["kind"]
    for name, file, target in [("California", "cal_housing/cal_housing.data.gz", -1),
                               ("protein", "uci_regression/protein.csv.gz", -1),
                               ("abalone", "libsvm_regression/abalone.gz", 0),
                               ("ADULT", "adult/a9a.gz", 0), ("USPS", "usps/zip.train.gz", 0)]:
        x, y = read(os.path.join(data, file), target)
        if name in ("ADULT", "USPS"):
            y = np.array([f"c{v:.0f}" for v in y])
        yield name, dict({f"x{j}": x[:, j] for j in range(x.shape[1])}, y=y), [], [], []


def write(name, table, rows):
    """Writes rows of a table to a CSV file."""
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(np.asarray(column)[rows].tolist() for column in table.values())))


def cpu(who):
    """Returns the processor seconds of this process or of its children."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def krrlab(program, folder, target, flags):
    """Runs one fit and returns its error and its processor seconds."""
    report_file = os.path.join(folder, "report.json")
    before = cpu(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "fit", "--quiet", "--train", os.path.join(folder, "train.csv"), "--test",
                    os.path.join(folder, "test.csv"), "--target", target, "--json", report_file, *flags], check=True)
    seconds = cpu(resource.RUSAGE_CHILDREN) - before
    with open(report_file) as f:
        report = json.load(f)
    if "auc" in flags:
        return 1 - report["classes"]["auc"], seconds
    return report["rmse"] if report["task"] == "regression" else report["test_error"], seconds


def features(table, dates, words, target):
    """Returns the features as a matrix of numbers, for scikit-learn."""
    columns = []
    for name, column in table.items():
        column = np.asarray(column)
        if name == target:
            continue
        if name in dates:
            minutes = column.astype("datetime64[m]").astype(float)
            days, hour = minutes / 1440, minutes % 1440 / 60
            week, year = days % 7, days % 365.25
            columns += [days, hour, np.floor(week), year]
            for position, period in [(hour, 24), (week, 7), (year, 365.25)]:
                columns += [np.sin(2 * np.pi * position / period), np.cos(2 * np.pi * position / period)]
        elif name in words:
            columns += [(column == word).astype(float) for word in sorted(set(column))]
        else:
            columns.append(column.astype(float))
    return np.column_stack(columns)


def sklearn(name, x, y, train, test):
    """Yields the name, the error and the processor seconds of each estimator."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    classes, d = y.dtype.kind == "U", x.shape[1]
    gammas = [g / d for g in (0.03, 0.1, 0.3, 1.0, 3.0)]
    labels = sorted(set(y)) if classes else None
    coded = np.where(y[:, None] == labels, 1.0, -1.0) if classes else y
    mean, scale = (0, 1) if classes else (y[train].mean(), y[train].std())

    def search(model, grid, scoring):
        prefix = type(model).__name__.lower() + "__"
        return GridSearchCV(make_pipeline(StandardScaler(), model), {prefix + k: v for k, v in grid.items()}, cv=3,
                            scoring=scoring)

    def krr_score(model, x_fold, y_fold):
        scores = model.predict(x_fold)
        if name == "fraud":
            return roc_auc_score(y_fold[:, 0] > 0, scores[:, 0])
        return np.mean(scores.argmax(1) == y_fold.argmax(1)) if classes else -np.mean((scores - y_fold) ** 2)

    scoring = "roc_auc" if name == "fraud" else "accuracy" if classes else "neg_mean_squared_error"
    boost = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    svm = search(SVC() if classes else SVR(), dict(C=[1.0, 10.0, 100.0], gamma=gammas), scoring)
    ridge = search(KernelRidge(kernel="rbf"), dict(alpha=[0.001, 0.01, 0.1, 1.0], gamma=gammas), krr_score)
    for kind, model in [("boosting", boost(random_state=0)), ("KernelRidge", ridge), ("SVM", svm)]:
        start = cpu(resource.RUSAGE_SELF)
        answers = coded if kind == "KernelRidge" else y
        if not classes:
            answers = (y - mean) / scale
        model.fit(x[train], answers[train])
        if name == "fraud":
            if kind == "KernelRidge":
                scores = model.predict(x[test])[:, 0]
            else:
                scores = (model.predict_proba(x[test])[:, 0] if kind == "boosting" else -model.decision_function(x[test]))
            error = 1 - roc_auc_score(y[test] == labels[0], scores)
        else:
            predicted = model.predict(x[test])
            if classes and kind == "KernelRidge":
                predicted = np.array(labels)[predicted.argmax(1)]
            error = np.mean(predicted != y[test]) if classes else np.sqrt(np.mean((predicted * scale + mean - y[test]) ** 2))
        yield kind, error, cpu(resource.RUSAGE_SELF) - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krrlab", required=True, help="the program")
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--rows", type=int, default=4000, help="training rows and test rows at most (default: 4000)")
    parser.add_argument("--sklearn", action="store_true", help="also run scikit-learn")
    parser.add_argument("--only", help="names of the tables, separated by commas (default: all)")
    parser.add_argument("--fits", default="first=;tuned=--tune", help="krrlab's fits: NAME=FLAGS;… (default: first=;tuned=--tune)")
    args = parser.parse_args()
    header = None
    for name, table, flags, dates, words in tables(args.data, args.rows):
        if args.only and name not in args.only.split(","):
            continue
        *_, target = table
        y = np.asarray(table[target])
        order = np.random.default_rng(7).permutation(len(y))
        n = min(args.rows, 3 * len(y) // 4)
        train, test = order[:n], order[n:n + args.rows]
        results = []
        with tempfile.TemporaryDirectory() as folder:
            write(os.path.join(folder, "train.csv"), table, train)
            write(os.path.join(folder, "test.csv"), table, test)
            flags += ["--task", "classification" if y.dtype.kind == "U" else "regression"]
            for fit in args.fits.split(";"):
                kind, _, fit_flags = fit.partition("=")
                results.append((kind, *krrlab(args.krrlab, folder, target, flags + fit_flags.split())))
        if args.sklearn:
            results += sklearn(name, features(table, dates, words, target), y, train, test)
        if header is None:
            header = "| table | n | d |" + "".join(f" {kind} | s |" for kind, *_ in results)
            print(header + "\n|:---|" + "---:|" * (header.count("|") - 2), flush=True)
        d = features(table, dates, words, target).shape[1]
        print(f"| {name} | {n} | {d} |" + "".join(f" {error:.4g} | {seconds:.1f} |" for _, error, seconds in results), flush=True)


if __name__ == "__main__":
    main()
