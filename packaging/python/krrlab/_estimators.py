"""Estimators with the interface of scikit-learn, which also work without scikit-learn."""
from __future__ import annotations

import csv
import inspect
import numbers
import os
import re
import tempfile
import warnings
from typing import Any

import numpy as np

from . import _data, _program
from ._model import NEGLIGIBLE, Model

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning, NotFittedError
except ImportError:
    class BaseEstimator:  # type: ignore[no-redef]
        """Replacement for the class of scikit-learn: the parameters of an estimator."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def __repr__(self) -> str:
            defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
            given = (f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name])
            return f"{type(self).__name__}({', '.join(given)})"

        def set_params(self, **params: Any) -> Any:
            for name, value in params.items():
                if name not in inspect.signature(type(self)).parameters:
                    raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
                setattr(self, name, value)
            return self

    class RegressorMixin:  # type: ignore[no-redef]
        """Replacement for the class of scikit-learn: the score is R²."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            y, predictions = np.asarray(y, float), self.predict(X)
            mean = np.average(y, axis=0, weights=sample_weight)
            error, variance = (np.average((y - center) ** 2, axis=0, weights=sample_weight)
                               for center in (predictions, mean))
            return float(np.mean(1 - error / variance))

    class ClassifierMixin:  # type: ignore[no-redef]
        """Replacement for the class of scikit-learn: the score is the fraction of correct labels."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """The estimator was not fitted."""

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """A warning that y is a column and not a vector."""

#: If K(Z, X) has more entries, the program predicts: NumPy would take longer than starting the program.
LARGE = 20_000_000

_PARAMETERS = """kernel : str, default=None
        "gaussian" (or "rbf"), "laplacian", "matern32", "matern52", "polynomial" (or "poly"), "linear", or a registered
        name with parameters, such as "mylab.rational alpha=2"; with "precomputed" X is K(X, X) in ``fit``, and K(Z, X)
        later. None is what a search chooses, else "gaussian".
    sigma : float or sequence of float, default=None
        Bandwidth for the scaled features, a length scale for each, or a matrix L by rows. None is what a search
        chooses, else the median distance.
    lam : float, default=None
        Ridge of (K + lam I) c = y. None is what a search chooses, else 0.01.
    alpha, gamma : float, default=None
        Names of scikit-learn for ``lam``, and for 1/(2 sigma**2) of the Gaussian and 1/sigma of the Laplacian kernel.
    degree, coef0 : default 3, 1
        Of the polynomial kernel (gamma x'z + coef0)**degree, whose gamma is 0.01 by default.
    tune : bool or "auto", default="auto"
        True searches kernel, sigma, lam and the distance by leave-one-out, except those that are given. "auto"
        searches on 500 rows, which takes about a second, unless sigma, gamma, lam or alpha is given. False does not.
    metric : str, default="auto"
        What ``tune`` and ``threshold`` optimize: "rmse", "error", "auc", "logloss", "balanced-error" or "f1".
    precond : str, default="auto"
        Preconditioner with its options, such as "nystrom features=500".
    solver : str, default="auto"
        "auto", "direct", "pcg", "block-pcg", "cg" or "fourier".
    tol : float, default=None
        Relative residual at which an iteration ends. None ends it when it is small compared with the noise of the data,
        which ``krrlab fit`` estimates, or at 1e-5 for a regression and 1e-3 for classes.
    max_iter : int, default=1000
        Largest number of iterations. A solve that misses ``tol`` is a ConvergenceWarning.
    scale : str, default="auto"
        Scaling of the features, kept in the model: "auto", "none", "unit" or "standard". "auto" standardizes features
        of different spreads, and leaves sparse ones as they are.
    impute : str, default="none"
        "median" or "mean" fills missing numbers in; "none" refuses them.
    space : str or sequence of str or int, default=None
        One to three columns that are coordinates; they are the only features, without scaling. Columns named lon and
        lat are degrees, which become kilometers. None takes all columns as features.
    categorical, dates : "auto" or sequence of str, default="auto"
        Columns of a frame that have words, or dates. "auto" takes texts and categories as words, and datetimes and
        texts such as 2024-12-31 as dates. A missing word is a value.
    random_state : int, RandomState, Generator or None, default=None
        Seed. None is 1: fits are always repeatable.
    threads : int, default=None
        Cores for the program; None is all of them.
    memory : str, default=None
        Memory limit of the program, such as "8GB".
    options : dict, default=None
        Further flags of ``krrlab fit``, such as ``{"storage": "float32"}``. Those that have a parameter here are
        refused."""

_ATTRIBUTES = """model_ : Model
        The model file, as bytes.
    report_ : dict
        The report of the fit: ``krrlab fit --json``, and ``notes``.
    sigma_, lam_ : float
        Bandwidth (None if the kernel has none) and ridge that were used.
    column_kinds_ : dict or None
        For a frame "numbers", "words" or "dates" of each column.
    n_iter_ : int
        Iterations of the solve; 1 for the direct solver.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns, if X is a frame whose names are texts."""


class _KernelMachine(BaseEstimator):
    """The common part of both estimators."""

    def _more_tags(self) -> dict[str, Any]:
        return {"allow_nan": self.impute != "none", "pairwise": self.kernel == "precomputed"}

    @property
    def _can_impute(self) -> bool:
        """Whether the parameter ``impute`` has an effect."""
        return self.space is None and self.kernel != "precomputed"

    @property
    def meta(self) -> dict[str, Any]:
        """The description of the model in the model file."""
        return self.model_.meta

    def _options(self) -> dict[str, Any]:
        """Return the flags that the parameters stand for."""
        if self.kernel is not None and not isinstance(self.kernel, str):
            raise ValueError(f"kernel == {self.kernel!r}, must be a str or None")
        kernel = {"rbf": "gaussian", "poly": "polynomial"}.get(self.kernel, self.kernel)
        kernel_flag = kernel
        if kernel == "linear":
            kernel_flag = "polynomial gamma=1 coef0=0 degree=1"
        elif kernel == "polynomial":
            try:
                is_degree = float(self.degree) == int(self.degree) >= 1
            except (TypeError, ValueError):
                is_degree = False
            if not is_degree:
                raise ValueError(f"degree == {self.degree!r}, must be a whole number from 1")
            parameters = {"gamma": self.gamma, "coef0": self.coef0, "degree": int(self.degree)}
            assignments = [f"{name}={value}" for name, value in parameters.items() if value is not None]
            kernel_flag = " ".join([kernel, *assignments])
        for names in (("lam", "alpha"), ("sigma", "gamma")):
            if all(getattr(self, name) is not None for name in names):
                raise ValueError(f"{names[0]} and {names[1]} are two names of one parameter: give one of them")
        sigma, gamma = self.sigma, self.gamma
        if gamma is not None and kernel not in ("polynomial", "linear"):
            if not _is_positive(gamma):
                raise ValueError(f"gamma == {gamma!r}, must be a number > 0")
            kernel = kernel_flag = kernel or "gaussian"
            sigmas = {"gaussian": (2 * gamma) ** -0.5, "laplacian": 1 / gamma}
            if kernel not in sigmas:
                raise ValueError(f"gamma is not defined for the kernel {kernel}: give sigma")
            sigma = sigmas[kernel]
        lam = self.alpha if self.lam is None else self.lam
        if lam is not None and not _is_positive(lam):
            raise ValueError(f"{'alpha' if self.lam is None else 'lam'} == {lam!r}, must be a number > 0")
        if self.tune not in (True, False, "auto"):
            raise ValueError(f"tune == {self.tune!r}, must be True, False or 'auto'")
        if not self.tune and lam is None:
            lam = 0.01  # a given ridge also tells the program not to search
        seed = self.random_state
        if seed is None:
            seed = 1
        elif hasattr(seed, "randint") or hasattr(seed, "integers"):  # a RandomState or a Generator of NumPy
            seed = getattr(seed, "randint", None) or seed.integers
            seed = int(seed(2 ** 31))
        elif not isinstance(seed, numbers.Integral) or not 0 <= seed < 2 ** 64:
            raise ValueError(f"random_state == {seed!r}, must be None, a whole number from 0, a RandomState or a "
                             "Generator")
        if isinstance(sigma, (np.ndarray, list, tuple)):
            sigma = np.ravel(sigma).tolist()
        if self.space is not None and (self.scale, self.impute) not in (("auto", "none"), ("none", "none")):
            raise ValueError("space takes coordinates as they are: it does not go with scale or impute")
        is_scaled = self.space is None and kernel != "precomputed"
        scaling_flags = {"scale": self.scale, "impute": self.impute} if is_scaled else {}
        if not isinstance(self.options or {}, dict):
            raise ValueError(f"options == {self.options!r}, must be a dict such as {{'storage': 'float32'}}")
        if "drop" in (self.options or {}):
            raise ValueError("drop is no option in Python: leave the columns out of X, as by X.drop(columns=...)")
        solver_flags = {name: getattr(self, name) for name in ("precond", "solver") if getattr(self, name) != "auto"}
        return {"kernel": kernel_flag, **solver_flags, **scaling_flags, "sigma": sigma,
                "lambda": lam, "tune": None if self.tune in (False, "auto") else True,
                "metric": self.metric, "tol": self.tol, "max_iter": self.max_iter, "seed": seed,
                "threads": self.threads, "memory": self.memory, **(self.options or {})}

    def _check_options(self, own_flags: dict[str, Any]) -> None:
        """Raise ValueError for entries of ``options`` that would be ignored because ``fit`` sets these flags."""
        for name in self.options or {}:
            flag = name.replace("-", "_")
            parameter = {"class_weights": "class_weight", "weights": "sample_weight", "lambda": "lam",
                         "seed": "random_state"}.get(flag, flag)
            known = parameter in self.get_params() or parameter == "sample_weight"
            if not known and flag not in {*own_flags, "data", "help"} or flag == "calibrate":
                continue
            advice = f"it is the parameter {parameter}" if known else f"{type(self).__name__} sets this itself"
            raise ValueError(f"options has {name!r}: {advice}")

    def _coordinates(self, X: Any) -> Any:
        """Return the columns of X that are coordinates, or X itself without ``space``."""
        if self.space is None:
            return X
        if _data.is_frame(X):
            columns = _data.named_columns(self.space, "space", [str(name) for name in X.columns])
            X = X.set_axis([str(name) for name in X.columns], axis=1)[columns]
            for name in X.columns:  # impute, which other messages advise, does not go with space
                if np.ndim(gaps := X[name].isna()) == 1 and gaps.any():
                    raise ValueError(f"Input X contains NaN: the coordinate {name!r}, row {int(np.argmax(gaps))}. Leave "
                                     "such rows out.")
            return X
        X = X.tocsc() if hasattr(X, "tocsc") else _data.numeric(X)
        if X.ndim != 2:
            return X  # _data.table raises the error
        columns = [self.space] if isinstance(self.space, numbers.Integral) else self.space
        if isinstance(columns, str) or len(set(columns)) < len(columns) or not all(
                isinstance(column, numbers.Integral) and 0 <= column < X.shape[1] for column in columns):
            raise ValueError(f"space == {self.space!r}, must be different numbers of columns from 0, as X is no "
                             "DataFrame")
        X = X[:, list(columns)]
        X = X.toarray() if hasattr(X, "toarray") else X
        if np.isnan(X).any():
            row, column = np.argwhere(np.isnan(X))[0]
            raise ValueError(f"Input X contains NaN: the coordinate in column {columns[column]}, row {row}. Leave such "
                             "rows out.")
        return X

    def _read(self, X: Any) -> _data.Table:
        """Check the columns of new rows against those of the fit, and return the rows as a Table."""
        if not hasattr(self, "model_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                                 "arguments before using this estimator.")
        owner = type(self).__name__
        _data.check_names(X, getattr(self, "feature_names_in_", None), owner)
        kinds = self.column_kinds_
        is_series = hasattr(X, "iloc") and not _data.is_frame(X)  # _data.table raises an error with advice
        if kinds and not _data.is_frame(X) and not is_series and set(kinds.values()) != {"numbers"}:
            coded = [name for name, kind in kinds.items() if kind != "numbers"]
            raise ValueError(f"the columns {coded} have words or dates: X must be a DataFrame")
        if _data.is_frame(X) or self.space is not None:
            if len(np.shape(X)) == 2:
                _check_columns(np.shape(X)[1], self.n_features_in_, owner)
            X = self._coordinates(X)
        if _data.is_frame(X):
            kinds = dict(zip(map(str, X.columns), kinds.values())) if kinds else None
        table = _data.table(X, owner, allow_missing=self.impute != "none", advise_impute=self._can_impute, kinds=kinds)
        if self.space is None:
            _check_columns(table.values.shape[1], self.n_features_in_, owner)
        if self.model_.space and not table.names:  # the program finds coordinates by their names
            table.names = list(self.model_.kinds or ()) or None
        return table

    def _fit(self, X: Any, y: Any, sample_weight: Any, options: dict[str, Any]) -> None:
        """Run ``krrlab fit`` and set the attributes of the fitted estimator.

        ``y(rows)`` returns the targets as vectors of numbers or labels. ``options`` are additional flags.
        """
        owner = type(self).__name__
        names = _data.feature_names(X)
        coordinates = self._coordinates(X)
        table = _data.table(coordinates, owner, allow_missing=self.impute != "none", advise_impute=self._can_impute,
                            categorical=self.categorical, dates=self.dates)
        row_count, column_count = table.values.shape
        for name, kind in (table.kinds or {}).items():
            if self.space is not None and kind != "numbers":
                raise ValueError(f"space: column {name!r} has {kind}, and coordinates have to be numbers")
        if self.kernel == "precomputed":
            if row_count != column_count or table.is_mixed:
                raise ValueError("Precomputed matrix must be a square matrix. Input is a "
                                 f"{row_count}x{column_count} matrix.")
            table = _data.Table(table.values.toarray() if table.is_sparse else table.values)
        targets = y(row_count)
        if row_count < 2:
            raise ValueError(f"Found array with 1 sample (shape={table.values.shape}) while a minimum of 2 is required "
                             f"by {owner}.")
        weights = None
        if sample_weight is not None:
            if isinstance(sample_weight, numbers.Real):
                sample_weight = np.full(row_count, sample_weight)
            weights = _data.vector(sample_weight, "sample_weight", row_count).astype(float)
            if weights.ndim != 1:
                raise ValueError("Sample weights must be 1D array or scalar")
            if not (weights >= 0).all():
                raise ValueError("Negative values in sample_weight")
            if not weights.any():
                raise ValueError("all of sample_weight is zero")
            if not weights.all() and self.kernel == "precomputed":
                raise ValueError("sample_weight has zeros: leave these rows and columns of the precomputed kernel out")
            if not weights.all():  # a row of weight 0 is omitted
                selected = weights > 0
                table, weights = table.rows(selected), weights[selected]
                targets = [target[selected] for target in targets]
            if (weights == 1).all():
                weights = None
        targets = self._coded(targets)
        if options.get("threshold") == 0 and len(self.classes_) > 2:
            options["threshold"] = None  # the largest decision value is the label
        if isinstance(options.get("class_weights"), dict):
            options["class_weights"] = ",".join(f"{text}={options['class_weights'].get(label, 1.0)}"
                                                for label, text in zip(self.classes_.tolist(), self._texts))
        with tempfile.TemporaryDirectory(prefix="krrlab-") as folder:
            file, file_flags = table.write(folder, targets, weights)
            model, report = os.path.join(folder, "model.krr"), os.path.join(folder, "report.json")
            if self.kernel == "precomputed":
                options["kernel"] = f"precomputed matrix={file}"
            if self.space is not None:
                names_or_indices = table.names or range(column_count)
                file_flags["space"] = [_data.reference(j, str(name)) for j, name in enumerate(names_or_indices)]
            own_flags = {**file_flags, **options, "train": file, "out": model, "json": report}
            self._check_options(own_flags)
            flags = _program.flags(**{**file_flags, **self._options(), **own_flags})
            notes = _program.run(["fit", *flags], file)
            self.report_ = _program.report(report)
            self.report_["notes"] = notes.splitlines()
            self.model_ = Model.load(model)
        self.__dict__.pop("interval_", None)
        self.n_features_in_ = column_count if self.space is None else np.shape(X)[1]
        self.column_kinds_ = table.kinds
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_iter_ = max(1, self.report_["iterations"])
        self.lam_, self.sigma_ = self.model_.meta["lambda"], self.model_.kernel.get("sigma")

    def _decisions(self, X: Any) -> np.ndarray:
        """Return the decision values of the model, less its threshold, of shape (rows, columns of c)."""
        table = self._read(X)
        features = self.model_.features(table) if self.model_.is_supported else None
        if features is not None and (len(self.model_.c) * features.shape[0] <= LARGE or self.model_.is_precomputed):
            result = self.model_.decision(features)
            if result is not None:
                values, far = result
                if far:
                    warnings.warn(f"{far} of {len(values)} rows are so far from the training points that the kernel is "
                                  f"below {NEGLIGIBLE} there, and predictions nearly constant (are columns swapped, or "
                                  "in other units?)", stacklevel=_program.stack_level())
                return values
        if not self.model_.labels:
            values, _ = self._run_predict(table)
        else:
            values = self._run_predict(table, decision=True)[0][:, 1:].astype(float)
        return values.reshape(len(values), -1)

    def _run_predict(self, table: _data.Table, **options: Any) -> tuple[np.ndarray, str]:
        """Return the columns that ``krrlab predict`` writes for a table, and its line about intervals, or "".

        The column of row numbers is omitted. The others are numbers for a regression and texts for classes.
        """
        interval = ""
        with tempfile.TemporaryDirectory(prefix="krrlab-") as folder:
            file, file_flags = table.write(folder)
            model, out = os.path.join(folder, "model.krr"), os.path.join(folder, "out")
            self.model_.save(model)
            out += ".csv" if self.model_.labels else ".npy"
            flags = _program.flags(**file_flags, threads=self.threads, **options, **{"in": file, "out": out})
            for note in _program.run(["predict", model, *flags], file).splitlines():
                if note.startswith("note: "):
                    warnings.warn(note[6:], stacklevel=_program.stack_level())
                elif note.startswith("interval "):
                    interval = " ".join(note.split()[1:])
            if not self.model_.labels:
                columns = np.load(out)
            else:
                with open(out, newline="") as lines:
                    columns = np.array([row[1:] for row in list(csv.reader(lines))[1:]], dtype=object)
        if len(columns) != table.values.shape[0]:
            raise ValueError(f"{len(columns)} predictions of {table.values.shape[0]} rows")
        return columns, interval


def _is_positive(value: Any) -> bool:
    """Report whether a value is a finite number above 0."""
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf" and 0 < value < np.inf


def _check_level(level: Any) -> None:
    """Raise ValueError unless the level of an interval is between 0 and 1."""
    if not _is_positive(level) or not level < 1:
        raise ValueError(f"level == {level!r}, must be a number above 0 and below 1")


def _check_columns(found: int, expected: int, owner: str) -> None:
    """Raise ValueError unless X has the expected number of columns."""
    if found != expected:
        raise ValueError(f"X has {found} features, but {owner} is expecting {expected} features as input")


class KernelRidge(RegressorMixin, _KernelMachine):
    __doc__ = f"""Kernel ridge regression by krrlab.

    Parameters
    ----------
    {_PARAMETERS}
    center : str, default="auto"
        "no" does not subtract the mean of y before the solve, as scikit-learn's KernelRidge.

    Attributes
    ----------
    {_ATTRIBUTES}

    Examples
    --------
    >>> import numpy as np
    >>> from krrlab import KernelRidge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = KernelRidge(sigma=1, lam=1e-3).fit(X, np.sin(X[:, 0]))
    >>> float(abs(model.predict([[2.0]]) - np.sin(2.0)).max()) < 0.01
    True
    """

    def __init__(self, kernel: str | None = None, sigma: Any = None, lam: float | None = None, *,
                 alpha: float | None = None, gamma: float | None = None, degree: int = 3, coef0: float = 1,
                 tune: bool | str = "auto", metric: str = "auto", precond: str = "auto", solver: str = "auto",
                 tol: float | None = None, max_iter: int = 1000, scale: str = "auto", center: str = "auto",
                 impute: str = "none", space: Any = None, categorical: Any = "auto", dates: Any = "auto",
                 random_state: Any = None, threads: int | None = None, memory: str | None = None,
                 options: dict[str, Any] | None = None):
        self.kernel = kernel
        self.sigma = sigma
        self.lam = lam
        self.alpha = alpha
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tune = tune
        self.metric = metric
        self.precond = precond
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.center = center
        self.impute = impute
        self.space = space
        self.categorical = categorical
        self.dates = dates
        self.random_state = random_state
        self.threads = threads
        self.memory = memory
        self.options = options

    def _more_tags(self) -> dict[str, Any]:
        return {**super()._more_tags(), "multioutput": True}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelRidge":
        """Fit to rows X and targets y.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
        y : array-like of shape (n,) or (n, t)
        sample_weight : array-like of shape (n,) or float, default=None
            Row i counts as ``sample_weight[i]`` rows.

        Returns
        -------
        self
        """
        _require_targets(y, self)

        def targets(rows: int) -> list[np.ndarray]:
            values = _data.vector(y, "y", rows)
            if values.dtype.kind in "mM":
                noun, advice = (("time spans", "y.dt.total_seconds()") if values.dtype.kind == "m" else
                                ("dates", "(y - y.min()).dt.total_seconds()"))
                raise ValueError(f"y has {noun} ({values.dtype}): want numbers, such as {advice}")
            if values.dtype.kind not in "biuf":
                if all(isinstance(text, str) and _data.NUMBER.fullmatch(text) for text in values.flat):
                    raise ValueError(f"y has numbers as texts, such as {values.flat[0]!r}: convert them by "
                                     "pandas.to_numeric")
                raise ValueError(f"y has labels such as {values.flat[0]!r}: KernelRidgeClassifier fits classes")
            if values.ndim > 2 or not values.size:
                raise ValueError(f"y has shape {values.shape}: want one column, or one for each target")
            self._is_vector = values.ndim == 1
            return list(values.reshape(rows, -1).T.astype(float))

        self._fit(X, targets, sample_weight, {"task": "regression", "center": self.center})
        return self

    def _coded(self, targets: list[np.ndarray]) -> list[Any]:
        """Return the targets as the program reads them: for a regression, without a change."""
        return targets

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (m, d)
        return_std : bool, default=False
            Whether to return standard deviations too. They are those of f, without the noise of the answers, if the
            answers are a Gaussian process with the kernel and the ridge of the model.

        Returns
        -------
        ndarray of shape (m,) or (m, t), as y had in ``fit``; with ``return_std`` a pair of it and an ndarray (m,)
        """
        if return_std:
            columns, _ = self._run_predict(self._read(X), interval="90%", method="posterior")
            return columns[:, 0] if self._is_vector else columns[:, :1], columns[:, 3]
        values = self._decisions(X)
        return values[:, 0] if self._is_vector else values

    def predict_interval(self, X: Any, level: float = 0.9, method: str = "auto") -> np.ndarray:
        """Return intervals for the answers of new rows.

        The attribute ``interval_`` then says by which method, and with which probability they contain the answers.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (m, d)
        level : float, default=0.9
            The share of the answers that the intervals are meant to contain, above 0 and below 1.
        method : str, default="auto"
            "jackknife+" and "jackknife" use leave-one-out errors, for new rows that are drawn as those of the fit. They
            factor K again; "jackknife" does not if the fit had ``options={"calibrate": "loo"}``. "split" uses the rows
            that the fit held out, as by ``options={"holdout": 0.2}``. "posterior" assumes a Gaussian process. "auto" is
            what the fit has saved errors for, else "jackknife+".

        Returns
        -------
        ndarray of shape (m, 2) : lower and upper ends
        """
        _check_level(level)
        columns, self.interval_ = self._run_predict(self._read(X), interval=f"{100 * level:.10g}%", method=method)
        return columns[:, 1:3]


class _Probability:
    """A descriptor for a method that exists only if the parameter ``probability`` is set."""

    def __init__(self, method: Any):
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is not None and not estimator.probability:
            raise AttributeError(f"{owner.__name__} has no predict_proba: set probability=True")
        return self.method.__get__(estimator, owner)


class KernelRidgeClassifier(ClassifierMixin, _KernelMachine):
    __doc__ = f"""Classification by kernel ridge regression to ±1 codes.

    Parameters
    ----------
    {_PARAMETERS}
    class_weight : dict or "balanced", default=None
        Weights of the classes in the fit, times those of the rows. They do not count in the errors that ``tune``
        compares; ``sample_weight`` does.
    threshold : float or "auto", default=None
        For two classes, what f is compared with; "auto" is the best for ``metric`` by leave-one-out. None is "auto" if
        ``metric`` is "f1" or "balanced-error", and otherwise 0.
    probability : bool, default=False
        Whether ``predict_proba`` is there; the fit then factors K once more, for leave-one-out errors.

    Attributes
    ----------
    {_ATTRIBUTES}
    classes_ : ndarray
        The labels in ascending order, of the type that y has.
    """

    def __init__(self, kernel: str | None = None, sigma: Any = None, lam: float | None = None, *,
                 alpha: float | None = None, gamma: float | None = None, degree: int = 3, coef0: float = 1,
                 tune: bool | str = "auto", metric: str = "auto", precond: str = "auto", solver: str = "auto",
                 tol: float | None = None, max_iter: int = 1000, scale: str = "auto", impute: str = "none",
                 space: Any = None, categorical: Any = "auto", dates: Any = "auto", class_weight: Any = None,
                 threshold: float | str | None = None, probability: bool = False, random_state: Any = None,
                 threads: int | None = None, memory: str | None = None, options: dict[str, Any] | None = None):
        self.kernel = kernel
        self.sigma = sigma
        self.lam = lam
        self.alpha = alpha
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tune = tune
        self.metric = metric
        self.precond = precond
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.impute = impute
        self.space = space
        self.categorical = categorical
        self.dates = dates
        self.class_weight = class_weight
        self.threshold = threshold
        self.probability = probability
        self.random_state = random_state
        self.threads = threads
        self.memory = memory
        self.options = options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelRidgeClassifier":
        """Fit to rows X and labels y.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, d)
        y : array-like of shape (n,)
            Labels: whole numbers, booleans or texts.
        sample_weight : array-like of shape (n,) or float, default=None
            Row i counts as ``sample_weight[i]`` rows.

        Returns
        -------
        self
        """
        _require_targets(y, self)
        if not isinstance(self.class_weight, dict) and self.class_weight not in (None, "balanced"):
            raise ValueError(f"class_weight == {self.class_weight!r}, must be a dict, 'balanced' or None")
        if self.probability and (sample_weight is not None or self.class_weight is not None):
            raise ValueError("probability=True does not go with sample_weight or class_weight")
        if self.probability and (self.options or {}).get("calibrate") == "none":
            raise ValueError("probability=True needs the errors that options={'calibrate': 'none'} leaves out")

        def targets(rows: int) -> list[np.ndarray]:
            values = _data.vector(y, "y", rows)
            if values.ndim == 2 and values.shape[1] == 1:
                warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y "
                              "to (n_samples,), for example using ravel().", DataConversionWarning, stacklevel=4)
                values = values.ravel()
            if values.ndim > 1:
                raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
            if values.dtype.kind == "f" and (values != np.floor(values)).any():
                raise ValueError("Unknown label type: 'continuous'. KernelRidge fits numbers that are no classes")
            return [values]

        weights = sample_weight
        if isinstance(self.class_weight, dict):
            labels = _data.vector(y, "y", len(np.asarray(y))).ravel()
            unknown = [label for label in self.class_weight if label not in labels]
            if unknown:
                raise ValueError(f"class_weight has {unknown}, and y has no such labels")
            counted = np.array([self.class_weight.get(label, 1.0) != 0 for label in labels.tolist()])
            if not counted.all():  # rows of a class of weight 0 are omitted
                weights = counted * (1.0 if weights is None else np.asarray(weights, float))
        self._fit(X, targets, weights, {
            "task": "classification", "class_weights": self.class_weight,
            "threshold": self.threshold,
            "calibrate": (self.options or {}).get("calibrate", "loo" if self.probability else "none")})
        if sorted(self._texts) != sorted(self.model_.labels):
            raise ValueError(f"the labels {list(self.classes_)} became {self.model_.labels}: rename them")
        return self

    def _coded(self, targets: list[np.ndarray]) -> list[Any]:
        """Set ``classes_``, and return the labels as texts that the program distinguishes, or as numbers from 0."""
        self.classes_, codes = np.unique(targets[0], return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]!r}: classification wants at least two classes")
        texts = [str(int(label)) if isinstance(label, (float, np.floating)) else str(label)
                 for label in self.classes_.tolist()]
        is_distinct = len({text.lower() for text in texts}) == len(texts)
        is_plain = is_distinct and all(text.isprintable() and text.isascii() and text.split() == [text]
                                       and not set(text) & set(",;:#\"'") for text in texts)
        if self.classes_.dtype.kind not in "biuf":  # the program reads texts such as 1.0 and NA as other values
            is_plain = is_plain and all(text[0].isalpha() and text.lower() not in _SPECIAL_TEXTS for text in texts)
        self._texts = texts if is_plain else [str(k) for k in range(len(texts))]
        return [np.array(self._texts)[codes]]

    def _columns(self, X: Any) -> np.ndarray:
        """Return the decision values: one column for two classes, else one for each of ``classes_``."""
        labels = self.model_.labels if hasattr(self, "model_") else []
        values = self._decisions(X)
        order = [labels.index(text) for text in self._texts]
        if values.shape[1] > 1:
            return values[:, order]
        return values if order == [0, 1] else -values

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values, less the threshold.

        Returns
        -------
        ndarray of shape (m,) for two classes, positive for ``classes_[1]``, else of shape (m, classes)
        """
        values = self._columns(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels of the rows of X, of the type that y had in ``fit``."""
        values = self._columns(X)
        return self.classes_[values.argmax(1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)]

    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Return sets of classes for new rows, a share ``level`` of which is meant to contain the right class.

        They use leave-one-out errors, for which K is factored again unless ``probability`` is set. The attribute
        ``interval_`` then says what is guaranteed. A class ``another label`` of the program is not returned.

        Returns
        -------
        ndarray of bool of shape (m, classes), in the order of ``classes_``
        """
        _check_level(level)
        columns, self.interval_ = self._run_predict(self._read(X), interval=f"{100 * level:.10g}%")
        sets = csv.reader(columns[:, -1], delimiter="|")
        return np.array([[text in labels for text in self._texts] for labels in sets])

    @_Probability
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return Platt's probabilities of ``classes_``, fitted to leave-one-out errors, of shape (m, classes).

        The method is there with ``probability=True`` only.
        """
        values = self._decisions(X)
        sigmoid = self.model_.meta["calibration"]
        logits = values * sigmoid["slope"] + sigmoid["offset"]
        probabilities = np.exp(-np.logaddexp(0, -np.hstack([-logits, logits]) if values.shape[1] == 1 else -logits))
        probabilities = np.maximum(probabilities, 1e-15)
        probabilities /= probabilities.sum(1, keepdims=True)
        return probabilities[:, [self.model_.labels.index(text) for text in self._texts]]


