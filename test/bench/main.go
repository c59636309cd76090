// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the command line says.
type options struct {
	quick   bool
	json    bool
	garra   string
	only    string
	rounds  int
	peers   string
	url     string
	sse     bool
	headers []string
	tool    string
	big     string
}

func main() {
	if played, err := playRole(os.Args[1:]); played {
		exit(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout))
}

// exit ends the program when something failed. Numbers never fail it.
func exit(err error) {
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parseOptions reads the command line.
func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "measure little: everything runs, the numbers mean nothing")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.garra, "garra", "", "the garra to measure (default: builds it)")
	flags.StringVar(&o.only, "only", "", "the suites to run, separated by commas: "+strings.Join(suiteNames(), ","))
	flags.IntVar(&o.rounds, "rounds", 0, "how many rounds of each comparison (default 21, 3 with -quick)")
	flags.StringVar(&o.peers, "peers", "", "compare garra with the gateways that npm installed in this folder")
	flags.StringVar(&o.url, "url", "", "measure the gateway at this URL instead")
	flags.BoolVar(&o.sse, "sse", false, "the gateway at -url speaks HTTP+SSE of 2024-11-05")
	flags.Func("header", "a header for -url, as Name: value; repeatable", func(header string) error {
		o.headers = append(o.headers, header)
		return nil
	})
	flags.StringVar(&o.tool, "tool", "", "the tool to call at -url, with the argument text (default: one named echo)")
	flags.StringVar(&o.big, "big", "", "the tool at -url that returns so many bytes (default: one named big)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	for name := range strings.SplitSeq(o.only, ",") {
		if name != "" && !slices.Contains(suiteNames(), name) {
			return o, fmt.Errorf("there is no suite %q", name)
		}
	}
	return o, nil
}

// scale returns a number for a whole run, and the one for a quick one.
func scale[T int | time.Duration](o options, whole, quick T) T {
	if o.quick {
		return quick
	}
	return whole
}

// count is how many rounds there are of a comparison.
func (o options) count() int {
	if o.rounds > 0 {
		return o.rounds
	}
	return scale(o, 21, 3)
}

// A suite is a group of measurements that share what they need.
type suite struct {
	name string
	run  func(*rig, func(result)) error
}

// suites returns all that concern garra.
func suites() []suite {
	return []suite{
		{"sequential", sequential},
		{"concurrent", concurrent},
		{"cost", cost},
		{"large", large},
		{"many", many},
		{"ready", ready},
		{"sessions", sessions},
		{"stalled", stalled},
	}
}

func suiteNames() []string {
	var names []string
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// run measures what the command line asks for, and writes the report.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	b, err := newRig(ctx, o)
	if b != nil {
		defer b.end(0)
	}
	if err != nil {
		return err
	}
	r := report{Head: newHead(ctx, b.garra, args)}
	if !o.json {
		r.Head.write(out)
	}
	add := func(one result) {
		r.Results = append(r.Results, one)
		if !o.json {
			err = errors.Join(err, one.write(out))
		}
	}
	for _, s := range chosen(o) {
		mark := b.mark()
		failed := s.run(b, add)
		b.end(mark)
		if failed != nil {
			return errors.Join(err, fmt.Errorf("suite %s: %w", s.name, failed))
		}
	}
	if o.json {
		return errors.Join(err, r.writeJSON(out))
	}
	return err
}

// chosen returns the suites that options ask for.
func chosen(o options) []suite {
	switch {
	case o.url != "":
		return []suite{{"url", foreign}}
	case o.peers != "":
		return []suite{{"peers", peers}}
	case o.only == "":
		return suites()
	}
	return slices.DeleteFunc(suites(), func(s suite) bool {
		return !slices.Contains(strings.Split(o.only, ","), s.name)
	})
}
