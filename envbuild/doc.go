// SPDX-License-Identifier: Apache-2.0

// Package envbuild makes what a child may know: its command line, its working
// directory and its environment, built from nothing.
//
// A child process inherits, by default, everything its parent knows: tokens,
// proxy passwords, loader options. Here it inherits nothing. [Build] starts
// from an empty environment and adds, each layer over the one before:
//
//	host      the names of an allowlist, with the values garra has
//	default   PATH and the home folder, when garra itself has none
//	termux    the loader variables without which nothing runs in Termux
//	envFile   the entry's dotenv file
//	env       the entry's own names; a value that refers to a secret is "vault"
//	search    PATH, when a folder was appended so that the command is found
//	memory    the size of the heap of Node, Java or Go, when there is a limit of memory
//
// The [Origin] of every variable is kept in the [Spec] and may be shown to
// anyone. The values may not: [Spec.Environ] is the one way to get them out,
// and no printing or marshalling of a Spec shows one.
//
// An entry with InheritEnv gets the whole environment of garra in place of the
// allowlist, without the vault's passphrase, and a warning that names it.
//
// # References
//
// Text in an entry's command, args, cwd, env and envFile may refer to garra's
// environment: see [ParseTemplate] for the grammar. A variable that is not set
// is an error of that entry; it never becomes an empty text or the literal.
// What a variable holds is taken as it is and not expanded again. Secrets are
// for env and for the values in an envFile; on a command line every user of the
// machine could read them, so there they are an error. Values in an envFile
// are otherwise literal: no expansion, no command substitution.
//
// A leading "~" or "~/" of command, cwd, envFile, and of each argument, is the
// home folder, as in a shell. It is taken from the text as written: neither
// "--dir=~/x" nor a variable that holds "~/x" is changed.
//
// # Folders
//
// A relative cwd and a relative envFile start at [Entry.Dir], the folder of the
// configuration. Without a cwd the child works in the home folder, and in the
// root folder when there is none; so it starts even if the folder in which
// garra was started is gone. The folder of the configuration is no default,
// since the vault lies there.
//
// # How a command is found
//
// A command with a slash is a path, from the working directory of the child.
// Any other is searched in the child's PATH, in which relative folders are
// skipped. A garra that was started by cron, launchd or a desktop has a PATH of
// few folders, while node and uv live where only an interactive shell looks.
// So if the command is not in PATH, and the entry sets no PATH of its own, the
// folders where runtimes are usually installed are searched, in the order of
// the list in wellknown.go. The folder is appended to the child's PATH, where
// it shadows nothing. The same is done for the interpreter of a script (npx is
// a script that asks for node). No shell is run and no shell's file is read.
package envbuild
