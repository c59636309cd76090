// SPDX-License-Identifier: Apache-2.0

package hide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHideArgs(t *testing.T) {
	given := []string{
		"-y", "@scope/server@1.2.3", "/home/user", "--token", "hunter2", "--api-key=hunter2", "--verbose", "yes",
		"API_KEY=hunter2", "--header", "Authorization: Bearer hunter2", "--password", "${PASSWORD}", "--secret",
		"--next", "--key", "vault:KEY",
		"https://u:hunter2@example.com/x?k=hunter2", "--token=${TOKEN}", "C:\\folder", "",
	}
	want := []string{
		"-y", "@scope/server@1.2.3", "/home/user", "--token", "***", "--api-key=***", "--verbose", "yes",
		"API_KEY=***", "--header", "Authorization:***", "--password", "${PASSWORD}", "--secret",
		"--next", "--key", "vault:KEY",
		"https://***@example.com/x?k=***", "--token=${TOKEN}", "C:\\folder", "",
	}
	if diff := cmp.Diff(want, Args(given)); diff != "" {
		t.Error(diff)
	}
}

func TestHideURL(t *testing.T) {
	for given, want := range map[string]string{
		"https://example.com/mcp":                "https://example.com/mcp",
		"https://example.com":                    "https://example.com",
		"https://hunter2@example.com?a=b&c":      "https://***@example.com?a=***&c",
		"https://a:b@c:hunter2@example.com:8/x":  "https://***@example.com:8/x",
		"https://${USER}@${HOST}/?key=${KEY}":    "https://${USER}@${HOST}/?key=${KEY}",
		"https://h/?key=${KEY:-hunter2}":         "https://h/?key=***",
		"https://h/?key=${KEY}hunter2${KEY}":     "https://h/?key=***",
		"https://h/?key=x${KEY}#f":               "https://h/?key=***",
		"${URL}":                                 "${URL}",
		"https://example.com/a@b?next=http://x/": "https://example.com/a@b?next=***",
	} {
		if got := URL(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
