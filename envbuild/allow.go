// SPDX-License-Identifier: Apache-2.0

package envbuild

import "strings"

// allowed returns the names that every child gets from garra's environment.
//
// HTTP_PROXY and its kin are not among them, since they may hold a password;
// nor are NODE_OPTIONS and npm_config_*, which change what a program does; nor
// LD_* outside Termux. An entry that needs one names it in its env.
func allowed(p platform, termux bool) []string {
	names := []string{
		"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "USER", "LOGNAME", "TMPDIR", "TZ",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	}
	if p.windows {
		names = append(names,
			"SystemRoot", "SystemDrive", "windir", "COMSPEC", "PATHEXT", "TEMP", "TMP",
			"USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA",
			"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMDATA",
			"NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE")
	}
	if termux {
		names = append(names, "PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH", "ANDROID_DATA", "ANDROID_ROOT")
	}
	return names
}

// withheld tells whether name holds a secret of garra itself, which no child
// gets, not even one that inherits everything. The two spellings are one name,
// the second of which was in use once.
func withheld(name string) bool {
	return strings.EqualFold(name, "GARRAIA_VAULT_PASSPHRASE")
}

// minSecretLength keeps short values, like "1" or "on", from being taken for
// secrets: they would be taken out of every second line that a child writes.
const minSecretLength = 8
