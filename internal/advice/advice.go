// SPDX-License-Identifier: Apache-2.0

// Package advice has what an error says can be done about it. An error of any package
// says so by a method Advice() string.
package advice

import "errors"

// Of returns what an error, or one that it wraps, advises; ok is false when none does.
func Of(err error) (fix string, ok bool) {
	advised, ok := errors.AsType[interface {
		error
		Advice() string
	}](err)
	if !ok {
		return "", false
	}
	return advised.Advice(), true
}
