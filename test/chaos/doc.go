// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package chaos shows that one garra survives a bad day. `make e2e` runs it, with
// nothing beside it.
//
//	go test -tags e2e ./test/chaos -run Chaos -v
//
//	chaos_test.go         healthy servers under load, while others misbehave in waves
//	cases_*_test.go       what those do, and what garra must say of each
//	victim_test.go        one of them
//	load_test.go          the load, and what became of it
//	kill_test.go          kill -9 of garra at random moments
//	storm_test.go         how many processes are started when everything crashes at once
//
// -only NAME runs the misbehaviours whose names hold that, -kills N kills more or fewer
// times, and -kill-seed N begins with the chance that a run has printed.
//
// What garra holds afterwards is compared, but for its memory: the Go runtime gives that
// back minutes later, which TestSoak of test/e2e waits for.
package chaos
