package jupyter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestReadConnection checks connection files. Missing values are replaced by safe ones, and unsafe, unknown or invalid
// values are rejected with an error of one line that names the file. Listen must also refuse to serve all interfaces
// without a key.
func TestReadConnection(t *testing.T) {
	const ports = `"shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":65535`
	for _, test := range []struct{ content, wantAddress, wantError string }{
		{`{"transport":"tcp","ip":"127.0.0.1","signature_scheme":"hmac-sha256","key":"k","kernel_name":"x",` + ports +
			`}`, "tcp://127.0.0.1:1", ""},
		{`{` + ports + `}`, "tcp://127.0.0.1:1", ""},
		{`{"key":"k",` + ports + `}`, "tcp://127.0.0.1:1", ""},
		{`{"ip":"::1",` + ports + `}`, "tcp://[::1]:1", ""},
		{`{"ip":"localhost",` + ports + `}`, "tcp://localhost:1", ""},
		{`{"ip":"*","key":"k",` + ports + `}`, "tcp://0.0.0.0:1", ""},
		{`{"ip":"/run/k","transport":"ipc",` + ports + `}`, "ipc:///run/k-1", ""},
		{`{}`, "", "shell_port is 0: want a port from 1 to 65535"},
		{`{"shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4}`, "", "hb_port is 0"},
		{`{"shell_port":-1}`, "", "shell_port is -1"},
		{`{"shell_port":65536}`, "", "shell_port is 65536"},
		{`{"ip":"0.0.0.0",` + ports + `}`, "", "no key with ip 0.0.0.0"},
		{`{"ip":"*",` + ports + `}`, "", "no key with ip 0.0.0.0"},
		{`{"ip":"192.0.2.1","key":"",` + ports + `}`, "", "no key with ip 192.0.2.1"},
		{`{"ip":"example.org",` + ports + `}`, "", "no key with ip example.org"},
		{`{"transport":"udp",` + ports + `}`, "", `transport "udp": want tcp or ipc`},
		{`{"transport":"ipc",` + ports + `}`, "", "transport ipc without ip"},
		{`{"signature_scheme":"hmac-md5","key":"k",` + ports + `}`, "",
			`signature_scheme "hmac-md5": want hmac-sha256`},
		{`{"signature_scheme":"none",` + ports + `}`, "", `signature_scheme "none"`},
		{`[]`, "", "cannot unmarshal"},
	} {
		path := filepath.Join(t.TempDir(), "c.json")
		testkit.OK(t, os.WriteFile(path, []byte(test.content), 0o600))
		connection, err := ReadConnection(path)
		switch {
		case test.wantError == "" && (err != nil || connection.address(connection.ShellPort) != test.wantAddress):
			t.Errorf("%s: address %v, %v", test.content, connection.address(connection.ShellPort), err)
		case test.wantError != "" && (err == nil || !strings.Contains(err.Error(), test.wantError) ||
			!strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want %s", test.content, err, test.wantError)
		}
	}
	if server, err := Listen(Connection{IP: "0.0.0.0"}, nil); err == nil {
		server.Close()
		t.Error("listens on all interfaces without a key")
	}
}
