package zmtp_test

import (
	"fmt"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

// This example opens a socket that returns each message with an additional frame, and a client of this socket.
func Example() {
	socket, err := zmtp.Listen("tcp://127.0.0.1:0", zmtp.Options{
		Type:    "ROUTER",
		Receive: func(peer *zmtp.Peer, frames [][]byte) { peer.Send(append(frames, []byte("to "+peer.Identity()))) },
	})
	if err != nil {
		panic(err)
	}
	defer socket.Close(time.Time{})
	client, err := zmtp.Dial("tcp://"+socket.Addr().String(), "DEALER", "me")
	if err != nil {
		panic(err)
	}
	defer client.Close()
	if err := client.Send([]byte("hello"), []byte("there")); err != nil {
		panic(err)
	}
	frames, err := client.Recv()
	fmt.Printf("%s %v\n", frames, err)
	// Output: [hello there to me] <nil>
}
