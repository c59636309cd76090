// SPDX-License-Identifier: Apache-2.0

package sandbox

import "path/filepath"

// systemPaths are what programs need to run at all, to read. Of /etc it is what
// describes the system; keys and passwords are there too, and a server that runs as
// root could read them.
func systemPaths() []string {
	list := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
		"/run/current-system", "/run/systemd/resolve", "/var/lib/ca-certificates", "/var/cache/fontconfig",
	}
	for _, name := range []string{
		"alternatives", "bash.bashrc", "bashrc", "ca-certificates", "ca-certificates.conf", "chromium",
		"chromium.d", "crypto-policies", "debian_version", "default/locale", "environment", "fonts",
		"gai.conf", "gitconfig", "group", "host.conf", "hostname", "hosts", "inputrc", "java",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime",
		"login.defs", "lsb-release", "magic", "mime.types", "networks", "npmrc", "nsswitch.conf",
		"os-release", "passwd", "pip.conf", "pki/ca-trust", "pki/java", "pki/tls/cert.pem", "pki/tls/certs",
		"pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "resolv.conf", "rpc", "services",
		"shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "xdg",
	} {
		list = append(list, filepath.Join("/etc", name))
	}
	return list
}

// devices are what every program may use.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}
