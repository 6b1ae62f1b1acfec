"""The estimators as scikit-learn uses them, and their predictions by NumPy beside those of the program."""
import os
import pickle
import tempfile
import unittest
import unittest.mock
import warnings

import numpy as np

import krrlab
from krrlab import KernelRidge, KernelRidgeClassifier, _estimators, _program

LONG = os.environ.get("KRRLAB_LONG", "") != ""
g = np.random.default_rng(1)
X, Z = g.normal(size=(60, 3)) * [1, 10, 100], g.normal(size=(7, 3)) * [1, 10, 100]
y = np.sin(X[:, 0]) + X[:, 1] / 10


class Predictions(unittest.TestCase):
    """NumPy predicts what the program does."""

    def test_program(self):
        gaps = X.copy()
        gaps[3, 1] = np.nan
        cases = [
            (X.astype(np.float32), y, KernelRidge("laplacian", sigma=2)),
            (gaps, y, KernelRidge("matern32", impute="median", sigma=[1, 2, 3], lam=0.1)),
            (X, y, KernelRidge("matern32", sigma=[0.5, -0.2, 0, 0, 1, 0.3, 0.1, 0, 2], lam=0.1)),
            (X, np.digitize(y, [-0.5, 0.5]), KernelRidgeClassifier("matern52", lam=0.1)),
            (X, np.column_stack([y, -y]), KernelRidge("poly", degree=2, gamma=0.1)), (X, y, KernelRidge()),
            (np.asfortranarray(X), y, KernelRidge("gaussian", sigma=1, center="no")),
            (X, y.astype(">f4"), KernelRidge(tune=False)), (X, y, KernelRidge("linear", lam=1)),
            ((X * 10).astype(np.int16), y, KernelRidge(lam=1)), (X, y > 0, KernelRidgeClassifier(lam=0.1)),
        ]
        for k, (x, t, model) in enumerate(cases if LONG else cases[:5]):
            with self.subTest(k=k):
                z = np.where(Z > 50, np.nan, Z) if model.get_params()["impute"] != "none" else Z
                model.fit(x, t)
                ours = model.predict(z), model._decisions(z)
                large, _estimators.LARGE = _estimators.LARGE, 0
                try:
                    np.testing.assert_array_equal(ours[0].shape, model.predict(z).shape)
                    np.testing.assert_allclose(ours[1], model._decisions(z), rtol=1e-4, atol=1e-5)
                finally:
                    _estimators.LARGE = large

    def test_far_points(self):
        """Where inner products would lose digits the program predicts: far from 0, and far apart in terms of sigma."""
        x = np.linspace(0, 1, 50)[:, None]
        for shift, sigma in (1e6, 0.2), (0, 1e-3):
            m = KernelRidge(sigma=sigma, lam=0.1, scale="none", center="no").fit(x + shift, np.sin(x[:, 0]))
            k = np.exp(-(x - x.T) ** 2 / (2 * sigma ** 2))
            want = k @ np.linalg.solve(k + 0.1 * np.eye(50), np.sin(x[:, 0]))
            np.testing.assert_allclose(m.predict(x + shift), want, atol=1e-7)

    def test_scikit_learn(self):
        """The model is that of scikit-learn, by its names of the parameters."""
        from sklearn.kernel_ridge import KernelRidge as Theirs
        from sklearn.model_selection import cross_val_score
        w = g.uniform(0.1, 2, 60)
        for kernel, gamma in (("rbf", 0.3), ("laplacian", 0.2), ("poly", 0.1), ("linear", None))[::1 if LONG else 3]:
            by = dict(kernel=kernel, alpha=0.5, gamma=gamma)
            ours = KernelRidge(**by, scale="none", center="no").fit(X / 10, y)
            np.testing.assert_allclose(ours.predict(Z / 10), Theirs(**by).fit(X / 10, y).predict(Z / 10), atol=1e-6)
        K = np.exp(-((X[:, None] - X) ** 2).sum(2) / 2e3)
        for m in KernelRidge("precomputed", lam=0.5), KernelRidgeClassifier("precomputed", lam=0.5):
            t = y if isinstance(m, KernelRidge) else y > 0
            code = np.where(t, 1, -1) if t.dtype == bool else t - t.mean()
            want = K[:7] @ np.linalg.solve(K + 0.5 * np.eye(60), code)
            want = want > 0 if t.dtype == bool else want + t.mean()
            np.testing.assert_allclose(m.fit(K, t).predict(K[:7]), want, atol=1e-9)
        held = KernelRidge("precomputed", lam=0.5, options={"holdout": 0.3}).fit(K, y)  # columns of rows held out stay
        rows = held.model_.x.ravel().astype(int)
        want = K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)] + 0.5 * np.eye(42), y[rows] - y[rows].mean())
        for m in held, krrlab.load(held.model_):
            np.testing.assert_allclose(m.predict(K), want + y[rows].mean(), atol=1e-9)
        cv = cross_val_score(KernelRidge("precomputed", lam=0.5), K, y, cv=2)
        np.testing.assert_allclose(cv, cross_val_score(KernelRidge("gaussian", sigma=1e3 ** 0.5, lam=0.5, scale="none"),
                                                       X, y, cv=2), atol=1e-6)
        weighted = KernelRidge(alpha=0.5, sigma=1, center="no", scale="none").fit(X / 10, y, w)
        want = Theirs(kernel="rbf", alpha=0.5, gamma=0.5).fit(X / 10, y, w).predict(Z / 10)
        np.testing.assert_allclose(weighted.predict(Z / 10), want, atol=1e-6)

    def test_probabilities(self):
        """They are those of the program, and there only if they were asked for."""
        for t in np.where(y > 0, "b", "a"), np.digitize(y, [-0.5, 0.5]) * 5:
            c = KernelRidgeClassifier(lam=0.1, probability=True).fit(X, t)
            with tempfile.TemporaryDirectory() as folder:
                model, rows, out = (os.path.join(folder, name) for name in ("m.krr", "z.npy", "p.csv"))
                c.model_.save(model)
                np.save(rows, Z)
                _program.run(["predict", model, "--in", rows, "--probabilities", "--out", out])
                want = np.genfromtxt(out, delimiter=",", skip_header=1)[:, -len(c.classes_):]
                again = krrlab.load(model)
            np.testing.assert_allclose(c.predict_proba(Z), want, atol=1e-5)
            np.testing.assert_array_equal(again.predict_proba(Z), c.predict_proba(Z))
            np.testing.assert_array_equal(again.predict(Z), c.predict(Z))
            self.assertEqual(again.predict(Z).dtype.kind, t.dtype.kind)
        self.assertFalse(hasattr(KernelRidgeClassifier(), "predict_proba"))

    def test_threshold(self):
        """NumPy and the program subtract the threshold once, also from what probabilities are made of."""
        labels = np.where(y > 0.5, 3, 12)
        for threshold, metric, is_zero in ((None, "auto", True), (None, "f1", False), (0.0, "f1", True)):
            c = KernelRidgeClassifier(lam=0.1, metric=metric, threshold=threshold).fit(X, labels)
            self.assertEqual(c.meta.get("threshold", 0) == 0, is_zero)
        three = KernelRidgeClassifier(lam=0.1, threshold=0.0).fit(X, np.digitize(y, [-0.5, 0.5]))
        self.assertEqual(len(three.classes_), 3)
        c = KernelRidgeClassifier(lam=0.1, sigma=1, threshold=-0.4, options={"holdout": 0.3, "calibrate": "test"})
        c.fit(X, labels)
        again, f = krrlab.load(c.model_), c.decision_function(Z)
        p, chosen = again.predict_proba(Z), c.predict(Z)
        plain = KernelRidgeClassifier(lam=0.1, sigma=1, options={"holdout": 0.3}).fit(X, labels)
        np.testing.assert_allclose(f, plain.decision_function(Z) + 0.4, atol=1e-9)
        with unittest.mock.patch.object(_estimators, "LARGE", 0):
            np.testing.assert_allclose(c.decision_function(Z), f, atol=1e-4)
            np.testing.assert_allclose(again.predict_proba(Z), p, atol=1e-4)
            self.assertGreater(np.mean(c.predict(Z) == chosen), 0.99)
        columns, _ = again._run_predict(again._read(Z), probabilities=True)
        np.testing.assert_allclose(columns[:, 1:].astype(float), p, atol=1e-4)

    def test_intervals(self):
        """Standard deviations and intervals are those of dense linear algebra."""
        lam, noisy = 0.1, y + 0.3 * g.normal(size=len(y))
        model = KernelRidge("gaussian", sigma=1, lam=lam, scale="standard", center="no", solver="direct").fit(X, noisy)
        scaled, rows = ((x - X.mean(0)) / X.std(0) for x in (X, Z))

        def kernel(a, b):
            return np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(2))

        inverse = np.linalg.inv(kernel(scaled, scaled) + lam * np.eye(len(X)))
        c, k = inverse @ noisy, kernel(rows, scaled)
        variance = np.mean(c ** 2 / np.diag(inverse)) * (1 - np.einsum("ij,jk,ik->i", k, inverse, k))
        f, std = model.predict(Z, return_std=True)
        np.testing.assert_allclose(f, k @ c, atol=1e-5)
        np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-5)
        left = np.empty((len(X), len(Z))), np.empty(len(X))
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            part = np.linalg.solve(kernel(scaled[others], scaled[others]) + lam * np.eye(len(X) - 1), noisy[others])
            left[0][i], left[1][i] = k[:, others] @ part, abs(noisy[i] - kernel(scaled[i:i + 1], scaled[others]) @ part)
        low = np.sort(left[0] - left[1][:, None], axis=0)[int(0.2 * (len(X) + 1)) - 1]
        high = np.sort(left[0] + left[1][:, None], axis=0)[int(np.ceil(0.8 * (len(X) + 1))) - 1]
        np.testing.assert_allclose(model.predict_interval(Z, 0.8), np.column_stack([low, high]), atol=1e-5)
        model.predict(Z, return_std=True)
        self.assertRegex(model.interval_, "^80 % by jackknife.*probability 0.6 at least")
        labels = np.digitize(noisy, [-0.5, 0.5])
        classes = KernelRidgeClassifier(lam=0.1, probability=True).fit(X, labels)
        sets = classes.predict_set(X, 0.9)
        self.assertTrue(sets[np.arange(len(X)), classes.predict(X)].all())
        self.assertGreaterEqual(sets[np.arange(len(X)), labels].mean(), 0.9)
        self.assertIn("not guaranteed", classes.interval_)
        with self.assertRaisesRegex(ValueError, "level == 90"):
            model.predict_interval(Z, 90)
        self.assertFalse(hasattr(model.fit(X, noisy[:, None]), "interval_"))
        self.assertEqual([v.shape for v in model.predict(Z, return_std=True)], [(len(Z), 1), (len(Z),)])


