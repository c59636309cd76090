// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"io"
	"net/http"
	"time"

	"github.com/garraia/garra/internal/sse"
)

// hurried gives a client the time to send a body that it may take to read one, and
// not for ever, also where nobody reads the body.
func hurried(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// A connection without deadlines, as tests have it, just has none.
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(sse.WriteTimeout(int(max(r.ContentLength, 0)))))
			r.Body = &hurriedBody{r.Body, control}
		}
		next.ServeHTTP(w, r)
	})
}

// A hurriedBody ends the hurry with its end: the connection goes on to tell when
// the client is gone.
type hurriedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *hurriedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{}) // as above
	}
	return n, err
}
