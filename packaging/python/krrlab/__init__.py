"""Kernel ridge regression by sketching and preconditioning, in Python.

``KernelRidge`` and ``KernelRidgeClassifier`` are estimators of scikit-learn; ``preconditioner`` and ``gram`` are linear
operators of SciPy; ``compare`` and ``quality`` judge preconditioners, also those written in Python. The
wheel contains the program krrlab, which computes. The only other requirement is NumPy. See docs/python.md.
"""
from ._estimators import KernelRidge, KernelRidgeClassifier, fit, load
from ._model import Model
from ._operators import Quality, compare, gram, preconditioner, quality
from ._program import ConvergenceWarning, program

__all__ = ["ConvergenceWarning", "KernelRidge", "KernelRidgeClassifier", "Model", "Quality", "compare", "fit", "gram",
           "load", "preconditioner", "program", "quality"]
