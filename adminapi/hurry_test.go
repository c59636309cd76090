// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A deadlineRecorder notes the deadlines for reading.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (r *deadlineRecorder) SetReadDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

// A body has its time, also when nobody reads it; what was read to its end has
// no deadline any more.
func TestBodiesAreHurried(t *testing.T) {
	for name, tt := range map[string]struct {
		body io.Reader
		read bool
		want []bool // of the deadlines: is there one
	}{
		"none":     {nil, true, nil},
		"read":     {strings.NewReader("x"), true, []bool{true, false}},
		"ignored":  {strings.NewReader("x"), false, []bool{true}},
		"unending": {io.MultiReader(strings.NewReader("x")), false, []bool{true}},
	} {
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		hurried(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if tt.read {
				io.Copy(io.Discard, r.Body)
			}
		})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", tt.body))
		var got []bool
		for _, d := range w.deadlines {
			got = append(got, !d.IsZero())
		}
		if len(got) < len(tt.want) || (tt.want == nil) != (got == nil) || (len(got) > 0 && !got[0]) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if tt.read && tt.want != nil && got[len(got)-1] {
			t.Errorf("%s: the deadline stays", name)
		}
	}
}
