// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"
)

// options are the flags; the package comment says what each does.
type options struct {
	banner        string
	bom           bool
	exitAtStart   bool
	traceback     bool
	exitAfter     time.Duration
	exitCode      int
	spin          bool
	alloc         int
	leak          int
	noteStart     string
	envDump       string
	stderrFlood   int
	stderrEndless bool
	zombies       int
	forkWorker    string
	setsidWorker  string

	slowInit        time.Duration
	neverInit       bool
	noHandshake     bool
	protocol        string
	caps            string
	instructions    string
	stopReading     bool
	storm           string
	stormParams     string
	askStorm        string
	hangOn          string
	silentOnUnknown bool
	exitOnUnknown   bool

	ignoreEOF  bool
	ignoreTerm bool
	eofMarker  string

	noise       bool
	scalarLine  bool
	stderrReply int
	crlf        bool
	drip        time.Duration

	callWithoutID  bool
	answerTwice    bool
	wrongID        bool
	noNewlineFlood int

	tools         int
	toolDescBytes int
	pageSize      int
	pages         int
	endlessCursor bool
	cyclicCursor  bool
	badSchemas    bool
	dupTools      bool
	longNames     bool
	growTools     bool
}

// flags returns the set that fills o. Usage texts are in the package comment.
func (o *options) flags() *flag.FlagSet {
	set := flag.NewFlagSet(selector, flag.ContinueOnError)
	set.SetOutput(io.Discard) // the error says it
	o.lifeFlags(set)
	o.wireFlags(set)
	o.toolFlags(set)
	return set
}

// lifeFlags are of the process: its start and its end.
func (o *options) lifeFlags(set *flag.FlagSet) {
	set.StringVar(&o.banner, "banner", "", "")
	set.BoolVar(&o.bom, "bom", false, "")
	set.BoolVar(&o.exitAtStart, "exit-at-start", false, "")
	set.BoolVar(&o.traceback, "traceback", false, "")
	set.DurationVar(&o.exitAfter, "exit-after", 0, "")
	set.IntVar(&o.exitCode, "exit-code", 0, "")
	set.BoolVar(&o.spin, "spin", false, "")
	set.IntVar(&o.alloc, "alloc", 0, "")
	set.IntVar(&o.leak, "leak", 0, "")
	set.StringVar(&o.noteStart, "note-start", "", "")
	set.StringVar(&o.envDump, "env-dump", "", "")
	set.IntVar(&o.stderrFlood, "stderr-flood", 0, "")
	set.BoolVar(&o.stderrEndless, "stderr-endless", false, "")
	set.IntVar(&o.zombies, "zombies", 0, "")
	set.StringVar(&o.forkWorker, "fork-worker", "", "")
	set.StringVar(&o.setsidWorker, "setsid-worker", "", "")
	set.BoolVar(&o.ignoreEOF, "ignore-eof", false, "")
	set.BoolVar(&o.ignoreTerm, "ignore-term", false, "")
	set.StringVar(&o.eofMarker, "eof-marker", "", "")
}

// wireFlags are of the handshake and of answers.
func (o *options) wireFlags(set *flag.FlagSet) {
	set.DurationVar(&o.slowInit, "slow-init", 0, "")
	set.BoolVar(&o.noHandshake, "no-handshake", false, "")
	set.BoolVar(&o.neverInit, "never-init", false, "")
	set.StringVar(&o.protocol, "protocol", "", "")
	set.StringVar(&o.caps, "caps", defaultCaps, "")
	set.StringVar(&o.instructions, "instructions", "", "")
	set.BoolVar(&o.stopReading, "stop-reading-stdin", false, "")
	set.StringVar(&o.storm, "storm", "", "")
	set.StringVar(&o.stormParams, "storm-params", "{}", "")
	set.StringVar(&o.askStorm, "ask-storm", "", "")
	set.StringVar(&o.hangOn, "hang-on", "", "")
	set.BoolVar(&o.silentOnUnknown, "silent-on-unknown", false, "")
	set.BoolVar(&o.exitOnUnknown, "exit-on-unknown", false, "")
	set.BoolVar(&o.noise, "noise-before-reply", false, "")
	set.BoolVar(&o.scalarLine, "scalar-line", false, "")
	set.IntVar(&o.stderrReply, "stderr-before-reply", 0, "")
	set.BoolVar(&o.crlf, "crlf", false, "")
	set.DurationVar(&o.drip, "drip", 0, "")
	set.BoolVar(&o.callWithoutID, "call-without-id", false, "")
	set.BoolVar(&o.answerTwice, "answer-twice", false, "")
	set.BoolVar(&o.wrongID, "wrong-id", false, "")
	set.IntVar(&o.noNewlineFlood, "no-newline-flood", 0, "")
}

// toolFlags are of the tool list.
func (o *options) toolFlags(set *flag.FlagSet) {
	set.IntVar(&o.tools, "tools", 0, "")
	set.IntVar(&o.toolDescBytes, "tool-desc-bytes", 0, "")
	set.IntVar(&o.pageSize, "page-size", 0, "")
	set.IntVar(&o.pages, "pages", 0, "")
	set.BoolVar(&o.endlessCursor, "endless-cursor", false, "")
	set.BoolVar(&o.cyclicCursor, "cyclic-cursor", false, "")
	set.BoolVar(&o.badSchemas, "bad-schemas", false, "")
	set.BoolVar(&o.dupTools, "dup-tools", false, "")
	set.BoolVar(&o.longNames, "long-names", false, "")
	set.BoolVar(&o.growTools, "grow-tools", false, "")
}

// parseOptions reads the command line. A test that misspells a flag must fail.
func parseOptions(args []string) (*options, error) {
	o := new(options)
	set := o.flags()
	if err := set.Parse(args); err != nil {
		return nil, fmt.Errorf("reading the flags: %w", err)
	}
	switch {
	case set.NArg() > 0:
		return nil, fmt.Errorf("reading the flags: unexpected %q", set.Arg(0))
	case !json.Valid([]byte(o.caps)):
		return nil, fmt.Errorf("reading the flags: --caps is no JSON: %q", o.caps)
	case !json.Valid([]byte(o.stormParams)):
		return nil, fmt.Errorf("reading the flags: --storm-params is no JSON: %q", o.stormParams)
	case o.pages > 0 && o.pageSize <= 0:
		return nil, fmt.Errorf("reading the flags: --pages needs --page-size")
	}
	return o, nil
}
