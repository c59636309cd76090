// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/netip"
	"testing"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.0", "192.0.1.1", "169.253.0.1",
		"2606:4700::1111", "2a00::1", "::ffff:1.1.1.1",
	} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.168.1.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1",
		"203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fe80::1%lo", "fc00::1",
		"fd00:ec2::254", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
		"2002:7f00:1::1", "3fff::1", "4000::1",
	} {
		if Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is allowed", text)
		}
	}
}

func TestJudgement(t *testing.T) {
	t.Parallel()
	list := []string{
		"api.example.com:443", "*.files.example:443", "127.0.0.2:8080", "10.1.0.0/16:5432", "localhost:11434",
		"[fd00::5]:80", "*:8443",
	}
	for _, c := range []struct {
		listed bool
		to     string
		name   string // that has the address; "" for none
		own    bool
		want   bool
	}{
		{false, "1.1.1.1:443", "", false, true},
		{false, "1.1.1.1:443", "", true, false},
		{false, "127.0.0.1:443", "", false, false},
		{false, "127.0.0.1:443", "api.example.com", false, false},
		{false, "10.0.0.1:443", "api.example.com", false, false},
		{false, "169.254.169.254:80", "", false, false},
		{false, "[::ffff:127.0.0.1]:80", "", false, false},
		{false, "[64:ff9b::7f00:1]:80", "", false, false},
		{true, "1.1.1.1:443", "", false, false},
		{true, "1.1.1.1:443", "api.example.com", false, true},
		{true, "1.1.1.1:443", "api.example.com", true, false},
		{true, "1.1.1.1:80", "api.example.com", false, false},
		{true, "1.1.1.1:443", "example.com", false, false},
		{true, "1.1.1.1:443", "xapi.example.com", false, false},
		{true, "10.0.0.9:443", "api.example.com", false, true}, // the name was written down
		{true, "127.0.0.1:443", "api.example.com", false, false},
		{true, "169.254.169.254:443", "api.example.com", false, false},
		{true, "1.1.1.1:443", "a.files.example", false, true},
		{true, "1.1.1.1:443", "b.a.files.example", false, true},
		{true, "1.1.1.1:443", "files.example", false, false},
		{true, "10.0.0.9:443", "a.files.example", false, false},
		{true, "1.1.1.1:8443", "any.example", false, true},
		{true, "1.1.1.1:8443", "", false, false},
		{true, "127.0.0.2:8080", "", false, true},
		{true, "[::ffff:127.0.0.2]:8080", "", false, true},
		{true, "127.0.0.2:8081", "", false, false},
		{true, "127.0.0.3:8080", "", false, false},
		{true, "10.1.2.3:5432", "", true, true},
		{true, "10.2.2.3:5432", "", false, false},
		{true, "127.0.0.1:11434", "", true, true},
		{true, "[::1]:11434", "", true, true},
		{true, "127.0.0.2:11434", "", true, false},
		{true, "1.1.1.1:11434", "localhost", false, false},
		{true, "[fd00::5]:80", "", false, true},
		{true, "[fd00::6]:80", "", false, false},
	} {
		p := Internet()
		if c.listed {
			var err error
			if p, err = Listed(list); err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		if c.name != "" {
			names = []string{c.name}
		}
		got := p.Judge(netip.MustParseAddrPort(c.to), names, c.own)
		if got.Allowed != c.want || got.Allowed == (got.Why != "") {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	p, err := Listed([]string{"API.Example.com:443", "*.files.example:443", "10.0.0.0/8:80", "localhost:80"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"api.example.com": true, "Api.example.COM.": true, "a.files.example": true, "localhost": true,
		"files.example": false, "example.com": false, "10.0.0.1": false, "": false, ".files.example": false,
	} {
		if got := p.Asks(name); got != want {
			t.Errorf("%q may be asked for: %v", name, got)
		}
	}
	if p.Names("api.example.com", 80) || !p.Names("api.example.com", 443) {
		t.Error("a name is for the port that it is listed with")
	}
	if !Internet().Asks("anything") {
		t.Error("on the internet every name may be asked for")
	}
	if !p.Tells("localhost", netip.MustParseAddr("127.0.0.1"), true) {
		t.Error("localhost is listed, and isn't told")
	}
	for _, c := range []struct {
		addr string
		want bool
	}{{"1.1.1.1", true}, {"127.0.0.1", false}, {"10.0.0.1", true}, {"169.254.169.254", false}} {
		if got := p.Tells("api.example.com", netip.MustParseAddr(c.addr), false); got != c.want {
			t.Errorf("%s is told: %v", c.addr, got)
		}
	}
}

func TestListsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", "example.com", "example.com:", "example.com:0", "example.com:70000", "example.com:http", ":443",
		"a*.example.com:443", "*example.com:443", "a.*.com:443", "10.0.0.0/33:443", "a b:443", "::1:443",
	} {
		if _, err := Listed([]string{entry}); err == nil {
			t.Errorf("%q is taken for a host and a port", entry)
		}
	}
}
