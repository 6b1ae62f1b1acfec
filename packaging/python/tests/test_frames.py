"""The calls that a user of pandas makes: they do what scikit-learn does, or an error names the column."""
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
r = np.random.default_rng(3)
n = 80
frame = pd.DataFrame(r.normal(size=(n, 3)), columns=["a", "b", "y"])
target = pd.Series(np.sin(frame.a) + frame.b, name="price")
labels = pd.Series(np.where(target > 0, "high", "low"))
words = frame.assign(city=r.choice(["ulm", "New York", 'say "hi", b'], n), when=pd.date_range("2024-01-01", periods=n))


class Frames(unittest.TestCase):
    def refused(self, text, call):
        with self.assertRaisesRegex(ValueError, text) as caught:
            call()
        self.assertNotRegex(str(caught.exception), r"--[a-z]|/tmp|\.csv|\.npz")

    def test_names(self):
        m = KernelRidge(lam=0.01).fit(frame, target)
        self.assertEqual(list(m.feature_names_in_), ["a", "b", "y"])
        self.assertEqual(m.model_.meta["columns"], ["a", "b", "y"])
        self.refused("must be in the same order", lambda: m.predict(frame[["y", "b", "a"]]))
        self.refused("unseen at fit time:\n- c", lambda: m.predict(frame.rename(columns={"b": "c"})))
        self.refused("unseen at fit time:\n- more", lambda: m.predict(frame.assign(more=1)))
        self.refused("yet now missing:\n- b", lambda: m.predict(frame[["a", "y"]]))
        twice = frame.set_axis(list("aba"), axis=1)
        self.refused("several columns are named 'a'", lambda: KernelRidge().fit(twice, target))
        with self.assertWarnsRegex(UserWarning, "does not have valid feature names"):
            np.testing.assert_array_equal(m.predict(frame.to_numpy()), m.predict(frame))
        shuffled = frame.set_axis(r.permutation(n))  # an index says nothing
        np.testing.assert_array_equal(m.predict(shuffled), m.predict(frame))
        numbered = KernelRidge(lam=0.01).fit(frame.set_axis([5, 0, 1], axis=1), target)
        np.testing.assert_allclose(numbered.predict(frame.set_axis([5, 0, 1], axis=1)), m.predict(frame))

    def test_masked(self):
        """Masked entries are missing, whatever is under the mask."""
        hidden = r.random((n, 3)) < 0.1
        x = np.ma.masked_array(np.where(hidden, 1e6, frame), hidden)
        m = KernelRidge(lam=0.01, impute="median").fit(x, target)
        gaps = x.filled(np.nan)
        expected = KernelRidge(lam=0.01, impute="median").fit(gaps, target).predict(gaps)
        np.testing.assert_array_equal(m.predict(x), expected)
        self.refused("Input X contains NaN: column", lambda: KernelRidge().fit(x, target))
        whole = np.ma.masked_array(np.arange(3 * n).reshape(n, 3), mask=np.arange(3 * n).reshape(n, 3) == 4)
        self.refused("Input X contains NaN: column 1, row 1", lambda: KernelRidge().fit(whole, target))
        self.refused("Input y has a masked value: row 2", lambda: KernelRidge().fit(
            frame, np.ma.masked_array(target, mask=target.index == 2)))
        self.refused("sample_weight has a masked value: row 0", lambda: KernelRidge().fit(
            frame, target, np.ma.masked_array(np.ones(n), mask=target.index == 0)))
        nullable = pd.array([None if i == 2 else i for i in range(n)], dtype="Int64")  # no masked array of NumPy
        self.refused("Input y contains NaN: row 2", lambda: KernelRidge().fit(frame, nullable))
        self.refused("Expected 2D array", lambda: KernelRidge().fit(pd.array([1, 2], dtype="Int64"), [1, 2]))
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
                m = KernelRidge(name, lam=0.01, scale="none", **{} if name == "polynomial" else {"sigma": 0.7})
                m.fit(kind(x), target)
                texts = []
                for large in _estimators.LARGE, 0:  # by NumPy, and by the program
                    large, _estimators.LARGE = _estimators.LARGE, large
                    try:
                        with warnings.catch_warnings(record=True) as caught:
                            warnings.simplefilter("always")
                            m.predict(kind(x))
                            self.assertEqual([str(w.message) for w in caught], [])
                            m.predict(kind(away))
                    finally:
                        _estimators.LARGE = large
                    texts.append([str(w.message) for w in caught])
                    self.assertEqual([w.filename for w in caught], [__file__] * len(caught))
                self.assertEqual(texts[0], texts[1])
                self.assertEqual(len(texts[0]), name != "polynomial")
        with self.assertWarnsRegex(UserWarning, "so far from the training points that the kernel is below 0.001"):
            KernelRidge("gaussian", sigma=1, lam=0.01).fit(x, target).predict(x + 100)

    def test_labels(self):
        """Labels have the type that they had."""
        cases = [labels, pd.Series(target > 0, dtype="boolean"), pd.Series((target > 0) * 2 - 1, dtype="Int64"),
                 np.where(target > 0, "é, b", ""), labels.astype("category"), labels.astype("string"),
                 labels.to_numpy(), labels.tolist(), target > 0, (target > 0).astype(np.uint8), np.where(target > 0, 1.0, 0.0),
                 np.where(target > 0, "1", "0"), np.where(target > 0, "True", "no label")]
        for t in cases if LONG else cases[:5]:
            m = KernelRidgeClassifier(lam=1e-3).fit(frame, t)
            p = m.predict(frame)
            want = np.asarray(t)
            self.assertGreater((p == want).mean(), 0.9, t)
            if want.dtype != object:
                self.assertEqual(p.dtype.kind, want.dtype.kind)
            self.assertEqual(m.score(frame, p), 1)
            np.testing.assert_array_equal(m.decision_function(frame) > 0, p == m.classes_[1])
        self.refused("y has labels such as 'high'|y has labels such as 'low'", lambda: KernelRidge().fit(frame, labels))
        self.refused("Input y has values of type int, str",
                     lambda: KernelRidgeClassifier().fit(frame, pd.Series([1, "a"] * (n // 2))))
        self.refused("Input y contains NaN: row 1", lambda: KernelRidgeClassifier().fit(frame[:3], ["a", np.nan, "b"]))
        self.refused("Input y contains NaN", lambda: KernelRidgeClassifier().fit(frame, labels.where(target > -1)))

    def test_numbers(self):
        whole = frame.assign(b=pd.array(r.integers(0, 9, n), dtype="Int64"), flag=target > 0,
                             y=frame.y.astype(np.float32))
        m = KernelRidge(lam=0.01).fit(whole, target)
        self.assertEqual(set(m.column_kinds_.values()), {"numbers"})
        np.testing.assert_allclose(m.predict(whole), KernelRidge(lam=0.01).fit(whole.astype(float), target).predict(
            whole.astype(float)), rtol=1e-6)
        whole.loc[4, "b"] = pd.NA
        self.refused("Input X contains NaN: column 'b', row 4", lambda: m.predict(whole))
        self.refused("Input X contains infinity.*column 'a', row 2",
                     lambda: KernelRidge().fit(frame.assign(a=frame.a.where(frame.index != 2, np.inf)), target))
        filled = KernelRidge(lam=0.01, impute="median").fit(whole, target)
        self.assertAlmostEqual(filled.predict(whole)[4], filled.predict(whole.fillna({"b": whole.b.median()}))[4])
        self.refused("column 'a'", lambda: m.predict(whole.assign(b=1, a="x")))
        self.refused("column 'a' of type object has values of type int, str",
                     lambda: KernelRidge().fit(frame.assign(a=[1] + ["x"] * (n - 1)), target))
        self.refused("Complex data not supported", lambda: KernelRidge().fit(frame.assign(a=1j), target))

    def test_wrong_types(self):
        """What is no number says what it is, and how it becomes one."""
        spans = words.when - words.when.min()
        m = KernelRidge(lam=0.01).fit(words, target)
        for text, call in [
            (r"column 'age' has time spans.*X\['age'\].dt.total_seconds", lambda: KernelRidge().fit(
                frame.assign(age=spans), target)),
            ("y has time spans", lambda: KernelRidge().fit(frame, spans)),
            ("y has dates", lambda: KernelRidge().fit(frame, words.when)),
            ("y has numbers as texts.*pandas.to_numeric", lambda: KernelRidge().fit(frame, target.astype(str))),
            (r"a Series. One row of a frame X is X.iloc\[\[i\]\]", lambda: m.predict(words.iloc[0])),
            ("'d': whether days or months come first.*convert it by pandas.to_datetime", lambda: KernelRidge(
                dates=["d"]).fit(frame[:2].assign(d=["01/02/2024", "02/02/2024"]), target[:2])),
            (r"a Series. One row", lambda: KernelRidge().fit(frame.a, target)),
        ]:
            with self.subTest(text=text), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.refused(text, call)
        named = KernelRidge(lam=0.01).fit(frame.assign(id=np.arange(n)), target)
        self.assertRegex("".join(named.report_["notes"]), r'"id" looks like.*leave them out by X.drop\(columns=\[\'id\'\]\)')
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
        m = KernelRidge(lam=0.01).fit(frame, target)
        np.testing.assert_allclose(m.predict(frame[:1]), m.predict(frame)[:1])
        self.assertEqual(KernelRidge(lam=0.01).fit(frame[["a"]], target).predict(frame[["a"]]).shape, (n,))
        self.refused("0 sample", lambda: m.predict(frame[:0]))
        self.refused("0 sample", lambda: KernelRidge().fit(frame[:0], target[:0]))
        self.refused("0 feature", lambda: KernelRidge().fit(frame[[]], target))
        self.refused("Expected 2D array, got 1D", lambda: KernelRidge().fit(frame.a, target))
        self.refused(r"inconsistent numbers of samples: \[80, 79\]", lambda: KernelRidge().fit(frame, target[:-1]))
        for same in pd.Index(target), [decimal.Decimal(v) for v in target]:
            np.testing.assert_array_equal(KernelRidge(lam=0.01).fit(frame, same).predict(frame), m.predict(frame))
        self.refused("drop is no option", lambda: KernelRidge(options={"drop": "a"}).fit(frame, target))
        for estimator, answers, options, message in (
                (KernelRidge, target, {"center": "no"}, "'center': it is the parameter center"),
                (KernelRidge, target, {"task": "classification"}, "'task': KernelRidge sets this itself"),
                (KernelRidgeClassifier, labels, {"class-weights": "balanced"}, "it is the parameter class_weight"),
                (KernelRidgeClassifier, labels, {"threshold": 0.3}, "it is the parameter threshold"),
                (KernelRidgeClassifier, labels, {"json": "r.json"}, "sets this itself")):
            self.refused(message, lambda: estimator(lam=0.1, options=options).fit(frame, answers))
        weighted = fit(frame, labels, class_weights={"high": 9.0}, lam=0.1)
        self.assertTrue(weighted.report_["weighted"])
        self.refused("probability=True needs the errors", lambda: KernelRidgeClassifier(
            lam=0.1, probability=True, options={"calibrate": "none"}).fit(frame, labels))
        self.refused("class_weight has \\['hihg'\\], and y has no such labels", lambda: KernelRidgeClassifier(
            lam=0.1, class_weight={"hihg": 9}).fit(frame, labels))
        by_test = KernelRidgeClassifier(lam=0.1, probability=True, options={"calibrate": "test", "holdout": 0.3})
        self.assertEqual(by_test.fit(frame, labels).meta["calibration"]["method"], "split")
        both = pd.DataFrame({"u": target, "v": -target})
        pair = KernelRidge(lam=0.01).fit(frame, both)
        np.testing.assert_allclose(pair.predict(frame)[:, 1], -m.predict(frame))
        self.refused("^the model has 2 targets", lambda: pair.predict_interval(frame))
        lists = KernelRidge(lam=0.01).fit(frame.to_numpy().tolist(), target.tolist())
        np.testing.assert_allclose(lists.predict(frame.to_numpy().tolist()), m.predict(frame))
        single = KernelRidge(lam=0.01).fit(frame.to_numpy(np.float32), target).predict(frame.to_numpy(np.float32))
        np.testing.assert_allclose(single, m.predict(frame), atol=1e-4)

    def test_words_and_dates(self):
        m = KernelRidge(lam=0.01).fit(words, target)
        self.assertEqual(m.column_kinds_, {"a": "numbers", "b": "numbers", "y": "numbers", "city": "words",
                                           "when": "dates"})
        self.assertEqual(m.predict(words[:3].assign(when="2024-01-01 00:00:00")).shape, (3,))
        late = words.assign(when=words.when + pd.to_timedelta(r.uniform(-700, 700, n), unit="D").floor("s"))
        for x in [late, words.assign(when=words.when.where(words.index > 9)), words][:3 if LONG else 2]:
            m = KernelRidge(lam=0.01, impute="mean").fit(x, target)  # with and without times and gaps
            large, _estimators.LARGE = _estimators.LARGE, 0
            try:
                by_program = m.predict(late)
            finally:
                _estimators.LARGE = large
            self.assertIsNotNone(m.model_.features(m._read(late)))
            np.testing.assert_allclose(m.predict(late), by_program, atol=1e-5)
        undated = words.drop(columns="when").assign(city=words.city.astype("category"))
        m = KernelRidge(lam=0.01).fit(undated, target)
        by_numpy = m.predict(undated)
        again = undated.assign(city=words.city.str.upper())  # only the program reads these as the words of the fit
        np.testing.assert_allclose(m.predict(again), by_numpy, atol=1e-5)
        with self.assertWarnsRegex(UserWarning, "city.*paris"):
            m.predict(undated.assign(city=["paris"] + words.city.tolist()[1:]))
        with self.assertWarnsRegex(UserWarning, '^words that.*"city": a missing value'):
            m.predict(undated.assign(city=[None] + words.city.tolist()[1:]))
        self.refused("^column 'city': no row has a word", lambda: m.predict(undated.assign(city="paris")))
        odd = words[["city"]].set_axis(["3"], axis=1).assign(**{"#a, b ": frame.a, " c": words.city, "y": words.when})
        other = KernelRidge(lam=0.01).fit(odd, target)
        self.assertEqual(list(other.column_kinds_.values()), ["words", "numbers", "words", "dates"])
        self.assertIsNotNone(other.model_.features(other._read(odd)))
        large, by_numpy, _estimators.LARGE = _estimators.LARGE, other.predict(odd), 0
        try:
            np.testing.assert_allclose(other.predict(odd), by_numpy, atol=1e-5)
        finally:
            _estimators.LARGE = large
        gap = undated.assign(city=words.city.where(words.index > 3))
        self.assertEqual(KernelRidge(lam=0.01).fit(gap, target).predict(gap[:5]).shape, (5,))  # a gap is a value
        self.refused("column 'when', row 1", lambda: KernelRidge().fit(
            words.assign(when=words.when.where(words.index != 1)), target))
        self.refused(r"\['city'\] have words or dates", lambda: m.predict(undated.to_numpy()))
        self.refused("there is no column 'town'", lambda: KernelRidge(categorical=["town"]).fit(words, target))
        self.refused("'when' has dates, and is not among", lambda: KernelRidge(dates=[]).fit(words, target))
        self.refused("column 'id', row 1000: the column has more than 1000 different values", lambda: KernelRidge().fit(
            pd.DataFrame({"id": [f"k{i}" for i in range(1001)], "a": 0.0}), np.arange(1001)))

    def test_odd_names(self):
        """Names that mean something to the program, or that it trims, are names; a file of the model knows them."""
        plain = pd.DataFrame({"c0": r.normal(size=n), "c1": r.choice(["ulm", "x,y", 'q"q'], n),
                              "c2": pd.date_range("2024-01-01", periods=n), "c3": r.integers(0, 9, n)})
        w = r.uniform(0.5, 2, n)
        for numbers, names in ((False, ["order=day", "weighty", "city=ulm", " a"]), (False, [" y", "0", "a\r\nb", "-1"]),
                               (False, ["#c", "order=day", "1e5", ""]), (True, ["weight_y", "  "]), (True, ["\ufeffz", "y"])):
            with self.subTest(names=names):
                x = plain[["c0", "c3"]] if numbers else plain
                m = KernelRidge(lam=0.1, sigma=1).fit(x.set_axis(names, axis=1), target, w)
                want = KernelRidge(lam=0.1, sigma=1).fit(x, target, w).predict(x)
                self.assertEqual(list(m.feature_names_in_), names)
                for model in m, load(m.model_):
                    np.testing.assert_allclose(model.predict(x.set_axis(names, axis=1)), want, atol=1e-4)
        self.refused("character of code 0", lambda: KernelRidge().fit(plain.rename(columns={"c0": "\0"}), target))

    def test_coordinates(self):
        """Longitudes and latitudes are projected as at the fit, in arrays and in frames."""
        places = pd.DataFrame({"lat": r.uniform(48, 50, n), "lon": r.uniform(8, 11, n)})
        height = np.sin(places.lat) + places.lon
        with tempfile.TemporaryDirectory() as folder:
            data, model = os.path.join(folder, "wells.csv"), os.path.join(folder, "wells.krr")
            places.assign(height=height).to_csv(data, index=False)
            subprocess.run([program(), "fit", "--train", data, "--space", "lat,lon", "--kernel", "gaussian", "--sigma",
                            "80", "--lambda", "1e-4", "--out", model], check=True, capture_output=True)
            m = load(model)
        places = places[["lon", "lat"]]
        np.testing.assert_allclose(m.predict(places), height, atol=0.1)
        with self.assertWarnsRegex(UserWarning, "does not have valid feature names"):
            np.testing.assert_allclose(m.predict(places.to_numpy()), height, atol=0.1)
        rows = places.assign(town="x", depth=r.normal(size=n))[["town", "lat", "depth", "lon"]]
        named = KernelRidge("gaussian", sigma=80, lam=1e-4, space=["lat", "lon"]).fit(rows, height)
        np.testing.assert_allclose(named.predict(rows), m.predict(places), atol=1e-8)
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
        self.refused("different numbers of columns", lambda: KernelRidge(space=[1, 1]).fit(places.to_numpy(), height))
        self.refused("Expected 2D array", lambda: KernelRidge(space=[0]).fit(places.lon.to_numpy(), height))
        self.refused("Expected 2D array", lambda: numbered.predict(places.lon.to_numpy()))
        self.refused("space: there is no column 'x'", lambda: KernelRidge(space="x").fit(rows, height))
        self.refused("numbers of columns", lambda: KernelRidge(space="lon").fit(places.to_numpy(), height))
        self.refused("does not go with", lambda: KernelRidge(space="lon", impute="mean").fit(rows, height))
        for words, kind in ((["a"] * len(rows), "words"), (pd.date_range("2024-01-01", periods=len(rows)), "dates")):
            self.refused(f"space: column 'third' has {kind}, and coordinates have to be numbers",
                         lambda: KernelRidge(space=["lon", "third"]).fit(rows.assign(third=words), height))
        gap = rows.assign(lat=rows.lat.where(np.arange(len(rows)) != 3))
        for call in (lambda: KernelRidge(space=["lat", "lon"]).fit(gap, height), lambda: named.predict(gap)):
            self.refused(r"the coordinate 'lat', row 3. Leave such rows out.$", call)
        self.refused("the coordinate in column 1, row 3", lambda: KernelRidge(space=[1, 0]).fit(
            gap[["lon", "lat"]].to_numpy(), height))
        self.refused("X has 2 features", lambda: numbered.predict(places.to_numpy()))

    def test_weights(self):
        w = pd.Series(r.integers(0, 3, n))
        rows = np.repeat(np.arange(n), w)
        for x in frame, words[["a", "b", "city"]], scipy.sparse.csr_matrix(frame.where(frame > 0, 0)):
            m = KernelRidge(lam=0.1, sigma=1, scale="none").fit(x, target, w)
            twice = KernelRidge(lam=0.1, sigma=1, scale="none").fit(
                x.iloc[rows] if hasattr(x, "iloc") else x[rows], target.iloc[rows])
            np.testing.assert_allclose(m.predict(x), twice.predict(x), atol=1e-6)
        self.refused("Negative values in sample_weight", lambda: KernelRidge().fit(frame, target, w - 1))
        heavy = KernelRidgeClassifier(lam=10, class_weight={"high": 100}).fit(frame, labels)
        light = KernelRidgeClassifier(lam=10, class_weight={"high": 0.01}).fit(frame, labels)
        self.assertGreater((heavy.predict(frame) == "high").sum(), (light.predict(frame) == "high").sum())
        # the weights of a dict do not count in the errors that tune compares
        blind = KernelRidgeClassifier("gaussian", lam=1e9, sigma=1, tune=True, class_weight={"high": 1e-9})
        share = (labels == "high").mean()
        self.assertAlmostEqual(blind.fit(frame, labels).report_["tune"]["best"]["error"], share, places=6)
        one = KernelRidgeClassifier(lam=1, class_weight={"high": 0})
        self.refused("one class only", lambda: one.fit(frame, labels))

    def test_sparse(self):
        dense = np.where(r.random((n, 6)) < 0.3, r.normal(size=(n, 6)), 0)
        for t in target, pd.DataFrame({"u": target, "v": -target}):
            want = KernelRidge(lam=0.1).fit(dense, t).predict(dense)
            for kind in (scipy.sparse.coo_matrix, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix)[:3 if LONG else 1]:
                m = KernelRidge(lam=0.1).fit(kind(dense), t)
                np.testing.assert_allclose(m.predict(kind(dense)), want, atol=1e-5)
                np.testing.assert_allclose(m.predict(dense), want, atol=1e-5)
        wide = scipy.sparse.csr_matrix(np.hstack([dense, np.zeros((n, 2))]))  # columns without an entry
        m = KernelRidge(lam=0.1).fit(wide, target)
        self.assertEqual(m.model_.meta["d"], 8)
        wide[0, 7] = 1
        large, by_numpy, _estimators.LARGE = _estimators.LARGE, m.predict(wide), 0
        try:
            np.testing.assert_allclose(m.predict(wide), by_numpy, atol=1e-5)
        finally:
            _estimators.LARGE = large
        c = KernelRidgeClassifier(lam=0.1).fit(scipy.sparse.csr_matrix(dense), labels)
        self.assertEqual(set(c.predict(scipy.sparse.csr_matrix(dense))), {"high", "low"})
        self.refused("Input X contains NaN.$", lambda: KernelRidge(impute="median").fit(
            scipy.sparse.csr_matrix(dense * np.nan), target))
