package zmtp_test

import (
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// This example opens a socket that returns each message with an additional frame, and a client of this socket.
func Example() {
	s, err := zmtp.Listen("tcp://127.0.0.1:0", zmtp.Options{
		Type:    "ROUTER",
		Receive: func(p *zmtp.Peer, frames [][]byte) { p.Send(append(frames, []byte("to "+p.Identity()))) },
	})
	if err != nil {
		panic(err)
	}
	defer s.Close(time.Time{})
	c, err := zmtp.Dial("tcp://"+s.Addr().String(), "DEALER", "me")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	if err := c.Send([]byte("hello"), []byte("there")); err != nil {
		panic(err)
	}
	m, err := c.Recv()
	fmt.Printf("%s %v\n", m, err)
	// Output: [hello there to me] <nil>
}
