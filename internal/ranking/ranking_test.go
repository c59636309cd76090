// SPDX-License-Identifier: Apache-2.0

package ranking

import (
	"slices"
	"strings"
	"testing"
)

func TestStems(t *testing.T) {
	for text, want := range map[string]string{
		"readFile":                   "readfil read file",
		"read_multiple_files":        "read multipl file",
		"the HTTPServer of GitHub":   "httpserver github git hub",
		"list all issues, and close": "list issu close",
		"Größe ändern":               "größe ändern",
		"k8s pods":                   "k8s pod",
		"":                           "",
		"the a of":                   "",
	} {
		if got := strings.Join(Stems(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Documents of a name, which counts three times, and a description.
func documents() [][]Field {
	var list [][]Field
	for _, d := range [][2]string{
		{"read_file", "Read the complete contents of a file from the file system."},
		{"write_file", "Create a new file or overwrite an existing file with new content."},
		{"list_directory", "Get a listing of all files and directories in a path."},
		{"create_issue", "Create an issue in a repository. Files can be attached."},
		{"send_message", "Send a chat message to a channel or person."},
	} {
		list = append(list, []Field{{d[0], 3}, {d[1], 1}})
	}
	return list
}

func TestSearch(t *testing.T) {
	x := New(documents())
	for query, want := range map[string]int{
		"read a file":                 0,
		"overwriting":                 1,
		"what directories are there":  2,
		"open a new issue":            3,
		"chat":                        4,
		"writing files":               1,
		"messages to channels":        4,
		"list_directory":              2,
		"listDirectory":               2,
		"repository repository files": 3,
	} {
		hits := x.Search(query)
		if len(hits) == 0 || hits[0].Document != want {
			t.Errorf("%q: %v, want document %d first", query, hits, want)
		}
	}
	for _, query := range []string{"", "the of", "zebra"} {
		if hits := x.Search(query); len(hits) != 0 {
			t.Errorf("%q finds %v", query, hits)
		}
	}
}

func TestEqualsKeepTheirOrder(t *testing.T) {
	same := []Field{{"same thing", 1}}
	hits := New([][]Field{same, same, same}).Search("thing")
	if !slices.IsSortedFunc(hits, func(a, b Hit) int { return a.Document - b.Document }) || len(hits) != 3 {
		t.Errorf("got %v", hits)
	}
}

// A description that repeats a word a thousand times doesn't win by it.
func TestRepetitionSaturates(t *testing.T) {
	x := New([][]Field{
		{{"spam", 3}, {strings.Repeat("weather ", 1000), 1}},
		{{"get_weather", 3}, {"The weather of a city.", 1}},
		{{"other", 3}, {"Something else.", 1}},
	})
	if hits := x.Search("weather of a city"); hits[0].Document != 1 {
		t.Errorf("got %v", hits)
	}
}

func TestSynonymsCountLess(t *testing.T) {
	x := New([][]Field{{{"move_file", 1}}, {{"rename_file", 1}}, {{"other", 1}}}, "move rename", "dir folder")
	hits := x.Search("renaming")
	if len(hits) != 2 || hits[0].Document != 1 || hits[1].Document != 0 {
		t.Errorf("got %v", hits)
	}
}

func TestNothingToSearch(t *testing.T) {
	if hits := New(nil).Search("x"); len(hits) != 0 {
		t.Errorf("got %v", hits)
	}
}
