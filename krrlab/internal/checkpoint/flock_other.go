//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package checkpoint

import (
	"errors"
	"os"
)

// flock returns an error, because locks are not supported on this system.
func flock(*os.File) error { return errors.ErrUnsupported }
