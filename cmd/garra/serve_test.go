// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestHostName(t *testing.T) {
	for given, want := range map[string]string{
		"gateway.example": "gateway.example", "Gateway.Example": "gateway.example", "a-b_c": "a-b_c",
		"192.0.2.1": "192.0.2.1", "2001:DB8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
		"": "", "gateway.example:80": "", "[2001:db8::1]:80": "", "http://gateway.example": "", "a/b": "",
		"*": "", "a b": "", "gateway:": "",
	} {
		got, err := hostName(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}
