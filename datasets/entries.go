package datasets

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

const (
	libsvmSite = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
	uciSite    = "https://archive.ics.uci.edu/"

	libsvmLicence = "see the original source; redistributed by the LIBSVM data page without a separate license"
	uciLicence    = "Creative Commons Attribution 4.0 (UCI Machine Learning Repository)"
	mnistLicence  = "no license stated by its authors (LeCun, Cortes, Burges); made from NIST Special Databases 1 and 3"
)

func mnistFile(role Role, name, sum string) File {
	return File{
		Role: role,
		Path: "mnist/" + name + ".gz",
		URLs: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/" + name + ".gz",
			"https://storage.googleapis.com/cvdf-datasets/mnist/" + name + ".gz",
		},
		SHA256: sum,
	}
}

var (
	mnistTest = []File{
		mnistFile(TestFile, "t10k-images-idx3-ubyte",
			"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
		mnistFile(TestLabels, "t10k-labels-idx1-ubyte",
			"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
	}
	mnistFiles = append([]File{
		mnistFile(TrainFile, "train-images-idx3-ubyte",
			"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
		mnistFile(TrainLabels, "train-labels-idx1-ubyte",
			"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
	}, mnistTest...)
	mnist8m = append([]File{libsvmFile(TrainFile, "mnist8m", "multiclass/mnist8m.bz2", "")}, mnistTest...)
)

// libsvmFile is a file of the LIBSVM data page, kept in a folder of the set's own.
func libsvmFile(role Role, folder, file, sum string) File {
	return File{Role: role, Path: folder + "/" + path.Base(file), URLs: []string{libsvmSite + file}, SHA256: sum}
}

// libsvmPair is a file for training and, with .t before the packing, one for the test.
func libsvmPair(folder, file, train, test string) []File {
	bare := bareOf(file)
	return []File{libsvmFile(TrainFile, folder, file, train),
		libsvmFile(TestFile, folder, bare+".t"+strings.TrimPrefix(file, bare), test)}
}

var covtypeFile = File{
	Role: TrainFile,
	Path: "covtype/covtype.data.gz",
	URLs: []string{uciSite + "ml/machine-learning-databases/covtype/covtype.data.gz",
		"https://ndownloader.figshare.com/files/5976039"},
}

var covtypeSample = File{
	Role:   TrainFile,
	Path:   "covtype/covtype.sample426598.csv.gz",
	SHA256: "5c9e4e5b50c2540daef96776cfa6136cb3bb79806ee9d7767fc4cc1a5a933850",
}

const (
	shuffled = "a fixed random 80 % of the rows train, the rest test (the paper trains on 80 %)"
	ownTest  = "a separate test file"
)

// mnist8mHead is a set of the first rows of MNIST8M, with what the paper's table 1 has of it.
func mnist8mHead(name, thousands string, n, iterations int, seconds, rate float64) Info {
	return Info{
		Name: name, Title: fmt.Sprintf("%s, the first %s,000 of MNIST8M", strings.ToUpper(name), thousands), N: n, TestN: 10000, D: 784, Classes: 10,
		Files: mnist8m, Split: fmt.Sprintf("the first %s,000 rows of MNIST8M train, MNIST's test file tests",
			thousands), Scale: "pixel",
		Note:    "which rows of MNIST8M the paper took is not said",
		Licence: mnistLicence, Page: libsvmSite + "multiclass.html#mnist8m", Similar: "mnist8m-sample",
		Paper: &PaperSettings{8.5, 0.01, 35000, iterations, seconds, rate},
	}
}

var registry = settled([]Info{
	{
		Name: "gisette", Title: "GISETTE, digits 4 and 9 with distractors", N: 6000, TestN: 1000,
		D: 5000, Classes: 2,
		Files: libsvmPair("gisette", "binary/gisette_scale.bz2", "", ""),
		Note:  "LIBSVM's form, scaled to [-1, 1]", Licence: libsvmLicence,
		Page:  libsvmSite + "binary.html#gisette",
		Paper: &PaperSettings{3, 0.01, 500, 6, 8.1, 0.0350},
	},
	{
		Name: "adult", Title: "ADULT (a9a), income above 50,000", N: 32561, TestN: 16281, D: 123,
		Classes: 2,
		Files: libsvmPair("adult", "binary/a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
			"1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),
		Licence: uciLicence, Page: libsvmSite + "binary.html#a9a",
		Paper: &PaperSettings{8, 0.01, 5000, 13, 19.8, 0.1499},
	},
	{
		Name: "ijcnn1", Title: "IJCNN1, neural network challenge 2001", N: 49990, TestN: 91701,
		D: 22, Classes: 2,
		Files: libsvmPair("ijcnn1", "binary/ijcnn1.bz2",
			"16506cad788cf7c9607454150ed1994788204bac2ff4c9cb3b320036b6950d3f",
			"e7b0bbd518641980dc322746c6bc59d019d3153934e6258e48f9d8cfae2c4bb8"),
		Licence: libsvmLicence, Page: libsvmSite + "binary.html#ijcnn1",
		Paper: &PaperSettings{0.3, 0.01, 12500, 120, 85.1, 0.0139},
	},
	{
		Name: "mnist", Title: "MNIST, handwritten digits", N: 60000, TestN: 10000, D: 784,
		Classes: 10,
		Files:   mnistFiles, Scale: "pixel", Licence: mnistLicence,
		Page:  "http://yann.lecun.com/exdb/mnist/",
		Paper: &PaperSettings{8.5, 0.01, 10000, 85, 115, 0.0133},
	},
	mnist8mHead("mnist-400k", "400", 400000, 99, 1580, 0.0089),
	mnist8mHead("mnist-1m", "1,000", 1000000, 189, 3820, 0.0072),
	{
		Name: "epsilon", Title: "EPSILON, Pascal large scale learning challenge 2008", N: 400000,
		TestN: 100000, D: 2000, Classes: 2,
		Files: libsvmPair("epsilon", "binary/epsilon_normalized.bz2", "", ""),
		Note:  "LIBSVM's form, rows of length 1", Licence: libsvmLicence,
		Page:  libsvmSite + "binary.html#epsilon",
		Paper: &PaperSettings{8, 0.01, 20000, 12, 526, 0.1021},
	},
	{
		Name: "covtype", Title: "COVTYPE, forest cover, class 2 against the rest", N: 464809,
		TestN: 116203, D: 54, Classes: 2,
		Files: []File{covtypeFile}, Split: shuffled, Scale: "unit", Licence: uciLicence,
		Page: uciSite + "dataset/31/covertype", Similar: "covtype-sample",
		Paper: &PaperSettings{0.1, 0.01, 55000, 555, 6180, 0.0413}, one: "2",
	},
	{
		Name: "yearpredictionmsd", Title: "YEARPREDICTIONMSD, year of a song", N: 463715,
		TestN: 51630, D: 90,
		Files: libsvmPair("yearpredictionmsd", "regression/YearPredictionMSD.bz2", "", ""),
		Split: ownTest + ", no artist in both", Scale: "standard", Licence: uciLicence,
		Page:  uciSite + "dataset/203/yearpredictionmsd",
		Paper: &PaperSettings{3, 0.001, 15000, 15, 289, 4.58e-3},
	},

	{
		Name: "mnist8m-sample", Title: "10,000 rows of MNIST8M", N: 10000, TestN: 10000, D: 784,
		Classes: 10,
		Files: append([]File{{
			Role: TrainFile, Path: "mnist8m/mnist8m.sample10000.csv.gz",
			SHA256: "7a7a59945d56de1e1d501e5b2ba7a4f304bf258af705e0d228ca007afed01566",
		}}, mnistTest...),
		Split: "MNIST's test file tests", Scale: "pixel", Note: "a subset of MNIST8M's 8,100,000 rows",
		Licence: mnistLicence,
		Page:    libsvmSite + "multiclass.html#mnist8m", Sigma: 8.5, Lambda: 0.01, target: "0",
	},
	{
		Name: "mnist-infinite", Title: "MNIST, and as many digits generated from MNIST as are asked for", N: 60000, TestN: 10000, D: 784, Classes: 10,
		Files: mnistFiles, Split: "MNIST's 60,000 training rows and generated ones train, MNIST's test file tests",
		Scale: "pixel",
		Note: "rows after the first 60,000 are generated from MNIST; they stand for the growth of MNIST-400K " +
			"and MNIST-1M, and are neither",
		Licence: mnistLicence, Page: "http://yann.lecun.com/exdb/mnist/", Endless: true, Sigma: 8.5, Lambda: 0.01,
	},
	{
		Name: "covtype-sample", Title: "426,598 rows of COVTYPE, class 2 against the rest",
		N: 341278, TestN: 85320, D: 54, Classes: 2,
		Files: []File{covtypeSample}, Split: shuffled, Scale: "unit",
		Note: "a random subset, 73.4 % of COVTYPE's 581,012 rows", Licence: uciLicence,
		Page: uciSite + "dataset/31/covertype", Sigma: 0.1, Lambda: 0.01, one: "2",
	},
	{
		Name: "covtype7-sample", Title: "426,598 rows of COVTYPE, all 7 classes", N: 341278,
		TestN: 85320, D: 54, Classes: 7,
		Files: []File{covtypeSample}, Split: shuffled, Scale: "unit",
		Note:    "a random subset, 73.4 % of COVTYPE's 581,012 rows; not the paper's task",
		Licence: uciLicence, Page: uciSite + "dataset/31/covertype", Sigma: 0.1, Lambda: 0.01,
	},
	{
		Name: "usps", Title: "USPS, handwritten digits of zip codes", N: 7291, TestN: 2007,
		D: 256, Classes: 10,
		Files: []File{
			{Role: TrainFile, Path: "usps/zip.train.gz",
				SHA256: "abc9f5c75b997cabe66b5d01727d5a681c69298e1641a8d37b55433a52129dc0",
				URLs:   []string{"https://hastie.su.domains/ElemStatLearn/datasets/zip.train.gz"}},
			{Role: TestFile, Path: "usps/zip.test.gz",
				SHA256: "6bde17b4f1cd68e0630cd2751d6495b5795d9165ab2dc4a0be8b7002b732f4cc",
				URLs:   []string{"https://hastie.su.domains/ElemStatLearn/datasets/zip.test.gz"}},
		},
		Note:    "a stand-in, not in the paper's tables",
		Licence: "not stated; data page of The Elements of Statistical Learning",
		Page:    "https://hastie.su.domains/ElemStatLearn/data.html", Sigma: 8, Lambda: 0.01, target: "0",
	},
	{
		Name: "cal-housing", Title: "California housing, median house value in dollars", N: 16512,
		TestN: 4128, D: 8,
		Files: []File{{
			Role: TrainFile, Path: "cal_housing/cal_housing.data.gz",
			SHA256: "a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",
		}},
		Split: "a fixed random 80 % of the rows train, the rest test", Scale: "standard",
		Note:    "a stand-in, not in the paper's tables",
		Licence: "StatLib (Pace and Barry 1997): free to use",
		Page:    "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html",
		Sigma:   1, Lambda: 0.1,
	},
	{
		Name: "abalone", Title: "Abalone, rings of a shell", N: 3341, TestN: 836, D: 8,
		Files: []File{libsvmFile(TrainFile, "libsvm_regression", "regression/abalone",
			"b4b37cab1676dc8a782a9bbbcb620ec3b48b3f651ecfaba24ff53a55ec357523")},
		Split: "a fixed random 80 % of the rows train, the rest test", Scale: "standard",
		Note:    "a stand-in, not in the paper's tables",
		Licence: uciLicence, Page: libsvmSite + "regression.html#abalone", Sigma: 3, Lambda: 0.1,
	},
	{
		Name: "protein", Title: "Protein tertiary structure (CASP), standardized", N: 36584,
		TestN: 9146, D: 9,
		Files: []File{{
			Role: TrainFile, Path: "uci_regression/protein.csv.gz",
			SHA256: "6ccb1a6bf7e7ba40febe2b8226779cb62e4ca2fa4d193bdec8538c6b5f991ec5",
		}},
		Split: "a fixed random 80 % of the rows train, the rest test", Scale: "standard",
		Note: "a stand-in, not in the paper's tables; processed by others, so errors do not compare with those " +
			"on raw data",
		Licence: uciLicence, Page: uciSite + "dataset/265/physicochemical+properties+of+protein+tertiary+structure",
		Sigma: 1, Lambda: 0.1,
	},

	{
		Name: "synthetic-regression", Title: "smooth function of 4 variables, noise of standard deviation 0.1", N: 3000, TestN: 2000, D: 4,
		Split: "generated", Note: "built in; the best possible RMSE is the noise's, 0.1",
		Licence: "none needed",
		Sigma:   1, Lambda: 0.1,
		generate: func(i *Info) *Dataset { return SyntheticRegression(i.N+i.TestN, i.D, 0.1, 1) },
	},
	{
		Name: "synthetic-classes", Title: "5 classes of points in 3 variables, 5 % of the labels wrong", N: 4000, TestN: 2000, D: 3, Classes: 5,
		Split: "generated", Note: "built in; the best possible error is the share of wrong labels, 5 %",
		Licence: "none needed",
		Sigma:   0.5, Lambda: 0.5,
		generate: func(i *Info) *Dataset { return SyntheticClasses(i.N+i.TestN, i.D, i.Classes, 0.05, 1) },
	},
	{
		Name: "synthetic-digits", Title: "drawn digits of 28×28 pixels, each deformed in its own way", N: 1000, TestN: 500, D: 784, Classes: 10,
		Split: "generated", Scale: "pixel", Note: "built in; a stand-in for MNIST where that is not at hand",
		Licence: "none needed",
		Sigma:   8.5, Lambda: 0.01, generate: func(i *Info) *Dataset { return SyntheticDigits(i.N+i.TestN, 1) },
	},
})

// settled sets what most entries have in common, or have from the paper.
func settled(all []Info) []Info {
	for k := range all {
		i := &all[k]
		if i.Split, i.Scale = cmp.Or(i.Split, ownTest), cmp.Or(i.Scale, "none"); i.Classes > 0 {
			i.Task = Classification
		}
		if i.Paper != nil {
			i.Sigma, i.Lambda = i.Paper.Sigma, i.Paper.Lambda
		}
	}
	return all
}
