// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is all that a run found.
type report struct {
	Head    head     `json:"head"`
	Results []result `json:"results"`
}

// A head says where and with what a run was made.
type head struct {
	Date    string `json:"date"`
	Command string `json:"command"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	Load    string `json:"load"` // of the machine when the run began
	Go      string `json:"go"`
	Garra   string `json:"garra"`
}

// A result is what one comparison, or one group of numbers, came to.
type result struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit,omitempty"`
	Rounds  int      `json:"rounds,omitempty"`
	Series  []series `json:"series,omitempty"`
	Ratios  []ratio  `json:"ratios,omitempty"`
	Values  []value  `json:"values,omitempty"`
	Skipped string   `json:"skipped,omitempty"` // why there is nothing
}

// A series is a variant over all rounds.
type series struct {
	Name string `json:"name"`
	spread
}

// A ratio is of one variant to another.
type ratio struct {
	Of    string `json:"of"`
	To    string `json:"to"`
	Ratio spread `json:"ratio"`
	verdict
}

// A value is a number that was measured once.
type value struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	verdict
}

// A verdict compares a number with what it should be, if that is known.
type verdict struct {
	Target  string `json:"target,omitempty"`
	Reached *bool  `json:"reached,omitempty"`
}

// String returns the verdict in words.
func (v verdict) String() string {
	switch {
	case v.Reached == nil:
		return ""
	case *v.Reached:
		return "target " + v.Target + ": reached"
	}
	return "target " + v.Target + ": NOT reached"
}

// newHead describes this run. What can't be found out is left empty.
func newHead(ctx context.Context, garra string, args []string) head {
	h := head{
		Date: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Command: strings.Join(args, " "),
		Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		CPU: field("/proc/cpuinfo", "model name"), Memory: field("/proc/meminfo", "MemTotal"),
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	h.Kernel, h.Load = strings.TrimSpace(string(kernel)), strings.TrimSpace(string(load))
	if garra != "" {
		version, _ := exec.CommandContext(ctx, garra, "version").Output()
		h.Garra = strings.Join(strings.Fields(string(version)), " ") + revisionOf(garra)
	}
	return h
}

// revisionOf returns the commit that a Go binary was built from, when it says so.
func revisionOf(file string) string {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return ""
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text := ""
	if commit := settings["vcs.revision"]; commit != "" {
		text = ", commit " + commit[:min(12, len(commit))]
	}
	if settings["vcs.modified"] == "true" {
		text += " and changes"
	}
	return text
}

// field returns the first value of a name in a file of "name: value" lines.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// writeJSON writes the report for programs.
func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// write writes the head for people.
func (h head) write(w io.Writer) {
	for _, line := range [][2]string{
		{"date", h.Date},
		{"machine", fmt.Sprintf("%s, %d cores, %s of memory", h.CPU, h.Cores, h.Memory)},
		{"kernel", h.Kernel},
		{"load", h.Load},
		{"go", h.Go},
		{"garra", h.Garra},
		{"arguments", h.Command},
	} {
		if line[1] != "" {
			fmt.Fprintf(w, "%-10s %s\n", line[0], line[1])
		}
	}
}

// write writes a result for people.
func (r result) write(w io.Writer) error {
	title := r.Name
	if r.Unit != "" {
		title += ", " + r.Unit
	}
	if r.Rounds > 0 {
		title += fmt.Sprintf(" (median of %d rounds, quartiles)", r.Rounds)
	}
	fmt.Fprintf(w, "\n## %s\n", title)
	if r.Skipped != "" {
		fmt.Fprintf(w, "  skipped: %s\n", r.Skipped)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range r.Series {
		fmt.Fprintf(t, "  %s\t%s\t(%s – %s)\n", s.Name, digits(s.Median), digits(s.Low), digits(s.High))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	for _, x := range r.Ratios {
		fmt.Fprintf(t, "  %s / %s\t%.2f ×\t(%.2f – %.2f)\t%s\n",
			x.Of, x.To, x.Ratio.Median, x.Ratio.Low, x.Ratio.High, x.verdict)
	}
	for _, v := range r.Values {
		fmt.Fprintf(t, "  %s\t%s %s\t%s\n", v.Name, digits(v.Value), v.Unit, v.verdict)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	return nil
}

// digits formats a number with about three digits that count.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
