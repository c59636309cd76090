// SPDX-License-Identifier: Apache-2.0

package nameserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/reach"
)

// A desk is a server that is asked over real sockets.
type desk struct {
	*Server
	*net.Resolver
	mu      sync.Mutex
	refused []string
}

// names are what the host's resolver of the test knows.
func names(_ context.Context, name string) ([]netip.Addr, error) {
	switch strings.ToLower(name) {
	case "both.example":
		return []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("2606:4700::1")}, nil
	case "mixed.example":
		return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("1.1.1.2")}, nil
	case "local.example":
		return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("169.254.169.254")}, nil
	case "many.example":
		var many []netip.Addr
		for i := range 200 {
			many = append(many, netip.AddrFrom4([4]byte{1, 2, 3, byte(i)}))
		}
		return many, nil
	case "broken.example":
		return nil, errors.New("the network is down")
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func newDesk(t *testing.T, policy *reach.Policy) *desk {
	t.Helper()
	d := &desk{}
	d.Server = New(Options{
		Policy: policy, Lookup: names, Own: func(netip.Addr) bool { return false },
		Refused: func(name, why string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.refused = append(d.refused, name+": "+why)
		},
	})
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { d.ServePackets(packets) })
	serving.Go(func() { d.ServeConns(conns) })
	t.Cleanup(func() { packets.Close(); conns.Close(); serving.Wait() })
	d.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := packets.LocalAddr().String()
		if network == "tcp" {
			address = conns.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	return d
}

func TestAddressesAreTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t, reach.Internet())
	for name, want := range map[string]string{
		"both.example.":  "[1.1.1.1 2606:4700::1]",
		"mixed.example.": "[1.1.1.2]",
		"local.example.": "[]",
		"none.example.":  "[]",
	} {
		got, err := d.LookupNetIP(t.Context(), "ip", name)
		slices.SortFunc(got, netip.Addr.Compare)
		if fmt.Sprint(got) != want {
			t.Errorf("%s has %v, %v; want %s", name, got, err, want)
		}
		if e, ok := errors.AsType[*net.DNSError](err); want == "[]" && (!ok || !e.IsNotFound) {
			t.Errorf("%s: %v is not that there is none", name, err)
		}
	}
	_, err := d.LookupNetIP(t.Context(), "ip4", "broken.example.")
	if err == nil || strings.Contains(err.Error(), "no such host") {
		t.Errorf("of a network that is down: %v", err)
	}
	if got := fmt.Sprint(d.NamesOf(netip.MustParseAddr("::ffff:1.1.1.1"))); got != "[both.example]" {
		t.Errorf("1.1.1.1 is that of %s", got)
	}
	if got := d.NamesOf(netip.MustParseAddr("10.0.0.1")); len(got) > 0 {
		t.Errorf("an address that was not told is that of %s", got)
	}
	if _, err := d.LookupTXT(t.Context(), "both.example."); err == nil {
		t.Error("there is a text")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.refused, "local.example: none of its addresses may be reached") {
		t.Errorf("refused: %q", d.refused)
	}
}

func TestNamesOffTheListAreRefused(t *testing.T) {
	t.Parallel()
	policy, err := reach.Listed([]string{"both.example:443"})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, policy)
	if _, err := d.LookupNetIP(t.Context(), "ip4", "both.example."); err != nil {
		t.Error(err)
	}
	answer := d.answer(ask("secret-data.evil.example", typeA), true)
	if rcode(answer[3]&0xf) != refused || binary.BigEndian.Uint16(answer[6:]) != 0 {
		t.Errorf("answered %x", answer)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := "secret-data.evil.example: it is not on the list"; !slices.Equal(d.refused, []string{want}) {
		t.Errorf("refused: %q", d.refused)
	}
}

