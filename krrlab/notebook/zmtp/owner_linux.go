package zmtp

import (
	"encoding/binary"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// isOtherUser reports whether a connection comes from a process on this machine whose user is neither the current user,
// nor root, nor allowed. It returns false if the user cannot be determined.
func isOtherUser(conn net.Conn, allowedUID int) bool {
	uid, ok := peerOwner(conn)
	return ok && uid != 0 && uid != os.Getuid() && uid != allowedUID
}

// Constants of linux/sock_diag.h and linux/inet_diag.h.
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	diagRequest      = 16 + 56 // bytes of a request: a header and an inet_diag_req_v2
	diagReply        = 16 + 72 // bytes of a reply: a header and an inet_diag_msg
)

// peerOwner returns the ID of the user whose process has the other end of a TCP connection on this machine. It asks the
// kernel by netlink. ok is false if the connection is not TCP or the kernel knows no such process.
func peerOwner(conn net.Conn) (uid int, ok bool) {
	remote, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	if !isTCP {
		return 0, false
	}
	local := conn.LocalAddr().(*net.TCPAddr)
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd)
	// The offsets are those of the fields in the structs, which follow a header of 16 bytes.
	host, network := binary.NativeEndian, binary.BigEndian
	request := make([]byte, diagRequest)
	host.PutUint32(request, diagRequest)
	host.PutUint16(request[4:], sockDiagByFamily)
	host.PutUint16(request[6:], syscall.NLM_F_REQUEST)
	request[17] = syscall.IPPROTO_TCP
	host.PutUint32(request[20:], ^uint32(0)) // connections in any state
	network.PutUint16(request[24:], uint16(remote.Port))
	network.PutUint16(request[26:], uint16(local.Port))
	if remoteIPv4, localIPv4 := remote.IP.To4(), local.IP.To4(); remoteIPv4 != nil && localIPv4 != nil {
		request[16] = syscall.AF_INET
		copy(request[28:], remoteIPv4)
		copy(request[44:], localIPv4)
	} else {
		request[16] = syscall.AF_INET6
		copy(request[28:], remote.IP.To16())
		copy(request[44:], local.IP.To16())
	}
	host.PutUint64(request[64:], ^uint64(0)) // no cookie
	if syscall.Sendto(fd, request, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return 0, false
	}
	reply := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, reply, syscall.MSG_DONTWAIT)
	if err != nil || n < diagReply || host.Uint16(reply[4:]) != sockDiagByFamily {
		return 0, false
	}
	inode := host.Uint32(reply[16+68:]) // 0 if no process has the connection open
	return int(host.Uint32(reply[16+64:])), inode != 0
}

// OwnerOf returns the ID of the user that owns a file, for Options.Owner; 0, which is root, if it is unknown.
func OwnerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return 0
}
