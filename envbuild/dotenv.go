// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// maxEnvFile is the size in bytes above which an env file is refused.
const maxEnvFile = 1 << 20

// addEnvFile puts the variables of the entry's env file on those so far.
func (b *builder) addEnvFile(ctx context.Context) {
	name, ok := b.expandPath("envFile", b.entry.EnvFile)
	if !ok {
		return
	}
	name = b.sys.from(b.entry.Dir, name)
	problem := &Error{Kind: ErrEnvFile, Subject: name, Message: fmt.Sprintf("reading the env file %q", name)}
	text, err := b.sys.readEnvFile(name)
	if err != nil {
		problem.Cause, problem.Fix = reason(err), "create the file, make it readable, or change envFile"
		b.report(b.at("envFile"), problem)
		return
	}
	lines, err := parseDotenv(text)
	if err != nil {
		problem.Cause, problem.Fix = err, "write one NAME=value a line"
		b.report(b.at("envFile"), problem)
		return
	}
	for _, l := range lines {
		b.addFileLine(ctx, name, l)
	}
}

// addFileLine puts one variable of an env file on those so far.
func (b *builder) addFileLine(ctx context.Context, file string, l dotenvLine) {
	at := location{"envFile." + l.name, fmt.Sprintf("%s:%d", file, l.number)}
	t, err := parseFileValue(l.value, b.stores)
	if err != nil {
		b.reportAll(at, err)
		return
	}
	b.assign(ctx, at, t, Var{Name: l.name, Origin: OriginEnvFile})
}

// readEnvFile reads a regular file. A pipe or a device, which might never end,
// is refused before it is opened.
func (s *system) readEnvFile(name string) (string, error) {
	info, err := s.files.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	text, err := s.readStart(name, maxEnvFile+1)
	if err == nil && len(text) > maxEnvFile {
		err = fmt.Errorf("larger than %d bytes", maxEnvFile)
	}
	return string(text), err
}

// readStart reads the first bytes of a file, at most size.
func (s *system) readStart(name string, size int64) ([]byte, error) {
	file, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, size))
}

// reason strips operation and path from an error of the file system, for
// messages that name the path themselves.
func reason(err error) error {
	if problem, ok := errors.AsType[*fs.PathError](err); ok {
		return problem.Err
	}
	return err
}

// A dotenvLine is one variable of an env file.
type dotenvLine struct {
	name, value string
	number      int // line of the name, from 1
}

// parseDotenv reads the dotenv form: NAME=value lines, blank lines and
// comments that begin with "#", an optional "export ", values in single quotes
// (literal) or in double quotes (with the escapes \n \r \t \" \\ \$), both of
// which may go over several lines, and " #" before a comment after a value. A
// byte order mark and CRLF are accepted. A name that comes again replaces the
// former. No value ever appears in the error, which has the line's number.
func parseDotenv(text string) ([]dotenvLine, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("line %d: text that is not UTF-8", invalidLine(text))
	}
	r := dotenvReader{rest: strings.ReplaceAll(text, "\r\n", "\n"), number: 1}
	var lines []dotenvLine
	for r.rest != "" {
		start := r.number
		l, ok, err := r.line()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
		if ok {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// invalidLine returns the line of the first byte that is not UTF-8.
func invalidLine(text string) int {
	valid := strings.ToValidUTF8(text, "\x00")
	i := 0
	for i < len(text) && i < len(valid) && text[i] == valid[i] {
		i++
	}
	return 1 + bytes.Count([]byte(text[:i]), []byte("\n"))
}

// dotenvReader goes through the text of an env file.
type dotenvReader struct {
	rest   string
	number int // line at which rest begins
}

// take cuts off n bytes and counts their lines.
func (r *dotenvReader) take(n int) string {
	text := r.rest[:n]
	r.rest = r.rest[n:]
	r.number += strings.Count(text, "\n")
	return text
}

// takeLine cuts off the rest of the line, without its end.
func (r *dotenvReader) takeLine() string {
	if i := strings.IndexByte(r.rest, '\n'); i >= 0 {
		return strings.TrimSuffix(r.take(i+1), "\n")
	}
	return r.take(len(r.rest))
}

// blanks may stand around names, values and "=".
const blanks = " \t\r\f\v"

func (r *dotenvReader) skipBlanks() { r.take(len(r.rest) - len(strings.TrimLeft(r.rest, blanks))) }

// line reads one variable. It returns false for a line without one.
func (r *dotenvReader) line() (l dotenvLine, ok bool, err error) {
	r.skipBlanks()
	if r.rest == "" || r.rest[0] == '\n' || r.rest[0] == '#' {
		r.takeLine()
		return l, false, nil
	}
	l.number = r.number
	i := strings.IndexAny(r.rest, "=\n")
	if i < 0 || r.rest[i] == '\n' {
		return l, false, errors.New("no \"=\" after the name")
	}
	l.name = strings.TrimRight(r.take(i), blanks)
	r.take(len("="))
	if name, found := strings.CutPrefix(l.name, "export"); found && strings.TrimLeft(name, blanks) != name {
		l.name = strings.TrimLeft(name, blanks)
	}
	if !isEnvName(l.name) || l.name[0] == '#' {
		return l, false, errors.New("no valid name before the \"=\"")
	}
	l.value, err = r.value()
	if err == nil && strings.ContainsRune(l.value, 0) {
		err = fmt.Errorf("variable %q holds a NUL character", l.name)
	}
	return l, true, err
}

// value reads what follows "=" up to the end of the line.
func (r *dotenvReader) value() (string, error) {
	r.skipBlanks()
	if r.rest == "" || r.rest[0] != '"' && r.rest[0] != '\'' {
		return plainValue(r.takeLine()), nil
	}
	quote := r.take(1)[0]
	end := closingQuote(r.rest, quote)
	if end < 0 {
		return "", fmt.Errorf("a value without its closing %c", quote)
	}
	value := r.take(end)
	r.take(1)
	after := strings.TrimLeft(r.takeLine(), blanks)
	if after != "" && after[0] != '#' {
		return "", fmt.Errorf("more text after the closing %c of a value", quote)
	}
	if quote == '"' {
		value = unescape(value)
	}
	return value, nil
}

// plainValue is a value without quotes: it ends at a comment.
func plainValue(text string) string {
	if strings.HasPrefix(text, "#") {
		return ""
	}
	for i := 1; i < len(text); i++ {
		if text[i] == '#' && strings.IndexByte(blanks, text[i-1]) >= 0 {
			text = text[:i]
			break
		}
	}
	return strings.TrimRight(text, blanks)
}

// closingQuote returns the index of the quote that ends text, -1 without one.
func closingQuote(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && quote == '"':
			i++
		}
	}
	return -1
}

// unescape resolves the escapes of double quotes. A backslash before any other
// character stays.
func unescape(text string) string {
	return strings.NewReplacer(
		`\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\$`, "$",
	).Replace(text)
}
