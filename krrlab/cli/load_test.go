package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestDim: a LIBSVM test file with more features than the training file is refused with both
// numbers, whose each is and the flag that reads them; with that flag it is read.
func TestDim(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	rows := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "%d 1:%d 3:%g%s\n", 2*(i%2)-1, i%7, float64(i)/7, last)
		}
		return b.String()
	}
	write(t, dir, "train.svm", rows(""))
	write(t, dir, "test.svm", rows(" 5:1"))
	fit := strings.Fields("fit --train train.svm --test test.svm --out m.krr --quiet")
	code, _, errs := command(t, fit...)
	want := "krrlab: test.svm: points have 5 features, want 3\n"
	if code != exitError || errs != want {
		t.Errorf("exit %d, %swant %s", code, errs, want)
	}
	if code, _, errs := command(t, append(fit, "--dim", "5")...); code != exitOK || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, out, errs := command(t, "predict", "--model", "m.krr", "--in", "test.svm"); code != exitOK || strings.Count(out, "\n") != 41 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"fit --train train.svm --dim 2":  "train.svm: points have 3 features, want 2",
		"fit --train train.svm --dim 0":  "--dim 0: want at least 1 (see krrlab fit --help)",
		"fit --data mnist --dim 9":       "--dim goes with --train; --data knows its own (see krrlab fit --help)",
		"quality --train a.svm --dim -1": "--dim -1: want at least 1 (see krrlab quality --help)",
	} {
		if _, _, errs := command(t, strings.Fields(args)...); errs != "krrlab: "+want+"\n" {
			t.Errorf("%s: %swant %s", args, errs, want)
		}
	}
}
