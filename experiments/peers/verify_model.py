#!/usr/bin/python3
"""Checks a krrlab model file with nothing but NumPy: verify_model.py model.krr train.csv [--matrix K.npy] [--predict new.csv]

Reads the archive with its checksums, finds the model's points among the scaled rows of the training file, and estimates
|y - (K + lambda*I)c| / |y| from rows of K. Prints predictions if asked. Exit code 1 and a line: the file is damaged,
the data are not the model's, or the residual is not what the file claims.
"""

import argparse
import csv
import json
import sys
import zipfile

import numpy as np

KNOWN = "format version task kernel lambda n d t points unit labels targets mean scaling columns error calibration origin weighted repeats".split()


def refuse(text):
    sys.exit(f"verify_model.py: refused: {text}")


def load(name):
    """The metadata, C (n x t) and the points (n x d) of a model file."""
    if bad := zipfile.ZipFile(name).testzip():
        refuse(f"{name}: {bad} does not have its checksum")
    with np.load(name) as m:
        c, n, d = m["c"], (meta := json.loads(m["model.json"]))["n"], meta["d"]
        x = np.zeros((n, d)) if meta["points"] == "csr" else m["x"] * meta["unit"] if "unit" in meta else m["x"]
        if meta["points"] == "csr":
            x[np.repeat(np.arange(n), np.diff(m["x_indptr"])), m["x_indices"]] = m["x_data"]
    if meta.get("format") != "krrlab-model" or meta["version"] > 5 or (new := sorted(set(meta) - set(KNOWN))):
        refuse(f"{name}: version {meta.get('version')}, with {new} that this script does not know")
    if meta.get("weighted"):
        refuse(f"{name}: fitted with weights, which this script does not use: krrlab verify does")
    if x.shape != (n, d) or c.shape != (n, meta["t"]) or not np.isfinite(x).all() or not np.isfinite(c).all():
        refuse(f"{name}: x {x.shape} and c {c.shape}, want finite ({n}, {d}) and ({n}, {meta['t']})")
    return meta, c, x


def number(text, meta):
    try:
        return float(text)
    except ValueError:
        return np.nan if "fill" in meta.get("scaling", {}) else refuse(f"{text!r} is not a number")


def table(name, meta, want_target):
    """The scaled features of a csv file, and its targets as text."""
    lines, origin = open(name, newline="", encoding="utf-8-sig").read().splitlines(), meta["origin"]
    rows = [r for r in csv.reader(lines, delimiter=next((c for c in ";,\t" if c in lines[0]), ",")) if r]
    given = meta["kernel"]["name"] == "precomputed"
    head = rows.pop(0) if "columns" in meta or given and not origin.get("target", "-1").lstrip("-").isdigit() else [str(j) for j in range(len(rows[0]))]
    at = lambda k: head.index(k) if k in head else int(k) % len(head)
    place = [at(t) for t in meta.get("targets", [origin.get("target") or "-1"]) if want_target]
    if given:  # the points are rows of K
        return np.arange(len(rows), dtype=float)[:, None], [[r[j] for j in place] for r in rows]
    gone, words = [at(k) for k in origin.get("drop", [])], {at(k["column"]): k["values"] for k in origin.get("categorical", [])}
    coded = {f"{head[j]}={v}": (j, v) for j in words for v in words[j]}
    names = [n for j, h in enumerate(head) if j not in place + gone for n in ([f"{h}={v}" for v in words[j]] if j in words else [h])]
    if len(names := meta.get("columns", names)) != meta["d"] or not set(names) <= {*head, *coded}:
        refuse(f"{name}: its columns are {head[:8]}, the model has {meta['d']} features {names[:8]}")
    want = [coded.get(k) or (head.index(k), None) for k in names]
    x = np.array([[number(r[j], meta) if v is None else float(r[j].strip() == v) for j, v in want] for r in rows])
    if s := meta.get("scaling"):  # as krrlab computes it, to the last bit
        x = (np.where(np.isnan(x), s.get("fill", np.nan), x) - np.array(s.get("shift", 0.0))) * np.array(s["scale"])
        if "matrix" in s:  # the sum over the features in their order
            x = sum(x[:, [k]] * row for k, row in enumerate(np.array(s["matrix"]).reshape(meta["d"], -1).T))
    return x, [[r[j] for j in place] for r in rows]


