package jupyter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// encodedRequest returns the frames of an execute_request that is signed with the key.
func encodedRequest(t testing.TB, key string) [][]byte {
	t.Helper()
	frames := testkit.Must(Encode([][]byte{[]byte("id")}, "execute_request", "s", nil,
		map[string]any{"code": "x := 1"}, []byte(key)))
	return frames
}

// TestDecode checks that Decode accepts a message with its signature, and rejects every other signature and every
// change of a signed frame.
func TestDecode(t *testing.T) {
	const key = "a key"
	frames := encodedRequest(t, key)
	m, err := Decode(frames, []byte(key))
	if err != nil || m.Header.Type != "execute_request" || m.Header.Session != "s" ||
		string(m.Content) != `{"code":"x := 1"}` || fmt.Sprintf("%s", m.Identities) != "[id]" {
		t.Fatalf("decoded %+v, %v", m, err)
	}
	correct := frames[2]
	for name, signature := range map[string][]byte{
		"empty": {}, "nil": nil, "of another key": encodedRequest(t, "another key")[2], "cut short": correct[:63],
		"longer":      append(bytes.Clone(correct), '0'),
		"in capitals": bytes.ToUpper(correct), "zeros": []byte(strings.Repeat("0", 64)), "of no key": encodedRequest(t, "")[2],
	} {
		changed := slices.Clone(frames)
		if changed[2] = signature; bytes.Equal(signature, correct) {
			continue
		}
		if m, err := Decode(changed, []byte(key)); !errors.Is(err, errSignature) {
			t.Errorf("signature %s: %v, %v", name, m, err)
		}
	}
	for i := 3; i < 7; i++ {
		changed := slices.Clone(frames)
		changed[i] = append(bytes.Clone(changed[i]), ' ')
		if _, err := Decode(changed, []byte(key)); !errors.Is(err, errSignature) {
			t.Errorf("frame %d changed: %v", i, err)
		}
	}
	if _, err := Decode(frames, nil); !errors.Is(err, errSignature) {
		t.Errorf("a signature without a key: %v", err)
	}
	if _, err := Decode(encodedRequest(t, ""), nil); err != nil {
		t.Errorf("without a key: %v", err)
	}
}

// FuzzDecode decodes arbitrary frames, with and without a correct signature. Decode must return an error, or a message
// that is signed and has a valid header.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("id\n<IDS|MSG>\n\n{}\n{}\n{}\n{}"), true)
	f.Add(bytes.Join(encodedRequest(f, "key"), []byte("\n")), false)
	f.Add([]byte("<IDS|MSG>\n\n"), false)
	f.Add([]byte("<IDS|MSG>\n\n"+strings.Repeat("[", 1000)+"\n{}\n{}\n{}"), true)
	f.Fuzz(func(t *testing.T, joinedFrames []byte, isSigned bool) {
		key := []byte("key")
		frames := bytes.Split(joinedFrames, []byte("\n"))
		i := slices.IndexFunc(frames, func(f []byte) bool { return bytes.Equal(f, delimiter) })
		isComplete := i >= 0 && len(frames) >= i+6
		if isSigned && isComplete {
			frames[i+1] = sign(key, frames[i+2:i+6])
		}
		m, err := Decode(frames, key)
		if err != nil {
			if errors.Is(err, errSignature) && isSigned {
				t.Errorf("%q: signed, and refused: %v", frames, err)
			}
			return
		}
		if !isComplete || !bytes.Equal(frames[i+1], sign(key, frames[i+2:i+6])) || len(m.Identities) != i ||
			!json.Valid(m.RawHeader) {
			t.Errorf("%q must be refused, decoded as %+v", frames, m)
		}
	})
}

// TestSignatures checks that a signature is recognized after up to limit others, and that at most twice as many are
// remembered.
func TestSignatures(t *testing.T) {
	s := signatures{limit: 100}
	signatureOf := func(i int) []byte { return sign([]byte("k"), [][]byte{{byte(i), byte(i >> 8)}}) }
	for i := range 1000 {
		if !s.isNew(signatureOf(i)) {
			t.Fatalf("signature %d is not new", i)
		}
		for _, before := range []int{0, 1, 50, 99} {
			if i >= before && s.isNew(signatureOf(i-before)) {
				t.Fatalf("signature %d is accepted again after %d others", i-before, before)
			}
		}
		if count := len(s.recent) + len(s.older); count > 200 {
			t.Fatalf("%d are remembered", count)
		}
	}
}
