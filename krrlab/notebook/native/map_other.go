//go:build !unix

package native

import (
	"errors"
	"os"
)

func mapped(*os.File, int64, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) {}
