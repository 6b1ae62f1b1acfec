package cli

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/serve"
)

// serveFlags are the flags of krrlab serve.
type serveFlags struct {
	modelFlag
	Listen string `flag:"listen" default:"127.0.0.1:8080" help:"address and port; port 0 is any free one"`
	Memory int64  `flag:"memory" check:">=0" unit:"bytes" help:"memory limit of the model, such as 20GB (default: what is available)"`
	serve.Options
}

// serveCommand returns the command krrlab serve.
func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{}
	return flagCommand(&cobra.Command{
		Use:   "serve MODEL",
		Short: "Answer requests for predictions over HTTP",
		Long: `Serve answers POST /predict with predictions of rows in CSV (Content-Type text/csv) or JSON
(application/json): a list of objects by column, or {"rows": [...]}. GET / describes the model.
Names and types of columns are checked as in a file, and errors are {"error": "..."}. The server
has no encryption and no passwords, and listens on this machine only unless --listen says
otherwise. It ends on Ctrl-C or SIGTERM, after it has answered the requests that it has read.`,
		Example: `  krrlab serve m.krr
  curl -H 'Content-Type: text/csv' --data-binary @new.csv http://127.0.0.1:8080/predict
  curl -H 'Content-Type: application/json' -d '[{"rooms": 5, "city": "Bonn"}]' http://127.0.0.1:8080/predict`,
		Args: f.takeModelArg,
	}, schema.Of(f), f, a.serve)
}

// serve runs krrlab serve until ctx ends. It prints a note if other machines can reach the server.
func (a *app) serve(ctx context.Context, f *serveFlags) error {
	host, port, err := net.SplitHostPort(f.Listen)
	if err != nil {
		return usagef("--listen %s: want an address and a port, such as 127.0.0.1:8080", f.Listen)
	}
	if host == "" { // net.Listen would listen on all addresses
		host = "127.0.0.1"
	}
	m, err := model.LoadWithin(f.Model, accel.AvailableMemory(f.Memory, 1))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("--listen %s: %w (port 0 takes any free one)", f.Listen, err)
	}
	if ip := listener.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		a.notef("note: other machines can reach %v, and nothing asks them for a password", listener.Addr())
	}
	a.printf("serving %s on http://%v\n", f.Model, listener.Addr())
	a.deadline.follow(context.WithoutCancel(ctx)) // running requests are answered, which takes at most --timeout
	return serve.Run(ctx, listener, m, f.Options)
}
