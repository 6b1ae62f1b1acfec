"""Linear operators that the program computes, and measures of the quality of preconditioners."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from . import _data, _program

#: Problems with operators that still exist, by their points and options.
_problems: "weakref.WeakValueDictionary[Any, _Problem]" = weakref.WeakValueDictionary()


class _Problem:
    """One process of the program that computes products with K and with preconditioners M⁻¹ of points X.

    The process ends with the last operator of the problem, or with Python. It is started again after an error, an
    interrupt, or a fork.
    """

    def __init__(self, X: _data.Table, options: dict[str, Any]):
        self.x, self.options = X, options
        self.n = X.values.shape[0]
        self.lock, self.process, self.owner = threading.Lock(), None, 0

    def _start(self) -> None:
        """Start the program with the points of the problem, and wait until it has read them."""
        with tempfile.TemporaryDirectory(prefix="krrlab-") as folder:
            file, file_flags = self.x.write(folder, [np.arange(self.n, dtype=float)])  # the targets are not used
            self.error = open(os.path.join(folder, "error"), "w+")  # can be read after the folder was removed
            self.command = ["operators", *_program.flags(**{**file_flags, **self.options}, train=file)]
            self.process = subprocess.Popen([_program.program(), *self.command], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.error, start_new_session=True)
            self.owner, self.file = os.getpid(), file
            weakref.finalize(self, _end, self.process, self.error, self.owner)
            self._ask("solve none", np.zeros((self.n, 1)))  # returns after the program has read the files

    def ask(self, request: str, v: np.ndarray) -> np.ndarray:
        """Send a request with an array of n rows, and return the array of the answer."""
        with self.lock:
            if self.process is None or self.owner != os.getpid():
                self._start()
            return self._ask(request, v)

    def _ask(self, request: str, v: np.ndarray) -> np.ndarray:
        """Like ``ask``, for a caller that holds the lock, while the process is running."""
        try:
            _send(self.process.stdin, request, v)
            answer, text = _words(self.process.stdout)
            if answer == "answer":
                return _receive(self.process.stdout)
        except BaseException as error:
            if not isinstance(error, BrokenPipeError):
                self._end()
                raise
            answer = ""
        if answer != "error":  # the process has ended
            self.process.wait()
            self.error.seek(0)
            text = self.error.read()
            self._end()
        raise ValueError(_program.readable(text, self.command, self.file))

    def _end(self) -> None:
        """End the process; the next request starts another one."""
        _end(self.process, self.error, self.owner)
        self.process = None


def _end(process: Any, error: Any, owner: int) -> None:
    """Kill the process and close its streams, unless this Python process is a fork of its owner."""
    if owner == os.getpid():
        process.kill()
        process.wait()
        for stream in process.stdout, error:
            stream.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass  # a request was not sent completely


def _send(stream: Any, line: str, array: np.ndarray | None = None) -> None:
    """Write a line and, if it is given, an array in the format of NumPy."""
    stream.write(line.encode() + b"\n")
    if array is not None:
        array = np.ascontiguousarray(array, dtype=np.float64)
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
        stream.write(memoryview(array).cast("B") if array.size else b"")
    stream.flush()


def _words(stream: Any) -> tuple[str, str]:
    """Read a line, and return its first word and the rest."""
    word, _, rest = stream.readline().decode().strip().partition(" ")
    return word, rest


def _receive(stream: Any) -> np.ndarray:
    """Read an array in the format of NumPy."""
    np.lib.format.read_magic(stream)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    size = dtype.itemsize * int(np.prod(shape))
    data = stream.read(size)
    if len(data) < size:
        raise BrokenPipeError("the answer is cut short")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").copy()


def _points(X: Any) -> _data.Table:
    """Check X and return it as a Table of numbers without names. The points are not scaled."""
    points = _data.table(X, "krrlab")
    if points.is_mixed:
        columns = [name for name, kind in points.kinds.items() if kind != "numbers"]
        raise ValueError(f"the columns {columns} are no numbers")
    return _data.Table(points.values)


def _kernel(text: str) -> str:
    """Return the text of a kernel with the name that the program uses instead of that of scikit-learn."""
    name, blank, parameters = text.partition(" ") if isinstance(text, str) else (None, "", "")
    if not name:
        raise ValueError(f"kernel == {text!r}, must be a str such as 'gaussian sigma=1.5'")
    return {"rbf": "gaussian", "poly": "polynomial", "linear": "polynomial gamma=1 coef0=0 degree=1"}.get(
        name, name) + blank + parameters


def _problem(X: Any, kernel: str, lam: float, options: dict[str, Any]) -> _Problem:
    """Return the existing problem with equal points and options, or a new one."""
    points = _points(X)
    settings = {"kernel": _kernel(kernel), "lambda": lam, "scale": "none", "task": "regression", "storage": "float64",
                **options}
    arrays = [points.values.data, points.values.indices, points.values.indptr] if points.is_sparse else [points.values]
    digests = [hashlib.blake2b(np.ascontiguousarray(array)).digest() for array in arrays]
    key = (points.values.shape, json.dumps(settings, sort_keys=True, default=str), *digests)
    problem = _problems.get(key)
    if problem is None:
        problem = _problems[key] = _Problem(points, settings)
    return problem


def _operator(problem: _Problem, multiply: Any) -> Any:
    """Return a symmetric LinearOperator of SciPy that multiplies arrays of shape (n, k) by ``multiply``."""
    from scipy.sparse.linalg import LinearOperator

    def matvec(v: np.ndarray) -> np.ndarray:
        v = np.asarray(v)
        if np.iscomplexobj(v):
            raise ValueError("Complex data not supported")
        if not v.size:
            return np.zeros(v.shape)
        return multiply(v.reshape(len(v), -1)).reshape(v.shape)

    n = problem.n
    return LinearOperator((n, n), matvec, rmatvec=matvec, matmat=matvec, rmatmat=matvec, dtype=np.float64)


def gram(X: Any, kernel: str, lam: float, **options: Any) -> Any:
    """Return K + lam I as a linear operator.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of numbers, of shape (n, d)
        Points, which are not scaled.
    kernel : str
        Kernel with its parameters, such as "gaussian sigma=1.5".
    lam : float
        Ridge.
    **options
        Further flags, such as ``storage="float32"`` (default "float64") or ``threads=1``.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator of shape (n, n)
        A process of the program computes the products. Operators with equal X, kernel, lam and options share the
        process and K.
    """
    problem = _problem(X, kernel, lam, options)
    problem.ask("product", np.zeros((problem.n, 1)))
    return _operator(problem, lambda v: problem.ask("product", v) + lam * v)


def preconditioner(X: Any, kernel: str, lam: float, kind: str = "vecchia", **options: Any) -> Any:
    """Return M⁻¹ for a preconditioner M of K + lam I, as a linear operator for ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    X, kernel, lam
        As for ``gram``.
    kind : str, default="vecchia"
        "vecchia", "nystrom", "rpcholesky", "features" or another kind, with options: "nystrom features=500".
    **options
        Further flags, as for ``gram``.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator of shape (n, n)
    """
    problem = _problem(X, kernel, lam, options)
    problem.ask(f"solve {kind}", np.zeros((problem.n, 1)))
    return _operator(problem, lambda v: problem.ask(f"solve {kind}", v))


#: Code of the process that the program starts for a preconditioner M of this Python process. It forwards the bytes of
#: both directions between its standard streams and a socket of this process.
_RELAY = """
import socket, sys, threading
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
def answers():
    while data := s.recv(1 << 16):
        sys.stdout.buffer.write(data); sys.stdout.buffer.flush()
