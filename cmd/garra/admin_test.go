// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/garraia/garra/internal/place"
)

// admin makes a request to the running gateway over its socket, for scripts: admin
// METHOD PATH [BODY [IF-MATCH]]. It prints the status, the ETag and the body, and fails
// when there is no answer.
func admin(args []string) int {
	places, err := place.Find("", os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	body := ""
	if len(args) > 2 {
		body = args[2]
	}
	req, err := http.NewRequest(args[0], "http://localhost"+args[1], strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if len(args) > 3 {
		req.Header.Set("If-Match", args[3])
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", places.Socket)
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer resp.Body.Close()
	fmt.Printf("%d\nETag: %s\n", resp.StatusCode, resp.Header.Get("ETag"))
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return 1
	}
	return 0
}
