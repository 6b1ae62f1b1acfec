"""Prints the performance profile of a testbed: python3 profile.py testbed.jsonl [level [n [names]]]

Level 0 is the residual 1e-2, level 1 is 1e-3 and so on. names is a regular expression for the preconditioners to compare.
Only problems on which all of them were run are counted."""
import json
import re
import sys
from collections import defaultdict

import numpy as np

# make bench-plan tunes auto on these problems, so they are also reported apart from the others
FITTED = ("abalone usps mnist ijcnn1 adult covtype-sample covtype7-sample cal-housing protein pairs curve clusters "
          "cal-laplacian").split()
level = int(sys.argv[2]) if len(sys.argv) > 2 else 1
size = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
wanted = re.compile(sys.argv[4] if len(sys.argv) > 4 else "(?!field)")
runs = defaultdict(list)
for line in open(sys.argv[1]):
    run = json.loads(line)
    if run["n"] > size or 2 * run["n"] < size or not wanted.match(run["preconditioner"]):
        continue
    product, reached = 2 * run["n"] ** 2, run["iterations_to"]
    work = np.inf
    if not run.get("failed") and len(reached) > level:
        work = (run.get("build_flops", 0) + reached[level] * (product + run.get("apply_flops", 0))) / product
        if run["preconditioner"] != "none" and not run.get("apply_flops"):
            work = np.nan
    runs[(run["problem"], run["lambda"]), run["preconditioner"], run["rank"]].append(work)

cost = defaultdict(dict)  # problem -> preconditioner -> the smallest median over the draws, of all ranks
for (problem, name, _), draws in runs.items():
    median = sorted(draws)[(len(draws) - 1) // 2]
    cost[problem][name] = min(median, cost[problem].get(name, np.inf))
names = list(dict.fromkeys(name for costs in cost.values() for name in costs))
cost = {problem: costs for problem, costs in cost.items() if len(costs) == len(names)}
table = np.array([[costs.get(name, np.nan) for name in names] for costs in cost.values()])
ratio = table / np.nanmin(table, axis=1, keepdims=True)
fitted = np.array([problem in FITTED for problem, _ in cost])
for title, part in ("", fitted | True), (" that auto was fitted to", fitted), (" kept aside", ~fitted):
    print(f"{part.sum()} problems{title}; share solved with at most 1, 2, 5, 10 times the least work, and at all")
    for name, ratios in zip(names, ratio[part].T if part.any() else ()):
        print(f"{name:28s}", *(f"{100 * np.mean(ratios <= most):5.0f} %" for most in (1, 2, 5, 10, 1e300)))
