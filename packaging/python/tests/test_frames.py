"""Tests of calls with frames of pandas: they behave as in scikit-learn, or an error names the column."""
import decimal
import os
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
import pandas as pd
import scipy.sparse

from krrlab import KernelRidge, KernelRidgeClassifier, _estimators, fit, load, program

LONG = os.environ.get("KRRLAB_LONG", "") != ""
rng = np.random.default_rng(3)
n = 80
frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "y"])
target = pd.Series(np.sin(frame.a) + frame.b, name="price")
labels = pd.Series(np.where(target > 0, "high", "low"))
words = frame.assign(city=rng.choice(["ulm", "New York", 'say "hi", b'], n),
                     when=pd.date_range("2024-01-01", periods=n))


class Frames(unittest.TestCase):
    def assert_refused(self, text, call):
        """Check that the call raises a ValueError whose message matches the text and names no flags or files."""
        with self.assertRaisesRegex(ValueError, text) as caught:
            call()
        self.assertNotRegex(str(caught.exception), r"--[a-z]|/tmp|\.csv|\.npz")

    def test_names(self):
        regressor = KernelRidge(lam=0.01).fit(frame, target)
        self.assertEqual(list(regressor.feature_names_in_), ["a", "b", "y"])
        self.assertEqual(regressor.model_.meta["columns"], ["a", "b", "y"])
        self.assert_refused("must be in the same order", lambda: regressor.predict(frame[["y", "b", "a"]]))
        self.assert_refused("unseen at fit time:\n- c", lambda: regressor.predict(frame.rename(columns={"b": "c"})))
        self.assert_refused("unseen at fit time:\n- more", lambda: regressor.predict(frame.assign(more=1)))
        self.assert_refused("yet now missing:\n- b", lambda: regressor.predict(frame[["a", "y"]]))
        twice = frame.set_axis(list("aba"), axis=1)
        self.assert_refused("several columns are named 'a'", lambda: KernelRidge().fit(twice, target))
        with self.assertWarnsRegex(UserWarning, "does not have valid feature names"):
            np.testing.assert_array_equal(regressor.predict(frame.to_numpy()), regressor.predict(frame))
        shuffled = frame.set_axis(rng.permutation(n))  # an index says nothing
        np.testing.assert_array_equal(regressor.predict(shuffled), regressor.predict(frame))
        numbered = KernelRidge(lam=0.01).fit(frame.set_axis([5, 0, 1], axis=1), target)
        np.testing.assert_allclose(numbered.predict(frame.set_axis([5, 0, 1], axis=1)), regressor.predict(frame))

    def test_masked(self):
        """Masked entries are missing values, whatever the mask hides."""
        hidden = rng.random((n, 3)) < 0.1
        x = np.ma.masked_array(np.where(hidden, 1e6, frame), hidden)
        regressor = KernelRidge(lam=0.01, impute="median").fit(x, target)
        gaps = x.filled(np.nan)
        expected = KernelRidge(lam=0.01, impute="median").fit(gaps, target).predict(gaps)
        np.testing.assert_array_equal(regressor.predict(x), expected)
        self.assert_refused("Input X contains NaN: column", lambda: KernelRidge().fit(x, target))
        whole = np.ma.masked_array(np.arange(3 * n).reshape(n, 3), mask=np.arange(3 * n).reshape(n, 3) == 4)
        self.assert_refused("Input X contains NaN: column 1, row 1", lambda: KernelRidge().fit(whole, target))
        self.assert_refused("Input y has a masked value: row 2", lambda: KernelRidge().fit(
            frame, np.ma.masked_array(target, mask=target.index == 2)))
        self.assert_refused("sample_weight has a masked value: row 0", lambda: KernelRidge().fit(
            frame, target, np.ma.masked_array(np.ones(n), mask=target.index == 0)))
        nullable = pd.array([None if i == 2 else i for i in range(n)], dtype="Int64")  # no masked array of NumPy
        self.assert_refused("Input y contains NaN: row 2", lambda: KernelRidge().fit(frame, nullable))
        self.assert_refused("Expected 2D array", lambda: KernelRidge().fit(pd.array([1, 2], dtype="Int64"), [1, 2]))
        unmasked = np.ma.masked_array(frame.to_numpy())
        np.testing.assert_array_equal(KernelRidge(lam=0.01).fit(unmasked, target).predict(unmasked),
                                      KernelRidge(lam=0.01).fit(frame.to_numpy(), target).predict(frame.to_numpy()))

    def test_far_rows(self):
        """Rows far from the training points are counted as the program counts them, in arrays and sparse matrices."""
        x = frame.to_numpy().copy()
        x[:, 2] = np.where(x[:, 2] > 0, x[:, 2], 0)
        away = x.copy()
        away[:7] += np.outer(np.arange(7), [1.5, -1, 2])
        for name in ("gaussian", "laplacian", "matern32", "matern52", "polynomial")[:5 if LONG else 2]:
            for kind in np.asarray, scipy.sparse.csr_matrix:
                regressor = KernelRidge(name, lam=0.01, scale="none", **{} if name == "polynomial" else {"sigma": 0.7})
                regressor.fit(kind(x), target)
                texts = []
                for limit in _estimators.LARGE, 0:  # by NumPy, and by the program
                    limit, _estimators.LARGE = _estimators.LARGE, limit
                    try:
                        with warnings.catch_warnings(record=True) as caught:
                            warnings.simplefilter("always")
                            regressor.predict(kind(x))
                            self.assertEqual([str(w.message) for w in caught], [])
                            regressor.predict(kind(away))
                    finally:
                        _estimators.LARGE = limit
                    texts.append([str(w.message) for w in caught])
                    self.assertEqual([w.filename for w in caught], [__file__] * len(caught))
                self.assertEqual(texts[0], texts[1])
                self.assertEqual(len(texts[0]), name != "polynomial")
        with self.assertWarnsRegex(UserWarning, "so far from the training points that the kernel is below 0.001"):
            KernelRidge("gaussian", sigma=1, lam=0.01).fit(x, target).predict(x + 100)

    def test_labels(self):
        """Predicted labels have the type of the labels in the fit."""
        cases = [labels, pd.Series(target > 0, dtype="boolean"), pd.Series((target > 0) * 2 - 1, dtype="Int64"),
                 np.where(target > 0, "é, b", ""), labels.astype("category"), labels.astype("string"),
                 labels.to_numpy(), labels.tolist(), target > 0, (target > 0).astype(np.uint8),
                 np.where(target > 0, 1.0, 0.0),
                 np.where(target > 0, "1", "0"), np.where(target > 0, "True", "no label")]
        for targets in cases if LONG else cases[:5]:
            classifier = KernelRidgeClassifier(lam=1e-3).fit(frame, targets)
            predicted = classifier.predict(frame)
            expected = np.asarray(targets)
            self.assertGreater((predicted == expected).mean(), 0.9, targets)
            if expected.dtype != object:
                self.assertEqual(predicted.dtype.kind, expected.dtype.kind)
            self.assertEqual(classifier.score(frame, predicted), 1)
            np.testing.assert_array_equal(classifier.decision_function(frame) > 0, predicted == classifier.classes_[1])
        self.assert_refused("y has labels such as 'high'|y has labels such as 'low'",
                            lambda: KernelRidge().fit(frame, labels))
        self.assert_refused("Input y has values of type int, str",
                     lambda: KernelRidgeClassifier().fit(frame, pd.Series([1, "a"] * (n // 2))))
        self.assert_refused("Input y contains NaN: row 1", lambda: KernelRidgeClassifier().fit(frame[:3],
                                                                                               ["a", np.nan, "b"]))
        self.assert_refused("Input y contains NaN", lambda: KernelRidgeClassifier().fit(frame,
                                                                                        labels.where(target > -1)))

    def test_numbers(self):
        whole = frame.assign(b=pd.array(rng.integers(0, 9, n), dtype="Int64"), flag=target > 0,
                             y=frame.y.astype(np.float32))
        regressor = KernelRidge(lam=0.01).fit(whole, target)
        self.assertEqual(set(regressor.column_kinds_.values()), {"numbers"})
        np.testing.assert_allclose(regressor.predict(whole), KernelRidge(lam=0.01).fit(whole.astype(float),
                                                                                       target).predict(
            whole.astype(float)), rtol=1e-6)
        whole.loc[4, "b"] = pd.NA
        self.assert_refused("Input X contains NaN: column 'b', row 4", lambda: regressor.predict(whole))
        self.assert_refused("Input X contains infinity.*column 'a', row 2",
                     lambda: KernelRidge().fit(frame.assign(a=frame.a.where(frame.index != 2, np.inf)), target))
        filled = KernelRidge(lam=0.01, impute="median").fit(whole, target)
        self.assertAlmostEqual(filled.predict(whole)[4], filled.predict(whole.fillna({"b": whole.b.median()}))[4])
        self.assert_refused("column 'a'", lambda: regressor.predict(whole.assign(b=1, a="x")))
        self.assert_refused("column 'a' of type object has values of type int, str",
                     lambda: KernelRidge().fit(frame.assign(a=[1] + ["x"] * (n - 1)), target))
        self.assert_refused("Complex data not supported", lambda: KernelRidge().fit(frame.assign(a=1j), target))

    def test_wrong_types(self):
        """Errors about other values than numbers say what they are, and how to convert them."""
        spans = words.when - words.when.min()
        regressor = KernelRidge(lam=0.01).fit(words, target)
        for text, call in [
            (r"column 'age' has time spans.*X\['age'\].dt.total_seconds", lambda: KernelRidge().fit(
                frame.assign(age=spans), target)),
            ("y has time spans", lambda: KernelRidge().fit(frame, spans)),
            ("y has dates", lambda: KernelRidge().fit(frame, words.when)),
            ("y has numbers as texts.*pandas.to_numeric", lambda: KernelRidge().fit(frame, target.astype(str))),
            (r"a Series. One row of a frame X is X.iloc\[\[i\]\]", lambda: regressor.predict(words.iloc[0])),
            ("'d': whether days or months come first.*convert it by pandas.to_datetime", lambda: KernelRidge(
                dates=["d"]).fit(frame[:2].assign(d=["01/02/2024", "02/02/2024"]), target[:2])),
            (r"a Series. One row", lambda: KernelRidge().fit(frame.a, target)),
        ]:
            with self.subTest(text=text), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assert_refused(text, call)
        named = KernelRidge(lam=0.01).fit(frame.assign(id=np.arange(n)), target)
        self.assertRegex("".join(named.report_["notes"]),
                         r'"id" looks like.*leave them out by X.drop\(columns=\[\'id\'\]\)')
        digits = frame.assign(rooms=(target * 10).round().astype(int).astype(str))
        with self.assertWarnsRegex(UserWarning, "column 'rooms' has numbers as texts") as caught:
            KernelRidge(lam=0.01).fit(digits, target)
        self.assertEqual(caught.filename, __file__)
        codes = [f"{k:05}" for k in range(n)]  # such as ZIP codes
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for x, by in ((digits.astype({"rooms": "category"}), {}), (digits, {"categorical": ["rooms"]}),
                          (frame.assign(zip=codes), {})):
                self.assertEqual(list(KernelRidge(lam=0.01, **by).fit(x, target).column_kinds_.values())[-1], "words")

    def test_shapes(self):
        regressor = KernelRidge(lam=0.01).fit(frame, target)
        np.testing.assert_allclose(regressor.predict(frame[:1]), regressor.predict(frame)[:1])
        self.assertEqual(KernelRidge(lam=0.01).fit(frame[["a"]], target).predict(frame[["a"]]).shape, (n,))
        self.assert_refused("0 sample", lambda: regressor.predict(frame[:0]))
        self.assert_refused("0 sample", lambda: KernelRidge().fit(frame[:0], target[:0]))
        self.assert_refused("0 feature", lambda: KernelRidge().fit(frame[[]], target))
        self.assert_refused("Expected 2D array, got 1D", lambda: KernelRidge().fit(frame.a, target))
        self.assert_refused(r"inconsistent numbers of samples: \[80, 79\]",
                            lambda: KernelRidge().fit(frame, target[:-1]))
        for same in pd.Index(target), [decimal.Decimal(v) for v in target]:
            np.testing.assert_array_equal(KernelRidge(lam=0.01).fit(frame, same).predict(frame),
                                          regressor.predict(frame))
        self.assert_refused("drop is no option", lambda: KernelRidge(options={"drop": "a"}).fit(frame, target))
        for estimator, answers, options, message in (
                (KernelRidge, target, {"center": "no"}, "'center': it is the parameter center"),
                (KernelRidge, target, {"task": "classification"}, "'task': KernelRidge sets this itself"),
                (KernelRidgeClassifier, labels, {"class-weights": "balanced"}, "it is the parameter class_weight"),
                (KernelRidgeClassifier, labels, {"threshold": 0.3}, "it is the parameter threshold"),
                (KernelRidgeClassifier, labels, {"json": "r.json"}, "sets this itself")):
            self.assert_refused(message, lambda: estimator(lam=0.1, options=options).fit(frame, answers))
        weighted = fit(frame, labels, class_weights={"high": 9.0}, lam=0.1)
        self.assertTrue(weighted.report_["weighted"])
        self.assert_refused("probability=True needs the errors", lambda: KernelRidgeClassifier(
            lam=0.1, probability=True, options={"calibrate": "none"}).fit(frame, labels))
        self.assert_refused("class_weight has \\['hihg'\\], and y has no such labels", lambda: KernelRidgeClassifier(
            lam=0.1, class_weight={"hihg": 9}).fit(frame, labels))
        by_test = KernelRidgeClassifier(lam=0.1, probability=True, options={"calibrate": "test", "holdout": 0.3})
        self.assertEqual(by_test.fit(frame, labels).meta["calibration"]["method"], "split")
        both = pd.DataFrame({"u": target, "v": -target})
        pair = KernelRidge(lam=0.01).fit(frame, both)
        np.testing.assert_allclose(pair.predict(frame)[:, 1], -regressor.predict(frame))
        self.assert_refused("^the model has 2 targets", lambda: pair.predict_interval(frame))
        lists = KernelRidge(lam=0.01).fit(frame.to_numpy().tolist(), target.tolist())
        np.testing.assert_allclose(lists.predict(frame.to_numpy().tolist()), regressor.predict(frame))
        single = KernelRidge(lam=0.01).fit(frame.to_numpy(np.float32), target).predict(frame.to_numpy(np.float32))
        np.testing.assert_allclose(single, regressor.predict(frame), atol=1e-4)

    def test_words_and_dates(self):
        regressor = KernelRidge(lam=0.01).fit(words, target)
        self.assertEqual(regressor.column_kinds_, {"a": "numbers", "b": "numbers", "y": "numbers", "city": "words",
                                                   "when": "dates"})
        self.assertEqual(regressor.predict(words[:3].assign(when="2024-01-01 00:00:00")).shape, (3,))
        late = words.assign(when=words.when + pd.to_timedelta(rng.uniform(-700, 700, n), unit="D").floor("s"))
        for x in [late, words.assign(when=words.when.where(words.index > 9)), words][:3 if LONG else 2]:
            regressor = KernelRidge(lam=0.01, impute="mean").fit(x, target)  # with and without times and gaps
            limit, _estimators.LARGE = _estimators.LARGE, 0
            try:
                by_program = regressor.predict(late)
            finally:
                _estimators.LARGE = limit
            self.assertIsNotNone(regressor.model_.features(regressor._read(late)))
            np.testing.assert_allclose(regressor.predict(late), by_program, atol=1e-5)
        undated = words.drop(columns="when").assign(city=words.city.astype("category"))
        regressor = KernelRidge(lam=0.01).fit(undated, target)
        by_numpy = regressor.predict(undated)
        again = undated.assign(city=words.city.str.upper())  # only the program reads these as the words of the fit
        np.testing.assert_allclose(regressor.predict(again), by_numpy, atol=1e-5)
        with self.assertWarnsRegex(UserWarning, "city.*paris"):
            regressor.predict(undated.assign(city=["paris"] + words.city.tolist()[1:]))
        with self.assertWarnsRegex(UserWarning, '^words that.*"city": a missing value'):
            regressor.predict(undated.assign(city=[None] + words.city.tolist()[1:]))
        self.assert_refused("^column 'city': no row has a word",
                            lambda: regressor.predict(undated.assign(city="paris")))
        odd = words[["city"]].set_axis(["3"], axis=1).assign(**{"#a, b ": frame.a, " c": words.city, "y": words.when})
        other = KernelRidge(lam=0.01).fit(odd, target)
        self.assertEqual(list(other.column_kinds_.values()), ["words", "numbers", "words", "dates"])
        self.assertIsNotNone(other.model_.features(other._read(odd)))
        limit, by_numpy, _estimators.LARGE = _estimators.LARGE, other.predict(odd), 0
        try:
            np.testing.assert_allclose(other.predict(odd), by_numpy, atol=1e-5)
        finally:
            _estimators.LARGE = limit
        gap = undated.assign(city=words.city.where(words.index > 3))
        self.assertEqual(KernelRidge(lam=0.01).fit(gap, target).predict(gap[:5]).shape, (5,))  # a gap is a value
        self.assert_refused("column 'when', row 1", lambda: KernelRidge().fit(
            words.assign(when=words.when.where(words.index != 1)), target))
        self.assert_refused(r"\['city'\] have words or dates", lambda: regressor.predict(undated.to_numpy()))
        self.assert_refused("there is no column 'town'", lambda: KernelRidge(categorical=["town"]).fit(words, target))
        self.assert_refused("'when' has dates, and is not among", lambda: KernelRidge(dates=[]).fit(words, target))
        self.assert_refused("column 'id', row 1000: the column has more than 1000 different values",
                            lambda: KernelRidge().fit(
            pd.DataFrame({"id": [f"k{i}" for i in range(1001)], "a": 0.0}), np.arange(1001)))

    def test_odd_names(self):
        """Column names that look like options or numbers, or that the program trims, are kept by the model file."""
        plain = pd.DataFrame({"c0": rng.normal(size=n), "c1": rng.choice(["ulm", "x,y", 'q"q'], n),
                              "c2": pd.date_range("2024-01-01", periods=n), "c3": rng.integers(0, 9, n)})
        weights = rng.uniform(0.5, 2, n)
        for numbers, names in ((False, ["order=day", "weighty", "city=ulm", " a"]),
                               (False, [" y", "0", "a\r\nb", "-1"]),
                               (False, ["#c", "order=day", "1e5", ""]), (True, ["weight_y", "  "]),
                               (True, ["\ufeffz", "y"])):
            with self.subTest(names=names):
                x = plain[["c0", "c3"]] if numbers else plain
                regressor = KernelRidge(lam=0.1, sigma=1).fit(x.set_axis(names, axis=1), target, weights)
                expected = KernelRidge(lam=0.1, sigma=1).fit(x, target, weights).predict(x)
                self.assertEqual(list(regressor.feature_names_in_), names)
                for model in regressor, load(regressor.model_):
                    np.testing.assert_allclose(model.predict(x.set_axis(names, axis=1)), expected, atol=1e-4)
        self.assert_refused("character of code 0", lambda: KernelRidge().fit(plain.rename(columns={"c0": "\0"}),
                                                                             target))

    def test_coordinates(self):
        """Longitudes and latitudes are projected in the same way as in the fit, in arrays and frames."""
        places = pd.DataFrame({"lat": rng.uniform(48, 50, n), "lon": rng.uniform(8, 11, n)})
        height = np.sin(places.lat) + places.lon
        with tempfile.TemporaryDirectory() as folder:
            data, model = os.path.join(folder, "wells.csv"), os.path.join(folder, "wells.krr")
            places.assign(height=height).to_csv(data, index=False)
            subprocess.run([program(), "fit", "--train", data, "--space", "lat,lon", "--kernel", "gaussian", "--sigma",
                            "80", "--lambda", "1e-4", "--out", model], check=True, capture_output=True)
            regressor = load(model)
        places = places[["lon", "lat"]]
        np.testing.assert_allclose(regressor.predict(places), height, atol=0.1)
        with self.assertWarnsRegex(UserWarning, "does not have valid feature names"):
            np.testing.assert_allclose(regressor.predict(places.to_numpy()), height, atol=0.1)
        rows = places.assign(town="x", depth=rng.normal(size=n))[["town", "lat", "depth", "lon"]]
        named = KernelRidge("gaussian", sigma=80, lam=1e-4, space=["lat", "lon"]).fit(rows, height)
        np.testing.assert_allclose(named.predict(rows), regressor.predict(places), atol=1e-8)
        self.assertEqual(named.n_features_in_, 4)
        plane = KernelRidge("gaussian", sigma=1, lam=1e-2, scale="none").fit(places.to_numpy(), height)
        numbered = KernelRidge("gaussian", sigma=1, lam=1e-2, space=[3, 1]).fit(
            rows.assign(town=0.0).to_numpy(float), height)
        np.testing.assert_allclose(numbered.predict(rows.assign(town=0.0).to_numpy(float)),
                                   plane.predict(places.to_numpy()), atol=1e-6)
        counted = places.set_axis([1, 2], axis=1)
        whole = KernelRidge("gaussian", sigma=1, lam=1e-2, space=[1, 2]).fit(counted, height)
        np.testing.assert_allclose(whole.predict(counted), plane.predict(places.to_numpy()), atol=1e-6)
        sparse = KernelRidge("gaussian", sigma=1, lam=1e-2, space=[0, 1]).fit(scipy.sparse.csr_matrix(places), height)
        np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_matrix(places)), plane.predict(places.to_numpy()),
                                   atol=1e-6)
        self.assert_refused("different numbers of columns", lambda: KernelRidge(space=[1, 1]).fit(places.to_numpy(),
                                                                                                  height))
        self.assert_refused("Expected 2D array", lambda: KernelRidge(space=[0]).fit(places.lon.to_numpy(), height))
        self.assert_refused("Expected 2D array", lambda: numbered.predict(places.lon.to_numpy()))
        self.assert_refused("space: there is no column 'x'", lambda: KernelRidge(space="x").fit(rows, height))
        self.assert_refused("numbers of columns", lambda: KernelRidge(space="lon").fit(places.to_numpy(), height))
        self.assert_refused("does not go with", lambda: KernelRidge(space="lon", impute="mean").fit(rows, height))
        for words, kind in ((["a"] * len(rows), "words"), (pd.date_range("2024-01-01", periods=len(rows)), "dates")):
            self.assert_refused(f"space: column 'third' has {kind}, and coordinates have to be numbers",
                         lambda: KernelRidge(space=["lon", "third"]).fit(rows.assign(third=words), height))
        gap = rows.assign(lat=rows.lat.where(np.arange(len(rows)) != 3))
        for call in (lambda: KernelRidge(space=["lat", "lon"]).fit(gap, height), lambda: named.predict(gap)):
            self.assert_refused(r"the coordinate 'lat', row 3. Leave such rows out.$", call)
        self.assert_refused("the coordinate in column 1, row 3", lambda: KernelRidge(space=[1, 0]).fit(
            gap[["lon", "lat"]].to_numpy(), height))
        self.assert_refused("X has 2 features", lambda: numbered.predict(places.to_numpy()))

    def test_weights(self):
        weights = pd.Series(rng.integers(0, 3, n))
        rows = np.repeat(np.arange(n), weights)
        for x in frame, words[["a", "b", "city"]], scipy.sparse.csr_matrix(frame.where(frame > 0, 0)):
            regressor = KernelRidge(lam=0.1, sigma=1, scale="none").fit(x, target, weights)
            twice = KernelRidge(lam=0.1, sigma=1, scale="none").fit(
                x.iloc[rows] if hasattr(x, "iloc") else x[rows], target.iloc[rows])
            np.testing.assert_allclose(regressor.predict(x), twice.predict(x), atol=1e-6)
        self.assert_refused("Negative values in sample_weight", lambda: KernelRidge().fit(frame, target, weights - 1))
        heavy = KernelRidgeClassifier(lam=10, class_weight={"high": 100}).fit(frame, labels)
        light = KernelRidgeClassifier(lam=10, class_weight={"high": 0.01}).fit(frame, labels)
        self.assertGreater((heavy.predict(frame) == "high").sum(), (light.predict(frame) == "high").sum())
        # The class weights do not affect the errors that tune compares.
        blind = KernelRidgeClassifier("gaussian", lam=1e9, sigma=1, tune=True, class_weight={"high": 1e-9})
        share = (labels == "high").mean()
        self.assertAlmostEqual(blind.fit(frame, labels).report_["tune"]["best"]["error"], share, places=6)
        one = KernelRidgeClassifier(lam=1, class_weight={"high": 0})
        self.assert_refused("one class only", lambda: one.fit(frame, labels))

    def test_sparse(self):
        dense = np.where(rng.random((n, 6)) < 0.3, rng.normal(size=(n, 6)), 0)
        for targets in target, pd.DataFrame({"u": target, "v": -target}):
            expected = KernelRidge(lam=0.1).fit(dense, targets).predict(dense)
            for kind in (scipy.sparse.coo_matrix, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix)[:3 if LONG else 1]:
                regressor = KernelRidge(lam=0.1).fit(kind(dense), targets)
                np.testing.assert_allclose(regressor.predict(kind(dense)), expected, atol=1e-5)
                np.testing.assert_allclose(regressor.predict(dense), expected, atol=1e-5)
        wide = scipy.sparse.csr_matrix(np.hstack([dense, np.zeros((n, 2))]))  # columns without an entry
        regressor = KernelRidge(lam=0.1).fit(wide, target)
        self.assertEqual(regressor.model_.meta["d"], 8)
        wide[0, 7] = 1
        limit, by_numpy, _estimators.LARGE = _estimators.LARGE, regressor.predict(wide), 0
        try:
            np.testing.assert_allclose(regressor.predict(wide), by_numpy, atol=1e-5)
        finally:
            _estimators.LARGE = limit
        classifier = KernelRidgeClassifier(lam=0.1).fit(scipy.sparse.csr_matrix(dense), labels)
        self.assertEqual(set(classifier.predict(scipy.sparse.csr_matrix(dense))), {"high", "low"})
        self.assert_refused("Input X contains NaN.$", lambda: KernelRidge(impute="median").fit(
            scipy.sparse.csr_matrix(dense * np.nan), target))
