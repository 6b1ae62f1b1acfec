package zmtp

import (
	"encoding/binary"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// foreign reports whether a connection comes from a process of this machine whose user is neither
// ours, nor root, nor the one allowed. What cannot be found out is not foreign.
func foreign(rw net.Conn, allowed int) bool {
	uid, ok := owner(rw)
	return ok && uid != 0 && uid != os.Getuid() && uid != allowed
}

// Constants of linux/sock_diag.h and linux/inet_diag.h.
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	diagRequest      = 16 + 56 // bytes of the header and of an inet_diag_req_v2
	diagReply        = 16 + 72 // of the header and of an inet_diag_msg
)

// owner asks the kernel for the user of the other end of a TCP connection.
func owner(rw net.Conn) (uid int, ok bool) {
	src, isTCP := rw.RemoteAddr().(*net.TCPAddr)
	if !isTCP {
		return 0, false
	}
	dst := rw.LocalAddr().(*net.TCPAddr)
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd)
	host, network := binary.NativeEndian, binary.BigEndian
	q := make([]byte, diagRequest)
	host.PutUint32(q, diagRequest)
	host.PutUint16(q[4:], sockDiagByFamily)
	host.PutUint16(q[6:], syscall.NLM_F_REQUEST)
	q[17] = syscall.IPPROTO_TCP
	host.PutUint32(q[20:], ^uint32(0)) // in any state
	network.PutUint16(q[24:], uint16(src.Port))
	network.PutUint16(q[26:], uint16(dst.Port))
	if from, to := src.IP.To4(), dst.IP.To4(); from != nil && to != nil {
		q[16] = syscall.AF_INET
		copy(q[28:], from)
		copy(q[44:], to)
	} else {
		q[16] = syscall.AF_INET6
		copy(q[28:], src.IP.To16())
		copy(q[44:], dst.IP.To16())
	}
	host.PutUint64(q[64:], ^uint64(0)) // whatever its cookie
	if syscall.Sendto(fd, q, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}) != nil {
		return 0, false
	}
	r := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, r, syscall.MSG_DONTWAIT)
	if err != nil || n < diagReply || host.Uint16(r[4:]) != sockDiagByFamily {
		return 0, false
	}
	inode := host.Uint32(r[16+68:]) // 0 of a connection that no process has any more
	return int(host.Uint32(r[16+64:])), inode != 0
}

// OwnerOf returns the user that a file belongs to, for Options.Owner.
func OwnerOf(st fs.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return 0
}
