#!/usr/bin/python3
"""Checks a krrlab model file with only NumPy: verify_model.py model.krr train.csv [--matrix K.npy] [--predict new.csv]

Reads the archive with its checksums, finds the model's points among the scaled rows of the training file, and estimates
|y - (K + lambda*I)c| / |y| from rows of K. With --predict it also prints predictions. It ends with a message and the exit
code 1 if the file is damaged, the data are not the model's, or the residual is larger than the file claims.
"""

import argparse
import csv
import json
import sys
import zipfile

import numpy as np

KNOWN_KEYS = "format version task kernel lambda n d t points unit labels targets mean scaling columns error calibration origin weighted repeats".split()


def refuse(text):  # ends the program with a message
    sys.exit(f"verify_model.py: refused: {text}")


def load(name):
    """Returns the metadata, C (n x t) and the points (n x d) of a model file."""
    if bad := zipfile.ZipFile(name).testzip():
        refuse(f"{name}: {bad} does not have its checksum")
    with np.load(name) as file:
        coefs, n, d = file["c"], (meta := json.loads(file["model.json"]))["n"], meta["d"]
        points = np.zeros((n, d)) if meta["points"] == "csr" else file["x"] * meta["unit"] if "unit" in meta else file["x"]
        if meta["points"] == "csr":
            points[np.repeat(np.arange(n), np.diff(file["x_indptr"])), file["x_indices"]] = file["x_data"]
    if meta.get("format") != "krrlab-model" or meta["version"] > 5 or (new := sorted(set(meta) - set(KNOWN_KEYS))):
        refuse(f"{name}: version {meta.get('version')}, with {new} that this script does not know")
    if meta.get("weighted"):
        refuse(f"{name}: fitted with weights, which this script does not use: krrlab verify does")
    if points.shape != (n, d) or coefs.shape != (n, meta["t"]) or not np.isfinite(points).all() or not np.isfinite(coefs).all():
        refuse(f"{name}: x {points.shape} and c {coefs.shape}, want finite ({n}, {d}) and ({n}, {meta['t']})")
    return meta, coefs, points


def number(text, meta):  # NaN if the number is missing and the model fills missing values
    try:
        return float(text)
    except ValueError:
        return np.nan if "fill" in meta.get("scaling", {}) else refuse(f"{text!r} is not a number")


def table(name, meta, want_target):
    """Returns the scaled features of a csv file, and its targets as text."""
    lines, origin = open(name, newline="", encoding="utf-8-sig").read().splitlines(), meta["origin"]
    rows = [r for r in csv.reader(lines, delimiter=next((c for c in ";,\t" if c in lines[0]), ",")) if r]
    precomputed = meta["kernel"]["name"] == "precomputed"
    head = rows.pop(0) if "columns" in meta or precomputed and not origin.get("target", "-1").lstrip("-").isdigit() else [str(j) for j in range(len(rows[0]))]
    column_of = lambda k: head.index(k) if k in head else int(k) % len(head)
    target_columns = [column_of(t) for t in meta.get("targets", [origin.get("target") or "-1"]) if want_target]
    if precomputed:  # the points are rows of K
        return np.arange(len(rows), dtype=float)[:, None], [[r[j] for j in target_columns] for r in rows]
    dropped, words = [column_of(k) for k in origin.get("drop", [])], {column_of(k["column"]): k["values"] for k in origin.get("categorical", [])}
    coded = {f"{head[j]}={v}": (j, v) for j in words for v in words[j]}
    names = [n for j, h in enumerate(head) if j not in target_columns + dropped for n in ([f"{h}={v}" for v in words[j]] if j in words else [h])]
    if len(names := meta.get("columns", names)) != meta["d"] or not set(names) <= {*head, *coded}:
        refuse(f"{name}: its columns are {head[:8]}, the model has {meta['d']} features {names[:8]}")
    want = [coded.get(k) or (head.index(k), None) for k in names]
    x = np.array([[number(r[j], meta) if v is None else float(r[j].strip() == v) for j, v in want] for r in rows])
    if scaling := meta.get("scaling"):  # as krrlab computes it, to the last bit
        x = (np.where(np.isnan(x), scaling.get("fill", np.nan), x) - np.array(scaling.get("shift", 0.0))) * np.array(scaling["scale"])
        if "matrix" in scaling:  # the sum over the features in their order
            x = sum(x[:, [k]] * row for k, row in enumerate(np.array(scaling["matrix"]).reshape(meta["d"], -1).T))
    return x, [[r[j] for j in target_columns] for r in rows]


