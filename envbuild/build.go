// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Entry is a server's entry in the configuration, as written: references
// are not expanded.
type Entry struct {
	Server     string            // its name, for messages
	Command    string            // a path, or a name to search
	Args       []string          // without the command
	Cwd        string            // "" is the home folder
	EnvFile    string            // "" is none
	Env        map[string]string // over everything else
	InheritEnv bool              // start from garra's whole environment
	// MemoryLimitMB is how many megabytes the child and what it starts may use; 0 is any
	// number. Runtimes with a heap are told of it.
	MemoryLimitMB int
	NotSecret     []string // names of variables whose values are no secrets, whatever they look like
	// Where returns the place of a field ("command", "args[2]", "env.TOKEN") in
	// the configuration, like "mcp.json:12". It may be nil.
	Where func(field string) string
	// Dir is the absolute folder that a relative Cwd and EnvFile start from.
	Dir string
	// FileDir is the absolute folder where the child will find its secret files.
	FileDir string
	// Private are the child's own folders, in place of the user's; nil is none.
	Private *Private
	// Read and Write are paths that the child may touch, with references.
	Read, Write []string
}

// Private are folders that a child has for itself alone. They need not exist yet.
type Private struct{ Home, Cache, Temp string }

// Secrets resolves references to secrets.
type Secrets interface {
	// Secret returns the secret of that key for that server: KEY for one of the
	// vault, STORE:KEY for any other. An error says why there is none and never
	// holds a secret; it is shown to people, with what its method Advice() string
	// says they can do, if it has one.
	Secret(ctx context.Context, server, key string) (string, error)
	// Stores returns the names of the stores besides the vault.
	Stores() []string
}

// errNoVault is why secrets are not available without [Secrets].
var errNoVault = errors.New("there is no vault")

// Build makes the command line and the environment of a server's child.
//
// Without s, any reference to a secret is an error. The error of Build is an
// [Errors] with all problems of the entry at once; there is no Spec then, so
// what is not resolved is not started. Build reads files and changes nothing.
// It may be called at the same time from many goroutines if h.Files and s may.
func Build(ctx context.Context, e Entry, h Host, s Secrets) (*Spec, error) {
	b := &builder{entry: e, sys: newSystem(h), secrets: s, keys: make(map[string]bool)}
	b.vars = variables{fold: b.sys.fold}
	if s != nil {
		b.stores = s.Stores()
	}
	b.environment(ctx)
	dir := b.workingDir()
	args := b.arguments(ctx)
	path := b.resolveCommand(args[0], dir)
	b.checkBatch(path, args[1:])
	b.hintHeap(path, args[1:])
	b.conceal()
	read, write := b.paths("sandbox.read", b.entry.Read), b.paths("sandbox.write", b.entry.Write)
	if len(b.problems) > 0 {
		return nil, b.problems
	}
	return &Spec{
		Server: e.Server, Path: path, Args: args, Dir: dir,
		Vars: b.vars.sorted(), Mode: b.mode(), SearchPath: b.searched,
		Warnings: b.warnings, Secrets: b.hidden.values(), Keys: slices.Sorted(maps.Keys(b.keys)),
		Files: b.files, FileDir: e.FileDir, Read: read, Write: write,
	}, nil
}

// builder holds what Build has gathered so far.
type builder struct {
	entry    Entry
	sys      *system
	secrets  Secrets  // nil without a vault
	stores   []string // of secrets, besides the vault
	vars     variables
	ownPath  bool     // the entry itself sets PATH
	searched []string // folders searched for the command
	warnings []string
	hidden   hidden
	keys     map[string]bool // of the secrets that were asked for
	files    []File
	problems Errors
}

func (b *builder) mode() Mode {
	if b.entry.InheritEnv {
		return ModeInherited
	}
	return ModeIsolated
}

// A location is a field and its place in a file.
type location struct{ field, where string }

// at returns the location of a field of the entry.
func (b *builder) at(field string) location {
	if b.entry.Where == nil {
		return location{field: field}
	}
	return location{field, b.entry.Where(field)}
}

// report files a problem under a location.
func (b *builder) report(at location, problem *Error) {
	problem.Server, problem.Field, problem.Where = b.entry.Server, at.field, at.where
	b.problems = append(b.problems, problem)
}

// reportAll files the problems of a template under a location.
func (b *builder) reportAll(at location, err error) {
	if problem, ok := errors.AsType[*Error](err); ok && !errors.As(err, new(Errors)) {
		b.report(at, problem)
		return
	}
	problems, _ := errors.AsType[Errors](err)
	for _, problem := range problems {
		b.report(at, problem)
	}
}

