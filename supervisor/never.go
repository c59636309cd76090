// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"path/filepath"
	"slices"
	"strings"
)

// neverInHome are what a path of a server's arguments doesn't open in a home folder:
// keys, logins and histories, what starts with the user's session, and what configures
// the agents and editors that would then do as the server likes.
func neverInHome() []string {
	return []string{
		".ssh", ".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".config/sops", ".config/age",
		".config/op", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".oci", ".terraform.d",
		".config/doctl", ".config/rclone", ".config/gh", ".config/hub", ".config/git", ".gitconfig",
		".git-credentials", ".netrc", ".npmrc", ".pypirc", ".vault-token", ".cargo/credentials.toml",
		".config/pip", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium",
		".config/BraveSoftware", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
		".psql_history", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile",
		".config/fish", ".config/autostart", ".config/systemd", ".local/share/applications",
		".config/environment.d", ".claude", ".claude.json", ".config/claude", ".config/Claude", ".cursor",
		".codeium", ".gemini", ".codex", ".continue", ".copilot", ".config/github-copilot", ".vscode",
		".vscode-server", ".config/Code", ".config/Cursor", ".config/zed", ".config/nvim", ".vim", ".vimrc",
		".emacs.d", ".garraia", ".config/garraia", ".local/state/garraia",
	}
}

// neverAnywhere are what it doesn't open elsewhere: the system's own folders, and the
// sockets of those who could do anything for the server.
func neverAnywhere() []string {
	return []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root/.ssh", "/run", "/sbin", "/sys",
		"/usr", "/var/run", "/var/lib/docker", "/var/lib/containerd",
	}
}

// A fence knows which paths no argument opens.
type fence struct {
	home  string
	own   []string // garra's own folders and files
	never []string
}

func newFence(home string, own []string) *fence {
	f := &fence{home: home, own: own, never: slices.Concat(neverAnywhere(), own)}
	if home != "" {
		for _, name := range neverInHome() {
			f.never = append(f.never, filepath.Join(home, name))
		}
	}
	return f
}

// keeps reports whether a path stays closed, by the name that was given and by what it
// really is: it is a home folder or above one, or overlaps with what is never opened.
func (f *fence) keeps(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err != nil || f.keepsClean(filepath.Clean(path)) || f.keepsClean(real)
}

func (f *fence) keepsClean(path string) bool {
	if path == "/" || f.home != "" && isBelow(f.home, path) {
		return true
	}
	return slices.ContainsFunc(f.never, func(n string) bool { return isBelow(path, n) || isBelow(n, path) })
}

// keepsOwn reports whether a path is in one of garra's own folders.
func (f *fence) keepsOwn(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = filepath.Clean(path)
	}
	return slices.ContainsFunc(f.own, func(own string) bool { return isBelow(real, own) })
}

// isBelow reports whether a clean path is folder, or in it.
func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
