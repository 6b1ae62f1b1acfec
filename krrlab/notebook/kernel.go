package notebook

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/krrlab/lab/krrlab/notebook/golang"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// Options are those of Kernel and Run.
type Options struct {
	Version   string           // of the program
	DataDirs  []string         // folders to look for data in
	Interrupt <-chan os.Signal // a signal interrupts the cell that runs; nil for none
	HTML      string           // file for Run to write the notebook with its outputs to as a page of HTML; "" for none
}

// Kernel serves the front end that wrote the connection file, until it asks to shut
// down or ctx ends.
func Kernel(ctx context.Context, connectionFile string, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	c, err := jupyter.ReadConnection(connectionFile)
	if err != nil {
		return err
	}
	s, err := golang.New(&golang.Options{DataDirs: o.DataDirs})
	if err != nil {
		return err
	}
	defer s.Close()
	srv, err := jupyter.Listen(c, language{s, o.Version})
	if err != nil {
		return err
	}
	defer srv.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-o.Interrupt:
				srv.Interrupt()
			case <-stop:
				return
			}
		}
	}()
	return srv.Serve(ctx)
}

// language is a session as the protocol sees it.
type language struct {
	*golang.Session
	version string
}

// Run runs a cell.
func (l language) Run(name, code string, cell *jupyter.Cell) jupyter.Outcome {
	r := l.Session.Run(name, code, cell)
	out := jupyter.Outcome{Value: r.Value}
	if r.Err != nil {
		out.Failure = &jupyter.Failure{Name: r.Err.Name, Value: r.Err.Value, Traceback: r.Err.Traceback}
	}
	return out
}

// Info describes the kernel.
func (l language) Info() jupyter.Info {
	return jupyter.Info{
		Implementation: "krrlab", Version: l.version,
		Banner: fmt.Sprintf("krrlab %s: all of the Go of %s, interpreted, for kernel ridge regression; %%help "+
			"lists the commands", l.version, runtime.Version()),
		Language: languageInfo(),
		Links: [][2]string{
			{"krrlab", "https://pkg.go.dev/github.com/krrlab/lab/krrlab"}, {"gonum",
				"https://pkg.go.dev/gonum.org/v1/gonum"},
			{"gonum/plot", "https://pkg.go.dev/gonum.org/v1/plot"}, {"Go", "https://go.dev/doc/"},
		},
	}
}

// languageInfo is the language_info of the protocol and of notebooks.
func languageInfo() map[string]any {
	return map[string]any{
		"name": "go", "version": runtime.Version(), "mimetype": "text/x-go", "file_extension": ".go",
		"pygments_lexer": "go", "codemirror_mode": "go", "nbconvert_exporter": "script",
	}
}
