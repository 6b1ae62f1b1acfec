#!/usr/bin/python3
"""Benchmarks krrlab, NumPy and scikit-learn on MNIST; `make bench-peers` runs this script.

In each repetition it runs every program once, one after the other, with the same n, sigma,
lambda, lambda_p, s and tolerance. It prints the medians over the repetitions:

  krrlab        the binary with the random features of the NumPy row, with the other methods
                that its `fit --help` lists (Nystrom, RPCholesky, block PCG, 16-bit tiles),
                and with the method, s and lambda_p that it chooses automatically
  NumPy         krr_numpy.py with random features and with Nystrom
  scikit-learn  krr_sklearn.py --mnist: KernelRidge in float64

It also prints ratios: the seconds and the memory of each program relative to the first row
of krrlab, and of each peer relative to the best row of krrlab. The total seconds are those
that the program reports, from reading the files to the test error; krrlab's total includes
a check of the true residual.

The script needs $KRRLAB_DATA/mnist, numpy and scikit-learn; on Debian: apt-get install
python3-sklearn
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MNIST = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]

# Rows of krrlab: the name, and the flags of the run. A row is left out if the binary does not
# know one of the values. Ratios are relative to the first row. "rank": "half" means the rank s/2.
KRRLAB = (
    ("krrlab, random features", {"precond": "features", "solver": "pcg", "storage": "float32"}),
    ("krrlab, Nystrom", {"precond": "nystrom", "solver": "pcg", "storage": "float32"}),
    ("krrlab, RPCholesky", {"precond": "rpcholesky", "solver": "pcg", "storage": "float32"}),
    ("krrlab, RPCholesky, half the rank", {"precond": "rpcholesky", "solver": "pcg", "storage": "float32", "rank": "half"}),
    ("krrlab, RPCholesky, block PCG", {"precond": "rpcholesky", "solver": "block-pcg", "storage": "float32"}),
    ("krrlab, RPCholesky, 16-bit tiles", {"precond": "rpcholesky", "solver": "pcg", "storage": "fixed16"}),
    ("krrlab, RPCholesky, block PCG, 16-bit tiles", {"precond": "rpcholesky", "solver": "block-pcg", "storage": "fixed16"}),
    ("krrlab, direct", {"solver": "direct", "storage": "float32"}),
    ("krrlab, its own choice", {"precond": "auto", "solver": "auto"}),
)


def fail(message):
    """Ends the program with a message."""
    sys.exit("bench-peers: " + message)


def check(args):
    """Ends the program with a message if the binary, the data or numpy is missing."""
    if not os.access(args.krrlab, os.X_OK):
        fail(f"{args.krrlab} is not there: make build")
    root = os.environ.get("KRRLAB_DATA")
    if not root:
        fail("KRRLAB_DATA is not set: it names the folder that holds mnist/ (krrlab data info mnist)")
    for name in MNIST:
        path = os.path.join(root, "mnist", name)
        if not os.path.exists(path) and not os.path.exists(path + ".gz"):
            fail(f"no {path}.gz (krrlab data info mnist)")
    if importlib.util.find_spec("numpy") is None:
        fail("no numpy: apt-get install python3-numpy")


def programs(args):
    """Returns the rows: a name, the command, and whether the program is krrlab."""
    known = subprocess.run([args.krrlab, "fit", "--help"], capture_output=True, text=True).stdout
    common = ["--sigma", str(args.sigma), "--lambda", str(args.ridge)]
    free = [*common, "--n", str(args.n), "--tol", str(args.tol), "--seed", "1"]
    rows = []
    for name, flags in KRRLAB:
        flags = dict(flags)
        rank = max(1, args.features // 2) if flags.pop("rank", None) else args.features
        lacks = [value for value in flags.values() if value not in known]
        if lacks:
            print(f"bench-peers: left out: {name}: this krrlab has no {', '.join(lacks)}", flush=True)
            continue
        if flags.get("precond", "auto") != "auto":
            flags["precond"] += f" features={rank} lambda-p={args.lambda_p}"
        words = [word for flag, value in flags.items() for word in ("--" + flag, value)]
        rows.append((name, [args.krrlab, "fit", "--data", "mnist", *free, *words], True))
    shared = [*free, "--features", str(args.features), "--lambda-p", str(args.lambda_p)]
    for precond, name in (("features", "NumPy, random features"), ("nystrom", "NumPy, Nystrom")):
        rows.append((name, [sys.executable, os.path.join(HERE, "krr_numpy.py"), *shared, "--precond", precond], False))
    if importlib.util.find_spec("sklearn") is None:
        print("bench-peers: left out: scikit-learn: apt-get install python3-sklearn", flush=True)
    elif available() and 17 * args.n**2 > available():
        print(f"bench-peers: left out: scikit-learn: needs {17 * args.n**2 / 1e9:.1f} GB, {available() / 1e9:.1f} GB are free", flush=True)
    else:
        rows.append(("scikit-learn", [sys.executable, os.path.join(HERE, "krr_sklearn.py"), "--mnist", str(args.n), *common], False))
    return [row for row in rows if not args.only or any(word in row[0] for word in args.only.split(","))]


def available():
    """Returns the bytes of memory that are free for a new program, or None if they are unknown."""
    try:
        with open("/proc/meminfo") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def run(name, command, folder):
    """Runs a command and returns its report. If there is none, prints the reason and returns None."""
    report_file = os.path.join(folder, "report.json")
    if os.path.exists(report_file):
        os.remove(report_file)
    process = subprocess.run([*command, "--json", report_file], capture_output=True, text=True)
    if not os.path.exists(report_file):
        lines = (process.stderr.strip() or f"exit status {process.returncode}").splitlines()
        print(f"bench-peers: {name} failed: {lines[-1]}", flush=True)
        return None
    with open(report_file) as f:
        report = json.load(f)
    if process.returncode != 0:
        reason = process.stderr.strip() or f"exit status {process.returncode}"
        print(f"bench-peers: {name}: {report.get('status') or 'failed'}: {reason}", flush=True)
    return report


def summary(name, ours, reports):
    """Returns a row of the table: the medians over the repetitions of one program."""

    def median_of(field):
        values = [field(r) for r in reports]
        return None if any(x is None for x in values) else statistics.median(values)

    seconds = {k: median_of(lambda r: r["seconds"].get(k)) for k in ("total", "kernel", "features", "factor", "solve", "predict")}
    iterations = median_of(lambda r: r.get("iterations")) or None
    statuses = {r.get("status") or "solved" for r in reports} - {"converged", "solved"}
    return {
        "name": name, "krrlab": ours, **seconds, "iterations": iterations, "ended": ", ".join(sorted(statuses)),
        "iteration": seconds["solve"] / iterations if iterations else None,
        "error": median_of(lambda r: r.get("test_error")), "bytes": median_of(lambda r: r["peak_bytes"]),
    }


def ratio(numerator, denominator):
    """Returns the quotient, or None if one of the numbers is unknown or 0."""
    return numerator / denominator if numerator and denominator else None


def table(rows):
    """Returns the rows of cells of the table, with the heading first."""
    base = rows[0]
    head = ["program", "total s", "K", "Z", "factor", "iterations", "s/iteration", "predict", "test error", "peak GB",
            "x total", "x iteration", "x memory"]

    def number(value, format_spec):
        return "" if value is None else format(value, format_spec)

    cells = [head]
    for row in rows:
        cells.append([
            row["name"] + (f" ({row['ended']})" if row["ended"] else ""),
            number(row["total"], ".1f"), number(row["kernel"], ".1f"), number(row["features"], ".1f"),
            number(row["factor"], ".1f"), number(row["iterations"], ".0f"), number(row["iteration"], ".3f"), number(row["predict"], ".1f"),
            number(row["error"], ".2%"), number((row["bytes"] or 0) / 1e9, ".2f"), number(ratio(row["total"], base["total"]), ".2f"),
            number(ratio(row["iteration"], base["iteration"]), ".2f"), number(ratio(row["bytes"], base["bytes"]), ".2f"),
        ])
    return cells


def text(cells):
    """Formats the table as aligned text."""
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]) + "\n"


def markdown(cells):
    """Formats the table in Markdown."""
    separator = ["---"] + ["---:"] * (len(cells[0]) - 1)
    return "".join("| " + " | ".join(row) + " |\n" for row in [cells[0], separator, *cells[1:]])


def ratios(rows):
    """Returns sentences that compare the seconds and the memory of each peer with rows of krrlab."""
    krrlab_rows = [row for row in rows if row["krrlab"] and not row["ended"]]
    if not krrlab_rows:
        return ""
    best = min(krrlab_rows, key=lambda row: row["total"])
    lines = []
    for row in rows:
        for other in [] if row["krrlab"] else dict.fromkeys((krrlab_rows[0]["name"], best["name"])):
            reference = next(krrlab_row for krrlab_row in krrlab_rows if krrlab_row["name"] == other)
            line = f"{row['name']} takes {ratio(row['total'], reference['total']):.1f} times the seconds"
            if ratio(row["iteration"], reference["iteration"]):
                line += f", {ratio(row['iteration'], reference['iteration']):.1f} times those of an iteration"
            lines.append(line + f" and {ratio(row['bytes'], reference['bytes']):.1f} times the memory of {other}.")
    return "\n".join(lines) + "\n"


def write(folder, name, content):
    """Writes a file, creating the folder if necessary."""
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w") as file:
            file.write(content)
    except OSError as error:
        fail(f"cannot write {os.path.join(folder, name)}: {error.strerror}")
    print("wrote", os.path.join(folder, name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--krrlab", default="bin/krrlab", help="the binary (bin/krrlab)")
    parser.add_argument("--n", type=int, default=20000, help="training points (20000)")
    parser.add_argument("--features", type=int, help="features, or rank, s (n/10)")
    parser.add_argument("--sigma", type=float, default=8.5)
    parser.add_argument("--lambda", dest="ridge", type=float, default=0.01)
    parser.add_argument("--lambda-p", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--repeat", type=int, default=1, help="repetitions (1)")
    parser.add_argument("--only", metavar="WORD,...", help="only rows whose name has one of the words")
    parser.add_argument("--dir", default="out", help="where the tables go (out)")
    args = parser.parse_args()
    if args.n < 10 or args.repeat < 1:
        parser.error(f"--n {args.n} --repeat {args.repeat}: want at least 10 and 1")
    args.features = args.features or args.n // 10
    check(args)
    rows = programs(args)
    reports = {name: [] for name, _, _ in rows}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.repeat):
            for name, command, _ in rows:
                report = run(name, command, folder)
                if report:
                    reports[name].append(report)
                    print(f"{i + 1}/{args.repeat}  {name}: {report['seconds']['total']:.1f} s", flush=True)
    done = [summary(name, ours, reports[name]) for name, _, ours in rows if reports[name]]
    if not done:
        fail("nothing ran")
    title = f"MNIST, n = {args.n}, s = {args.features}, sigma = {args.sigma:g}, lambda = {args.ridge:g}, "
    title += f"lambda_p = {args.lambda_p:g}, tolerance {args.tol:g}, medians of {args.repeat}"
    cells, lines = table(done), ratios(done)
    print("\n" + title + "\n\n" + text(cells) + "\n" + lines)
    write(args.dir, "bench-peers.txt", title + "\n\n" + text(cells) + "\n" + lines)
    write(args.dir, "bench-peers.md", title + "\n\n" + markdown(cells) + "\n" + lines.replace("\n", "\n\n").rstrip() + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
