// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// What clients see of a server that sleeps is what it offered when it ran last. One of which
// nobody knows that is started by the first client that asks what there is.

// recall takes what a lazy server offered last, in an earlier life of garra.
func (u *upstream) recall() {
	entry := u.current.Load().entry
	if entry.Start != mcpconfig.StartLazy {
		return
	}
	offer, ok := u.gateway.options.Memory.Load(u.name, entry.Digest())
	if !ok {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.instructions = offer.Instructions
	u.slept.Store(true)
	for _, list := range offer.Lists {
		u.gateway.catalog.Set(list)
	}
}

// keep saves what a lazy server offers, once all of that is known.
func (u *upstream) keep(of *source.Hello) {
	entry := u.current.Load().entry
	if entry.Start != mcpconfig.StartLazy {
		return
	}
	offer := catalog.Offer{Instructions: of.Instructions}
	for _, kind := range catalog.Kinds() {
		list := u.gateway.catalog.List(u.name, kind)
		if list == nil || list.Failed || !u.listers[kind].tried(of.Generation) {
			return
		}
		offer.Lists = append(offer.Lists, list)
	}
	if err := u.gateway.options.Memory.Save(u.name, entry.Digest(), offer); err != nil {
		u.warn("what it offers could not be kept for the next start of garra: " + err.Error())
	}
}

// remembered reports whether it is known which tools the server has.
func (u *upstream) remembered() bool { return u.gateway.catalog.List(u.name, catalog.Tools) != nil }

// learn has a server that sleeps started if nobody knows what it offers.
func (u *upstream) learn() {
	if !u.src.Status().Asleep || u.remembered() || !u.learning.CompareAndSwap(false, true) {
		return
	}
	u.mu.Lock()
	u.came = time.Now()
	u.mu.Unlock()
	go func() { // ends when the server is ready or won't be, or with the upstream
		defer u.gateway.changed.fire()
		defer u.learning.Store(false)
		_, _ = u.src.Hello(u.life) // what went wrong is in the server's status
	}()
}

// awaited is since when a list waits for the server.
func (u *upstream) awaited() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.came
}

// says returns the server's instructions, those that it had last if it sleeps.
func (u *upstream) says() string {
	status := u.src.Status()
	switch {
	case status.Hello != nil:
		return status.Hello.Instructions
	case !status.Asleep:
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.instructions
}
