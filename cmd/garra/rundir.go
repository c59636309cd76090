// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/garraia/garra/internal/filelock"
	"github.com/garraia/garra/internal/place"
)

// ownRun makes the run folder and locks it. One that leads to that of another
// configuration is left over from a gateway that was killed, unless that runs.
func (g *globals) ownRun(places place.Places) (place.Places, *os.File, error) {
	if err := places.Make(); err != nil {
		return places, nil, err
	}
	lock, err := lockRun(places)
	if err != nil {
		return places, nil, err
	}
	left, err := places.Unlend()
	if err == nil && !left {
		return places, lock, nil
	}
	lock.Close()
	if err != nil {
		return places, nil, err
	}
	if places, err = g.places(); err != nil {
		return places, nil, err
	}
	if err := places.Make(); err != nil {
		return places, nil, err
	}
	lock, err = lockRun(places)
	return places, lock, err
}

// lockRun makes sure that one gateway runs for a configuration: the one that has the file
// open.
func lockRun(places place.Places) (*os.File, error) {
	lock, err := filelock.Hold(filepath.Join(places.RunDir, "lock"))
	if !errors.Is(err, filelock.ErrLocked) {
		return lock, err
	}
	other, readErr := readRunFile(places)
	if readErr != nil {
		return nil, fmt.Errorf("a gateway runs for %s already; end it first, or give another --config-dir",
			places.ConfigDir)
	}
	return nil, fmt.Errorf("a gateway runs for %s already: pid %d at %s; use that one, replace it with --replace, "+
		"end it with `kill %d`, or give another --config-dir", places.ConfigDir, other.PID, other.Address, other.PID)
}

// lend has the run folder of where the configuration folder leads now lead to this
// gateway's: the path of the folder may be a link, which leads to another one than
// before, and commands look where it leads. It runs under the engine's mu.
func (d *daemon) lend() {
	now, err := place.Find(d.places.ConfigDir, os.Getenv)
	if err != nil || now.RunDir == d.leads {
		return
	}
	first := d.leads == ""
	d.leads = now.RunDir
	d.unlendLocked()
	if first || now.RunDir == d.places.RunDir {
		return
	}
	ok, err := d.places.Lend(now)
	switch {
	case ok:
		d.lent = &now
		d.log.Warn().Str("run", now.RunDir).Msg("the configuration folder leads to another one now; commands find " +
			"this gateway there too. Its tokens stay as they are until it ends; the next one has those of that folder")
	case err != nil:
		d.log.Error().Err(err).Msg("the configuration folder leads to another one now, and commands don't find " +
			"this gateway")
	default:
		d.log.Error().Str("run", now.RunDir).Msg("the configuration folder leads to another one now, which has a run " +
			"folder of its own: commands look for the gateway there and don't find this one; restart `garra serve`")
	}
}

// unlend takes back what lend did.
func (d *daemon) unlend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unlendLocked()
}

func (d *daemon) unlendLocked() {
	if d.lent == nil {
		return
	}
	if _, err := d.lent.Unlend(); err != nil {
		d.log.Warn().Err(err).Msg("a link to the run folder stays")
	}
	d.lent = nil
}