class ScikitLearn(unittest.TestCase):
    def test_check_estimator(self):
        """All checks of scikit-learn pass; a short run takes every tenth, and searches for no parameters."""
        from sklearn.utils.estimator_checks import check_estimator
        tune = "auto" if LONG else False
        for estimator in KernelRidge(tune=tune), KernelRidgeClassifier(tune=tune):
            for k, (instance, check) in enumerate(check_estimator(estimator, generate_only=True)):
                if LONG or k % 10 == 0:
                    with self.subTest(check=check), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        check(instance)

    def test_search(self):
        """A grid over kernel, sigma and lam, in a pipeline that codes a frame of words, dates and gaps."""
        from sklearn.compose import ColumnTransformer
        from sklearn.model_selection import GridSearchCV, KFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder
        frame, target = table()
        code = ColumnTransformer([("city", OneHotEncoder(sparse_output=False), ["city"])], remainder="passthrough",
                                 verbose_feature_names_out=False).set_output(transform="pandas")
        search = GridSearchCV(make_pipeline(code, KernelRidge(impute="median")),
                              {"kernelridge__kernel": ["rbf", "matern52"], "kernelridge__sigma": [2.0],
                               "kernelridge__lam": [0.01, 1.0]} if LONG else {"kernelridge__lam": [0.01, 1.0]},
                              cv=KFold(2, shuffle=True, random_state=0))
        search.fit(frame, target)
        self.assertGreater(search.best_score_, 0.6)
        inner = search.best_estimator_[-1]
        self.assertEqual(list(inner.feature_names_in_), ["city_New York", "city_ulm", "when", "x", "gap"])

    def test_jobs(self):
        """Processes of joblib fit and predict."""
        from joblib import Parallel, delayed, parallel_backend
        from sklearn.model_selection import cross_val_score
        if LONG:
            with parallel_backend("loky", n_jobs=2):
                self.assertEqual(cross_val_score(KernelRidge(lam=0.01, threads=1), X, y, cv=2).shape, (2,))
        m = KernelRidge(lam=0.01).fit(X, y)
        for p in Parallel(2, "multiprocessing")(delayed(m.predict)(Z) for _ in range(2)):
            np.testing.assert_array_equal(p, m.predict(Z))

    def test_pickle(self):
        """A pickled model needs no file of the fit, and is a model file."""
        frame, target = table()
        m = KernelRidge(lam=0.01, impute="mean").fit(frame, target)
        text = pickle.dumps(m)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                again = pickle.loads(text)
                np.testing.assert_array_equal(again.predict(frame), m.predict(frame))
                again.model_.save("m.krr")
                loaded = krrlab.load("m.krr")
                self.assertEqual(loaded.column_kinds_, m.column_kinds_)
                np.testing.assert_array_equal(loaded.predict(frame), m.predict(frame))
                self.assertEqual(os.listdir(), ["m.krr"])
            finally:
                os.chdir(here)

    def test_convergence(self):
        """A solve that misses its tolerance warns, and says it in the words of Python."""
        from sklearn.exceptions import ConvergenceWarning
        for call in KernelRidge(lam=1e-9, sigma=1, solver="cg", max_iter=2).fit, lambda X, y: krrlab.fit(
                X, y, lam=1e-9, sigma=1, solver="cg", max_iter=2):
            with self.assertWarnsRegex(ConvergenceWarning, "max_iter") as caught:
                call(X, y)
            self.assertNotRegex(str(caught.warning), "--|note")
            self.assertEqual(caught.filename, __file__)