// An answer that a packet can't hold comes by a connection.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, reach.Internet())
	short := d.answer(ask("many.example", typeA), true)
	if len(short) > plainSize || binary.BigEndian.Uint16(short[2:])&flagTruncate == 0 {
		t.Errorf("%d bytes, flags %x", len(short), short[2:4])
	}
	got, err := d.LookupNetIP(t.Context(), "ip4", "many.example.")
	if err != nil || len(got) != maxTold {
		t.Errorf("%d addresses, %v; want %d", len(got), err, maxTold)
	}
}

// ask writes a question.
func ask(name string, kind uint16) []byte {
	message := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		message = append(append(message, byte(len(label))), label...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(append(message, 0), kind), classINET)
}

func TestOddQuestions(t *testing.T) {
	t.Parallel()
	s := New(Options{
		Policy: reach.Internet(), Lookup: names, Own: func(netip.Addr) bool { return false },
		Refused: func(string, string) {},
	})
	good := ask("both.example", typeA)
	change := func(at int, to byte) []byte {
		m := slices.Clone(good)
		m[at] = to
		return m
	}
	for name, c := range map[string]struct {
		message []byte
		want    rcode
	}{
		"good":              {good, success},
		"another type":      {ask("both.example", 16), success},
		"another class":     {change(len(good)-1, 3), refused},
		"an update":         {change(2, 5<<3), unsupported},
		"two questions":     {change(5, 2), formatError},
		"a cut name":        {good[:20], formatError},
		"a pointer":         {change(headerSize, 0xc0), formatError},
		"a dot in a label":  {change(headerSize+1, '.'), formatError},
		"a byte of no name": {change(headerSize+1, 0xff), formatError},
		"the root":          {ask("", typeA)[:headerSize+1], formatError},
	} {
		answer := s.answer(c.message, true)
		if got := rcode(answer[3] & 0xf); got != c.want || answer[1] != 7 || answer[2]&0x80 == 0 {
			t.Errorf("%s: answered %x, want code %d", name, answer, c.want)
		}
	}
	if isQuestion(change(2, 0x80)) || isQuestion(good[:11]) {
		t.Error("an answer, or less than a message, is taken for a question")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	first := netip.AddrFrom4([4]byte{1, 0, 0, 0})
	m.note("first.example", first)
	for i := range maxAddresses {
		m.note("x.example", netip.AddrFrom4([4]byte{2, 0, byte(i >> 8), byte(i)}))
	}
	if got := m.names(first); len(got) > 0 || len(m.known) != maxAddresses || m.order.Len() != maxAddresses {
		t.Errorf("%d addresses are known, and the first has %q", len(m.known), got)
	}
	for i := range maxNames + 1 {
		m.note(fmt.Sprintf("%d.example", i), first)
	}
	if got := m.names(first); len(got) != maxNames || got[len(got)-1] != fmt.Sprintf("%d.example", maxNames) {
		t.Errorf("the first has %d names, the last %q", len(got), got[len(got)-1])
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(ask("both.example", typeA))
	f.Add(ask("local.example", typeAAAA))
	f.Add(append(ask("many.example", typeA), 0, 0, typeOPT, 16, 0, 0, 0, 0, 0, 0, 0))
	s := New(Options{
		Policy: reach.Internet(), Lookup: names, Own: func(netip.Addr) bool { return false },
		Refused: func(string, string) {},
	})
	f.Fuzz(func(t *testing.T, message []byte) {
		if !isQuestion(message) {
			return
		}
		q, _ := parseQuestion(message)
		answer := s.answer(message, true)
		if len(answer) > max(q.size, headerSize+len(q.raw)) || !slices.Equal(answer[:2], message[:2]) {
			t.Errorf("%x is answered with %x", message, answer)
		}
		if isQuestion(answer) {
			t.Error("an answer is a question")
		}
	})
}

// Nothing waits for a program that doesn't speak.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	d := newDesk(t, reach.Internet())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range maxSessions / 2 {
		conn, err := d.Resolver.Dial(ctx, "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := d.LookupNetIP(ctx, "ip4", "both.example."); err != nil {
		t.Error(err)
	}
}
