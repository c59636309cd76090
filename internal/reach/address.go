// SPDX-License-Identifier: Apache-2.0

package reach

import "net/netip"

// Public reports whether the internet routes an address.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap()
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Zone() != "" {
		return false
	}
	for _, p := range special() {
		if p.Contains(addr) {
			return false
		}
	}
	return addr.Is4() || netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0x20}), 3).Contains(addr) // 2000::/3
}

// special returns the blocks inside of unicast space that are not for servers
// on the internet: IANA's special-purpose address registries (RFC 6890), and
// what clouds answer to their own machines at.
func special() []netip.Prefix {
	var blocks []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32",                                     // Azure's host
		"2001::/23", "2001:db8::/32", "3fff::/20", "2002::/16", // Teredo, documentation, 6to4
	} {
		blocks = append(blocks, netip.MustParsePrefix(text))
	}
	return blocks
}

// Local reports whether an address leads back to who connects to it: the loopback
// interface, also by the address of no interface at all.
func Local(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsUnspecified()
}
