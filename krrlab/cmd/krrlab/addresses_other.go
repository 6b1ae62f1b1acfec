//go:build !linux

package main

func spareAddresses() {}
