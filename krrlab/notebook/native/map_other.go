//go:build !unix

package native

import (
	"errors"
	"os"
)

func inherited(fd uintptr, name string) *os.File { return os.NewFile(fd, name) }

func mapped(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) {}