class Messages(unittest.TestCase):
    """Errors are in terms of Python."""

    def refused(self, text, call):
        with self.assertRaisesRegex(ValueError, text) as caught:
            call()
        message = str(caught.exception)
        self.assertNotRegex(message, r"--[a-z]|/tmp|\.csv|\.npz|krrlab-|flag|Register|interval: |kernel: kernel")

    def test_messages(self):
        for text, call in [
            ("sigma", lambda: KernelRidge(sigma=-1).fit(X, y)),
            ("lam", lambda: KernelRidge(lam=-1).fit(X, y)),
            ("lam and alpha are two names", lambda: KernelRidge(lam=1, alpha=1).fit(X, y)),
            (r'^kernel: unknown kernel "gausian", want one of gaussian \(or rbf\).* linear, precomputed$',
             lambda: KernelRidge("gausian").fit(X, y)),
            ("gamma is not defined for the kernel matern32", lambda: KernelRidge("matern32", gamma=1).fit(X, y)),
            ("column 2, row 1", lambda: KernelRidge().fit(np.where(X == X[1, 2], np.nan, X), y)),
            ("square matrix. Input is a 60x3", lambda: KernelRidge("precomputed").fit(X, y)),
            ("Input y contains NaN", lambda: KernelRidge().fit(X, np.where(y > 1, np.nan, y))),
            ("Unknown label type", lambda: KernelRidgeClassifier().fit(X, y)),
            ("one class only, 1", lambda: KernelRidgeClassifier().fit(X, np.ones(60, int))),
            ("probability=True does not go",
             lambda: KernelRidgeClassifier(probability=True).fit(X, y > 0, np.ones(60))),
            ("unknown option: storag; did you mean storage",
             lambda: KernelRidge(lam=1, options={"storag": "float32"}).fit(X, y)),
            ("alpha == 0, must be a number > 0$", lambda: KernelRidge(alpha=0).fit(X, y)),
            (r"alpha == \[1, 2\], must be a number", lambda: KernelRidge(alpha=[1, 2]).fit(X, y)),
            ("gamma == 'scale', must be a number", lambda: KernelRidge(gamma="scale").fit(X, y)),
            ("level == '90%', must be a number", lambda: KernelRidge(lam=1).fit(X, y).predict_interval(Z, "90%")),
            ("^holdout 2: want a number between", lambda: KernelRidge(lam=1, options={"holdout": 2}).fit(X, y)),
            ("take the Gaussian kernel, matern52 or another method$", lambda: KernelRidge("laplacian", sigma=1, lam=1, solver="fourier").fit(X, y)),
            ("NaN: column 0, row 0.$", lambda: KernelRidge("precomputed").fit(np.full((2, 2), np.nan), y[:2])),
            ("NaN: the coordinate in column 0, row 0", lambda: KernelRidge(space=[0]).fit(X * np.nan, y)),
            ("'lambda': it is the parameter lam$", lambda: KernelRidge(options={"lambda": 3}).fit(X, y)),
            ("'max-iter': it is the parameter max_iter$", lambda: KernelRidge(options={"max-iter": 3}).fit(X, y)),
            ("'data': KernelRidge sets this", lambda: KernelRidge(options={"data": "mnist"}).fit(X, y)),
            ("options == 'fast', must be a dict", lambda: KernelRidge(options="fast").fit(X, y)),
            (r"has no length scale$", lambda: KernelRidge("linear", sigma=2).fit(X, y)),
            ("^kernel='precomputed' and sigma exclude", lambda: KernelRidge("precomputed", sigma=2).fit(X @ X.T, y)),
            ("^K is not symmetric", lambda: KernelRidge("precomputed").fit(np.triu(X @ X.T), y)),
            (r"y has shape \(60, 0\)", lambda: KernelRidge().fit(X, np.zeros((60, 0)))),
            ("degree == 2.5, must be a whole number", lambda: KernelRidge("poly", degree=2.5).fit(X, y)),
            ("random_state == 'x', must be", lambda: KernelRidge(random_state="x").fit(X, y)),
            (r"^the model has no scores.*options={'holdout': 0.2}, or take method jackknife\+$",
             lambda: KernelRidge(lam=1).fit(X, y).predict_interval(Z, method="split")),
            ("^the model was fitted with weights",
             lambda: KernelRidge(lam=1).fit(X, y, 1 + X[:, 0] ** 2).predict_interval(Z)),
            ("no model file of krrlab fit$", lambda: krrlab.load(__file__)),
            ("too large to be squared", lambda: KernelRidge().fit(X, y * 1e200)),
        ]:
            with self.subTest(text=text):
                self.refused(text, call)


    def test_signal(self):
        """A program that is killed is no error of the data."""
        with tempfile.TemporaryDirectory() as folder:
            killed = os.path.join(folder, "krrlab")
            with open(killed, "w") as script:
                script.write("#!/bin/sh\nkill -9 $$\n")
            os.chmod(killed, 0o755)
            with unittest.mock.patch.dict(os.environ, KRRLAB=killed + "2"):
                with self.assertRaisesRegex(FileNotFoundError, "variable KRRLAB names no file"):
                    KernelRidge(lam=1).fit(X, y)
            with unittest.mock.patch.dict(os.environ, KRRLAB=killed):
                with self.assertRaisesRegex(ChildProcessError, "SIGKILL: was there too little memory"):
                    KernelRidge(lam=1).fit(X, y)


