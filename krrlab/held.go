package krrlab

import (
	"reflect"
	"time"
)

// held is a matrix that the stages of a problem share: formed by the first that needs it.
type held[T any] struct {
	a       T
	key     []any   // what it was formed of; nil: there is none
	seconds float64 // that took
	shared  bool    // it was there before
}

func (h *held[T]) free() { *h = held[T]{} }

// take returns the matrix of a key, which form forms in place of another.
func (h *held[T]) take(key []any, form func() (T, error)) (held[T], error) {
	if h.shared = reflect.DeepEqual(h.key, key); h.shared {
		return *h, nil
	}
	h.free()
	start := time.Now()
	a, err := form()
	if err == nil {
		*h = held[T]{a, key, time.Since(start).Seconds(), false}
	}
	return *h, err
}
