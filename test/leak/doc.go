// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package leak holds the leak test: the built binary with some thirty secrets that
// occur nowhere else, and a search for each of them in every byte that left it.
// `make e2e` runs it.
//
//	go test -tags e2e ./test/leak -garra PATH
//
// # The secrets
//
// A canary is a secret that is random in each run. There is one for each way in
// which garra gets secrets: the vault and its passphrase, stores, env, envFile,
// headers, a url, arguments, garra's own environment, tokens. It is looked for in
// every form of [forms], whole and by halves, so that what was taken out in part is
// found too.
//
// # The run
//
// Servers start, crash, time out and can't be started. Clients, over HTTP and over
// standard input and output, let them say every canary that some server has, in
// every form, in each kind of message. All commands and all routes are used, with
// and without a running gateway. A record keeps all that comes back, the logs, what
// the system shows of the processes, and at the end all files.
//
// # That it finds leaks
//
// The same run with binaries that leak on purpose must find the leak. They are
// built from this module with one line of it replaced (go build -overlay).
package leak
