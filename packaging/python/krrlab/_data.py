"""Converts arrays, frames and sparse matrices to the files that the program reads."""
from __future__ import annotations

import datetime
import decimal
import numbers
import os
import re
import warnings
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

import numpy as np

from . import _program

_DATE = re.compile(r"\d{4}[-/]\d\d?[-/]\d\d?([T ]\d\d?:\d\d.*)?$")

#: Matches texts that are numbers, except codes with leading zeros.
NUMBER = re.compile(r"\s*[-+]?(?!0\d)(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


@dataclass
class Table:
    """Rows of features.

    ``values`` is an array of float32 or float64, a CSR matrix, or, if some columns have words or dates, a frame whose
    cells have the form that the program reads. ``kinds`` maps the name of each column to "numbers", "words" or "dates".
    """

    values: Any
    names: list[str] | None = None
    kinds: dict[str, str] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether ``values`` is a sparse matrix."""
        return hasattr(self.values, "tocsr")

    @property
    def is_mixed(self) -> bool:
        """Whether some columns have words or dates."""
        return self.kinds is not None and set(self.kinds.values()) != {"numbers"}

    def rows(self, selected: Any) -> "Table":
        """Return some of the rows."""
        values = self.values.loc[selected] if hasattr(self.values, "loc") else self.values[selected]
        return Table(values, self.names, self.kinds)

    def write(self, folder: str, y: Sequence[Any] | None = None,
              weights: np.ndarray | None = None) -> tuple[str, dict[str, Any]]:
        """Write the table to a file in the folder, and return the name of the file and the flags for it.

        ``y`` are the targets, vectors of equal lengths, and ``weights`` the weights of the rows, if there are any.
        """
        # The names of the columns of targets and weights must not begin the name of a feature.
        taken = set(map(_trim, self.names or ()))
        candidates = (name for count in range(len(taken) + 9) for name in ["_" * count + "y"]
                      if not any(other.startswith((name, "weight" + name)) for other in taken))
        target, file_flags = next(candidates), {}
        weight_name = "weight" + target
        if weights is not None:
            file_flags["weights"] = weight_name
        if self.is_sparse and (y is None or len(y) == 1) and weights is None:
            file, file_flags["format"] = os.path.join(folder, "data.svm"), "libsvm"
            _write_libsvm(file, self.values, y[0] if y else None)
            if y is not None:
                file_flags["format"] += f" dim={self.values.shape[1]}"
            return file, file_flags
        if not self.is_mixed:
            arrays = {"X": self.values.toarray() if self.is_sparse else self.values}
            if y is not None:
                arrays[target] = y[0] if len(y) == 1 else np.column_stack(y)
                file_flags["target"] = target
            if weights is not None:
                arrays[weight_name] = weights
            if self.names:
                arrays["columns"] = np.array(self.names)
            file = os.path.join(folder, "data.npz")
            np.savez(file, **arrays)
            return file, file_flags
        target_columns = {f"{target}{j}" if j else target: v for j, v in enumerate(y or ())}
        frame = self.values.assign(**target_columns)
        if y is not None:
            file_flags["target"] = list(target_columns)
        if weights is not None:
            frame[weight_name] = weights
        file = os.path.join(folder, "data.csv")
        frame.to_csv(file, index=False)
        if y is not None:
            for kind, flag in (("words", "categorical"), ("dates", "dates")):
                file_flags[flag] = [reference(j, name) for j, (name, column_kind) in enumerate(self.kinds.items())
                                    if column_kind == kind] or None
        return file, {"format": "csv separator=comma header=yes comment=none", **file_flags}


def reference(index: int, name: str) -> str:
    """Return the text by which a flag names a column.

    This is the name, or the index if the program would read the name as a number or an option, or would trim it.
    """
    return name if re.fullmatch(r"[^\s=]([^=]*[^\s=])?", name) and not re.fullmatch(r"[+-]?\d+", name) else str(index)


def _write_libsvm(file: str, x: Any, y: Iterable[Any] | None) -> None:
    """Write the rows of a CSR matrix and their targets, or zeros without targets, as a LIBSVM file."""
    starts = x.indptr  # of the rows, in pairs
    pairs = [f"{j + 1}:{v!r}" for j, v in zip(x.indices.tolist(), x.data.tolist())]
    with open(file, "w") as out:
        for i, label in enumerate(y if y is not None else [0] * x.shape[0]):
            label = repr(float(label)) if isinstance(label, numbers.Real) else label
            out.write(" ".join([str(label), *pairs[starts[i]:starts[i + 1]]]) + "\n")


def is_frame(x: Any) -> bool:
    """Report whether x is a DataFrame of pandas."""
    return hasattr(x, "iloc") and hasattr(x, "columns")


def feature_names(x: Any) -> np.ndarray | None:
    """Return the column names of a frame if all of them are texts, as scikit-learn does, and otherwise None."""
    if not is_frame(x) or not len(x.columns) or not all(isinstance(c, str) for c in x.columns):
        return None
    return np.array(list(x.columns), dtype=object)


def table(x: Any, owner: str, *, allow_missing: bool = False, advise_impute: bool = False, categorical: Any = "auto",
          dates: Any = "auto", kinds: dict[str, str] | None = None) -> Table:
    """Check X and return it as a Table.

    ``owner`` is the name of the estimator in messages. ``allow_missing`` allows missing numbers. ``advise_impute``
    lets messages advise ``impute``, which would allow them. ``categorical`` and ``dates`` name columns of a frame, or
    are "auto". ``kinds`` are the kinds of columns in the fit, if there was one.
    """
    if hasattr(x, "tocsr"):
        x = x.tocsr()
        if x.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        x = x.astype(np.float64)
        x.sum_duplicates()
        _check_shape(x, owner)
        _check_finite(x.data, None, owner, False, False)
        return Table(x)
    if is_frame(x):
        return _frame(x, owner, allow_missing, advise_impute, categorical, dates, kinds)
    if hasattr(x, "iloc"):
        raise ValueError("Expected 2D array, got 1D array instead: a Series. One row of a frame X is X.iloc[[i]], one "
                         "column is X[[name]].")
    x = numeric(x)
    if x.ndim < 2:
        raise ValueError(f"Expected 2D array, got {x.ndim}D array instead:\narray={x}.\nReshape your data either using "
                         "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
                         "contains a single sample.")
    if x.ndim > 2:
        raise ValueError(f"Found array with dim {x.ndim}. {owner} expected <= 2.")
    _check_shape(x, owner)
    _check_finite(x, None, owner, allow_missing, advise_impute)
    return Table(x)


def numeric(x: Any) -> np.ndarray:
    """Return an array of float32 or float64. Masked entries are missing, as NaN."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):  # an array of pandas has a _mask, too
        x = (x if x.dtype.kind in "fcO" else x.astype(np.float64)).filled(np.nan)
    x = np.asarray(x)
    if x.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if x.dtype.kind == "O" and any(isinstance(v, complex) for v in x.flat):
        raise ValueError("Complex data not supported")
    return x if x.dtype in (np.float32, np.float64) and x.dtype.isnative else x.astype(np.float64)


def _check_shape(x: Any, owner: str) -> None:
    """Raise ValueError if x has no rows or no columns."""
    for size, noun in zip(x.shape, ("sample", "feature")):
        if size < 1:
            raise ValueError(f"Found array with {size} {noun}(s) (shape={x.shape}) while a minimum of 1 is required by "
                             f"{owner}.")


def _check_finite(x: np.ndarray, names: list[str] | None, owner: str, allow_missing: bool, advise_impute: bool) -> None:
    """Raise ValueError for infinity, and for NaN unless ``allow_missing``; see ``table`` for the parameters."""
    if np.isfinite(x).all() or allow_missing and not np.isinf(x).any():
        return
    row, *column = np.argwhere(np.isinf(x) if allow_missing or np.isinf(x).any() else np.isnan(x))[0]
    position = ""
    if column:
        position = f": column {names[column[0]]!r}, row {row}" if names else f": column {column[0]}, row {row}"
    if np.isinf(x).any():
        raise ValueError(f"Input X contains infinity or a value too large for dtype('float64'){position}.")
    advice = f" impute='median' lets {owner} fill missing numbers in." if advise_impute else ""
    raise ValueError(f"Input X contains NaN{position}.{advice}")


def named_columns(option: Any, parameter: str, names: list[str]) -> list[str] | None:
    """Return the columns that a parameter names, or None for "auto". Raise ValueError for an unknown column."""
    if isinstance(option, str):
        if option == "auto":
            return None
        option = [option]
    selected = [str(name) for name in option or ()]
    for name in selected:
        if name not in names:
            raise ValueError(f"{parameter}: there is no column {name!r}, only {names}")
    return selected


def _frame(x: Any, owner: str, allow_missing: bool, advise_impute: bool, categorical: Any, dates: Any,
           kinds: dict[str, str] | None) -> Table:
    """Check a frame and return it as a Table; see ``table`` for the parameters."""
    names = [str(c) for c in x.columns]
    _check_shape(x, owner)
    trimmed = [_trim(name) for name in names]
    for name in trimmed:
        if "\0" in name:
            raise ValueError(f"the name of the column {name!r} has a character of code 0")
        if trimmed.count(name) > 1:
            raise ValueError(f"several columns are named {name!r}")
    x = x.set_axis(names, axis=1).reset_index(drop=True)
    selected = {"words": named_columns(categorical, "categorical", names),
                "dates": named_columns(dates, "dates", names)}
    columns, column_kinds = {}, {}
    for name in names:
        kind = kinds[name] if kinds else next((k for k, chosen in selected.items() if name in (chosen or ())), None)
        column_kinds[name] = kind or _kind(x[name], selected["words"] is None)
        allowed = selected.get(column_kinds[name], [name])
        if kinds is None and allowed is not None and name not in allowed:
            raise ValueError(f"column {name!r} has {column_kinds[name]}, and is not among those that "
                             f"{'categorical' if column_kinds[name] == 'words' else 'dates'} names")
        columns[name] = {"numbers": _numbers, "words": _words, "dates": _dates}[column_kinds[name]](x[name])
    if set(column_kinds.values()) == {"numbers"}:
        values = np.column_stack(list(columns.values()))
        _check_finite(values, names, owner, allow_missing, advise_impute)
        return Table(values, names, column_kinds)
    for name in names:
        if column_kinds[name] == "numbers":
            _check_finite(columns[name][:, None], [name], owner, allow_missing, advise_impute)
        elif column_kinds[name] == "dates" and not allow_missing and (columns[name] == "").any():
            raise ValueError(f"Input X contains NaT: column {name!r}, row {int(np.argmax(columns[name] == ''))}. "
                             f"impute='median' lets {owner} fill missing dates in.")
    import pandas
    return Table(pandas.DataFrame(columns), names, column_kinds)


def _present(column: Any) -> list[Any]:
    """Return the values of a column that are not missing."""
    return column[column.notna()].tolist()


def _kind(column: Any, is_auto: bool) -> str:
    """Return the kind of a column: numbers, words or dates. Raise ValueError if the column has other values.

    ``is_auto`` says that the user did not name the columns of words. Numbers as texts then cause a warning.
    """
    dtype = column.dtype
    if str(dtype) == "category":
        return "words"
    if getattr(dtype, "kind", "") == "m":
        raise ValueError(f"column {column.name!r} has time spans ({dtype}): want numbers, such as "
                         f"X[{column.name!r}].dt.total_seconds()")
    if getattr(dtype, "kind", "") == "M" or str(dtype).startswith("period"):
        return "dates"
    if getattr(dtype, "kind", "O") in "biuf" or getattr(dtype, "kind", "") == "c":
        return "numbers"
    values = _present(column)
    if all(isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)) for value in values):
        return "numbers"
    if all(isinstance(value, (datetime.date, datetime.time)) for value in values):
        return "dates"
    if all(isinstance(value, str) for value in values):
        if all(_DATE.match(value) for value in values):
            return "dates"
        if values and is_auto and all(NUMBER.fullmatch(value) for value in values):
            warnings.warn(f"column {column.name!r} has numbers as texts, such as {values[0]!r}, which are taken as "
                          "words: convert them by pandas.to_numeric, or confirm words by astype('category')",
                          stacklevel=_program.stack_level())
        return "words"
    types = sorted({type(value).__name__ for value in values})
    raise ValueError(f"column {column.name!r} of type {dtype} has values of type {', '.join(types)}: want numbers, "
                     "texts or dates")


