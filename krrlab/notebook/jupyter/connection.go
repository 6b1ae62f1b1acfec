package jupyter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/krrlab/lab/krrlab/notebook/zmtp"
)

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
	fail := func(err error) (Connection, error) {
		return Connection{}, fmt.Errorf("connection file %s: %w", name, err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return Connection{}, fmt.Errorf("connection file: %w", err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return fail(err)
	}
	if st, err := os.Stat(name); err == nil {
		c.owner = zmtp.OwnerOf(st)
	}
	if err := c.complete(); err != nil {
		return fail(err)
	}
	for _, p := range c.ports() {
		if p.port < 1 || p.port > 65535 {
			return fail(fmt.Errorf("%s is %d: want a port from 1 to 65535", p.name, p.port))
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
		return fmt.Errorf("no key with ip %s: anyone who can reach this machine could run code; want a key, or ip 127.0.0.1", c.IP)
	}
	return nil
}

// namedPort is a port and its name in the connection file.
type namedPort struct {
	name string
	port int
}

func (c *Connection) ports() []namedPort {
	return []namedPort{{"shell_port", c.ShellPort}, {"iopub_port", c.IOPubPort}, {"stdin_port", c.StdinPort}, {"control_port", c.ControlPort}, {"hb_port", c.HBPort}}
}

// address is the ZeroMQ address of a port.
func (c *Connection) address(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	return "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}
