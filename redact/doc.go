// SPDX-License-Identifier: Apache-2.0

// Package redact takes secret values out of what is stored or leaves: results of
// servers, their notifications and errors, what they write to standard error,
// logs and answers.
//
// A [Set] holds the secrets. [Set.Text] is for any text, [Set.JSON] for a
// message whose structure must survive, and [Set.Writer] for a stream. Where a
// secret stood, a marker says which one: [redacted:NAME].
//
// # What is found
//
// Each secret is looked for as it is, without the blanks around it, in
// hexadecimal digits of one case, and in base64 with both alphabets (RFC 4648).
// In base64 a text looks different depending on how many bytes stand before it,
// so the digits that it alone determines are looked for at all three
// alignments; that finds user:password of basic authentication (RFC 7617) too.
// Up to two digits on each side, which the neighbours have a share in, stay.
//
// In all of these, escapes are undone while reading: those of JSON and of
// programming languages, of URLs and of HTML, in any spelling and up to four in
// each other. A server can't hide a secret by writing "\u0061" for "a", and a
// message of JSON in a string of JSON needs no special care.
//
// Of a secret with several lines each line of at least 16 bytes is a secret too.
// So are the password in a URL or in the settings of a database connection, the
// token in an Authorization header, and what is secret by its name or look in an
// object of JSON.
//
// Text shorter than 8 bytes is only found where no letter or digit is next to it,
// and text shorter than 4 bytes, or as common as "true" or "localhost", not at
// all: [Weak] tells.
//
// # What is not found
//
// This is a net for accidents and for servers that are careless. One that wants
// to get a secret past it can: by encryption or compression, any encoding of its
// own (reversed, rotated, in other case or other base), base64 that is broken
// into lines, characters sent apart from each other or in several messages, in
// images, or in how long an answer takes. What a server can reach in the network
// decides what it can give away.
package redact