def _numbers(column: Any) -> np.ndarray:
    """Return a column of numbers as float64, in which NaN is a missing value."""
    if getattr(column.dtype, "kind", "") == "c":
        raise ValueError(f"Complex data not supported: column {column.name!r}")
    if getattr(column.dtype, "kind", "") in "Mm":
        raise ValueError(f"column {column.name!r} has {column.dtype}, where the fit had numbers")
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as e:
        raise ValueError(f"column {column.name!r}: {e}") from None


def _words(column: Any) -> np.ndarray:
    """Return a column of words as texts, in which "" is a missing value."""
    return np.array(["" if is_missing else str(value) for value, is_missing in zip(column.tolist(), column.isna())],
                    dtype=object)


def _dates(column: Any) -> np.ndarray:
    """Return a column of dates as texts, in which "" is a missing value."""
    if getattr(column.dtype, "kind", "") in "biuf":
        raise ValueError(f"column {column.name!r} has numbers, where dates are wanted")
    texts = [value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value) for value in column.tolist()]
    return np.array(["" if is_missing else value for value, is_missing in zip(texts, column.isna())], dtype=object)


def _trim(name: str) -> str:
    """Return a column name in the form that the program stores."""
    return name.lstrip("\ufeff").replace("\r\n", "\n").strip()


