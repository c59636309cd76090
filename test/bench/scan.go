// SPDX-License-Identifier: Apache-2.0

package main

import "bytes"

// members calls visit for each member of a JSON object, with the key without its
// quotes and the value as it is written. It trusts that the text is JSON.
func members(object []byte, visit func(key, value []byte)) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	for i = skipSpace(object, i+1); i < len(object) && object[i] == '"'; {
		end := skipValue(object, i)
		key := object[i+1 : end-1]
		i = skipSpace(object, end)
		i = skipSpace(object, min(i+1, len(object))) // the colon
		end = skipValue(object, i)
		visit(key, object[i:end])
		if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
			return
		}
		i = skipSpace(object, i+1)
	}
}

// skipSpace returns where the next token begins.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// skipValue returns the end of the value that begins at i.
func skipValue(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = skipString(text, i)
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of what holds a number
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// skipString returns the place of the quote that closes the string at i.
func skipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		next := bytes.IndexByte(text[i:], '"')
		if next < 0 {
			return len(text) - 1
		}
		escape := bytes.IndexByte(text[i:i+next], '\\')
		if escape < 0 {
			return i + next
		}
		i += escape + 1 // the loop goes past what is escaped
	}
	return len(text) - 1
}

// number reads a JSON integer that is not negative; -1 when it is none.
func number(text []byte) int {
	if len(text) == 0 || len(text) > 12 {
		return -1
	}
	n := 0
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return -1
		}
		n = n*10 + int(digit-'0')
	}
	return n
}
