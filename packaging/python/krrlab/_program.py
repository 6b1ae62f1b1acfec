"""Finds and runs the program krrlab, and rewrites its messages for users of Python."""
from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Sequence

import numpy as np

NOT_CONVERGED = 3  # exit status of a fit that missed its tolerance but wrote its results

#: Python parameters for the flags whose parameter is not the flag with _ instead of -.
PARAMETERS = {"lambda": "lam", "seed": "random_state", "weights": "sample_weight", "target": "y",
              "drop": "X.drop(columns=...)", "class-weights": "class_weight", "interval": "predict_interval",
              "holdout": "options={'holdout': 0.2}", "calibrate": "options={'calibrate': 'loo'}"}

#: Patterns of phrases in messages of the program, each with its replacement for users of Python.
_PHRASES = [
    (r"^krrlab: |\(see krrlab.*?--help\)", ""), (r"^note:? +", "note: "),
    (r"^(?:interval|model|process|gram|pcg|leaveout): ", ""), (r"--kernel: kernel: ", "kernel: "),
    (r"^the request (?:product|solve .*?): an array ", "an array "),
    (r"want one of gaussian, (.*?); a user-defined one has to be registered.*",
     r"want one of gaussian (or rbf), \1 (or poly), linear, precomputed"),
    (r"unknown flag: (?:--)?", "unknown option: "), (r"--calibrate loo", "--calibrate"),
    (r"--holdout or --test|--test FILE, or --holdout 0\.2,?", "--holdout"),
    (r"^--(holdout|calibrate) (\S+: want)", r"\1 \2"),
    (r"--drop (\w+(?:,\w+)*)$", lambda m: f"X.drop(columns={m[1].split(',')})"),
    (r"add order=day or order=month to --dates", "convert it by pandas.to_datetime, with dayfirst=True or False"),
    (r" \(a kernel of your own needs the methods of fourier\.Density\)", ""),
    (r"--kernel matrix", "kernel='precomputed'"), (r" \(kernel\.\w+\)", ""), (r"^the data: (?:kernel: )?|^data: ", ""),
    (r"^note: the data: ", "note: "), (r'(?<=[:,] )""(?= \(\d)', "a missing value"),
    (r"^the data, row (\d+), column \d+: (.*?): ", r"column '\2', row \1: "),
    (r"^the data, column \d+: (.*?): ", r"column '\1': "),
]


class ConvergenceWarning(UserWarning):
    """A solve missed its tolerance. If scikit-learn is installed, its class of this name replaces this one."""


try:
    from sklearn.exceptions import ConvergenceWarning  # type: ignore[no-redef]  # noqa: F811
except ImportError:
    pass


def program() -> str:
    """Return the path of the program: ``$KRRLAB``, else the program in the wheel, else the one in ``$PATH``.

    Raise FileNotFoundError if there is none.
    """
    bundled = Path(__file__).with_name("bin") / "krrlab"
    found = os.environ.get("KRRLAB") or (str(bundled) if bundled.exists() else shutil.which("krrlab"))
    if found and not os.path.isfile(found):
        raise FileNotFoundError(f"the environment variable KRRLAB names no file: {found!r}")
    if not found:
        raise FileNotFoundError("the program krrlab is not in this package and not in the path: install a wheel of a "
                                "release, or set the environment variable KRRLAB to the program")
    return found


def flags(**options: Any) -> list[str]:
    """Return options as flags. An option that is None is omitted. Lists of names are quoted as in CSV."""
    arguments = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = str(value).lower()
        elif not isinstance(value, str) and np.ndim(value):
            value = ",".join('"' + str(item).replace('"', '""') + '"' if re.search('[",\n]', str(item)) else str(item)
                             for item in value)
        arguments.append(f"--{name.replace('_', '-')}={value}")
    return arguments


def run(command: Sequence[str], data: str = "") -> str:
    """Run the program and return its notes and its lines about intervals.

    ``data`` is the file that the program reads. In messages, the file is replaced by "the data", flags by parameters,
    and lines by rows that are counted from 0. The exit status NOT_CONVERGED causes a ConvergenceWarning. Any other
    exit status except 0 raises ValueError, and the end by a signal raises ChildProcessError.
    """
    result = subprocess.run([program(), *command], stdin=subprocess.DEVNULL, capture_output=True,
                            encoding="utf-8", errors="replace")
    if result.returncode not in (0, NOT_CONVERGED):
        if result.returncode < 0:
            raise ChildProcessError(f"the program krrlab was ended by {signal.Signals(-result.returncode).name}"
                                    + (": was there too little memory?" if result.returncode == -signal.SIGKILL
                                       else ""))
        raise ValueError(readable(result.stderr, [*command], data) or "krrlab failed without a message")
    note_lines = [re.sub("^note +", "note: ", line) for line in result.stdout.splitlines(True)
                  if line.startswith(("note: ", "note ", "interval "))]
    notes = result.stderr + "".join(note_lines)
    notes = readable(notes, [*command], data)
    if result.returncode == NOT_CONVERGED:
        text = "\n".join(line for line in notes.splitlines() if not line.startswith(("note: ", "interval ")))
        warnings.warn(text, ConvergenceWarning, stacklevel=stack_level())
    return notes


def stack_level() -> int:
    """Return the level for warnings.warn in the calling function at which the user's code called this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        level, frame = level + 1, frame.f_back
    return level


def report(file: str) -> dict[str, Any]:
    """Read a report of the program, and remove the names of temporary files from it."""
    with open(file) as stream:
        content = json.load(stream)
    for part in [content, *content.get("read", ())]:
        for key in ("source", "file", "dataset"):
            part.pop(key, None)
    return content


def readable(text: str, command: list[str], data: str = "") -> str:
    """Rewrite a message of the program in terms of a call in Python."""
    first_line = 2 if data.endswith(".csv") else 1  # line of row 0
    text = re.sub(r"^krrlab: ", "", text.strip(), flags=re.M)
    if data:
        text = text.replace(data, "the data").replace(os.path.basename(data), "the data")
        text = text.replace(os.path.join(os.path.dirname(data), "model.krr"), "the model")
    text = re.sub(r", line (\d+)\b", lambda m: "" if int(m[1]) < first_line else m[0], text)
    text = re.sub(r"\bline (\d+)", lambda m: f"row {int(m[1]) - first_line}", text)
    text, _, advice = text.partition("; say krrlab ")
    advised_flags = shlex.split(advice)[len(command):]
    if advised_flags:
        values = [f"{parameter(flag[2:])}={value!r}" for flag, value in zip(advised_flags[::2], advised_flags[1::2])]
        text += "; add " + ", ".join(values)
    for pattern, replacement in _PHRASES:
        text = re.sub(pattern, replacement, text, flags=re.M).strip()
    return re.sub(r"--([a-z][a-z0-9-]+)", lambda m: parameter(m[1]), text)


def parameter(flag: str) -> str:
    """Return the name of the parameter in Python for a flag without its hyphens."""
    return PARAMETERS.get(flag, flag.replace("-", "_"))


def main() -> None:
    """Run the program: the command krrlab of the wheel."""
    os.execv(program(), [program(), *sys.argv[1:]])