def check_names(x: Any, seen: np.ndarray | None, owner: str) -> None:
    """Check the names of X against those of the fit, with the messages of scikit-learn."""
    names = feature_names(x)
    if seen is None and names is None:
        return
    if seen is None:
        warnings.warn(f"X has feature names, but {owner} was fitted without feature names",
                      stacklevel=_program.stack_level())
        return
    if names is None:
        warnings.warn(f"X does not have valid feature names, but {owner} was fitted with feature names",
                      stacklevel=_program.stack_level())
        return
    if list(map(_trim, names)) == list(map(_trim, seen)):
        return
    text = "The feature names should match those that were passed during fit.\n"
    for title, missing in (("Feature names unseen at fit time:", sorted(set(names) - set(seen))),
                           ("Feature names seen at fit time, yet now missing:", sorted(set(seen) - set(names)))):
        if missing:
            text += title + "".join(f"\n- {name}" for name in missing[:5]) + "\n" + "- ...\n" * (len(missing) > 5)
    if set(names) == set(seen):
        text += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(text)


def vector(y: Any, name: str, rows: int) -> np.ndarray:
    """Return y as an array of numbers or objects with ``rows`` rows. Raise ValueError for missing values.

    ``name`` is the name of y in messages.
    """
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(f"Input {name} has a masked value: row {np.argwhere(np.ma.getmaskarray(y))[0][0]}.")
    if hasattr(y, "to_numpy"):
        gaps = np.asarray(y.isna()) if hasattr(y, "isna") else np.zeros(0, bool)
        if gaps.any():
            raise ValueError(f"Input {name} contains NaN: row {np.argwhere(gaps)[0][0]}.")
        y = y.to_numpy()
    is_list = isinstance(y, (list, tuple))
    y = np.asarray(y, dtype=object) if is_list else np.asarray(y)
    if y.dtype.kind == "O":
        gaps = [i for i, value in enumerate(y.ravel()) if value is None or value != value]
        if gaps:
            raise ValueError(f"Input {name} contains NaN: row {gaps[0] // max(1, y[0].size if y.ndim > 1 else 1)}.")
        types = {type(value) for value in y.ravel()}
        if len(types) > 1 and any(issubclass(t, str) for t in types) and not all(issubclass(t, str) for t in types):
            raise ValueError(f"Input {name} has values of type {', '.join(sorted(t.__name__ for t in types))}: want "
                             "numbers or texts")
        if decimal.Decimal in types or not y.size:
            y = y.astype(float)
        else:
            y = np.array(y.tolist())
        y = y.astype(object) if y.dtype.kind in "US" and not is_list else y
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        problem = "NaN" if np.isnan(y).any() else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input {name} contains {problem}.")
    if y.ndim == 0 or len(y) != rows:
        raise ValueError("Found input variables with inconsistent numbers of samples: "
                         f"{[rows, len(y) if y.ndim else 1]}")
    return y
