// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"syscall"
	"time"
)

// What host and launcher say to each other: one JSON object a line, in each
// direction. The host's first message is a start; when the host's direction
// ends, the tree is to be killed.

// A request is what the host sends: exactly one of its members.
type request struct {
	Start  *startRequest  `json:"start,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
}

// A report is what the launcher sends: started or failed first, over when the tree
// is about to be ended for its memory, refused when it wanted to connect to what it may
// not, and exited when the server has.
type report struct {
	Started *startedReport `json:"started,omitempty"`
	Failed  *failedReport  `json:"failed,omitempty"`
	Over    bool           `json:"over,omitempty"`
	Refused *Refusal       `json:"refused,omitempty"`
	Exited  *exitedReport  `json:"exited,omitempty"`
}

// A startRequest is a Spec. File names, arguments and environment are bytes on
// Unix and need not be UTF-8, which a JSON string would turn into U+FFFD.
type startRequest struct {
	Path []byte   `json:"path"`
	Args [][]byte `json:"args"`
	Env  [][]byte `json:"env"`
	Dir  []byte   `json:"dir"`

	FileDir []byte    `json:"file_dir,omitempty"`
	Files   []rawFile `json:"files,omitempty"`
	Limits  Limits    `json:"limits"`

	Confine *confinement `json:"confine,omitempty"`
}

// A confinement is a Policy that confines, as the launcher, the init and the stage get it.
type confinement struct {
	Level   Level       `json:"level"`
	Read    [][]byte    `json:"read"`
	Write   [][]byte    `json:"write"`
	Hidden  [][]byte    `json:"hidden,omitempty"`
	Network NetworkMode `json:"network,omitempty"`
	Hosts   []string    `json:"hosts,omitempty"`
	Browser bool        `json:"browser,omitempty"`
	Dir     []byte      `json:"dir,omitempty"`   // working directory
	Probe   bool        `json:"probe,omitempty"` // try what holds, and execute nothing
}

// newConfinement returns nil for a policy that confines nothing.
func newConfinement(spec *Spec) *confinement {
	p := &spec.Policy
	if !p.confines() {
		return nil
	}
	c := &confinement{
		Level: p.Level, Read: toBytes(p.Read), Write: toBytes(p.Write), Hidden: toBytes(p.Hidden),
		Network: p.Network, Hosts: p.Hosts, Browser: p.Browser, Dir: []byte(spec.Dir), Probe: spec.probe,
	}
	if len(spec.Files.All) > 0 {
		c.Read = append(c.Read, []byte(spec.Files.Dir))
	}
	return c
}

// confineSteps are what confine does, in that order, for people.
func confineSteps() []string {
	return []string{
		"entering the working directory, which must be among the paths that the server may touch",
		"dropping capabilities", "forbidding new privileges", "restricting files", "filtering system calls",
		"trying what it can still do",
	}
}

// A rawFile is a File.
type rawFile struct {
	Name    []byte `json:"name"`
	Content []byte `json:"content"`
}

type startedReport struct {
	PID        int      `json:"pid"`
	Root       int      `json:"root"` // whose descendants are the tree
	Memory     []Layer  `json:"memory,omitempty"`
	Unenforced []string `json:"unenforced,omitempty"`
}

type failedReport struct {
	Op    string        `json:"op"`
	Errno syscall.Errno `json:"errno"`
	Doing string        `json:"doing,omitempty"` // for OpLaunch, OpLimit and OpConfine: the step that failed
}

type exitedReport struct {
	Code   int            `json:"code"`
	Signal syscall.Signal `json:"signal"`
	User   time.Duration  `json:"user_ns"`
	System time.Duration  `json:"system_ns"`
	MaxRSS int64          `json:"max_rss"`
	Peak   int64          `json:"peak,omitempty"`
	Over   bool           `json:"over,omitempty"`
	Near   bool           `json:"near,omitempty"`
}

func newStartRequest(spec *Spec) *startRequest {
	r := &startRequest{
		Path:    []byte(spec.Path),
		Args:    toBytes(spec.argv()),
		Env:     toBytes(spec.Env),
		Dir:     []byte(spec.Dir),
		FileDir: []byte(spec.Files.Dir),
		Limits:  spec.Limits,
		Confine: newConfinement(spec),
	}
	for _, file := range spec.Files.All {
		r.Files = append(r.Files, rawFile{Name: []byte(file.Name), Content: file.Content})
	}
	return r
}

func (r *startRequest) spec() *Spec {
	spec := &Spec{
		Path:   string(r.Path),
		Args:   toStrings(r.Args),
		Env:    toStrings(r.Env),
		Dir:    string(r.Dir),
		Files:  Files{Dir: string(r.FileDir)},
		Limits: r.Limits,
	}
	for _, file := range r.Files {
		spec.Files.All = append(spec.Files.All, File{Name: string(file.Name), Content: file.Content})
	}
	return spec
}

func newExitedReport(status syscall.WaitStatus, usage *syscall.Rusage) *exitedReport {
	report := &exitedReport{
		Code:   status.ExitStatus(), // -1 for a signal
		User:   time.Duration(usage.Utime.Nano()),
		System: time.Duration(usage.Stime.Nano()),
		MaxRSS: maxRSSBytes(usage),
	}
	if status.Signaled() {
		report.Signal = status.Signal()
	}
	return report
}

func (r *exitedReport) exit() Exit {
	return Exit{
		Code:   r.Code,
		Signal: r.Signal,
		User:   r.User,
		System: r.System,
		MaxRSS: r.MaxRSS,
		Peak:   r.Peak,
		Over:   r.Over,
		Near:   r.Near,
	}
}

func toBytes(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, text := range texts {
		out[i] = []byte(text)
	}
	return out
}

func toStrings(texts [][]byte) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = string(text)
	}
	return out
}