class Parameters(unittest.TestCase):
    def test_values(self):
        """Parameters may be numbers of NumPy, of any type and in arrays without a dimension."""
        want = KernelRidge("poly", degree=2, lam=0.5, gamma=0.5, random_state=3).fit(X, y).predict(Z)
        for number in np.float64, np.float32, np.array:
            m = KernelRidge("poly", degree=number(2.0), lam=number(0.5), gamma=number(0.5), random_state=np.int8(3))
            np.testing.assert_array_equal(m.fit(X, y).predict(Z), want)
        L = np.array([[0.5, -0.2, 0], [0, 1, 0.3], [0.1, 0, 2]])
        for matrix in L, L.tolist():
            np.testing.assert_array_equal(KernelRidge(sigma=matrix, lam=1).fit(X, y).predict(Z),
                                          KernelRidge(sigma=L.ravel(), lam=1).fit(X, y).predict(Z))
        seeds = [KernelRidge(lam=1, random_state=seed).fit(X, y).report_["seed"] for seed in
                 (np.random.RandomState(3), np.random.default_rng(3), np.random.default_rng(3), 2 ** 63)]
        self.assertEqual(seeds[1], seeds[2])
        self.assertEqual(seeds[3], 2 ** 63)


def table():
    """A frame of words, dates and gaps, and its target."""
    import pandas as pd
    n, r = 60, np.random.default_rng(2)
    frame = pd.DataFrame({"city": r.choice(["ulm", "New York"], n), "when": pd.date_range("2024-01-01", periods=n),
                          "x": r.normal(size=n), "gap": np.where(r.random(n) < 0.1, np.nan, r.normal(size=n))})
    return frame, pd.Series(np.sin(frame.x) + (frame.city == "ulm") + 0.01 * np.arange(n))


