package jupyter

import (
	"encoding/hex"
	"sync"
)

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