threading.Thread(target=answers, daemon=True).start()
while data := sys.stdin.buffer.read1(1 << 16):
    s.sendall(data)
"""


class _Host:
    """Serves linear operators of this Python process to the program by its protocol for preconditioners."""

    def __init__(self, folder: str):
        self.folder, self.listeners = folder, []
        self.errors: dict[int, Exception] = {}  # first error of each operator, by number

    def command(self, operator: Any) -> str:
        """Return the text of a preconditioner for the program that applies ``operator``."""
        path = os.path.join(self.folder, f"m{len(self.listeners)}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        threading.Thread(target=self._accept, args=(listener, operator, len(self.listeners)), daemon=True).start()
        self.listeners.append(listener)
        return "process:" + shlex.join([sys.executable, "-S", "-c", _RELAY, path])

    def _accept(self, listener: socket.socket, operator: Any, number: int) -> None:
        """Serve each connection to the listener in a thread, until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the listener is closed
            threading.Thread(target=self._serve, args=(connection, operator, number), daemon=True).start()

    def _serve(self, connection: socket.socket, operator: Any, number: int) -> None:
        """Answer the requests of a connection until it ends."""
        with connection, connection.makefile("rwb") as stream:
            try:
                _words(stream)
                _send(stream, "ready normal" if hasattr(operator, "draw") else "ready")
                while True:
                    word, text = _words(stream)
                    if not word:
                        return
                    if word == "solve":
                        r = _receive(stream)
                        x = np.asarray(operator @ r)
                        if x.shape != r.shape:
                            raise ValueError(f"M⁻¹ times an array of shape {r.shape} has shape {x.shape}")
                        if not np.isfinite(x).all():
                            raise ValueError(f"M⁻¹ times an array of shape {r.shape} has NaN or infinity")
                    else:
                        x = np.asarray(operator.draw(np.random.default_rng(int(text)))).reshape(-1, 1)
                    _send(stream, "answer", x)
            except OSError:
                return  # the program has ended
            except Exception as e:
                self.errors.setdefault(number, e)
                _send(stream, f"error {type(e).__name__}: {e}".replace("\n", " "))

    def close(self) -> None:
        """Close all listeners."""
        for listener in self.listeners:
            with contextlib.suppress(OSError):  # some systems do not shut down a socket that listens
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def _report(stage: str, X: Any, y: Any, kernel: str, lam: float, options: dict[str, Any],
            precond: Any) -> tuple[dict[str, Any], dict[int, Exception]]:
    """Run a stage of the program and return its report, and the errors of operators of Python, by number.

    ``precond(host, rows)`` returns the flags for the preconditioners, which ``host`` serves. Targets are random if y is
    None.
    """
    points = _points(X)
    rows = points.values.shape[0]
    targets = np.random.default_rng(0).standard_normal(rows) if y is None else _data.vector(y, "y", rows).astype(float)
    with tempfile.TemporaryDirectory(prefix="krrlab-") as folder:
        file, file_flags = points.write(folder, list(targets.reshape(rows, -1).T))
        report = os.path.join(folder, "report.json")
        host = _Host(folder)
        try:
            flags = {**file_flags, "kernel": _kernel(kernel), "lambda": lam, "scale": "none", "center": "no",
                     "task": "regression", **options, "train": file, "json": report}
            _program.run([stage, *_program.flags(**flags), *precond(host, rows)], file)
        except ValueError as e:
            raise next(iter(host.errors.values()), e)
        finally:
            host.close()
        return _program.report(report), host.errors


