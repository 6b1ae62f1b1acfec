"""Tests of the estimators in scikit-learn, and comparisons of predictions by NumPy and by the program."""
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
rng = np.random.default_rng(1)
X, Z = rng.normal(size=(60, 3)) * [1, 10, 100], rng.normal(size=(7, 3)) * [1, 10, 100]
y = np.sin(X[:, 0]) + X[:, 1] / 10


class Predictions(unittest.TestCase):
    """Predictions by NumPy equal those of the program."""

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
        for index, (rows, targets, model) in enumerate(cases if LONG else cases[:5]):
            with self.subTest(k=index):
                z = np.where(Z > 50, np.nan, Z) if model.get_params()["impute"] != "none" else Z
                model.fit(rows, targets)
                by_numpy = model.predict(z), model._decisions(z)
                limit, _estimators.LARGE = _estimators.LARGE, 0
                try:
                    np.testing.assert_array_equal(by_numpy[0].shape, model.predict(z).shape)
                    np.testing.assert_allclose(by_numpy[1], model._decisions(z), rtol=1e-4, atol=1e-5)
                finally:
                    _estimators.LARGE = limit

    def test_far_points(self):
        """The program predicts if inner products would be inaccurate: far from 0, or for distances of many sigmas."""
        x = np.linspace(0, 1, 50)[:, None]
        for shift, sigma in (1e6, 0.2), (0, 1e-3):
            regressor = KernelRidge(sigma=sigma, lam=0.1, scale="none", center="no").fit(x + shift, np.sin(x[:, 0]))
            K = np.exp(-(x - x.T) ** 2 / (2 * sigma ** 2))
            expected = K @ np.linalg.solve(K + 0.1 * np.eye(50), np.sin(x[:, 0]))
            np.testing.assert_allclose(regressor.predict(x + shift), expected, atol=1e-7)

    def test_scikit_learn(self):
        """With the parameter names of scikit-learn, the model equals that of scikit-learn."""
        from sklearn.kernel_ridge import KernelRidge as Theirs
        from sklearn.model_selection import cross_val_score
        weights = rng.uniform(0.1, 2, 60)
        for kernel, gamma in (("rbf", 0.3), ("laplacian", 0.2), ("poly", 0.1), ("linear", None))[::1 if LONG else 3]:
            parameters = dict(kernel=kernel, alpha=0.5, gamma=gamma)
            ours = KernelRidge(**parameters, scale="none", center="no").fit(X / 10, y)
            np.testing.assert_allclose(ours.predict(Z / 10), Theirs(**parameters).fit(X / 10, y).predict(Z / 10),
                                       atol=1e-6)
        K = np.exp(-((X[:, None] - X) ** 2).sum(2) / 2e3)
        for estimator in KernelRidge("precomputed", lam=0.5), KernelRidgeClassifier("precomputed", lam=0.5):
            targets = y if isinstance(estimator, KernelRidge) else y > 0
            code = np.where(targets, 1, -1) if targets.dtype == bool else targets - targets.mean()
            want = K[:7] @ np.linalg.solve(K + 0.5 * np.eye(60), code)
            want = want > 0 if targets.dtype == bool else want + targets.mean()
            np.testing.assert_allclose(estimator.fit(K, targets).predict(K[:7]), want, atol=1e-9)
        # The precomputed kernel keeps the columns of the rows that are held out.
        holdout_model = KernelRidge("precomputed", lam=0.5, options={"holdout": 0.3}).fit(K, y)
        rows = holdout_model.model_.x.ravel().astype(int)
        want = K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)] + 0.5 * np.eye(42), y[rows] - y[rows].mean())
        for estimator in holdout_model, krrlab.load(holdout_model.model_):
            np.testing.assert_allclose(estimator.predict(K), want + y[rows].mean(), atol=1e-9)
        cv = cross_val_score(KernelRidge("precomputed", lam=0.5), K, y, cv=2)
        np.testing.assert_allclose(cv, cross_val_score(KernelRidge("gaussian", sigma=1e3 ** 0.5, lam=0.5, scale="none"),
                                                       X, y, cv=2), atol=1e-6)
        weighted = KernelRidge(alpha=0.5, sigma=1, center="no", scale="none").fit(X / 10, y, weights)
        want = Theirs(kernel="rbf", alpha=0.5, gamma=0.5).fit(X / 10, y, weights).predict(Z / 10)
        np.testing.assert_allclose(weighted.predict(Z / 10), want, atol=1e-6)

    def test_probabilities(self):
        """Probabilities equal those of the program, and exist only with the parameter probability."""
        for targets in np.where(y > 0, "b", "a"), np.digitize(y, [-0.5, 0.5]) * 5:
            classifier = KernelRidgeClassifier(lam=0.1, probability=True).fit(X, targets)
            with tempfile.TemporaryDirectory() as folder:
                model, rows, out = (os.path.join(folder, name) for name in ("m.krr", "z.npy", "p.csv"))
                classifier.model_.save(model)
                np.save(rows, Z)
                _program.run(["predict", model, "--in", rows, "--probabilities", "--out", out])
                expected = np.genfromtxt(out, delimiter=",", skip_header=1)[:, -len(classifier.classes_):]
                again = krrlab.load(model)
            np.testing.assert_allclose(classifier.predict_proba(Z), expected, atol=1e-5)
            np.testing.assert_array_equal(again.predict_proba(Z), classifier.predict_proba(Z))
            np.testing.assert_array_equal(again.predict(Z), classifier.predict(Z))
            self.assertEqual(again.predict(Z).dtype.kind, targets.dtype.kind)
        self.assertFalse(hasattr(KernelRidgeClassifier(), "predict_proba"))

    def test_threshold(self):
        """NumPy and the program subtract the threshold once, also before they compute probabilities."""
        labels = np.where(y > 0.5, 3, 12)
        for threshold, metric, is_zero in ((None, "auto", True), (None, "f1", False), (0.0, "f1", True)):
            classifier = KernelRidgeClassifier(lam=0.1, metric=metric, threshold=threshold).fit(X, labels)
            self.assertEqual(classifier.meta.get("threshold", 0) == 0, is_zero)
        three = KernelRidgeClassifier(lam=0.1, threshold=0.0).fit(X, np.digitize(y, [-0.5, 0.5]))
        self.assertEqual(len(three.classes_), 3)
        classifier = KernelRidgeClassifier(lam=0.1, sigma=1, threshold=-0.4,
                                           options={"holdout": 0.3, "calibrate": "test"})
        classifier.fit(X, labels)
        again, decisions = krrlab.load(classifier.model_), classifier.decision_function(Z)
        probabilities, labels_by_numpy = again.predict_proba(Z), classifier.predict(Z)
        plain = KernelRidgeClassifier(lam=0.1, sigma=1, options={"holdout": 0.3}).fit(X, labels)
        np.testing.assert_allclose(decisions, plain.decision_function(Z) + 0.4, atol=1e-9)
        with unittest.mock.patch.object(_estimators, "LARGE", 0):
            np.testing.assert_allclose(classifier.decision_function(Z), decisions, atol=1e-4)
            np.testing.assert_allclose(again.predict_proba(Z), probabilities, atol=1e-4)
            self.assertGreater(np.mean(classifier.predict(Z) == labels_by_numpy), 0.99)
        columns, _ = again._run_predict(again._read(Z), probabilities=True)
        np.testing.assert_allclose(columns[:, 1:].astype(float), probabilities, atol=1e-4)

    def test_intervals(self):
        """Standard deviations and intervals equal those of dense linear algebra."""
        lam, noisy = 0.1, y + 0.3 * rng.normal(size=len(y))
        model = KernelRidge("gaussian", sigma=1, lam=lam, scale="standard", center="no", solver="direct").fit(X, noisy)
        scaled, rows = ((x - X.mean(0)) / X.std(0) for x in (X, Z))

        def kernel(a, b):
            return np.exp(-0.5 * ((a[:, None] - b) ** 2).sum(2))

        inverse = np.linalg.inv(kernel(scaled, scaled) + lam * np.eye(len(X)))
        coefficients, cross_kernel = inverse @ noisy, kernel(rows, scaled)
        process_variance = np.mean(coefficients ** 2 / np.diag(inverse))
        variance = process_variance * (1 - np.einsum("ij,jk,ik->i", cross_kernel, inverse, cross_kernel))
        predictions, std = model.predict(Z, return_std=True)
        np.testing.assert_allclose(predictions, cross_kernel @ coefficients, atol=1e-5)
        np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-5)
        loo_predictions, loo_errors = np.empty((len(X), len(Z))), np.empty(len(X))
        for i in range(len(X)):
            others = np.arange(len(X)) != i
            others_coefficients = np.linalg.solve(kernel(scaled[others], scaled[others]) + lam * np.eye(len(X) - 1),
                                                  noisy[others])
            loo_predictions[i] = cross_kernel[:, others] @ others_coefficients
            loo_errors[i] = abs(noisy[i] - kernel(scaled[i:i + 1], scaled[others]) @ others_coefficients)
        low = np.sort(loo_predictions - loo_errors[:, None], axis=0)[int(0.2 * (len(X) + 1)) - 1]
        high = np.sort(loo_predictions + loo_errors[:, None], axis=0)[int(np.ceil(0.8 * (len(X) + 1))) - 1]
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
        """All checks of scikit-learn pass. A short run takes every tenth check, and does not tune."""
        from sklearn.utils.estimator_checks import check_estimator
        tune = "auto" if LONG else False
        for estimator in KernelRidge(tune=tune), KernelRidgeClassifier(tune=tune):
            for index, (instance, check) in enumerate(check_estimator(estimator, generate_only=True)):
                if LONG or index % 10 == 0:
                    with self.subTest(check=check), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        check(instance)

    def test_search(self):
        """GridSearchCV works in a pipeline that codes a frame with words, dates and missing values."""
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
        """Estimators fit and predict in processes of joblib."""
        from joblib import Parallel, delayed, parallel_backend
        from sklearn.model_selection import cross_val_score
        if LONG:
            with parallel_backend("loky", n_jobs=2):
                self.assertEqual(cross_val_score(KernelRidge(lam=0.01, threads=1), X, y, cv=2).shape, (2,))
        regressor = KernelRidge(lam=0.01).fit(X, y)
        for predictions in Parallel(2, "multiprocessing")(delayed(regressor.predict)(Z) for _ in range(2)):
            np.testing.assert_array_equal(predictions, regressor.predict(Z))

    def test_pickle(self):
        """A pickled model needs no file of the fit, and is a model file."""
        frame, target = table()
        regressor = KernelRidge(lam=0.01, impute="mean").fit(frame, target)
        pickled = pickle.dumps(regressor)
        old_folder = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                again = pickle.loads(pickled)
                np.testing.assert_array_equal(again.predict(frame), regressor.predict(frame))
                again.model_.save("m.krr")
                loaded = krrlab.load("m.krr")
                self.assertEqual(loaded.column_kinds_, regressor.column_kinds_)
                np.testing.assert_array_equal(loaded.predict(frame), regressor.predict(frame))
                self.assertEqual(os.listdir(), ["m.krr"])
            finally:
                os.chdir(old_folder)

    def test_convergence(self):
        """A solve that misses its tolerance causes a warning in terms of Python."""
        from sklearn.exceptions import ConvergenceWarning
        for call in KernelRidge(lam=1e-9, sigma=1, solver="cg", max_iter=2).fit, lambda X, y: krrlab.fit(
                X, y, lam=1e-9, sigma=1, solver="cg", max_iter=2):
            with self.assertWarnsRegex(ConvergenceWarning, "max_iter") as caught:
                call(X, y)
            self.assertNotRegex(str(caught.warning), "--|note")
            self.assertEqual(caught.filename, __file__)


