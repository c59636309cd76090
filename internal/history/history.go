// SPDX-License-Identifier: Apache-2.0

// Package history remembers how the runs of servers ended, and how often they failed
// in a row, over restarts of garra.
//
// It is a file of JSON lines, one for each stop, to which a line is appended at each:
// what a crash of the machine takes is the last lines, and nobody waits for a disk.
// It is written anew, with the last stops of each server alone, when it is opened and
// when it has grown.
package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/source"
)

const (
	// Kept is how many stops are remembered of each server.
	Kept = 20

	maxLines = 2000    // of the file, before it is written anew
	maxLine  = 1 << 20 // bytes; a longer line is none of ours
)

// A Record is one stop, and what its server's restart policy knew then.
type Record struct {
	Server string `json:"server"`
	source.Stop
	// Entry is a digest of the entry that was in force: what another text did counts for
	// nothing.
	Entry string `json:"entry,omitempty"`
	// Failures is how often the server had failed in a row.
	Failures int `json:"failures"`
}

// A History holds the last stops of all servers. It is safe for concurrent use. The nil
// History remembers nothing.
type History struct {
	path string // empty for one without a file

	mu      sync.Mutex // guards all below
	records map[string][]Record
	file    *os.File // nil until the first line, and without a path
	lines   int      // of the file
}

// New returns a History that lasts as long as this process.
func New() *History { return &History{records: make(map[string][]Record)} }

// Open reads a file, which need not be there yet, and writes to it from then on. One
// process may have it open.
func Open(path string) (*History, error) {
	h, err := Read(path)
	if err != nil {
		return nil, err
	}
	h.path = path
	return h, h.rewrite()
}

// Read reads a file and changes nothing; without one, and with an error, there is no past.
// Lines that make no sense, such as one that was half written when the machine stopped, are
// passed over.
func Read(path string) (*History, error) {
	h := New()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("reading how servers ended before: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Server != "" {
			h.take(&r)
		}
	}
	return h, nil
}

// take remembers a record.
func (h *History) take(r *Record) {
	list := append(h.records[r.Server], *r)
	h.records[r.Server] = list[max(0, len(list)-Kept):]
}

// Add remembers a record. An error means that the file doesn't have it.
func (h *History) Add(r *Record) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(r)
	if h.path == "" {
		return nil
	}
	if h.lines >= maxLines {
		return h.rewrite()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return h.append(append(line, '\n'))
}

// append writes a line at the end of the file.
func (h *History) append(line []byte) error {
	if h.file == nil {
		file, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		h.file = file
	}
	h.lines++
	_, err := h.file.Write(line)
	return err
}

// rewrite writes the file anew.
func (h *History) rewrite() error {
	var text bytes.Buffer
	lines := 0
	encoder := json.NewEncoder(&text)
	for _, list := range h.records {
		for i := range list {
			if err := encoder.Encode(&list[i]); err != nil {
				return err
			}
			lines++
		}
	}
	if err := atomicfile.Write(h.path, text.Bytes()); err != nil {
		return err
	}
	h.lines = lines
	h.closeFile() // it is the old one
	return nil
}

// closeFile ends writing, until the next line. What was written is in the file already.
func (h *History) closeFile() {
	if h.file != nil {
		h.file.Close()
		h.file = nil
	}
}

// Close closes the file. A stop that comes later opens it again.
func (h *History) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeFile()
}

// Stops returns the last stops of a server, oldest first.
func (h *History) Stops(server string) []source.Stop {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	stops := make([]source.Stop, len(h.records[server]))
	for i := range stops {
		stops[i] = h.records[server][i].Stop
	}
	return stops
}

// Failures returns how often a server had failed in a row when it stopped last, 0 when
// its entry is another one now.
func (h *History) Failures(server, entry string) int {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.records[server]
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i].Entry {
		case "": // a client's own process, which has its own count
			continue
		case entry:
			return list[i].Failures
		}
		return 0
	}
	return 0
}