def kernel(k, a, b):
    """k(a_i, b_j) in float64, from differences, so that nothing cancels."""
    if k["name"] == "precomputed":  # of the lower half
        return np.load(k["K"] or refuse("the K of the model is not in its file: --matrix K.npy"), "r")[np.maximum(a, b.T).astype(int), np.minimum(a, b.T).astype(int)]
    a, b = a.astype(np.float64), b.astype(np.float64)
    if k["name"] == "polynomial":
        return (k.get("gamma", 0) * (a @ b.T) + k.get("coef0", 0)) ** k["degree"]
    u = np.array([np.linalg.norm(b - r, 1 if k["name"] == "laplacian" else 2, axis=1) for r in a]) / k.get("sigma", 1)
    u *= np.sqrt({"matern32": 3, "matern52": 5}.get(k["name"], 1))
    forms = {"gaussian": -u * u / 2, "laplacian": -u, "matern32": np.log1p(u) - u, "matern52": np.log1p(u + u * u / 3) - u}
    return np.exp(forms[k["name"]]) if k["name"] in forms else refuse(f"the kernel {k['name']} is not built in")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in "model", "train", "--matrix":  # K of a precomputed one
        ap.add_argument(name)
    ap.add_argument("--rows", type=int, default=500, help="rows of K to recompute (500)")
    ap.add_argument("--predict", metavar="FILE", help="print the predictions of these rows")
    meta, c, x = load((o := ap.parse_args()).model)
    at, labels, mean, y, meta["kernel"]["K"] = {}, meta.get("labels"), meta.get("mean", 0), np.empty(c.shape), o.matrix
    for r, texts in zip(*(rows := table(o.train, meta, True))):
        at.setdefault((r.astype(x.dtype) + 0).tobytes(), []).append(texts)
    for i, r in enumerate(x):  # in the order of the file: equal rows take their targets in turn; with length scales the last bits may differ
        at[key] = at[key] if (key := (r + 0).tobytes()) in at else [rows[1][j] for j in np.flatnonzero((abs(rows[0] - r) <= 1e-14 * (1 + abs(r))).all(axis=1))]
        texts = (at[key] or [None]).pop(0)
        if texts is None or labels and texts[0] not in labels:
            refuse(f"{o.train}: row {i} of the model (from 0) is not in the training data")
        y[i] = np.array(texts, float) - np.array(mean) if not labels else np.where(np.arange(len(labels)) == labels.index(texts[0]), 1, -1)[-c.shape[1] :]
    pick = np.random.default_rng(1).permutation(len(x))[: o.rows]
    r = y[pick] - meta["lambda"] * c[pick] - kernel(meta["kernel"], x[pick], x) @ c
    size = np.sqrt((y**2).sum(axis=0) * len(pick) / len(x))
    rel = (np.linalg.norm(r, axis=0) / np.where(size > 0, size, 1)).max()
    claimed = max(meta["origin"]["tol"], meta["origin"].get("true_residual") or 0)
    text = f"residual {rel:.2e} by {len(pick)} of {len(x)} rows, claimed {claimed:.2e}"
    if not rel <= 1.5 * claimed:
        refuse(f"{o.model}: {text}")
    print(f"verify_model.py: {o.model}: {text}", file=sys.stderr)
    if o.predict:
        f = kernel(meta["kernel"], table(o.predict, meta, False)[0].astype(x.dtype), x) @ c + np.array(mean)
        print(*([labels[j] for j in (f.argmax(axis=1) if f.shape[1] > 1 else np.where(f[:, 0] > 0, 1, 0))] if labels else [",".join(map(str, r)) for r in f]), sep="\n")


if __name__ == "__main__":
    try:
        main()
    except Exception as e:
        refuse(f"cannot read {e.filename}: {e.strerror}" if getattr(e, "filename", None) else f"damaged, or not what it should be: {e}")