class Messages(unittest.TestCase):
    """Messages of errors use the terms of Python."""

    def assert_refused(self, text, call):
        """Check that the call raises a ValueError whose message matches the text and names no flags or files."""
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
            ("take the Gaussian kernel, matern52 or another method$", lambda: KernelRidge("laplacian", sigma=1, lam=1,
                                                                                          solver="fourier").fit(X, y)),
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
                self.assert_refused(text, call)

    def test_signal(self):
        """If the program is killed, the error is not a ValueError."""
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
        """Parameters may be numbers of NumPy, of any type and as arrays without dimensions."""
        expected = KernelRidge("poly", degree=2, lam=0.5, gamma=0.5, random_state=3).fit(X, y).predict(Z)
        for number in np.float64, np.float32, np.array:
            regressor = KernelRidge("poly", degree=number(2.0), lam=number(0.5), gamma=number(0.5),
                                    random_state=np.int8(3))
            np.testing.assert_array_equal(regressor.fit(X, y).predict(Z), expected)
        L = np.array([[0.5, -0.2, 0], [0, 1, 0.3], [0.1, 0, 2]])
        for matrix in L, L.tolist():
            np.testing.assert_array_equal(KernelRidge(sigma=matrix, lam=1).fit(X, y).predict(Z),
                                          KernelRidge(sigma=L.ravel(), lam=1).fit(X, y).predict(Z))
        seeds = [KernelRidge(lam=1, random_state=seed).fit(X, y).report_["seed"] for seed in
                 (np.random.RandomState(3), np.random.default_rng(3), np.random.default_rng(3), 2 ** 63)]
        self.assertEqual(seeds[1], seeds[2])
        self.assertEqual(seeds[3], 2 ** 63)


