"""Models of krrlab in Python: predict with NumPy, or fit by the program krrlab.

    import krrlab
    m = krrlab.fit(X, y, "m.krr", tune=True)     # runs krrlab fit, which must be in the path; flags as keywords
    m = krrlab.Model("m.krr")                    # reads a model file; needs NumPy only
    y = m.predict(Z)                             # numbers, or labels

f(z) = mean + sum_i c_i k(x_i, z). Labels are the largest column, or the sign of the only one; they have the type that
they had in fit, and in a model that was read from a file they are integers if all of them are whole numbers. The columns
of a DataFrame are found by their names.
"""
import json
import os
import shlex
import subprocess
import tempfile

import numpy as np

PROGRAM = os.environ.get("KRRLAB", "krrlab")


def kernel(k, x, z):
    """K(x, z), m by n, in float64, from differences, so that nothing cancels."""
    if k["name"] == "polynomial":
        return (k.get("gamma", 0) * (x @ z.T) + k.get("coef0", 0)) ** k["degree"]
    u = np.array([np.linalg.norm(z - r, 1 if k["name"] == "laplacian" else 2, axis=1) for r in x]) / k.get("sigma", 1)
    u *= np.sqrt({"matern32": 3, "matern52": 5}.get(k["name"], 1))
    forms = {"gaussian": -u * u / 2, "laplacian": -u, "matern32": np.log1p(u) - u, "matern52": np.log1p(u + u * u / 3) - u}
    if k["name"] not in forms:
        raise ValueError(f"the kernel {k['name']} is not built in: use krrlab predict")
    return np.exp(forms[k["name"]])


class Model:
    """A model file: c, n by t, the points x, n by d, and meta, what the file says of itself."""

    def __init__(self, path):
        with np.load(path) as file:
            self.meta = json.loads(file["model.json"])
            self.c = file["c"]
            if "x" in file:
                self.x = file["x"].astype(float) * self.meta.get("unit", 1)
            else:
                self.x = np.zeros((self.meta["n"], self.meta["d"]))
                rows = np.repeat(np.arange(self.meta["n"]), np.diff(file["x_indptr"]))
                self.x[rows, file["x_indices"]] = file["x_data"]
        labels = self.meta.get("labels") or []
        whole = all(l.lstrip("-").isdigit() and str(int(l)) == l for l in labels)
        self.classes = np.array([int(l) if whole else l for l in labels])

    def points(self, z):
        """z as a matrix of finite numbers with a column for each feature; ValueError says what is wrong with it."""
        by, names = self.meta.get("scaling") or {}, self.meta.get("columns")
        if self.meta.get("origin", {}).get("categorical") and hasattr(z, "columns"):
            raise ValueError("the model has columns of words or dates: use krrlab predict")
        if hasattr(z, "columns") and names:
            missing = [name for name in names if name not in z.columns]
            if missing:
                raise ValueError(f"the columns {missing} of the model are missing: there are {list(z.columns)}")
            z = z[names]
        z = numbers(z)
        if z.ndim != 2 or z.shape[1] != self.x.shape[1]:
            raise ValueError(f"points of shape {z.shape}: want {self.x.shape[1]} columns")
        if by.get("fill") is not None:
            z = np.where(np.isnan(z), by["fill"], z)
        if not np.isfinite(z).all():
            i, j = np.argwhere(~np.isfinite(z))[0]
            name = repr(names[j]) if names else j
            raise ValueError(f"row {i}, column {name} (counted from 0): {z[i, j]} is not a finite number; "
                             "impute='median' in fit fills missing values in")
        return z

    def decision(self, z, rows=1000):
        """f of each row of z, m by t. Features of an array are in the order of the fit, categories as 0 and 1."""
        z, by = self.points(z), self.meta.get("scaling") or {}
        if by.get("shift") is not None:
            z = z - by["shift"]
        if by.get("scale") is not None:
            z = z * by["scale"]
        f = [kernel(self.meta["kernel"], z[i:i + rows], self.x) @ self.c for i in range(0, len(z), rows)]
        return np.concatenate(f) + np.asarray(self.meta.get("mean") or 0.0)

    def predict(self, z):
        """Numbers, one column of them for each target, or labels, for each row of z."""
        f = self.decision(z)
        if len(self.classes):
            return self.classes[f.argmax(1) if f.shape[1] > 1 else (f[:, 0] > 0).astype(int)]
        return f[:, 0] if f.shape[1] == 1 else f


def numbers(z):
    """An array of numbers, sparse matrices and nullable columns of pandas too; missing values are NaN."""
    z = z.toarray() if hasattr(z, "toarray") else z
    return z.to_numpy(dtype=float, na_value=np.nan) if hasattr(z, "to_numpy") else np.array(z, dtype=float)


def answers(y):
    """The answers as an array of numbers, or of texts with the label that each of them stands for."""
    missing = sum(str(v) in ("None", "nan", "NaT", "<NA>") and not isinstance(v, str)
                  for v in np.ravel(np.asarray(y, dtype=object)))
    if missing:
        raise ValueError(f"y has {missing} missing values: remove these rows")
    a = np.asarray(y)
    if a.dtype == object:  # texts, or nullable numbers
        a = np.array(a.tolist())
    if a.dtype.kind in "iufc":
        return a, {}
    return a.astype(str), {str(v): v for v in np.unique(a)}


def readable(text, command):
    """An error of the program in terms of fit: flags that it adds to the command are keywords."""
    text, _, say = text.partition("; say krrlab ")
    flags = shlex.split(say)[len(command) - 1:]
    keywords = [f"{flag[2:].replace('-', '_')}={value!r}" for flag, value in zip(flags[::2], flags[1::2])]
    text = text.removeprefix("krrlab: ").replace(command[command.index("--train") + 1], "the data")
    return text + ("; add " + ", ".join(keywords) if keywords else "")


def fit(X, y, out, **flags):
    """Fits by the program and returns the Model, in the file out.

    X is an array, a sparse matrix, or a DataFrame, whose columns are then known by their names; y has one column or
    several. Flags are keywords: tune=True is --tune, class_weights="balanced" --class-weights, lambda_=0.1 --lambda,
    sigma=[1, 2] --sigma 1,2.
    """
    y, labels = answers(y)
    named = hasattr(X, "columns")
    names = [str(c) for c in X.columns] if named else []
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data.csv" if named else "data.npz" if y.ndim == 1 else "data.npy")
        if named:
            targets = [next(n for n in (f"{'_' * k}y{j}" for k in range(99)) if n not in names)
                       for j in range(y[0].size)]
            X.assign(**dict(zip(targets, y.reshape(len(X), -1).T))).to_csv(data, index=False)
            flags = {"header": "yes", "target": ",".join(targets), **flags}
        else:
            X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
            if y.ndim == 1:
                np.savez(data, X=X, y=y)
            else:
                np.save(data, np.column_stack([X, y]))
                flags = {"target": ",".join(str(X.shape[1] + j) for j in range(y.shape[1])), **flags}
        command = [PROGRAM, "fit", "--quiet", "--out", out, "--train", data]
        for name, value in flags.items():
            value = ",".join(map(str, value)) if isinstance(value, (list, tuple, np.ndarray)) else value
            value = str(value).lower() if isinstance(value, bool) else value
            command.append("--" + name.rstrip("_").replace("_", "-") + f"={value}")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(readable(done.stderr.strip(), command))
    model = Model(out)
    if labels:
        model.classes = np.array([labels.get(l, l) for l in model.meta["labels"]])
    elif len(model.classes):
        model.classes = np.array([float(l) for l in model.meta["labels"]]).astype(y.dtype)
    return model
