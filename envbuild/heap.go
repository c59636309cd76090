// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// A heapHint is the variable that tells a runtime how large its heap may become. One
// that collects garbage uses all that it can get, and knows nothing of the limit.
type heapHint struct {
	variable string
	text     func(limitMB int) string
	// others are further variables by which the user may have decided already.
	others []string
	// decides are parts of variables and arguments that do.
	decides []string
}

// nodeHint leaves a quarter of the memory, and 128 MB if that is more, to what isn't
// in V8's heap: buffers, code, stacks, and the processes of npm (nodejs.org,
// "Command-line API", --max-old-space-size).
func nodeHint() *heapHint {
	return &heapHint{
		variable: "NODE_OPTIONS",
		text: func(limit int) string {
			return fmt.Sprintf("--max-old-space-size=%d", max(min(64, limit), min(limit*3/4, limit-128)))
		},
		decides: []string{"max-old-space-size", "max_old_space_size"},
	}
}

// javaHint: a JVM needs about two fifths for what isn't in its heap (the java command's
// manual, JDK_JAVA_OPTIONS and -Xmx; JVM Tool Interface, JAVA_TOOL_OPTIONS).
func javaHint() *heapHint {
	return &heapHint{
		variable: "JAVA_TOOL_OPTIONS",
		text:     func(limit int) string { return fmt.Sprintf("-Xmx%dm", max(2, limit*3/5)) },
		others:   []string{"JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"},
		decides:  []string{"-Xmx", "MaxRAMPercentage", "MaxHeapSize"},
	}
}

// goHint is a soft limit (package runtime, "Environment Variables").
func goHint() *heapHint {
	return &heapHint{
		variable: "GOMEMLIMIT",
		text:     func(limit int) string { return fmt.Sprintf("%dKiB", limit*1024*9/10) },
		decides:  []string{""}, // any value
	}
}

// hintHeap tells the runtime that the command is known to start how much memory there
// is, unless the user has said something about it.
func (b *builder) hintHeap(file string, args []string) {
	if b.entry.MemoryLimitMB <= 0 || file == "" {
		return
	}
	hint := b.sys.heapHint(file)
	if hint == nil || b.decided(hint, args) {
		return
	}
	value := hint.text(b.entry.MemoryLimitMB)
	v, ok := b.vars.get(hint.variable)
	if ok && v.value != "" {
		value = v.value + " " + value
	}
	b.vars.set(Var{Name: hint.variable, Origin: OriginMemory, Where: v.Where, value: value})
}

// decided reports whether the user has set the size of the heap.
func (b *builder) decided(hint *heapHint, args []string) bool {
	texts := slices.Clone(args)
	if hint.variable == "GOMEMLIMIT" { // which has no flag, and arguments of any look
		texts = nil
	}
	for _, name := range append([]string{hint.variable}, hint.others...) {
		if v, ok := b.vars.get(name); ok {
			texts = append(texts, v.value)
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(hint.decides, func(part string) bool { return strings.Contains(text, part) })
	})
}

// heapHint returns the hint for the runtime that a file is, or that runs it; nil when
// none is known.
func (s *system) heapHint(file string) *heapHint {
	for range maxScripts {
		switch s.programName(file) {
		case "node", "nodejs", "npx", "npm", "pnpm", "pnpx", "yarn", "tsx", "ts-node":
			return nodeHint()
		case "java", "javaw", "jbang":
			return javaHint()
		}
		program, _ := s.interpreter(file)
		if program == "" {
			break
		}
		file = program
	}
	if s.isGo(file) {
		return goHint()
	}
	return nil
}

// programName returns a file's name without its folder and the endings of Windows.
func (s *system) programName(file string) string {
	if s.windows {
		file = strings.ReplaceAll(file, `\`, "/")
	}
	name := s.fold(path.Base(file))
	if s.windows {
		name = strings.ToLower(name)
		for _, ending := range runnable() {
			name = strings.TrimSuffix(name, ending)
		}
	}
	return name
}

// isGo reports whether a file is a program that Go built.
func (s *system) isGo(file string) bool {
	f, err := s.files.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	program, ok := f.(io.ReaderAt)
	if !ok {
		return false
	}
	_, err = buildinfo.Read(program)
	return err == nil
}
