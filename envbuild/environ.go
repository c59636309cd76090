// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/garraia/garra/internal/sensitive"
)

// defaultPath is the PATH of a child when garra has none.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// variables are a child's variables by their folded names.
type variables struct {
	fold   func(string) string
	byName map[string]Var
}

// set puts v over any variable of that name.
func (v *variables) set(variable Var) {
	if v.byName == nil {
		v.byName = make(map[string]Var)
	}
	v.byName[v.fold(variable.Name)] = variable
}

func (v *variables) get(name string) (Var, bool) {
	variable, ok := v.byName[v.fold(name)]
	return variable, ok
}

func (v *variables) sorted() []Var {
	return slices.SortedFunc(maps.Values(v.byName), func(a, b Var) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// hidden gathers the values that a child's output must not show, each with the names
// of the secrets that are it, or else of the first variable that holds it.
type hidden struct {
	names map[string][]string // by value, the first first
}

// add takes the value of a variable, if that is a secret by its name or look.
func (h *hidden) add(name, value string) {
	_, known := h.names[value]
	if _, ok := sensitive.Pair(name, value); ok && !known && len(value) >= minSecretLength {
		h.addSecret(name, value)
	}
}

// addSecret takes a value that is a secret, however short.
func (h *hidden) addSecret(name, value string) {
	if h.names == nil {
		h.names = make(map[string][]string)
	}
	if value != "" && !slices.Contains(h.names[value], name) {
		h.names[value] = append(h.names[value], name)
	}
}

func (h *hidden) values() []Secret {
	var all []Secret
	for _, value := range slices.Sorted(maps.Keys(h.names)) {
		for _, name := range h.names[value] {
			all = append(all, Secret{Name: name, text: value})
		}
	}
	return all
}

// replacer puts references to the values in their place, also where they are quoted.
// The longest goes first, since one may be in another.
func (h *hidden) replacer() *strings.Replacer {
	longest := slices.SortedFunc(maps.Keys(h.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	var pairs []string
	for _, value := range longest {
		reference, quoted := "${"+h.names[value][0]+"}", strconv.Quote(value)
		pairs = append(pairs, value, reference, quoted[1:len(quoted)-1], reference)
	}
	return strings.NewReplacer(pairs...)
}

// conceal takes the values out of what is told of the entry: file names hold what
// references have become.
func (b *builder) conceal() {
	r := b.hidden.replacer()
	for _, p := range b.problems {
		p.Subject, p.Message, p.Fix = r.Replace(p.Subject), r.Replace(p.Message), r.Replace(p.Fix)
	}
	for i, w := range b.warnings {
		b.warnings[i] = r.Replace(w)
	}
}

// hide takes the value of a variable, unless the entry says that it is no secret.
func (b *builder) hide(name, value string) {
	if !slices.Contains(b.entry.NotSecret, name) {
		b.hidden.add(name, value)
	}
}

// environment fills b.vars, layer over layer.
func (b *builder) environment(ctx context.Context) {
	if b.entry.InheritEnv {
		b.inheritAll()
	} else {
		b.inheritAllowed()
	}
	b.addDefaults()
	b.addTermux()
	b.addPrivate()
	if b.entry.EnvFile != "" {
		b.addEnvFile(ctx)
	}
	b.addEnv(ctx)
	if b.sys.windows {
		b.expandWindowsPath()
	}
}

func (b *builder) inheritAllowed() {
	for _, name := range allowed(b.sys.platform, b.sys.termux) {
		if i, ok := b.sys.index[b.sys.fold(name)]; ok {
			b.inherit(b.sys.settings[i], OriginHost)
		}
	}
}

func (b *builder) inheritAll() {
	for _, s := range b.sys.settings {
		if !withheld(s.name) {
			b.inherit(s, OriginInherited)
		}
	}
	b.warn("inherit_env gives the server garra's whole environment, with every secret in it: %d variables",
		len(b.vars.byName))
}

// inherit passes a variable of garra's own on. One that is not UTF-8 is left
// out, since it can't be passed on unchanged by all ways to start a child.
func (b *builder) inherit(s setting, origin Origin) {
	if !utf8.ValidString(s.value) || !utf8.ValidString(s.name) {
		b.warn("variable %q of garra's environment is not UTF-8 and is left out", s.name)
		return
	}
	if origin == OriginInherited {
		b.hide(s.name, s.value)
	}
	b.vars.set(Var{Name: s.name, Origin: origin, value: s.value})
}

// addDefaults gives the child a PATH and a home when garra has none.
func (b *builder) addDefaults() {
	if _, ok := b.vars.get("PATH"); !ok && !b.sys.windows {
		b.vars.set(Var{Name: "PATH", Origin: OriginDefault, value: defaultPath})
	}
	name := b.sys.homeVariable()
	if _, ok := b.vars.get(name); !ok && b.sys.home != "" {
		b.vars.set(Var{Name: name, Origin: OriginDefault, value: b.sys.home})
	}
}

// addPrivate has the child's own folders in the place of the user's, by the XDG Base
// Directory Specification and npm's own variable.
func (b *builder) addPrivate() {
	own := b.entry.Private
	if own == nil {
		return
	}
	for _, v := range []struct{ name, value string }{
		{b.sys.homeVariable(), own.Home},
		{"XDG_CONFIG_HOME", b.sys.join(own.Home, ".config")},
		{"XDG_DATA_HOME", b.sys.join(own.Home, ".local", "share")},
		{"XDG_STATE_HOME", b.sys.join(own.Home, ".local", "state")},
		{"XDG_CACHE_HOME", own.Cache},
		{"npm_config_cache", b.sys.join(own.Cache, "npm")},
		{"TMPDIR", own.Temp},
	} {
		b.vars.set(Var{Name: v.name, Origin: OriginSandbox, value: v.value})
	}
}

// addTermux names the library without which a program in Termux can't run
// another one, unless garra's environment has named it.
func (b *builder) addTermux() {
	if !b.sys.termux {
		return
	}
	if _, ok := b.vars.get("LD_PRELOAD"); ok {
		return
	}
	library := b.sys.join(b.sys.get("PREFIX"), "lib", "libtermux-exec.so")
	if _, err := b.sys.files.Stat(library); err == nil {
		b.vars.set(Var{Name: "LD_PRELOAD", Origin: OriginTermux, value: library})
	}
}

// addEnv puts the entry's env on top.
func (b *builder) addEnv(ctx context.Context) {
	spelling := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(b.entry.Env)) {
		at := b.at("env." + name)
		if !isEnvName(name) {
			b.report(at, &Error{
				Kind: ErrInvalid, Subject: name,
				Message: fmt.Sprintf("%q is not the name of a variable", name),
				Fix:     "use letters, digits and \"_\"",
			})
			continue
		}
		if other, twice := spelling[b.sys.fold(name)]; twice {
			b.report(at, &Error{
				Kind: ErrInvalid, Subject: name,
				Message: fmt.Sprintf("variables %q and %q are one on Windows", other, name),
				Fix:     "remove one of them",
			})
			continue
		}
		spelling[b.sys.fold(name)] = name
		b.addOwn(ctx, at, name, b.entry.Env[name])
	}
}

// addOwn adds one variable of the entry's env.
func (b *builder) addOwn(ctx context.Context, at location, name, text string) {
	reference, isFile := strings.CutPrefix(text, filePrefix)
	if isFile {
		text = fileReference(reference, b.stores)
	}
	t, err := ParseValue(text, b.stores)
	switch {
	case err != nil:
		b.reportAll(at, err)
	case isFile:
		b.assignFile(ctx, at, t, name)
	default:
		b.assign(ctx, at, t, Var{Name: name, Origin: OriginEnv})
	}
}

// fileReference is the reference to the secret that a file is to hold.
func fileReference(key string, stores []string) string {
	if store, _, ok := strings.Cut(key, ":"); ok && slices.Contains(stores, store) {
		return key
	}
	return secretPrefix + key
}

// assignFile has the variable hold the path of a file with the secret t.
func (b *builder) assignFile(ctx context.Context, at location, t Template, name string) {
	content, err := t.Expand(b.variable, func(key string) (string, error) { return b.secret(ctx, key) })
	if err != nil {
		b.reportAll(at, err)
		return
	}
	b.files = append(b.files, File{Name: name, content: content})
	b.vars.set(Var{Name: name, Origin: OriginVault, Where: at.where, value: b.sys.join(b.entry.FileDir, name)})
}

// assign expands t, which stands at the given location, into the variable v.
func (b *builder) assign(ctx context.Context, at location, t Template, v Var) {
	value, err := t.Expand(b.variable, func(key string) (string, error) {
		return b.secret(ctx, key)
	})
	if err != nil {
		b.reportAll(at, err)
		return
	}
	keys := t.SecretKeys()
	if problem := checkValue(value, len(keys) > 0); problem != nil {
		b.report(at, problem)
		return
	}
	if len(keys) > 0 {
		v.Origin = OriginVault
	}
	b.hide(v.Name, value)
	if b.sys.fold(v.Name) == "PATH" {
		b.ownPath = true
	}
	v.value, v.Where = value, at.where
	b.vars.set(v)
}

// checkValue refuses a value that no variable can have, and a reference to a
// secret that came out of a variable: it would reach the child unresolved.
func checkValue(value string, resolved bool) *Error {
	if strings.ContainsRune(value, 0) {
		return nulError()
	}
	if !resolved && (strings.HasPrefix(value, secretPrefix) || strings.HasPrefix(value, filePrefix)) {
		return &Error{
			Kind:    ErrInvalid,
			Message: "the expanded value is a reference to a secret, which is not resolved a second time",
			Fix:     "write the vault: reference itself",
		}
	}
	return nil
}

// secret asks the vault, and remembers what it said for redaction.
func (b *builder) secret(ctx context.Context, key string) (string, error) {
	if b.secrets == nil {
		return "", errNoVault
	}
	b.keys[key] = true
	value, err := b.secrets.Secret(ctx, b.entry.Server, key)
	if err == nil {
		b.hidden.addSecret(key, value)
	}
	return value, err
}

// isEnvName tells whether an environment can hold name: anything printable
// without blanks and "=", since npm has names like
// "npm_config_//registry.example/:_authToken".
func isEnvName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// expandWindowsPath replaces %NAME% in the folders of PATH. The registry holds
// them like that, and a service gets them unexpanded.
func (b *builder) expandWindowsPath() {
	v, ok := b.vars.get("PATH")
	if !ok {
		return
	}
	v.value = b.sys.expandPercent(v.value)
	b.vars.set(v)
}

// expandPercent replaces each %NAME% that is set.
func (s *system) expandPercent(text string) string {
	var expanded strings.Builder
	for {
		before, rest, found := strings.Cut(text, "%")
		expanded.WriteString(before)
		if !found {
			return expanded.String()
		}
		name, after, closed := strings.Cut(rest, "%")
		value, set := s.lookup(name)
		if !closed || !set {
			expanded.WriteString("%")
			text = rest
			continue
		}
		expanded.WriteString(value)
		text = after
	}
}
