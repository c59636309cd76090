// SPDX-License-Identifier: Apache-2.0

// Package misbehave is an MCP stdio server that behaves badly on demand, for
// tests. It speaks raw JSON-RPC, so it can say what no SDK would.
//
// A test binary plays the server itself: its TestMain calls [Main] first, and
// [Command] returns the command line that starts it. Without flags the server
// is well-behaved: it answers initialize (revisions 2024-11-05 to 2025-11-25,
// echoing the client's), ping, tools, resources, prompts, logging/setLevel and
// completion/complete, serves calls concurrently, answers unknown methods with
// -32601, and exits with 0 at the end of its input.
//
// # Flags
//
// At the start:
//
//	--banner TEXT          a line on stdout before anything else
//	--bom                  a UTF-8 byte order mark before that
//	--exit-at-start        exits at once, with --exit-code, saying nothing
//	--traceback            prints a traceback on stderr and exits with 1
//	--exit-after DURATION  exits with --exit-code, whatever is going on
//	--exit-code N          0 unless told
//	--spin                 burns a core and never reads
//	--alloc MB             takes that much memory and keeps it
//	--leak MB              takes that much more every 10 ms
//	--env-dump FILE        writes its environment, NUL-terminated entries
//	--note-start FILE      appends its id to FILE, a line for each start
//	--stderr-flood N       writes N bytes on stderr before it reads; -1: forever, beside it
//	--stderr-endless       writes on stderr forever, without a line end
//	--fork-worker FILE     starts a child that never ends, writes its id to FILE
//	--setsid-worker FILE   the same in a session of its own
//	--zombies N            starts N children that end at once, and waits for none
//
// The handshake:
//
//	--slow-init DURATION   answers initialize, and anything after it, that much later
//	--no-handshake         refuses initialize and answers server/discover
//	--never-init           never answers initialize
//	--protocol VERSION     answers this revision, whatever the client offers
//	--caps JSON            its capabilities
//	--instructions TEXT    its instructions
//	--stop-reading-stdin   reads nothing after initialize
//	--storm METHOD         sends that notification without end after initialize
//	--storm-params JSON    with these parameters
//	--ask-storm METHOD     the same with a request, waiting for no answer
//	--hang-on METHOD       never answers this one
//	--silent-on-unknown    doesn't answer unknown methods (server/discover is one)
//	--exit-on-unknown      exits with 1 on an unknown method
//
// The end:
//
//	--ignore-eof           stays when its input has ended
//	--ignore-term          stays on SIGTERM
//	--eof-marker FILE      writes FILE at the end of its input, and only then
//
// Every answer:
//
//	--noise-before-reply     a log line on stdout before it
//	--scalar-line            the line 42 before it
//	--stderr-before-reply N  N bytes on stderr before it
//	--crlf                   blanks and CR LF at its end, and an empty line after it
//	--drip DURATION          one byte at a time, so long apart
//
// Answers to tools/call:
//
//	--call-without-id      run the tool also when it comes as a notification
//	--answer-twice         sent twice
//	--wrong-id             with an id that nobody asked with
//	--no-newline-flood N   N bytes without a newline in its place, -1: forever
//
// The tool list:
//
//	--tools N              N tools more: tool_1 …
//	--tool-desc-bytes N    the length of their descriptions
//	--page-size K          pages of K tools
//	--pages N              as many tools more as N pages need
//	--endless-cursor       every page has a next one, never the same cursor twice
//	--cyclic-cursor        every page has the same next one
//	--bad-schemas          tools bad_… with schemas that clients choke on
//	--dup-tools            a second tool named echo
//	--long-names           names of 70 and 128 characters, with dots, and invalid ones
//	--grow-tools           a tool grow, which adds a tool and sends list_changed
//
// # Tools
//
//	echo {text}            text
//	sleep {ms, marker, text}
//	                       answers after ms; cancelled, it writes the file marker and doesn't answer
//	sleep_serial {ms}      the same, while nothing else is read
//	hang                   never answers
//	big {bytes}            that much text
//	huge {bytes}           the same, sent while it is made
//	crash {code}           exits without an answer
//	kill_self              the same by SIGKILL
//	answer_and_exit {code} the answer is the last thing it does
//	half_answer {code}     exits in the middle of its answer
//	close_stdout           closes stdout and lives on
//	close_stdin            closes stdin, which is the end of its input
//	stop_self              stops itself by SIGSTOP, after its answer
//	open_files {n}         opens as many files and keeps them
//	env                    its environment, a line each
//	backwards_env          the value of the variable name, backwards
//	say_stderr             writes a line to standard error
//	pid                    its process id
//	alloc {mb}             takes memory and keeps it
//	count                  1, 2, 3 …
//	login {user}, whoami   state of the process
//	progress {n, ms, text} n notifications, ms apart, under the call's token
//	ask_roots              the client's answer to roots/list
//	ask_sampling {text}    …to sampling/createMessage
//	ask_elicitation {text} …to elicitation/create
//	ask_and_cancel         sends elicitation/create, takes it back and answers
//	ask_progress           the client's progress with sampling/createMessage
//	ask_flood {method, n}  n requests to the client at once, waiting for no answer
//	emit {method, params}  sends that notification
//	log {level, text}      sends notifications/message
//	params                 the params of the call itself
//	heard                  the methods of the requests so far, but for tools/call
//	ask_twice              two requests to the client with the same id, waiting for none
//	deep {n}               a result with arrays n deep
//	invalid_utf8           a text that is none
//	say {line}             sends that line, with its id for $id, instead of an answer
//	weird                  a result that a typed proxy damages
//	bad_json, truncated_line, array_line, null_id_error
//	                       such a line, and then an answer
package misbehave
