package lint

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// subjectForm matches "package: what it does", or several packages, in lower case and without a full stop.
var subjectForm = regexp.MustCompile(`^[a-z][\w./ ,-]*: [^\s].*[^.]$`)

// subjectRule returns the rule that the subject of a commit breaks, or "" if it breaks none.
func subjectRule(subject string) string {
	switch length := utf8.RuneCountInString(subject); {
	case length > 72:
		return "is longer than 72 characters"
	case !subjectForm.MatchString(subject):
		return `is not "package: what it does", without a full stop`
	}
	return ""
}

// TestSubjects checks the subjects of at most 50 recent commits; the rule exists since November 2026.
func TestSubjects(t *testing.T) {
	log := exec.Command("git", "log", "-50", "--since=2026-11-22T08:00:00Z", "--no-merges", "--format=%h %s")
	log.Dir = root
	out, err := log.Output()
	if err != nil {
		t.Skipf("no git checkout: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		hash, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		testkit.Equal(t, subjectRule(subject), "", hash, subject)
	}
}

// TestSubjectsCanFail checks subjectRule on good and bad subjects.
func TestSubjectsCanFail(t *testing.T) {
	for subject, valid := range map[string]bool{
		"gram: fix the diagonal of the last tile": true,
		"pcg, comm: tests hold on arm64":          true,
		"krrlab/cli: one flag less":               true,
		"gram: fix the diagonal.":                 false,
		"Fix the diagonal":                        false,
		"fix the diagonal":                        false,
		"gram: " + strings.Repeat("κ", 67):        false,
		"gram: " + strings.Repeat("κ", 66):        true,
	} {
		if got := subjectRule(subject); (got == "") != valid {
			t.Errorf("%q: the broken rule is %q, want none: %v", subject, got, valid)
		}
	}
}