def fit(X: Any, y: Any, out: str | os.PathLike[str] | None = None, **flags: Any) -> KernelRidge | KernelRidgeClassifier:
    """Fit an estimator in one call, and write its model file.

    Parameters
    ----------
    X, y : as in ``KernelRidge.fit``
    out : path, optional
        The model file to write.
    **flags
        Parameters of the estimator, or flags of ``krrlab fit`` with ``_`` for ``-``, such as ``tune=True``. ``task`` is
        "regression", "classification" or "auto": texts, booleans, and at most 20 different whole numbers, each in five
        rows on average or more, are classes.

    Returns
    -------
    A fitted KernelRidge or KernelRidgeClassifier. ``meta`` is the content of the model file in words.
    """
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    values, task = _data.vector(y, "y", rows), flags.pop("task", "auto")
    if task not in ("auto", "regression", "classification"):
        raise ValueError(f"task == {task!r}, must be 'auto', 'regression' or 'classification'")
    if task == "auto" and values.ndim == 1:
        distinct = len(set(values.tolist()))
        is_whole = values.dtype.kind in "iu" or values.dtype.kind == "f" and (values == np.floor(values)).all()
        is_few = distinct <= MOST_CLASSES and distinct * ROWS_PER_CLASS <= len(values)
        if values.dtype.kind not in "iuf" or is_whole and is_few:
            task = "classification"
    estimator = KernelRidgeClassifier() if task == "classification" else KernelRidge()
    names = {"lambda": "lam", "seed": "random_state", "class_weights": "class_weight"}
    flags.update(flags.pop("options", None) or {})
    flags = {names.get(name.rstrip("_"), name.rstrip("_")): value for name, value in flags.items()}
    parameters = estimator.get_params()
    estimator.set_params(**{name: value for name, value in flags.items() if name in parameters},
                         options={name: value for name, value in flags.items() if name not in parameters})
    estimator.fit(X, y)
    if out is not None:
        estimator.model_.save(out)
    return estimator


