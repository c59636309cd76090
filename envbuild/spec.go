// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A Mode says whether a child's environment began empty.
type Mode string

const (
	// ModeIsolated: from nothing, by the allowlist.
	ModeIsolated Mode = "isolated"
	// ModeInherited: from the whole environment of garra.
	ModeInherited Mode = "inherited"
)

// An Origin says where a variable's value came from.
type Origin string

// The origins. OriginSearch is a PATH of another origin with folders appended
// in which the command, or its interpreter, was found.
const (
	OriginHost      Origin = "host"      // garra's environment, by the allowlist
	OriginInherited Origin = "inherited" // garra's environment, all of it
	OriginDefault   Origin = "default"   // garra has none and the child needs one
	OriginTermux    Origin = "termux"    // needed by every program in Termux
	OriginEnvFile   Origin = "envFile"   // the entry's env file
	OriginEnv       Origin = "env"       // the entry's env
	OriginVault     Origin = "vault"     // env or env file, with a secret in it
	OriginSearch    Origin = "search"    // PATH, extended to find the command
	OriginMemory    Origin = "memory"    // the size of a runtime's heap, by the limit of memory
	OriginSandbox   Origin = "sandbox"   // a folder that the child has for itself
)

// A Var is one variable of a child, without its value.
type Var struct {
	Name   string `json:"name"`
	Origin Origin `json:"origin"`
	// Where is the place of the origin: "mcp.json:12", "/home/me/.env:3", or
	// the folders that were appended; "" for the host's.
	Where string `json:"where,omitempty"`

	value string
}

// String returns the name and the origin.
func (v Var) String() string { return v.Name + " (" + string(v.Origin) + ")" }

// Format implements [fmt.Formatter]; every verb prints what String returns.
func (v Var) Format(f fmt.State, _ rune) { io.WriteString(f, v.String()) }

// Values are texts that must be shown to nobody. Printing and marshalling
// tell only how many there are.
type Values []string

// String tells how many values there are.
func (v Values) String() string { return fmt.Sprintf("%d values", len(v)) }

// Format implements [fmt.Formatter]; every verb prints what String returns.
func (v Values) Format(f fmt.State, _ rune) { io.WriteString(f, v.String()) }

// MarshalJSON returns the number of values.
func (v Values) MarshalJSON() ([]byte, error) { return json.Marshal(len(v)) }

// A Spec is what [Build] made of an entry: all that is needed to start the
// child, and what a person may see of it.
//
// Args and Secrets may hold values of garra's environment; String, Format and
// MarshalJSON leave them out.
type Spec struct {
	Server string `json:"server"`
	// Path is the file that is run, absolute.
	Path string `json:"path"`
	// Args is the child's argv. Args[0] is the command as the entry names it.
	Args Values `json:"-"`
	// Dir is the working directory, absolute.
	Dir string `json:"dir"`
	// Vars are the variables of the child, sorted by name.
	Vars []Var `json:"vars"`
	Mode Mode  `json:"mode"`
	// SearchPath are the folders that were searched for the command, in order.
	// It is empty for a command with a slash.
	SearchPath []string `json:"search_path,omitempty"`
	// Warnings are what the person should know and may want to change.
	Warnings []string `json:"warnings,omitempty"`
	// Secrets are the values to take out of what the child writes: resolved
	// secrets, and values of variables that are secret by their names or looks.
	Secrets []Secret `json:"-"`
	// Keys are the secrets that were resolved, sorted: KEY for one of the vault,
	// STORE:KEY for any other.
	Keys []string `json:"secrets,omitempty"`
	// Files are to be in Entry.FileDir when the child starts, readable for it alone.
	Files []File `json:"-"`
	// FileDir is where they are to be.
	FileDir string `json:"-"`
	// Read and Write are Entry's, expanded; absolute if Entry.Dir is.
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
}

// A Secret is a value that must be shown to nobody, and its name, which may. Printing
// and marshalling show the name.
type Secret struct {
	Name string // of the secret, or of the variable
	text string
}

// Text returns the value.
func (s Secret) Text() string { return s.text }

// String returns the name.
func (s Secret) String() string { return s.Name }

// Format implements [fmt.Formatter]; every verb prints what String returns.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.Name) }

// A File is a file with a secret, which the variable of its name holds the path of.
// Printing and marshalling show the name.
type File struct {
	Name    string
	content string
}

// Content returns what the file holds.
func (f File) Content() string { return f.content }

// String returns the name.
func (f File) String() string { return f.Name }

// Format implements [fmt.Formatter]; every verb prints what String returns.
func (f File) Format(s fmt.State, _ rune) { io.WriteString(s, f.Name) }

// Environ returns the child's environment as NAME=value, sorted by name.
// Value is the only other way to the values.
func (s *Spec) Environ() []string {
	environ := make([]string, len(s.Vars))
	for i, v := range s.Vars {
		environ[i] = v.Name + "=" + v.value
	}
	return environ
}

// Value returns the value of a variable, empty when the child has none of that name.
func (s *Spec) Value(name string) string {
	for _, v := range s.Vars {
		if v.Name == name {
			return v.value
		}
	}
	return ""
}

// Names returns the names of the child's variables, sorted.
func (s *Spec) Names() []string {
	names := make([]string, len(s.Vars))
	for i, v := range s.Vars {
		names[i] = v.Name
	}
	return names
}

// String returns the file, the folder and the names of the variables.
func (s Spec) String() string {
	return fmt.Sprintf("server %q: %s with %d arguments in %s, %s environment of %s",
		s.Server, s.Path, max(len(s.Args)-1, 0), s.Dir, s.Mode, strings.Join(s.Names(), " "))
}

// Format implements [fmt.Formatter]; every verb prints what String returns.
func (s Spec) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }
