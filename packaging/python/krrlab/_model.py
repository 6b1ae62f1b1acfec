"""Evaluates a model file by NumPy: f(z) = mean + sum_i c_i k(x_i, z)."""
from __future__ import annotations

import io
import json
import os
import re
import zipfile
from typing import Any, Sequence

import numpy as np

#: Number of entries of a block of K(Z, X), which takes 16 MB. Larger blocks take more memory.
BLOCK = 2_000_000

#: A training point hardly changes a prediction if the kernel is below this fraction of its largest value.
NEGLIGIBLE = 1e-3

#: Largest rounding error that is tolerated in a kernel's exponent if distances come from inner products.
ROUNDING = 1e-11


class Model:
    """A model file of ``krrlab fit``, whose bytes it holds. A pickle contains the file.

    Parameters
    ----------
    data : bytes or path
        The content of the file, or its name.

    Attributes
    ----------
    meta : dict
        Description of the model in the file: kernel, lambda, labels, mean, scaling, columns and origin.
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
                self.center = x.mean(0)  # subtracting it keeps distances and reduces their rounding errors
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
        """Kind of each column of the training file, "words", "dates" or "numbers", by name; None without names."""
        if self.space:
            return None if self.space.get("by_number") else dict.fromkeys(self.space["columns"], "numbers")
        names, kinds = list(self.meta.get("columns") or ()), {}
        while names:
            name, width, kind = names[0], 1, "numbers"
            for coding in self.meta["origin"].get("categorical") or ():
                if "values" in coding:
                    suffixes = ["=" + value for value in coding["values"]]
                else:
                    suffixes = _date_names(coding["dates"])
                base_name = names[0][:-len(suffixes[0])]
                if names[:len(suffixes)] == [base_name + suffix for suffix in suffixes]:
                    name, width, kind = base_name, len(suffixes), "words" if "values" in coding else "dates"
                    break
            kinds[name] = kind
            del names[:width]
        return kinds or None

    @property
    def space(self) -> dict[str, Any] | None:
        """Columns of the training file that are coordinates, and their projection; None without coordinates."""
        return self.meta["origin"].get("space")

    @property
    def is_precomputed(self) -> bool:
        """Whether the features are values of the kernel."""
        return self.kernel["name"] == "precomputed"

    @property
    def is_supported(self) -> bool:
        """Whether ``decision`` supports the kernel, which must be built in."""
        return self.kernel["name"] in ("gaussian", "laplacian", "matern32", "matern52", "polynomial", "precomputed")

    def features(self, table: Any) -> Any:
        """Return the features of a Table before scaling: an array or a CSR matrix.

        The result is None if only the program can code the features: for words that are not in the fit, for dates in
        other forms than 2024-12-31 23:59:59, and for coordinates, which have to be projected.
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
        block_rows = max(1, BLOCK // len(self.c))
        blocks, far_count = [], 0
        for i in range(0, z.shape[0], block_rows):
            k = self._kernel(self._scaled(z[i:i + block_rows]))
            if k is None:
                return None
            if not self.is_precomputed and self.kernel["name"] != "polynomial":
                far_count += int((k < NEGLIGIBLE).all(1).sum())
            blocks.append(k @ self.c)
        values = np.concatenate(blocks) + np.asarray(self.meta.get("mean") or 0.0) - self.meta.get("threshold", 0.0)
        return values, far_count

    def _scaled(self, z: Any) -> Any:
        """Return the rows of z after imputation and scaling."""
        scaling = self.meta.get("scaling") or {}
        if hasattr(z, "tocsr") and (scaling.get("scale") or self.center is not None):
            z = z.toarray()
        if scaling.get("fill") is not None:
            z = np.where(np.isnan(z), scaling["fill"], z)
        if scaling.get("shift") is not None:
            z = z - scaling["shift"]
        if scaling.get("scale") is not None:
            z = z * scaling["scale"]
        if scaling.get("matrix") is not None:
            z = z @ np.reshape(scaling["matrix"], (z.shape[1], -1)).T
        return z

    def _kernel(self, z: Any) -> np.ndarray | None:
        """Return K(z, x), or None if inner products are not accurate enough."""
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
        """Return values of the kernel, and overwrite ``u``: squared distances, or l1 distances for the Laplacian."""
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
    """Return one indicator feature for each of ``values``, or None if the column has other values."""
    index_of = {value: j for j, value in enumerate(values)}
    codes = np.array([index_of.get(value, -1) for value in column])
    return np.eye(len(index_of))[codes] if (codes >= 0).all() else None


def _dates(column: np.ndarray, coding: dict[str, Any]) -> np.ndarray | None:
    """Return the features of a column of dates, or None if NumPy cannot read them.

    The features are the days since the first date, and sines and cosines of the time of day, the weekday and the day
    of the year.
    """
    if coding.get("form") != "date" or coding.get("zone") or not all(_ISO.fullmatch(value) for value in column):
        return None
    times = np.array(column, dtype="datetime64[us]")
    day, year = times.astype("datetime64[D]"), times.astype("datetime64[Y]")
    is_missing = np.isnat(times)

    def days(span: np.ndarray) -> np.ndarray:
        return np.where(is_missing, np.nan, span.astype("timedelta64[us]").astype(np.int64) / 86_400e6)

    cycles = [days(times - day)] if coding.get("times") else []
    cycles += [(days(day - np.datetime64(0, "D")) + 3) / 7, days(times - year) / 365.25]
    angles = [function(2 * np.pi * cycle) for cycle in cycles for function in (np.sin, np.cos)]
    return np.column_stack([days(times - np.datetime64(coding["first"])), *angles])


def _date_names(coding: dict[str, Any]) -> list[str]:
    """Return the suffixes of the names of the features of a column of dates."""
    hours = [" hour sin", " hour cos"]
    if coding.get("form") == "time":
        return hours
    return [" days", *(hours if coding.get("times") else ()), " weekday sin", " weekday cos", " year sin", " year cos"]


#: Matches dates that NumPy and the program read in the same way, and the empty text of a missing date.
_ISO = re.compile(r"|\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?)?")


def _norms(x: Any) -> np.ndarray:
    """Return the squared norms of the rows."""
    if hasattr(x, "tocsr"):
        return np.asarray(x.multiply(x).sum(1)).ravel()
    return np.einsum("ij,ij->i", x, x)


def _product(z: Any, x: Any) -> np.ndarray:
    """Return z @ x.T as an array."""
    k = z @ x.T
    return k.toarray() if hasattr(k, "tocsr") else np.asarray(k)