def kernel(k, a, b):
    """Returns the matrix k(a_i, b_j) in float64, computed from differences to avoid cancellation."""
    if k["name"] == "precomputed":  # K is read from its lower triangle
        return np.load(k["K"] or refuse("the K of the model is not in its file: --matrix K.npy"), "r")[np.maximum(a, b.T).astype(int), np.minimum(a, b.T).astype(int)]
    a, b = a.astype(np.float64), b.astype(np.float64)
    if k["name"] == "polynomial":
        return (k.get("gamma", 0) * (a @ b.T) + k.get("coef0", 0)) ** k["degree"]
    u = np.array([np.linalg.norm(b - r, 1 if k["name"] == "laplacian" else 2, axis=1) for r in a]) / k.get("sigma", 1)
    u *= np.sqrt({"matern32": 3, "matern52": 5}.get(k["name"], 1))
    forms = {"gaussian": -u * u / 2, "laplacian": -u, "matern32": np.log1p(u) - u, "matern52": np.log1p(u + u * u / 3) - u}
    return np.exp(forms[k["name"]]) if k["name"] in forms else refuse(f"the kernel {k['name']} is not built in")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in "model", "train", "--matrix":  # K of a precomputed one
        parser.add_argument(name)
    parser.add_argument("--rows", type=int, default=500, help="rows of K to recompute (500)")
    parser.add_argument("--predict", metavar="FILE", help="print the predictions of these rows")
    meta, c, x = load((args := parser.parse_args()).model)
    targets_of, labels, mean, y, meta["kernel"]["K"] = {}, meta.get("labels"), meta.get("mean", 0), np.empty(c.shape), args.matrix
    for row, texts in zip(*(rows := table(args.train, meta, True))):
        targets_of.setdefault((row.astype(x.dtype) + 0).tobytes(), []).append(texts)
    for i, row in enumerate(x):  # in the order of the file: equal rows take their targets in turn; with length scales the last bits may differ
        targets_of[key] = targets_of[key] if (key := (row + 0).tobytes()) in targets_of else [rows[1][j] for j in np.flatnonzero((abs(rows[0] - row) <= 1e-14 * (1 + abs(row))).all(axis=1))]
        texts = (targets_of[key] or [None]).pop(0)
        if texts is None or labels and texts[0] not in labels:
            refuse(f"{args.train}: row {i} of the model (from 0) is not in the training data")
        y[i] = np.array(texts, float) - np.array(mean) if not labels else np.where(np.arange(len(labels)) == labels.index(texts[0]), 1, -1)[-c.shape[1] :]
    picked = np.random.default_rng(1).permutation(len(x))[: args.rows]
    residual = y[picked] - meta["lambda"] * c[picked] - kernel(meta["kernel"], x[picked], x) @ c
    size = np.sqrt((y**2).sum(axis=0) * len(picked) / len(x))
    relative = (np.linalg.norm(residual, axis=0) / np.where(size > 0, size, 1)).max()
    claimed = max(meta["origin"]["tol"], meta["origin"].get("true_residual") or 0)
    message = f"residual {relative:.2e} by {len(picked)} of {len(x)} rows, claimed {claimed:.2e}"
    if not relative <= 1.5 * claimed:
        refuse(f"{args.model}: {message}")
    print(f"verify_model.py: {args.model}: {message}", file=sys.stderr)
    if args.predict:
        predictions = kernel(meta["kernel"], table(args.predict, meta, False)[0].astype(x.dtype), x) @ c + np.array(mean)
        print(*([labels[j] for j in (predictions.argmax(axis=1) if predictions.shape[1] > 1 else np.where(predictions[:, 0] > 0, 1, 0))] if labels else [",".join(map(str, row)) for row in predictions]), sep="\n")


if __name__ == "__main__":
    try:
        main()
    except Exception as e:
        refuse(f"cannot read {e.filename}: {e.strerror}" if getattr(e, "filename", None) else f"damaged, or not what it should be: {e}")
