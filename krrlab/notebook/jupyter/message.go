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
	"strconv"
	"sync"
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
	m := &Message{Identities: frames[:i], RawHeader: parts[0], Parent: parts[1], Content: parts[3],
		signature: frames[i+1]}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return nil, errMalformed
	}
	return m, nil
}

// Encode writes a message of the type to those identities: content is anything that JSON
// can carry.
func Encode(identities [][]byte, typ, session string, parent json.RawMessage, content any, key []byte) ([][]byte,
	error) {
	h, err := json.Marshal(Header{ID: rand.Text(), Session: session, Username: "kernel",
		Date: time.Now().UTC().Format(time.RFC3339Nano), Type: typ, Version: protocolVersion})
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

// remembered is how many signatures are remembered at least, and half of how many at most.
const remembered = 1 << 17

// signatures are those of messages that came, so that none is taken twice: whoever has got hold of
// one signed message could otherwise have it run again. Only messages whose signature is right enter,
// so that a stranger cannot make room for an old one.
type signatures struct {
	mu           sync.Mutex
	limit        int
	last, before map[[16]byte]struct{}
}

// fresh remembers a signature, of which it takes the first half, 128 bits, and reports whether it is new.
func (s *signatures) fresh(signature []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var k [16]byte
	hex.Decode(k[:], signature[:min(len(signature), 2*len(k))])
	_, again := s.last[k]
	_, long := s.before[k]
	if again || long {
		return false
	}
	if s.last == nil || len(s.last) == s.limit {
		s.last, s.before = map[[16]byte]struct{}{}, s.last
	}
	s.last[k] = struct{}{}
	return true
}

// Connection is the content of a connection file.
type Connection struct {
	Transport       string `json:"transport"`
	IP              string `json:"ip"`
	SignatureScheme string `json:"signature_scheme"`
	Key             string `json:"key"`
	ShellPort       int    `json:"shell_port"`
	IOPubPort       int    `json:"iopub_port"`
	StdinPort       int    `json:"stdin_port"`
	ControlPort     int    `json:"control_port"`
	HBPort          int    `json:"hb_port"`

	owner int // of the connection file
}

// ReadConnection reads a connection file. What is missing in it is never replaced by something less
// safe.
func ReadConnection(name string) (c Connection, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return c, fmt.Errorf("connection file: %w", err)
	}
	err = json.Unmarshal(b, &c)
	if st, err := os.Stat(name); err == nil {
		c.owner = zmtp.OwnerOf(st)
	}
	if err = cmp.Or(err, c.complete()); err != nil {
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

// complete puts in the defaults and refuses what is unknown or unsafe.
func (c *Connection) complete() error {
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
		return nil // the files of the sockets are for their owner alone
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

// address is the ZeroMQ address of a port.
func (c *Connection) address(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	return "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}
