"""Predictions of a model file by NumPy, f(z) = mean + sum_i c_i k(x_i, z)."""
from __future__ import annotations

import io
import json
import os
import re
import zipfile
from typing import Any, Sequence

import numpy as np

#: Entries of a block of K(Z, X): 16 MB.
BLOCK = 2_000_000

#: Value of a kernel, relative to its largest one, below which a training point hardly changes a prediction.
NEGLIGIBLE = 1e-3

#: Largest error of an exponent that distances by inner products may have.
ROUNDING = 1e-11


class Model:
    """A model file of ``krrlab fit``, held as bytes; the pickled form is the file.

    Parameters
    ----------
    data : bytes or path
        The content of the file, or its name.

    Attributes
    ----------
    meta : dict
        What the file says of itself: kernel, lambda, labels, mean, scaling, columns and origin.
    c : ndarray of shape (n, t)
        The coefficients.
    x : ndarray or csr_matrix of shape (n, d)
        The training points after scaling.
    """

    def __init__(self, data: bytes | str | os.PathLike[str]):
        name = "the data"
        if not isinstance(data, bytes):
            name = os.fspath(data)
            with open(data, "rb") as content:
                data = content.read()
        self.data = data
        if not zipfile.is_zipfile(io.BytesIO(data)):
            raise ValueError(f"{name}: this is no model file of krrlab fit")
        with np.load(io.BytesIO(data)) as file:
            if "model.json" not in file:
                raise ValueError(f"{name}: this is no model file of krrlab fit: it has "
                                 f"{', '.join(file.files) or 'nothing'}")
            self.meta: dict[str, Any] = json.loads(file["model.json"])
            self.c = file["c"]
            shape = self.meta["n"], self.meta["d"]
            if "x" in file:
                x = file["x"].astype(np.float64) * self.meta.get("unit", 1)
                self.center = x.mean(0)  # distances do not change, and their rounding is smaller
            else:
                from scipy.sparse import csr_matrix
                x = csr_matrix((file["x_data"].astype(np.float64), file["x_indices"], file["x_indptr"]), shape)
                self.center = None
        if self.kernel["name"] not in ("polynomial", "precomputed") and self.center is not None:
            x = x - self.center
        self.x = x
        self.norms = _norms(x)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Model":
        """Read a model file."""
        return cls(path)

    def predict(self, z: Any) -> np.ndarray:
        """Return numbers or labels for the rows of z, as the estimator of :func:`krrlab.load` does."""
        from ._estimators import load
        return load(self).predict(z)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, for ``krrlab predict``, ``krrlab verify`` and Go."""
        with open(path, "wb") as file:
            file.write(self.data)

    def __reduce__(self) -> Any:
        return Model, (self.data,)

    @property
    def kernel(self) -> dict[str, Any]:
        """Name and parameters of the kernel."""
        return self.meta["kernel"]

    @property
    def labels(self) -> list[str]:
        """Labels of a classifier in the order of the columns of the decision values; empty for a regression."""
        return self.meta.get("labels") or []

    @property
    def kinds(self) -> dict[str, str] | None:
        """Names of the columns of the training file, with "words", "dates" or "numbers"; None if it had no names."""
        if self.space:
            return None if self.space.get("by_number") else dict.fromkeys(self.space["columns"], "numbers")
        names, kinds = list(self.meta.get("columns") or ()), {}
        while names:
            name, used, kind = names[0], 1, "numbers"
            for coding in self.meta["origin"].get("categorical") or ():
                ends = ["=" + v for v in coding["values"]] if "values" in coding else _date_names(coding["dates"])
                base = names[0][:-len(ends[0])]
                if names[:len(ends)] == [base + end for end in ends]:
                    name, used, kind = base, len(ends), "words" if "values" in coding else "dates"
                    break
            kinds[name] = kind
            del names[:used]
        return kinds or None

    @property
    def space(self) -> dict[str, Any] | None:
        """Columns of the training file that are coordinates, and their projection; None for other features."""
        return self.meta["origin"].get("space")

    @property
    def is_precomputed(self) -> bool:
        """Whether features are values of the kernel."""
        return self.kernel["name"] == "precomputed"

    @property
    def is_supported(self) -> bool:
        """Whether NumPy can predict: the kernel is built in."""
        return self.kernel["name"] in ("gaussian", "laplacian", "matern32", "matern52", "polynomial", "precomputed")

    def features(self, table: Any) -> Any:
        """Return the features of a Table before scaling: an array or a CSR matrix.

        The result is None for words other than those of the fit, and for dates in other forms than 2024-12-31 23:59:59,
        which only the program codes. It is also None for coordinates, which only the program projects.
        """
        if self.space:
            return None
        if not table.is_mixed:
            return table.values
        codes_of = {k["column"]: k for k in self.meta["origin"].get("categorical") or ()}
        blocks = []
        for j, (name, kind) in enumerate(table.kinds.items()):
            column = table.values[name].to_numpy()
            if kind == "numbers":
                blocks.append(column.astype(np.float64)[:, None])
                continue
            coding = codes_of.get(name) or codes_of.get(str(j), {})
            if kind == "words":
                block = _words(column, coding.get("values", ()))
            else:
                block = _dates(column, coding.get("dates", {}))
            if block is None:
                return None
            blocks.append(block)
        return np.hstack(blocks)

    def decision(self, z: Any) -> tuple[np.ndarray, int] | None:
        """Return f of each row of z, less the threshold of two classes, of shape (m, t), and the number of far rows.

        A row is far, as for ``krrlab predict``, if the kernel is below NEGLIGIBLE times its largest value for all
        training points, so that predictions are nearly constant. ``z`` has the features of the model before scaling: an
        array, in which NaN is a missing value, or a CSR matrix. The result is None if inner products are not accurate
        enough, for points far apart in terms of sigma.
        """
        rows = max(1, BLOCK // len(self.c))
        blocks, far = [], 0
        for i in range(0, z.shape[0], rows):
            k = self._kernel(self._scaled(z[i:i + rows]))
            if k is None:
                return None
            if not self.is_precomputed and self.kernel["name"] != "polynomial":
                far += int((k < NEGLIGIBLE).all(1).sum())
            blocks.append(k @ self.c)
        f = np.concatenate(blocks) + np.asarray(self.meta.get("mean") or 0.0) - self.meta.get("threshold", 0.0)
        return f, far

    def _scaled(self, z: Any) -> Any:
        by = self.meta.get("scaling") or {}
        if hasattr(z, "tocsr") and (by.get("scale") or self.center is not None):
            z = z.toarray()
        if by.get("fill") is not None:
            z = np.where(np.isnan(z), by["fill"], z)
        if by.get("shift") is not None:
            z = z - by["shift"]
        if by.get("scale") is not None:
            z = z * by["scale"]
        if by.get("matrix") is not None:
            z = z @ np.reshape(by["matrix"], (z.shape[1], -1)).T
        return z

    def _kernel(self, z: Any) -> np.ndarray | None:
        """K(z, x), from inner products except for the Laplacian kernel."""
        name, sigma = self.kernel["name"], self.kernel.get("sigma", 1.0)
        if self.is_precomputed:  # x has the rows of K that were not held out
            return z[:, self.x.ravel().astype(int)]
        if name == "polynomial":
            return (self.kernel.get("gamma", 0) * _product(z, self.x) + self.kernel.get("coef0", 0)) \
                ** self.kernel["degree"]
        if self.center is not None:
            z = z - self.center
        if name == "laplacian":
            z, x = (a.toarray() if hasattr(a, "tocsr") else a for a in (z, self.x))
            u = np.zeros((len(z), len(x)))
            for j in range(z.shape[1]):
                u += np.abs(z[:, j, None] - x[:, j])
            return self._values(u)
        norms = _norms(z)
        size = (norms.max(initial=0) + self.norms.max()) / sigma ** 2
        if not np.finfo(float).eps * size < ROUNDING:
            return None
        u = _product(z, self.x)
        u *= -2
        u += norms[:, None]
        u += self.norms
        np.maximum(u, 0, out=u)
        return self._values(u)

    def _values(self, u: np.ndarray) -> np.ndarray:
        """Values of the kernel at squared distances, or at l1 distances for the Laplacian kernel. Overwrites ``u``."""
        name, sigma = self.kernel["name"], self.kernel.get("sigma", 1.0)
        if name == "laplacian":
            return np.exp(u / -sigma)
        if name == "gaussian":
            u *= -0.5 / sigma ** 2
            return np.exp(u, out=u)
        u *= (3 if name == "matern32" else 5) / sigma ** 2
        v = np.sqrt(u)
        return (1 + v if name == "matern32" else 1 + v + u / 3) * np.exp(-v)


def _words(column: np.ndarray, values: Sequence[str]) -> np.ndarray | None:
    """One feature for each value."""
    place = {v: j for j, v in enumerate(values)}
    codes = np.array([place.get(v, -1) for v in column])
    return np.eye(len(place))[codes] if (codes >= 0).all() else None


def _dates(column: np.ndarray, coding: dict[str, Any]) -> np.ndarray | None:
    """Days since the first one, and the sines and cosines of the time of day, the weekday and the day of the year."""
    if coding.get("form") != "date" or coding.get("zone") or not all(_ISO.fullmatch(v) for v in column):
        return None
    times = np.array(column, dtype="datetime64[us]")
    day, year = times.astype("datetime64[D]"), times.astype("datetime64[Y]")
    gap = np.isnat(times)

    def days(span: np.ndarray) -> np.ndarray:
        return np.where(gap, np.nan, span.astype("timedelta64[us]").astype(np.int64) / 86_400e6)

    cycles = [days(times - day)] if coding.get("times") else []
    cycles += [(days(day - np.datetime64(0, "D")) + 3) / 7, days(times - year) / 365.25]
    angles = [f(2 * np.pi * cycle) for cycle in cycles for f in (np.sin, np.cos)]
    return np.column_stack([days(times - np.datetime64(coding["first"])), *angles])


def _date_names(coding: dict[str, Any]) -> list[str]:
    """What the names of the features of a column of dates end with."""
    hours = [" hour sin", " hour cos"]
    if coding.get("form") == "time":
        return hours
    return [" days", *(hours if coding.get("times") else ()), " weekday sin", " weekday cos", " year sin", " year cos"]


#: Dates that NumPy reads as the program does, and missing ones.
_ISO = re.compile(r"|\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?")


def _norms(x: Any) -> np.ndarray:
    """Squared norms of the rows."""
    if hasattr(x, "tocsr"):
        return np.asarray(x.multiply(x).sum(1)).ravel()
    return np.einsum("ij,ij->i", x, x)


def _product(z: Any, x: Any) -> np.ndarray:
    k = z @ x.T
    return k.toarray() if hasattr(k, "tocsr") else np.asarray(k)
