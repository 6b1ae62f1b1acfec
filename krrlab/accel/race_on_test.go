//go:build race

package accel

const raceEnabled = true
