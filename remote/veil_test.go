// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/garraia/garra/redact"
)

// A text is shown by the name of the secret, wherever else it stands, and no value of a
// parameter that stands twice is shown.
func TestVeilNamesSecrets(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://example.com/mcp?api_key=first-8d2c&api_key=second-8d2c")
	if err != nil {
		t.Fatal(err)
	}
	a := &address{url: u, headers: http.Header{"Authorization": {"Bearer access-4f1e"}, "X-Api-Key": {"other-4f1e"}}}
	secrets := map[string]string{"mcp.own.AUTH": "Bearer access-4f1e", "team.key": "other-4f1e"}
	for range 20 { // an order by chance would show
		set := new(redact.Set)
		v := newVeil(&Options{Redact: set})
		v.cover(a.veiled(secrets, "")...)
		const said = "Bearer access-4f1e, other-4f1e, first-8d2c, second-8d2c"
		got := set.String(said)
		want := "[redacted:mcp.own.AUTH], [redacted:team.key], [redacted:url.api_key], [redacted:url.api_key]"
		if got != want {
			t.Fatalf("got %s", got)
		}
		v.lift()
		if got := set.String(said); got != said {
			t.Fatalf("after the end: %s", got)
		}
	}
}
