"""Models of krrlab in Python: predict with NumPy, or fit by the program krrlab.

    import krrlab
    m = krrlab.fit(X, y, "m.krr", tune=True)     # runs krrlab fit, which must be in the path; flags as keywords
    m = krrlab.Model("m.krr")                    # reads a model file; needs NumPy only
    y = m.predict(Z)                             # numbers, or labels

f(z) = mean + sum_i c_i k(x_i, z). Labels are the largest column, or the sign of the only one.
"""
import json
import os
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

    def decision(self, z, rows=1000):
        """f of each row of z, m by t. Features are as in the file of the fit, in its order, categories as 0 and 1."""
        z, by = np.array(z, dtype=float), self.meta.get("scaling") or {}
        if z.ndim != 2 or z.shape[1] != self.x.shape[1]:
            raise ValueError(f"points of shape {z.shape}: want {self.x.shape[1]} columns")
        if by.get("fill") is not None:
            z = np.where(np.isnan(z), by["fill"], z)
        if by.get("shift") is not None:
            z = z - by["shift"]
        if by.get("scale") is not None:
            z = z * by["scale"]
        f = [kernel(self.meta["kernel"], z[i:i + rows], self.x) @ self.c for i in range(0, len(z), rows)]
        return np.concatenate(f) + np.asarray(self.meta.get("mean") or 0.0)

    def predict(self, z):
        """Numbers, one column of them for each target, or labels, for each row of z."""
        f, labels = self.decision(z), self.meta.get("labels")
        if labels:
            return np.array(labels)[f.argmax(1) if f.shape[1] > 1 else (f[:, 0] > 0).astype(int)]
        return f[:, 0] if f.shape[1] == 1 else f


def fit(X, y, out, **flags):
    """Fits by the program and returns the Model, in the file out. tune=True is --tune, class_weights="balanced" --class-weights."""
    command = [PROGRAM, "fit", "--quiet", "--out", out]
    for name, value in flags.items():
        command.append("--" + name.replace("_", "-") + ("" if value is True else f"={value}"))
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data.npz")
        np.savez(data, X=np.asarray(X), y=np.asarray(y))
        done = subprocess.run(command + ["--train", data], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return Model(out)
