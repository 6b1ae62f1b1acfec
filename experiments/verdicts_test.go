package experiments

import (
	"fmt"
	"strings"
	"testing"
)

// stoppedResult returns the result of a solve that needs a number of iterations and is stopped after the allowed
// number.
func stoppedResult(needs, allowed int) *Result {
	result := convergedResult(min(needs, allowed), 0.01)
	if needs > allowed {
		result.Status, result.Converged = "max-iterations", false
	}
	return result
}

// TestClaimsFollowTheTruth varies the number of iterations that plain CG needs on MNIST from 300 to 5000, with limits
// far below and far above the published 979. No verdict contradicts the truth, each claim is decided if the limit
// allows it, and all three outcomes occur.
func TestClaimsFollowTheTruth(t *testing.T) {
	const agrees, several = "iterations of plain CG", "plain CG needs several"
	seen := map[string]map[string]int{agrees: {}, several: {}}
	preconditioned := 150 // iterations of the preconditioned solve
	for _, allowed := range []int{300, 449, 450, 735, 1000, 1223, 1224, 1900} {
		for _, truth := range []int{300, 400, 449, 450, 734, 735, 979, 1000, 1001, 1223, 1224, 1500, 1900, 3000, 5000} {
			r := madeUpReport(t, "table4", func(e *Entry) *Result {
				switch {
				case e.Row == "MNIST" && e.Role == plainRole:
					return stoppedResult(truth, allowed)
				case e.Row == "MNIST":
					return convergedResult(preconditioned, 0.1)
				case e.Row == "GISETTE":
					return convergedResult(1, 0.1)
				case e.Row == "ADULT" && e.Role == plainRole:
					return convergedResult(369, 0.1)
				case e.Row == "IJCNN1" && e.Role == plainRole:
					return convergedResult(764, 0.1)
				}
				return convergedResult(13, 0.1)
			})
			known := truth <= allowed
			for _, c := range []struct {
				claim   string
				isTrue  bool // whether the claim is true for the number of iterations that are needed
				decided bool // whether the allowed number of iterations decides the claim
			}{
				// 979·0.75 = 734.25, 979·1.25 = 1223.75
				{agrees, truth >= 735 && truth <= 1223, known || allowed >= 1223},
				{several, truth >= 3*preconditioned, known || allowed >= 3*preconditioned-1},
			} {
				want := Open
				if c.decided && c.isTrue {
					want = Holds
				} else if c.decided {
					want = Fails
				}
				got, detail := outcome(t, r, c.claim)
				if got != want {
					t.Errorf("needs %d, allowed %d: %q %s, want %s (%s)", truth, allowed, c.claim, got, want, detail)
				}
				seen[c.claim][got]++
			}
		}
	}
	for claim, counts := range seen {
		for _, o := range []string{Holds, Fails, Open} {
			if counts[o] == 0 {
				t.Errorf("%q never %s: %v", claim, o, counts)
			}
		}
	}
}

// TestRuleForClaims checks the rule for claims: a row that contradicts a claim makes it fail, and a row that is open
// or was not run leaves it open, as does the absence of rows.
func TestRuleForClaims(t *testing.T) {
	for rows, want := range map[string]string{
		"holds": "holds: c (0)", "holds holds": "holds: c (0; 1)", "holds fails": "fails: c (1; 0)",
		"open fails": "fails: c (1; 0)",
		"holds open": "open: c (1; 0)", "open": "open: c (0)", "missing holds": "open: c (not run at the paper's n: " +
			"0; 1)", "missing fails": "fails: c (1; not run at the paper's n: 0)",
		"": "open: c (no row of this scale decides it)",
	} {
		j := evidence{claim: "c"}
		for i, o := range strings.Fields(rows) {
			if o == "missing" {
				j.addMissing(fmt.Sprint(i))
			} else {
				j.addRow(o, "%d", i)
			}
		}
		if got := j.verdict().String(); got != want {
			t.Errorf("%q: %s, want %s", rows, got, want)
		}
	}
	for want, counts := range map[string]map[string]int{
		"Of 19 claims 17 hold, 1 fails, 1 is open": {Holds: 17, Fails: 1, Open: 1},
		"Of 3 claims 1 holds, 2 fail":              {Holds: 1, Fails: 2},
		"Of 2 claims 2 are open":                   {Open: 2},
	} {
		if got := tally(counts); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// errorOf returns the error of a call with two results.
func errorOf[T any](_ T, err error) error { return err }

// expectError reports a test error unless err is not nil and its text contains want.
func expectError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// expectContains reports a test error for each of the parts that the text does not contain.
func expectContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
