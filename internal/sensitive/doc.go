// SPDX-License-Identifier: Apache-2.0

// Package sensitive tells whether what stands in a configuration is a secret: by
// the words of its name, and by what it looks like. It guesses; a person has the
// last word. All functions take time in proportion to the text, whatever it is,
// and are safe for concurrent use.
package sensitive