def _check_operator(name: str, operator: Any, rows: int) -> None:
    """Raise TypeError or ValueError if ``operator`` is not an operator M⁻¹ for vectors of length ``rows``."""
    if not hasattr(operator, "__matmul__"):
        raise TypeError(f"{name} == {operator!r}, must multiply arrays by @, such as a "
                        "scipy.sparse.linalg.LinearOperator")
    shape = getattr(operator, "shape", (rows, rows))
    if tuple(shape) != (rows, rows):
        raise ValueError(f"{name} has shape {tuple(shape)}, must be {(rows, rows)}")


def compare(X: Any, y: Any, kernel: str, lam: float, preconditioners: Mapping[str, Any] | None = None, *,
            kinds: str | Sequence[str] = ("features", "nystrom", "rpcholesky", "vecchia"), **options: Any) -> Any:
    """Compare preconditioners of K + lam I side by side, each product with K serving all of them.

    Parameters
    ----------
    X, kernel, lam
        As for ``gram``.
    y : array-like of shape (n,) or (n, t)
        Targets, from which their mean is not subtracted.
    preconditioners : mapping of str to LinearOperator, default=None
        Operators M⁻¹ of Python, by name: anything with ``@`` for arrays of shape (n, k). If one has a method
        ``draw(rng)`` that returns a random vector of covariance M, the interval of kappa has an upper end.
    kinds : str or sequence of str
        Preconditioners of the program to compare with.
    **options
        Further flags of ``krrlab compare``, such as ``to=1e-8`` or ``seed=2``.

    Returns
    -------
    DataFrame (a list of dicts without pandas)
        A row for each preconditioner, without one ("none") first: ``iterations`` to the residual ``to``,
        ``kappa_low`` and ``kappa_high`` of M⁻¹(K + lam I), ``build_seconds``, ``solve_seconds`` of one application,
        ``bytes``, ``status``, and ``why`` it failed, if it did.
    """
    if not isinstance(preconditioners or {}, Mapping):
        raise TypeError("preconditioners must be a dict of operators by name, such as {'mine': M}")
    kinds = [kinds] if isinstance(kinds, str) else kinds

    def with_all(host: _Host, rows: int) -> list[str]:
        for name, operator in (preconditioners or {}).items():
            _check_operator(f"preconditioners[{name!r}]", operator, rows)
        own_texts = [f"name=python-{i} {host.command(operator)}"
                     for i, operator in enumerate((preconditioners or {}).values())]
        return [f"--with={text}" for text in [*own_texts, *kinds]]

    report, errors = _report("compare", X, y, kernel, lam, options, with_all)
    names = {f"python-{i}": name for i, name in enumerate(preconditioners or {})}
    error_texts = {f"python-{i}": f"{type(error).__name__}: {error}" for i, error in errors.items()}
    rows = []
    for entry in report["rows"]:
        low, high = _interval(entry.get("kappa"))
        rows.append({"name": names.get(entry["preconditioner"], entry["preconditioner"]), "draw": entry["draw"],
                     "iterations": entry.get("iterations"), "kappa_low": low, "kappa_high": high,
                     **{key: entry.get(key) for key in ("build_seconds", "solve_seconds", "bytes")},
                     "status": "failed" if entry.get("why") else entry.get("status"),
                     "why": error_texts.get(entry["preconditioner"], entry.get("why", ""))})
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