class Short(unittest.TestCase):
    def test_fit(self):
        """krrlab.fit chooses the estimator by the answers, as the program does, and writes a file that Model reads."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "m.krr")
            words = np.where(y > 0, "yes", "no")
            for t, kind in [(words, "U"), (y > 0, "b"), ((y > 0).astype(int), "i"), (y, "f"), (np.arange(60), "f")]:
                model = krrlab.fit(X, t, file, lambda_=0.1, sigma=[1, 2, 3], storage="float64", seed=2)
                self.assertEqual((model.predict(Z).dtype.kind, model.meta["n"], model.lam_), (kind, 60, 0.1))
                np.testing.assert_array_equal(krrlab.Model(file).predict(Z).astype(str), model.predict(Z).astype(str))
        self.assertEqual(krrlab.fit(X, np.column_stack([y, -y]), lam=1).predict(Z).shape, (7, 2))
        self.assertEqual(krrlab.fit(X, (y > 0).astype(int), task="regression", lam=1).predict(Z).dtype.kind, "f")
        notes = krrlab.fit(X, y, lam=1, verbose=True).report_["notes"]
        self.assertIn("no test data: options={'holdout': 0.2} shows how", "".join(notes))
        held = krrlab.fit(X, y, lam=1, options={"holdout": 0.2}, storage="float64")
        self.assertEqual(held.meta["n"], 48)
        with self.assertRaisesRegex(ValueError, "task"):
            krrlab.fit(X, y, task="both")


class Explain(unittest.TestCase):
    def test_sklearn(self):
        """krrlab explain agrees with scikit-learn's importance of the same model, and with its mean predictions."""
        from sklearn.inspection import permutation_importance
        import pandas as pd
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = KernelRidge(sigma=1, lam=0.1).fit(frame[:30], y[:30])
        with tempfile.TemporaryDirectory() as folder:
            rows, file, out = (os.path.join(folder, name) for name in ("rows.csv", "m.krr", "e.json"))
            model.model_.save(file)
            frame[30:].assign(y=y[30:]).to_csv(rows, index=False)
            _program.run(["explain", file, "--in", rows, "--target", "y", "--permutations", "40", "--top", "1", "--json",
                          out], rows)
            report = _program.report(out)
        theirs = permutation_importance(model, frame[30:], y[30:], scoring="neg_root_mean_squared_error", n_repeats=40,
                                        random_state=1)
        for column in report["columns"]:
            k = list(frame).index(column["column"])
            error = np.hypot(column["deviation"], theirs.importances_std[k]) / 40 ** 0.5
            self.assertLess(abs(column["importance"] - theirs.importances_mean[k]), 4 * error)
        first = report["dependence"][0]
        for value, mean in zip(first["values"], first["curves"][0]["mean"]):
            self.assertAlmostEqual(model.predict(frame[30:].assign(**{first["column"]: value})).mean(), mean, places=4)
