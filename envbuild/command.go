// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// resolveCommand returns the file that the command names, and reports when
// there is none that can be run.
func (b *builder) resolveCommand(command, dir string) string {
	if command == "" {
		b.reportEmptyCommand()
		return ""
	}
	var file string
	var obstacle *Error
	if b.sys.hasSeparator(command) {
		file, obstacle = b.sys.pick(b.sys.from(dir, command), b.extensions())
	} else {
		file, obstacle = b.search(command)
	}
	switch {
	case file != "":
		b.checkInterpreters(file)
	case obstacle != nil:
		b.report(b.at("command"), obstacle)
	case b.sys.hasSeparator(command):
		b.report(b.at("command"), missingFile(b.sys.from(dir, command)))
	default:
		b.report(b.at("command"), b.notFound(command))
	}
	return file
}

// reportEmptyCommand reports a command that is empty as written. One that is
// empty for want of a variable has been reported already.
func (b *builder) reportEmptyCommand() {
	failed := slices.ContainsFunc(b.problems, func(p *Error) bool { return p.Field == "command" })
	if !failed {
		b.report(b.at("command"), &Error{
			Kind: ErrNotFound, Message: "the command is empty", Fix: "name the program to run",
		})
	}
}

// search looks a name up in the child's PATH, and then in the well-known
// folders if PATH is not the entry's own. A folder that is used is appended to
// PATH. The obstacle is why a file of that name, if there is one, can't be run.
func (b *builder) search(name string) (file string, obstacle *Error) {
	v, _ := b.vars.get("PATH")
	file, obstacle = b.searchIn(b.sys.folders(v.value), name)
	if file != "" || b.ownPath {
		return file, obstacle
	}
	for _, folder := range b.sys.wellKnown() {
		if !b.sys.isFolder(folder) || slices.Contains(b.sys.folders(v.value), folder) {
			continue
		}
		file, problem := b.searchIn([]string{folder}, name)
		if file != "" {
			b.appendPath(folder)
			return file, nil
		}
		if obstacle == nil {
			obstacle = problem
		}
	}
	return "", obstacle
}

// searchIn looks for name in folders, which it notes as searched.
func (b *builder) searchIn(folders []string, name string) (file string, obstacle *Error) {
	for _, folder := range folders {
		if !slices.Contains(b.searched, folder) {
			b.searched = append(b.searched, folder)
		}
		file, problem := b.sys.pick(b.sys.join(folder, name), b.extensions())
		if file != "" {
			return file, nil
		}
		if obstacle == nil {
			obstacle = problem
		}
	}
	return "", obstacle
}

// appendPath puts a folder at the end of the child's PATH, where it shadows
// nothing, and says so in the variable's origin.
func (b *builder) appendPath(folder string) {
	v, found := b.vars.get("PATH")
	if !found {
		v.Name = "PATH"
	}
	if v.value != "" {
		v.value += b.sys.listSeparator()
	}
	v.value += folder
	if v.Origin == OriginSearch {
		v.Where += b.sys.listSeparator()
	}
	v.Where += folder
	v.Origin = OriginSearch
	b.vars.set(v)
}

// runnable are the extensions that Windows can start as a process. The others
// in PATHEXT, like .JS, are opened with whatever program is set for them.
func runnable() []string { return []string{".com", ".exe", ".bat", ".cmd"} }

// extensions returns what may be added to a command's name, in order: nothing
// outside Windows, there the runnable ones of PATHEXT.
func (b *builder) extensions() []string {
	if !b.sys.windows {
		return nil
	}
	v, _ := b.vars.get("PATHEXT")
	var extensions []string
	for ext := range strings.SplitSeq(strings.ToLower(v.value), ";") {
		if slices.Contains(runnable(), ext) {
			extensions = append(extensions, ext)
		}
	}
	if len(extensions) == 0 {
		return runnable()
	}
	return extensions
}

// pick returns the file to run for a path: itself, or on Windows with one of
// the extensions. The obstacle says why a file that is there can't be run.
func (s *system) pick(name string, extensions []string) (file string, obstacle *Error) {
	if !s.windows || slices.Contains(runnable(), s.ext(name)) {
		return s.examine(name)
	}
	for _, ext := range extensions {
		if file, _ := s.examine(name + ext); file != "" {
			return file, nil
		}
	}
	if info, err := s.files.Stat(name); err == nil && !info.IsDir() && s.ext(name) != "" {
		return "", notExecutable(name, "is no program that Windows can start",
			"run it with its interpreter, such as node")
	}
	return "", nil
}

// examine returns name when it can be run, and else why not; neither when
// nothing is there.
func (s *system) examine(name string) (file string, obstacle *Error) {
	info, err := s.files.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return "", notExecutable(name, "is a folder", "name the program in it")
	case err == nil && !info.Mode().IsRegular():
		return "", notExecutable(name, "is not a regular file", "name a program")
	case err == nil && !s.windows && info.Mode()&0o111 == 0:
		return "", notExecutable(name, "is not executable", "make it executable with chmod +x, or run it "+
			"with its interpreter")
	case err == nil:
		return name, nil
	}
	link, linkErr := s.files.Lstat(name)
	if linkErr == nil && link.Mode()&fs.ModeSymlink != 0 {
		return "", notExecutable(name, "is a link to a file that does not exist", "install the program again")
	}
	if errors.Is(err, fs.ErrPermission) {
		problem := notExecutable(name, "can't be looked at", "check the permissions of its folders")
		problem.Cause = reason(err)
		return "", problem
	}
	return "", nil
}

func notExecutable(name, why, fix string) *Error {
	return &Error{Kind: ErrNotExecutable, Subject: name, Message: fmt.Sprintf("%q %s", name, why), Fix: fix}
}

func missingFile(name string) *Error {
	return &Error{
		Kind: ErrNotFound, Subject: name,
		Message: fmt.Sprintf("there is no file %q", name),
		Fix:     "install the program or correct the path",
	}
}

// notFound says what to do about a command that is nowhere, and last, since
// they are many, which folders have been searched for it.
func (b *builder) notFound(command string) *Error {
	fix := "install it, give its full path, or set PATH in env"
	if program, _, several := strings.Cut(command, " "); several {
		fix = fmt.Sprintf("write the program alone (%q) in command, and each argument as an item of args", program)
	}
	return &Error{
		Kind: ErrNotFound, Subject: command,
		Message: fmt.Sprintf("command %q not found", command),
		Fix:     fix + " (" + b.searchedText() + ")",
	}
}

func (b *builder) searchedText() string {
	if len(b.searched) == 0 {
		return "PATH holds no folder"
	}
	return "searched " + strings.Join(b.searched, ", ")
}

// checkBatch refuses arguments that cmd.exe, which runs batch files, would
// take for commands or variables of its own: it does not know the quoting that
// programs use.
func (b *builder) checkBatch(file string, args []string) {
	if ext := b.sys.ext(file); !b.sys.windows || ext != ".cmd" && ext != ".bat" {
		return
	}
	for i, arg := range args {
		if strings.ContainsAny(arg, "\"%&|<>^!\r\n") {
			b.report(b.at(fmt.Sprintf("args[%d]", i)), &Error{
				Kind: ErrInvalid, Subject: file,
				Message: fmt.Sprintf("a character that cmd.exe interprets, in an argument of the batch file %q", file),
				Fix:     "run the program behind the batch file, such as node with the script's path",
			})
		}
	}
}
