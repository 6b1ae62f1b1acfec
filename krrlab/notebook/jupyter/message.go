package jupyter

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// protocolVersion is the version of the messaging protocol.
const protocolVersion = "5.4"

// Header is the header of a message.
type Header struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

// Message is a received message.
type Message struct {
	Identities [][]byte // routing prefix of the message
	Header     Header
	RawHeader  json.RawMessage // header as received, for the parent header of replies
	Parent     json.RawMessage // parent header
	Content    json.RawMessage

	sender    *zmtp.Peer
	signature []byte
}

var (
	delimiter    = []byte("<IDS|MSG>")
	errSignature = errors.New("jupyter: a message with a wrong signature")
	errMalformed = errors.New("jupyter: a malformed message")
)

// sign returns the hexadecimal HMAC-SHA256 of the four parts of a message, or nothing if the key is empty.
func sign(key []byte, parts [][]byte) []byte {
	if len(key) == 0 {
		return []byte{}
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return []byte(hex.EncodeToString(mac.Sum(nil)))
}

// Decode parses a message and checks its signature with the key. The frames are the identities, the delimiter, the
// signature, the header, the parent header, the metadata and the content. Decode returns errMalformed if a frame is
// missing or the header is no JSON, and errSignature if the signature is wrong; with an empty key, the signature must
// be empty.
func Decode(frames [][]byte, key []byte) (*Message, error) {
	delimiterIndex := slices.IndexFunc(frames, func(frame []byte) bool { return bytes.Equal(frame, delimiter) })
	if delimiterIndex < 0 || len(frames) < delimiterIndex+6 {
		return nil, errMalformed
	}
	parts := frames[delimiterIndex+2 : delimiterIndex+6]
	if !hmac.Equal(sign(key, parts), frames[delimiterIndex+1]) {
		return nil, errSignature
	}
	m := &Message{Identities: frames[:delimiterIndex], RawHeader: parts[0], Parent: parts[1], Content: parts[3],
		signature: frames[delimiterIndex+1]}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return nil, errMalformed
	}
	return m, nil
}

// Encode returns the frames of a message of the given type to the given identities. content must be encodable as JSON;
// parent is the raw parent header, or empty.
func Encode(identities [][]byte, messageType, session string, parent json.RawMessage, content any,
	key []byte) ([][]byte, error) {
	header, err := json.Marshal(Header{ID: rand.Text(), Session: session, Username: "kernel",
		Date: time.Now().UTC().Format(time.RFC3339Nano), Type: messageType, Version: protocolVersion})
	if err != nil {
		return nil, err
	}
	metadata := []byte("{}")
	if withMetadata, ok := content.(contentWithMetadata); ok {
		if content = withMetadata.content; withMetadata.metadata != nil {
			if metadata, err = json.Marshal(withMetadata.metadata); err != nil {
				return nil, fmt.Errorf("jupyter: %s: %w", messageType, err)
			}
		}
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("jupyter: %s: %w", messageType, err)
	}
	if len(parent) == 0 {
		parent = json.RawMessage("{}")
	}
	parts := [][]byte{header, parent, metadata, body}
	return slices.Concat(identities, [][]byte{delimiter, sign(key, parts)}, parts), nil
}

// signatureLimit is the size of each of the two generations of signatures: the latest signatureLimit signatures are
// remembered, and at most 2·signatureLimit. A larger value detects replays of older messages and uses more memory.
const signatureLimit = 1 << 17

// signatures remembers the signatures of received messages, so that no message is accepted twice. Otherwise, anyone who
// has obtained a signed message could have it executed again. Only valid signatures are added, so nobody without the
// key can displace them.
type signatures struct {
	mu            sync.Mutex
	limit         int               // size of a generation
	recent, older map[[16]byte]bool // current and previous generation, keyed by the first 128 bits
}

// isNew reports whether the first 128 bits of a signature are new, and remembers them.
func (s *signatures) isNew(signature []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var prefix [16]byte
	hex.Decode(prefix[:], signature[:min(len(signature), 2*len(prefix))])
	if s.recent[prefix] || s.older[prefix] {
		return false
	}
	if s.recent == nil || len(s.recent) == s.limit {
		s.recent, s.older = map[[16]byte]bool{}, s.recent
	}
	s.recent[prefix] = true
	return true
}

// Connection is the content of a connection file.
type Connection struct {
	Transport       string `json:"transport"` // tcp or ipc
	IP              string `json:"ip"`        // for ipc, the common prefix of the socket paths
	SignatureScheme string `json:"signature_scheme"`
	Key             string `json:"key"` // signs all messages; "" for none
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`

	ownerUID int // ID of the user that owns the connection file; 0, which is root, if it is unknown
}

// ReadConnection reads a connection file. Missing values are never replaced by less secure ones.
func ReadConnection(name string) (c Connection, err error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return c, fmt.Errorf("connection file: %w", err)
	}
	err = json.Unmarshal(content, &c)
	if info, err := os.Stat(name); err == nil {
		c.ownerUID = zmtp.OwnerOf(info)
	}
	if err = cmp.Or(err, c.setDefaults()); err != nil {
		return c, fmt.Errorf("connection file %s: %w", name, err)
	}
	for _, p := range []struct {
		name string
		port int
	}{{"shell_port", c.ShellPort}, {"iopub_port", c.IOPubPort}, {"stdin_port", c.StdinPort},
		{"control_port", c.ControlPort}, {"hb_port", c.HBPort}} {
		if p.port < 1 || p.port > 65535 {
			return c, fmt.Errorf("connection file %s: %s is %d: want a port from 1 to 65535", name, p.name, p.port)
		}
	}
	return c, nil
}

// setDefaults replaces missing values by defaults. It returns an error for unknown or insecure values, such as a
// network address without a key.
func (c *Connection) setDefaults() error {
	c.Transport = cmp.Or(c.Transport, "tcp")
	c.SignatureScheme = cmp.Or(c.SignatureScheme, "hmac-sha256")
	switch {
	case c.Transport != "tcp" && c.Transport != "ipc":
		return fmt.Errorf("transport %q: want tcp or ipc", c.Transport)
	case c.SignatureScheme != "hmac-sha256":
		return fmt.Errorf("signature_scheme %q: want hmac-sha256", c.SignatureScheme)
	case c.Transport == "ipc" && c.IP == "":
		return fmt.Errorf("transport ipc without ip: want the common prefix of the socket paths")
	case c.Transport == "ipc":
		return nil // only the owner can access the socket files
	case c.IP == "":
		c.IP = "127.0.0.1"
	case c.IP == "*":
		c.IP = "0.0.0.0"
	}
	if ip := net.ParseIP(c.IP); c.Key == "" && c.IP != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("no key with ip %s: anyone who can reach this machine could run code; want a key, or ip "+
			"127.0.0.1", c.IP)
	}
	return nil
}

// address returns the ZeroMQ address of a port. With port 0, the system chooses a port of tcp.
func (c *Connection) address(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	return "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}
