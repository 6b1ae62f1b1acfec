// Package zmtp is the part of ZeroMQ that a Jupyter kernel needs: sockets that listen and speak
// ZMTP 3.0 with the NULL mechanism, over tcp and ipc, and connections of clients for tests.
//
// A port of a kernel is open to every user of the machine, and whoever connects has proven nothing.
// So all that a peer can cost is limited: each handshake runs in its own goroutine and
// against a deadline; memory for a frame grows with what has arrived, never with what was declared;
// messages have a maximum size, which is small until the caller says that it trusts the peer; what
// waits for a peer that does not read is bounded, and a peer that takes nothing for a while is
// dropped; the number of connections is bounded, and those that have proven least give way. On
// Linux, connections over loopback by other users are refused.
//
// Listen opens a Socket. It hands on each message with the Peer that it came from, and Peer.Send
// answers to the same connection: there is no routing table that a peer could enter with an
// identity that is not its own.
//
// An XPUB socket welcomes each subscriber, and sends it what has come since, in order.
//
// The protocol is described at https://rfc.zeromq.org/spec/23/.
package zmtp
