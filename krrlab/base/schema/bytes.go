package schema

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// prefixPowers maps the metric prefix of a unit, such as the G of GB, to an exponent of 1000. If an i follows the
// letter, it is an exponent of 1024.
var prefixPowers = map[string]float64{"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}

// parseBytes converts a text such as 20GB to a number of bytes, from 1 to 2⁶⁰.
func parseBytes(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGTiB")
	letter, binary := strings.CutSuffix(strings.TrimSuffix(text[len(number):], "B"), "i")
	base := 1000.0
	if binary {
		base = 1024
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	power, ok := prefixPowers[letter]
	if v *= math.Pow(base, power); err != nil || !ok || !(v >= 1) || v > 1<<60 {
		return 0, errors.New("want a number of bytes such as 20GB, 512MiB or 8e9")
	}
	return int64(v), nil
}
