// Package adapt tests features.
package adapt
