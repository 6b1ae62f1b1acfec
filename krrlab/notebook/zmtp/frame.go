package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Bits of a frame's first byte.
const (
	flagMore    = 1 // other frames of the message follow
	flagLong    = 2 // the size has eight bytes, not one
	flagCommand = 4
)

const (
	maxCommand    = 4 << 10  // bytes of a command
	frameOverhead = 64       // bytes that a frame counts beside its content
	firstPart     = 64 << 10 // memory that a frame gets before any of it has arrived
)

var (
	errLarge  = errors.New("zmtp: a message above the limit")
	errFrame  = errors.New("zmtp: a frame with unknown flags")
	errFrames = errors.New("zmtp: a message of too many frames")
)

// readFrame reads a frame whose content has at most room bytes; a command has at most maxCommand.
func readFrame(r *bufio.Reader, room int) (flags byte, body []byte, err error) {
	if flags, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, nil, errFrame
	}
	var size uint64
	if flags&flagLong != 0 {
		var b [8]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(b[:])
	} else {
		b, err := r.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		size = uint64(b)
	}
	if flags&flagCommand != 0 {
		room = maxCommand
	}
	if room < 0 || size > uint64(room) {
		return 0, nil, errLarge
	}
	body, err = readBody(r, int(size))
	return flags, body, err
}

// readBody reads n bytes into memory that grows with what arrives.
func readBody(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, firstPart))
	for len(b) < n {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(len(b), n-len(b)))
		}
		part := b[len(b):min(cap(b), n)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		b = b[:len(b)+len(part)]
	}
	return b, nil
}

// readMessage reads the frames of a message: limit bytes in all, frames of them at most. Commands
// that come before or between are handed to command.
func readMessage(r *bufio.Reader, limit, frames int, command func(name string, body []byte)) (m [][]byte, err error) {
	for {
		flags, body, err := readFrame(r, limit-frameOverhead)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			name, rest, err := commandName(body)
			if err != nil {
				return nil, err
			}
			command(name, rest)
			continue
		}
		limit -= len(body) + frameOverhead
		if m = append(m, body); len(m) > frames {
			return nil, errFrames
		}
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// commandName splits a command.
func commandName(body []byte) (name string, rest []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, fmt.Errorf("zmtp: a command of %d bytes that is cut short", len(body))
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// writeFrame writes a frame.
func writeFrame(w *bufio.Writer, flags byte, body []byte) {
	if len(body) <= 255 {
		w.Write([]byte{flags, byte(len(body))})
	} else {
		w.Write(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))))
	}
	w.Write(body) // the writer keeps its first error until it is flushed
}

// writeCommand writes a command.
func writeCommand(w *bufio.Writer, name string, body []byte) {
	writeFrame(w, flagCommand, append(append([]byte{byte(len(name))}, name...), body...))
}

// size is what a message counts against limits.
func size(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f) + frameOverhead
	}
	return n
}
