package jupyter

import (
	"bytes"
	"slices"
	"sync"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// maxTopics is how many topics a subscriber may have; front ends have one, the empty one.
const maxTopics = 64

// publisher is an XPUB socket: it sends to each subscriber what has come since it subscribed, in
// order.
type publisher struct {
	*zmtp.Socket
	welcome func(topic []byte) [][]byte // frames for a new subscriber

	mu     sync.Mutex
	topics map[*zmtp.Peer][][]byte
}

// listenPub opens the socket at a ZeroMQ address.
func listenPub(address string, o zmtp.Options, welcome func(topic []byte) [][]byte) (*publisher, error) {
	p := &publisher{welcome: welcome, topics: map[*zmtp.Peer][][]byte{}}
	o.Type, o.Limits.Message = "XPUB", smallMessage
	o.Receive, o.Gone = p.subscribe, p.gone
	var err error
	p.Socket, err = zmtp.Listen(address, o)
	return p, err
}

func (p *publisher) gone(peer *zmtp.Peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.topics, peer)
}

// subscribe takes a message 1+topic or 0+topic.
func (p *publisher) subscribe(peer *zmtp.Peer, frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	topics, topic := p.topics[peer], frames[0][1:]
	switch frames[0][0] {
	case 1:
		if len(topics) == maxTopics {
			peer.Close()
			return
		}
		p.topics[peer] = append(topics, topic)
		peer.Send(p.welcome(topic))
	case 0:
		if i := slices.IndexFunc(topics, func(t []byte) bool { return bytes.Equal(t, topic) }); i >= 0 {
			p.topics[peer] = slices.Delete(topics, i, i+1)
		}
	}
}

// publish sends a message to all who subscribed to its topic, the first frame.
func (p *publisher) publish(frames [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for peer, topics := range p.topics {
		if slices.ContainsFunc(topics, func(t []byte) bool { return bytes.HasPrefix(frames[0], t) }) {
			peer.Send(frames)
		}
	}
}