#: Limits of the program for whole numbers that are classes: the number of classes, and the average rows per class.
MOST_CLASSES, ROWS_PER_CLASS = 20, 5


def load(path: str | os.PathLike[str] | Model) -> KernelRidge | KernelRidgeClassifier:
    """Read a model file of ``krrlab fit``, or of ``model_.save``, as a fitted estimator.

    Labels are whole numbers or booleans if all of them have this form, else texts. A frame must have the columns of
    the training file.
    """
    model = path if isinstance(path, Model) else Model(path)
    kernel = "precomputed" if model.is_precomputed else None
    impute = "median" if (model.meta.get("scaling") or {}).get("fill") else "none"
    if not model.labels:
        estimator: Any = KernelRidge(kernel, impute=impute)
        estimator._is_vector = model.c.shape[1] == 1
    else:
        estimator = KernelRidgeClassifier(kernel, impute=impute)
        estimator.probability = bool((model.meta.get("calibration") or {}).get("slope"))
        values: list[Any] = model.labels
        if all(re.fullmatch(r"-?[1-9]\d*|0", label) for label in values):
            values = [int(label) for label in values]
        elif set(values) <= {"True", "False"}:
            values = [label == "True" for label in values]
        estimator.classes_, indices = np.unique(values, return_index=True)
        estimator._texts = [model.labels[i] for i in indices]
    estimator.model_, estimator.report_, estimator.column_kinds_ = model, {}, model.kinds
    columns = model.space["columns"] if model.space else model.kinds or ()
    width = model.kernel["params"]["Rows"] if model.is_precomputed else model.meta["d"]
    estimator.n_features_in_ = len(columns) or width
    if model.kinds:
        estimator.feature_names_in_ = np.array(list(model.kinds), dtype=object)
    estimator.lam_, estimator.sigma_ = model.meta["lambda"], model.kernel.get("sigma")
    return estimator


#: Texts that the program reads as booleans, missing values or infinities.
_SPECIAL_TEXTS = {"true", "false", "na", "n", "nan", "nat", "none", "null", "missing", "inf", "infinity"}


def _require_targets(y: Any, estimator: Any) -> None:
    """Raise ValueError if there are no targets."""
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is "
                         "None.")
