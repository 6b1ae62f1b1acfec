package notebook

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/krrlab/lab/krrlab/notebook/golang"
	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// Options configure ServeKernel, the Jupyter kernel, and Run, which executes a notebook file.
type Options struct {
	Version   string           // version of the program
	DataDirs  []string         // folders in which cells look for data
	Interrupt <-chan os.Signal // a signal interrupts the running cell; the caller must not close it; nil for none
	HTML      string           // file to which Run writes the notebook as an HTML page; "" for none
	// Parameters, each name=value, replace the values of variables in the cell with the tag "parameters". Only Run uses
	// them.
	Parameters []string
}

// ServeKernel runs a Jupyter kernel. It serves the front end that wrote the connection file until the front end
// requests a shutdown or ctx ends.
func ServeKernel(ctx context.Context, connectionFile string, options *Options) error {
	connection, err := jupyter.ReadConnection(connectionFile)
	if err != nil {
		return err
	}
	s, err := golang.New(options.DataDirs)
	if err != nil {
		return err
	}
	defer s.Close()
	server, err := jupyter.Listen(connection, language{s, options.Version})
	if err != nil {
		return err
	}
	defer server.Close()
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		for {
			select {
			case <-options.Interrupt:
				server.Interrupt()
			case <-finished:
				return
			}
		}
	}()
	return server.Serve(ctx)
}

// language implements jupyter.Language for a session.
type language struct {
	*golang.Session
	version string // version of the program
}

// Run implements jupyter.Language.
func (l language) Run(name, code string, cell *jupyter.Cell) jupyter.Outcome {
	result := l.Session.Run(name, code, cell)
	return jupyter.Outcome{Value: result.Value, Failure: (*jupyter.Failure)(result.Err)}
}

// Info implements jupyter.Language.
func (l language) Info() map[string]any {
	return map[string]any{
		"implementation": "krrlab", "implementation_version": l.version,
		"banner": fmt.Sprintf("krrlab %s: the whole language of %s, interpreted, for kernel ridge regression; %%help "+
			"lists the commands", l.version, runtime.Version()),
		"language_info": languageInfo(),
		"help_links": []map[string]string{
			{"text": "krrlab", "url": "https://pkg.go.dev/github.com/krrlab/lab/krrlab"},
			{"text": "gonum", "url": "https://pkg.go.dev/gonum.org/v1/gonum"},
			{"text": "gonum/plot", "url": "https://pkg.go.dev/gonum.org/v1/plot"},
			{"text": "Go", "url": "https://go.dev/doc/"},
		},
	}
}

// languageInfo returns the language_info of the protocol and of notebook files.
func languageInfo() map[string]any {
	return map[string]any{
		"name": "go", "version": runtime.Version(), "mimetype": "text/x-go", "file_extension": ".go",
		"pygments_lexer": "go", "codemirror_mode": "go", "nbconvert_exporter": "script",
	}
}