func (b *builder) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf("server %q: ", b.entry.Server)+fmt.Sprintf(format, args...))
}

// variable is what a template gets from garra's environment.
func (b *builder) variable(name string) (string, bool) {
	value, set := b.sys.lookup(name)
	if set {
		b.hide(name, value)
	}
	return value, set
}

// expandPath expands a field that names a file: "~" first, then references to
// variables. It returns false after a problem.
func (b *builder) expandPath(field, text string) (string, bool) {
	return b.expandWord(field, text, ParseTemplate, b.noSecret)
}

// expandWord expands a word of the command line.
func (b *builder) expandWord(
	field, text string, parse func(string, []string) (Template, error), secret func(string) (string, error),
) (string, bool) {
	text, tilde, ok := b.cutHome(field, text)
	if !ok {
		return "", false
	}
	t, err := parse(text, b.stores)
	if err == nil {
		text, err = t.Expand(b.variable, secret)
	}
	if err != nil {
		b.reportAll(b.at(field), err)
		return "", false
	}
	if strings.ContainsRune(text, 0) {
		b.report(b.at(field), nulError())
		return "", false
	}
	return tilde + text, true
}

// cutHome takes a leading "~" off and returns the home folder for it.
func (b *builder) cutHome(field, text string) (rest, home string, ok bool) {
	rest, found := strings.CutPrefix(text, "~")
	slash := rest == "" || rest[0] == '/' || b.sys.windows && rest[0] == '\\'
	if !found || !slash {
		return text, "", true
	}
	if b.sys.home == "" {
		b.report(b.at(field), unsetError(b.sys.homeVariable()))
		return "", "", false
	}
	return rest, b.sys.home, true
}

// errSecretPlace is why a secret is refused in the name of a file.
var errSecretPlace = errors.New("file names can be read by every user of the machine")

func (b *builder) noSecret(string) (string, error) { return "", errSecretPlace }

func nulError() *Error {
	return &Error{Kind: ErrInvalid, Message: "the text holds a NUL character", Fix: "remove it"}
}

// workingDir returns the folder that the child starts in.
func (b *builder) workingDir() string {
	if b.entry.Cwd == "" {
		return b.defaultDir()
	}
	cwd, ok := b.expandPath("cwd", b.entry.Cwd)
	if !ok {
		return b.defaultDir()
	}
	dir := b.sys.from(b.entry.Dir, cwd)
	info, err := b.sys.files.Stat(dir)
	problem := &Error{Kind: ErrCwd, Subject: dir, Cause: err, Fix: "create the folder or change cwd"}
	switch {
	case !b.sys.isAbs(dir):
		problem.Message = fmt.Sprintf("working directory %q has no absolute path", dir)
	case err != nil:
		problem.Message, problem.Cause = fmt.Sprintf("opening the working directory %q", dir), reason(err)
	case !info.IsDir():
		problem.Message = fmt.Sprintf("working directory %q is not a folder", dir)
	default:
		return dir
	}
	b.report(b.at("cwd"), problem)
	return dir
}

// paths expands a list of paths.
func (b *builder) paths(field string, list []string) (expanded []string) {
	for i, text := range list {
		if path, ok := b.expandPath(fmt.Sprintf("%s[%d]", field, i), text); ok {
			expanded = append(expanded, b.sys.from(b.entry.Dir, path))
		}
	}
	return expanded
}

// defaultDir is the working directory of an entry without cwd.
func (b *builder) defaultDir() string {
	if b.entry.Private != nil {
		return b.entry.Private.Home
	}
	if b.sys.isFolder(b.sys.home) {
		return b.sys.home
	}
	b.warn("there is no home folder, so the server works in %s", b.sys.root())
	return b.sys.root()
}

// arguments returns the child's argv with everything expanded. A secret among them
// is warned of.
func (b *builder) arguments(ctx context.Context) []string {
	command, _ := b.expandPath("command", b.entry.Command)
	args := []string{command}
	for i, text := range b.entry.Args {
		field, exposed := fmt.Sprintf("args[%d]", i), false
		arg, _ := b.expandWord(field, text, ParseValue, func(key string) (string, error) {
			exposed = true
			return b.secret(ctx, key)
		})
		if exposed {
			b.warn("%s holds a secret, and every user of this machine can read the arguments of a process; "+
				"hand it over in env, if the server takes it from there", field)
		}
		args = append(args, arg)
	}
	return args
}
