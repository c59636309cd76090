// SPDX-License-Identifier: Apache-2.0

// Package place says where garra's files are: the configuration folder, the
// state folder, and in that the run folder of each configuration (socket, lock,
// tokens). It follows the XDG Base Directory Specification.
package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path that a Unix socket can have, in bytes
// (sockaddr_un, unix(7)), without the zero byte at its end.
const maxSocketPath = 107

// Places are the absolute paths of one configuration.
type Places struct {
	ConfigDir string `json:"config_dir"`
	StateDir  string `json:"state_dir"`
	RunDir    string `json:"run_dir"`
	Socket    string `json:"socket"`
	Vault     string `json:"vault"`
	AuditDir  string `json:"audit_dir"`
}

// Find returns the places for a configuration folder; configDir is what the
// user asked for, empty for the usual one. getenv reads the environment. Nothing
// is created. It fails when no home folder is known where one is needed.
func Find(configDir string, getenv func(string) string) (Places, error) {
	config, err := findConfig(configDir, getenv)
	if err != nil {
		return Places{}, err
	}
	state, err := findState(getenv)
	if err != nil {
		return Places{}, err
	}
	sum := sha256.Sum256([]byte(realPath(config)))
	digest := hex.EncodeToString(sum[:8])
	run := filepath.Join(state, "run", digest)
	return Places{
		ConfigDir: config,
		StateDir:  state,
		RunDir:    run,
		Socket:    socketPath(run, filepath.Base(realPath(run)), getenv),
		Vault:     filepath.Join(config, "vault.age"),
		AuditDir:  filepath.Join(run, "audit"),
	}, nil
}

// findConfig: the flag, GARRAIA_CONFIG_DIR, then XDG; ~/.garraia when it exists
// and the others don't.
func findConfig(asked string, getenv func(string) string) (string, error) {
	if asked == "" {
		asked = getenv("GARRAIA_CONFIG_DIR")
	}
	if asked != "" {
		return filepath.Abs(asked)
	}
	home, homeErr := homeDir(getenv)
	if xdg := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		dir := filepath.Join(xdg, "garraia")
		if homeErr != nil || isDir(dir) {
			return dir, nil
		}
		return orLegacy(dir, home), nil
	}
	if homeErr != nil {
		return "", homeErr
	}
	return orLegacy(filepath.Join(home, ".config", "garraia"), home), nil
}

// orLegacy is ~/.garraia when that exists and dir doesn't.
func orLegacy(dir, home string) string {
	legacy := filepath.Join(home, ".garraia")
	if !isDir(dir) && isDir(legacy) {
		return legacy
	}
	return dir
}

func findState(getenv func(string) string) (string, error) {
	if dir := getenv("GARRAIA_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if xdg := getenv("XDG_STATE_HOME"); filepath.IsAbs(xdg) {
		return filepath.Join(xdg, "garraia"), nil
	}
	home, err := homeDir(getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "garraia"), nil
}

func homeDir(getenv func(string) string) (string, error) {
	if home := getenv("HOME"); home != "" {
		return home, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home folder is known; set HOME, or GARRAIA_CONFIG_DIR and GARRAIA_STATE_DIR: %w", err)
	}
	return home, nil
}

// realPath resolves symbolic links as far as the path exists, so that one
// folder has one run folder under all of its names.
func realPath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path && errors.Is(err, fs.ErrNotExist) {
		return filepath.Join(realPath(parent), filepath.Base(path))
	}
	return path
}

// socketPath is in the run folder, or where that path is too long in the
// runtime or temporary folder.
func socketPath(run, digest string, getenv func(string) string) string {
	path := filepath.Join(run, "run.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	base := getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("garraia-%d", os.Getuid()))
	} else {
		base = filepath.Join(base, "garraia")
	}
	return filepath.Join(base, digest+".sock")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Make creates the run folder, and the socket's, for their owner only.
func (p Places) Make() error {
	if _, err := os.Stat(p.RunDir); errors.Is(err, fs.ErrNotExist) {
		if _, err := p.Unlend(); err != nil { // it leads to nothing
			return fmt.Errorf("creating the state folder: %w", err)
		}
	}
	for _, dir := range []string{p.StateDir, filepath.Dir(p.RunDir), p.RunDir, filepath.Dir(p.Socket)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("creating the state folder: %w", err)
		}
	}
	return p.checkSocketDir()
}

// Lend makes the run folder of other lead to that of p, for a gateway whose
// configuration folder leads elsewhere now. It does nothing, and reports false, when
// other has a run folder of its own.
func (p Places) Lend(other Places) (bool, error) {
	mine := realPath(p.RunDir)
	if realPath(other.RunDir) == mine {
		return true, nil
	}
	err := os.Symlink(filepath.Base(mine), other.RunDir)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// Unlend takes a run folder away that leads to another, and reports whether it was
// one. It leaves alone what is a folder.
func (p Places) Unlend() (bool, error) {
	info, err := os.Lstat(p.RunDir)
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		return false, nil // there is nothing to take away
	}
	return true, os.Remove(p.RunDir)
}

// CheckSocket refuses a socket whose folder another user could have laid there,
// which is possible outside of the state folder. One that isn't there is none.
func (p Places) CheckSocket() error {
	if filepath.Dir(p.Socket) == p.RunDir {
		return nil
	}
	if err := p.checkSocketDir(); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkSocketDir refuses a folder that another user could have laid there.
func (p Places) checkSocketDir() error {
	dir, stat := filepath.Dir(p.Socket), os.Lstat
	if dir == p.RunDir {
		stat = os.Stat // it may be lent
	}
	info, err := stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ownedByMe(info) {
		return fmt.Errorf("%s is not a folder of yours; remove it, or set XDG_RUNTIME_DIR", dir)
	}
	return nil
}