def table():
    """Return a frame with words, dates and missing values, and its target."""
    import pandas as pd
    row_count, generator = 60, np.random.default_rng(2)
    frame = pd.DataFrame({"city": generator.choice(["ulm", "New York"], row_count),
                          "when": pd.date_range("2024-01-01", periods=row_count),
                          "x": generator.normal(size=row_count),
                          "gap": np.where(generator.random(row_count) < 0.1, np.nan,
                                          generator.normal(size=row_count))})
    return frame, pd.Series(np.sin(frame.x) + (frame.city == "ulm") + 0.01 * np.arange(row_count))


class FitFunction(unittest.TestCase):
    def test_fit(self):
        """krrlab.fit chooses the estimator by the targets, as the program does, and writes a file that Model reads."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "m.krr")
            texts = np.where(y > 0, "yes", "no")
            for targets, kind in [(texts, "U"), (y > 0, "b"), ((y > 0).astype(int), "i"), (y, "f"),
                                  (np.arange(60), "f")]:
                model = krrlab.fit(X, targets, file, lambda_=0.1, sigma=[1, 2, 3], storage="float64", seed=2)
                self.assertEqual((model.predict(Z).dtype.kind, model.meta["n"], model.lam_), (kind, 60, 0.1))
                np.testing.assert_array_equal(krrlab.Model(file).predict(Z).astype(str), model.predict(Z).astype(str))
        self.assertEqual(krrlab.fit(X, np.column_stack([y, -y]), lam=1).predict(Z).shape, (7, 2))
        self.assertEqual(krrlab.fit(X, (y > 0).astype(int), task="regression", lam=1).predict(Z).dtype.kind, "f")
        notes = krrlab.fit(X, y, lam=1, verbose=True).report_["notes"]
        self.assertIn("no test data: options={'holdout': 0.2} shows how", "".join(notes))
        holdout_model = krrlab.fit(X, y, lam=1, options={"holdout": 0.2}, storage="float64")
        self.assertEqual(holdout_model.meta["n"], 48)
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
            _program.run(["explain", file, "--in", rows, "--target", "y", "--permutations", "40", "--top", "1",
                          "--json", out], rows)
            report = _program.report(out)
        theirs = permutation_importance(model, frame[30:], y[30:], scoring="neg_root_mean_squared_error", n_repeats=40,
                                        random_state=1)
        for column in report["columns"]:
            index = list(frame).index(column["column"])
            error = np.hypot(column["deviation"], theirs.importances_std[index]) / 40 ** 0.5
            self.assertLess(abs(column["importance"] - theirs.importances_mean[index]), 4 * error)
        first = report["dependence"][0]
        for value, mean in zip(first["values"], first["curves"][0]["mean"]):
            self.assertAlmostEqual(model.predict(frame[30:].assign(**{first["column"]: value})).mean(), mean, places=4)