class Quality(NamedTuple):
    """An interval of the condition number kappa of M⁻¹(K + lam I)."""

    low: float
    high: float
    confidence: float
    report: dict[str, Any]


def quality(X: Any, kernel: str, lam: float, precond: Any = "features", *, y: Any = None, **options: Any) -> Quality:
    """Return an interval of the condition number of M⁻¹(K + lam I).

    Parameters
    ----------
    X, kernel, lam
        As for ``gram``.
    precond : str or LinearOperator, default="features"
        A preconditioner of the program with its options, or an operator as in ``compare``.
    y : array-like, default=None
        Targets of the solve whose iterations are counted; random ones if it is None.
    **options
        Further flags of ``krrlab quality``, such as ``confidence=0.99`` or ``width=0.05``.

    Returns
    -------
    Quality
        ``low``, ``high`` (infinite if nothing is known), ``confidence`` with which the interval holds, and the
        ``report`` of ``krrlab quality --json``.
    """
    def with_one(host: _Host, rows: int) -> list[str]:
        if isinstance(precond, str):
            return [f"--precond={precond}"]
        _check_operator("precond", precond, rows)
        return [f"--precond={host.command(precond)}"]

    report, _ = _report("quality", X, y, kernel, lam, options, with_one)
    return Quality(*_interval(report["kappa"]), report["kappa"]["confidence"], report)


def _interval(kappa: dict[str, Any] | None) -> tuple[float, float]:
    """Return the ends of an interval of a report; nan if there is none, and inf if it has no upper end."""
    if kappa is None or kappa.get("lo") is None:
        return float("nan"), float("nan")
    return kappa["lo"], float("inf") if kappa.get("hi") is None else kappa["hi"]
