// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e holds the end-to-end tests: the built binary, real MCP servers from
// npm, and clients that nobody here wrote. `make e2e` builds and installs what
// they need and runs them; no test needs the network beyond loopback.
//
//	go test -tags e2e ./test/e2e -run Reload -garra PATH
//
// runs some of them, with another binary than bin/garra.
//
// # What is tested
//
//	example_test.go      the first commands of the README
//	npx_test.go          the reference servers by npx: states, tools, killed leaders
//	foreign_test.go      Inspector, mcporter and mcp-remote list and call
//	fidelity_test.go     every answer equals the direct one, token by token
//	tour_test.go         both SDKs in both eras get of /mcp all that they get directly
//	conformance_test.go  the conformance suite, compared with its fixture
//	environment_test.go  secrets of garra's environment are nowhere; restarts isolate
//	survival_test.go     killed servers, a killed gateway
//	memory_test.go       real servers under a limit, one that leaks
//	repeat_test.go       hundreds of restarts and sessions leave nothing behind
//	soak_test.go         many clients while servers crash, are killed and change
//	reload_test.go       edited, broken and mended files
//	stdio_test.go        nothing but messages on standard output; a killed gateway
//	start_test.go        a second gateway, a taken port, no configuration
//
// What they stand on is in test/rig.
package e2e
