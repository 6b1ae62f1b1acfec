package jupyter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestHistoryPatterns checks which history entries match a search pattern, including patterns with millions of stars,
// which must not take long.
func TestHistoryPatterns(t *testing.T) {
	manyStars := strings.Repeat("*", 4_000_000)
	server := &Server{history: []historyEntry{{1, "x := 3\ny", ""}, {2, "übung(", ""}, {3, "", ""}, {4, "aab", ""}}}
	for pattern, want := range map[string]string{
		"*": "1234", manyStars: "1234", manyStars + "?" + manyStars: "124",
		"x*y": "1", "*b*ng?": "2", "?bung(": "2", "": "3",
		"*aab": "4", "*ab": "4", "a*a*b": "4", "a*b*b": "", "???": "4", "x": "",
		"*[*": "", "*" + manyStars + "(": "2", strings.Repeat("a*", 1_000_000): "",
	} {
		got := "" // the numbers of the matching entries
		for _, entry := range server.searchHistory(request{Access: "search", Pattern: pattern}) {
			got += fmt.Sprint(entry[1])
		}
		testkit.Equal(t, got, want, pattern)
	}
}
