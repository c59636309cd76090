// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSourcePosition(t *testing.T) {
	s := &source{name: "x", data: []byte("ab\ncé☂d\r\n\r\ne\rf")}
	s.index = newTextIndex(s.data, lineStarts(s.data))
	for _, tt := range []struct {
		before string // the text before the place
		want   Position
	}{
		{"", Position{"x", 1, 1}},
		{"ab", Position{"x", 1, 3}},
		{"ab\n", Position{"x", 2, 1}},
		{"ab\ncé☂", Position{"x", 2, 4}},
		{"ab\ncé☂d\r\n", Position{"x", 3, 1}},
		{"ab\ncé☂d\r\n\r\n", Position{"x", 4, 1}},
		{"ab\ncé☂d\r\n\r\ne\r", Position{"x", 5, 1}},
		{string(s.data), Position{"x", 5, 2}},
		{string(s.data) + "beyond", Position{"x", 5, 2}},
	} {
		if got := s.position(len(tt.before)); got != tt.want {
			t.Errorf("after %q is %+v, want %+v", tt.before, got, tt.want)
		}
	}
	if got := s.position(-1); got != (Position{File: "x"}) {
		t.Errorf("the whole file is %+v", got)
	}
}

func TestCheckText(t *testing.T) {
	for text, want := range map[string]int{ // the offset, or -1 for good text
		"":              -1,
		"é☂😀\u2028":     -1,
		"\ufffd":        -1, // the replacement character itself
		"ab\xff":        2,
		"é\xc3":         2,
		"a\x00":         1,
		"\xff\xfea":     0,
		"\xfe\xffa":     0,
		"a\xed\xa0\x80": 1, // a surrogate
	} {
		got := -1
		if ferr := checkText([]byte(text)); ferr != nil {
			got = ferr.offset
			if ferr.code != CodeFileNotUTF8 || ferr.fix == "" || ferr.Error() == "" {
				t.Errorf("%q: %+v", text, ferr)
			}
		}
		if got != want {
			t.Errorf("%q is wrong at %d, want %d", text, got, want)
		}
	}
}

// TestUnreadable puts things that are no files in a file's place.
func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs Unix files")
	}
	for name, make := range map[string]func(string) error{
		"a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a named pipe": makePipe,
		"a device":     func(path string) error { return os.Symlink(os.DevNull, path) },
		"a symbolic link that leads to nothing": func(path string) error {
			return os.Symlink("nothing", path)
		},
		"can't be opened": func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a socket": func(path string) error {
			listener, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = listener.Close() })
			}
			return err
		},
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, ServersFile)); err != nil {
			t.Skip(name, err)
		}
		config, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(config.Findings) != 1 || config.Findings[0].Code != CodeFileUnreadable ||
			!strings.Contains(config.Findings[0].Message, name) {
			t.Errorf("%s: findings %v", name, config.Findings)
		}
		if got := len(config.Unparsable()); got != 1 {
			t.Errorf("%s: %d files can't be used", name, got)
		}
		if _, err := OpenDocument(filepath.Join(dir, ServersFile)); err == nil {
			t.Errorf("%s was opened to edit", name)
		}
	}
}

func TestDescribeMode(t *testing.T) {
	got := map[string]string{}
	for name, mode := range map[string]fs.FileMode{
		"dir": fs.ModeDir, "pipe": fs.ModeNamedPipe, "socket": fs.ModeSocket, "device": fs.ModeDevice,
	} {
		got[name] = describeMode(mode)
	}
	want := map[string]string{
		"dir": "a folder", "pipe": "a named pipe", "socket": "a socket", "device": "a device",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestYAMLLineStarts(t *testing.T) {
	got := yamlLineStarts([]byte("a\nb\r\nc\rd\u0085e\u2028f\u2029g"))
	if diff := cmp.Diff([]int{0, 2, 5, 7, 10, 14, 18}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShorten(t *testing.T) {
	if got := shorten("short"); got != "short" {
		t.Errorf("a short text became %q", got)
	}
	long := shorten(strings.Repeat("é", 500))
	if len(long) > 210 || !strings.HasSuffix(long, "é…") {
		t.Errorf("a long text became %q", long)
	}
	cut := shorten("x" + strings.Repeat("é", 500)) // the limit is inside a character
	if strings.ContainsRune(cut, '\ufffd') {
		t.Errorf("a character was cut: %q", cut)
	}
}
