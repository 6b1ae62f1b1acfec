// Package zmtp implements the part of ZeroMQ that a Jupyter kernel needs: listening sockets that speak ZMTP 3.0 with
// the NULL mechanism over tcp and ipc. Clients can connect with Dial, which serves tests.
//
// A port of a kernel is open to every user of the machine, and a peer that connects is not authenticated. Therefore
// everything that a peer can cost is limited. Each handshake runs in its own goroutine and has a deadline. Memory for a
// frame grows with the bytes that have arrived, not with the declared size. Messages have a maximum size, which is
// small until the caller declares the peer trusted. The queue of a peer is bounded, and a peer that accepts no data for
// some time is dropped. The number of connections is bounded; new ones displace the least protected. On Linux,
// connections over loopback by other users are refused.
//
// Listen opens a Socket. It passes each message to the caller together with the Peer that sent it, and Peer.Send
// answers over the same connection. So there is no routing table, in which a peer could register with a foreign
// identity.
//
// An XPUB socket sends a welcome message to each subscriber and, after that, all messages published since, in order.
//
// The protocol is described at https://rfc.zeromq.org/spec/23/.
package zmtp
