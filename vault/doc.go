// SPDX-License-Identifier: Apache-2.0

// Package vault keeps secrets: in a file at rest, and sealed in memory.
//
// The file is one of age (age-encryption.org/v1), so whoever has the key can read
// it without garra: age -d vault.age. The key is a passphrase, or any number of
// age and SSH recipients.
//
// # Words
//
//	vault       one file, and what an open one shows of it
//	entry       what a vault says of one value: name, time, for whom, policy
//	secret      one value in memory, which nothing prints
//	key         how a vault is opened, and for whom it is written
//	generation  how often a vault was written; it only grows
//	record      where the highest generation of each vault is remembered
//
// # Form of the file
//
// Inside is one JSON object (RFC 8259) without duplicate names (RFC 7493):
//
//	{
//	  "garra_vault": 1,
//	  "id": "a random name that the vault keeps for life",
//	  "generation": 7,
//	  "entries": {
//	    "mcp.github.TOKEN": {"value": "…", "set_at": "2026-11-30T12:00:00Z"},
//	    "team.key": {"value": {"base64": "…"}, "for": ["a", "b"], "policy": "block"}
//	  }
//	}
//
// A value that is not UTF-8 is an object with its base64. All but "garra_vault" may
// be missing, and an entry may be its value alone, so that a vault can be made by
// hand. Members that this version doesn't know stay when it writes. A file has at
// most 16 MiB, binary or armoured; garra writes it binary.
//
// # What it holds against
//
//   - Who reads the file has what age's encryption leaves: its size, its
//     recipients' kinds, and for a passphrase as many guesses as scrypt allows.
//   - Who can write to the file can destroy it. With a passphrase they can't make
//     another one that opens. With recipients they can: age doesn't say who wrote
//     a file. So the file and its folder must be out of others' reach, which is
//     checked whenever the file is read.
//   - Who puts an older file back is noticed by its generation, as long as they
//     can't change the record too. Files of the same generation are not told apart.
//   - A file that asks for more scrypt than 1 GiB of memory isn't opened; the
//     request is refused before anything is derived. Every opening and every write
//     derives once.
//   - A crash at any moment leaves the old file or the new one. Writers in any
//     number of processes take turns, and each begins with what the last one wrote.
//
// A wrong passphrase and a damaged file are different errors. Only where the very
// lines that hold the wrapped key were changed is damage taken for a wrong key:
// age's format has nothing that could tell.
//
// # In memory
//
// Between opening and use values are sealed by memguard: encrypted under a key that
// is split over locked pages, and opened one at a time in pages that are locked,
// guarded, left out of core files and wiped afterwards. Importing memguard also
// sets the limit for core files of this process, and so of its children, to zero.
// It installs no signal handler. Its goroutine that changes the key twice a second
// ends only with memguard.Purge, which makes all sealed values unreadable; whether
// that is called at exit is up to the program.
//
// Not everything can be held there: age takes a passphrase as a string and
// decrypts into ordinary memory. What this package copies is wiped at once; copies
// that age makes stay until their place is used for something else, and so do
// strings of [Secret.Reveal]. A value in the environment of a child is out of
// reach, as is a machine whose administrator reads its memory.
package vault
