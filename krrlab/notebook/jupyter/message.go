package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// protocolVersion is the version of the messages.
const protocolVersion = "5.4"

// Header says what a message is.
type Header struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

// Message is one message as it comes.
type Message struct {
	Identities [][]byte
	Header     Header
	RawHeader  json.RawMessage // to be the parent of answers
	Parent     json.RawMessage
	Metadata   json.RawMessage
	Content    json.RawMessage

	from      *zmtp.Peer
	signature []byte
}

var (
	delimiter    = []byte("<IDS|MSG>")
	errSignature = errors.New("jupyter: a message with a wrong signature")
	errMalformed = errors.New("jupyter: a malformed message")
)

// sign returns the signature of the four parts of a message.
func sign(key []byte, parts [][]byte) []byte {
	if len(key) == 0 {
		return []byte{}
	}
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return []byte(hex.EncodeToString(mac.Sum(nil)))
}

// Decode reads a message and checks its signature.
func Decode(frames [][]byte, key []byte) (*Message, error) {
	i := 0
	for i < len(frames) && !bytes.Equal(frames[i], delimiter) {
		i++
	}
	if len(frames) < i+6 {
		return nil, errMalformed
	}
	parts := frames[i+2 : i+6]
	if !hmac.Equal(sign(key, parts), frames[i+1]) {
		return nil, errSignature
	}
	m := &Message{Identities: frames[:i], RawHeader: parts[0], Parent: parts[1], Metadata: parts[2], Content: parts[3], signature: frames[i+1]}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return nil, errMalformed
	}
	return m, nil
}

// Encode writes a message of the type to those identities: content is anything that JSON
// can carry.
func Encode(identities [][]byte, typ, session string, parent json.RawMessage, content any, key []byte) ([][]byte, error) {
	h, err := json.Marshal(Header{ID: newID(), Session: session, Username: "kernel", Date: time.Now().UTC().Format(time.RFC3339Nano), Type: typ, Version: protocolVersion})
	if err != nil {
		return nil, err
	}
	c, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("jupyter: %s: %w", typ, err)
	}
	if len(parent) == 0 {
		parent = json.RawMessage("{}")
	}
	parts := [][]byte{h, parent, []byte("{}"), c}
	frames := append([][]byte{}, identities...)
	frames = append(frames, delimiter, sign(key, parts))
	return append(frames, parts...), nil
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
