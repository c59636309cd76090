// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/remote"
	"github.com/garraia/garra/supervisor"
)

// startFindings reports what would keep servers from being started in the
// environment of this process, also of those that have errors. It reads files and
// changes nothing. What is known of the same place says the same, and better.
func startFindings(
	ctx context.Context, config *mcpconfig.Config, known mcpconfig.Findings, secrets envbuild.Secrets,
) mcpconfig.Findings {
	host := envbuild.SystemHost()
	var findings mcpconfig.Findings
	for _, s := range config.Entries() {
		if !s.Enabled {
			continue
		}
		var problems envbuild.Errors
		if s.Transport == mcpconfig.Stdio {
			spec, err := envbuild.Build(ctx, supervisor.EntryOf(s, config.Dir), host, secrets)
			if err == nil && isItself(spec.Path) {
				findings = append(findings, itself(s))
			}
			problems, _ = errors.AsType[envbuild.Errors](err)
		} else {
			problems, _ = errors.AsType[envbuild.Errors](remote.Check(ctx, s, host, secrets))
		}
		for _, problem := range problems {
			if follows(s, problem) {
				continue
			}
			f := startFinding(s, problem)
			if !slices.ContainsFunc(known.Of(s.Name), func(other mcpconfig.Finding) bool {
				return other.Severity != mcpconfig.Info && other.Position() == f.Position()
			}) {
				findings = append(findings, f)
			}
		}
	}
	return findings
}

// follows reports whether a problem may only follow from what can't be used of an
// entry: a program is looked for as the other fields say.
func follows(s *mcpconfig.Server, problem *envbuild.Error) bool {
	switch problem.Kind {
	case envbuild.ErrNotFound, envbuild.ErrNotExecutable:
		return slices.ContainsFunc([]string{"type", "command", "cwd", "env", "envFile"}, s.Broken)
	}
	field, _, _ := strings.Cut(problem.Field, "[")
	return s.Broken(field)
}

// isItself reports whether a program is garra.
func isItself(path string) bool {
	own, err := os.Executable()
	if err != nil {
		return false
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// itself is the finding of an entry that starts garra.
func itself(s *mcpconfig.Server) mcpconfig.Finding {
	at, code := s.Position("command"), mcpconfig.CodeServerItself
	return mcpconfig.Finding{
		Severity: code.Severity(), Code: code, File: at.File, Line: at.Line, Column: at.Column, Server: s.Name,
		Message: "the entry starts garra itself",
		Fix:     "take it out, unless its args or env name another configuration folder",
	}
}

// startFinding is a problem of an entry as a finding.
func startFinding(s *mcpconfig.Server, problem *envbuild.Error) mcpconfig.Finding {
	bare := *problem
	bare.Server, bare.Fix = "", ""
	field, _, inFile := strings.Cut(problem.Field, ".")
	if inFile = inFile && field == "envFile"; !inFile {
		field, bare.Where = problem.Field, "" // the finding has its place
	}
	at, code := s.Position(field), startCode(problem)
	return mcpconfig.Finding{
		Severity: code.Severity(), Code: code, File: at.File, Line: at.Line, Column: at.Column, Server: s.Name,
		Message: bare.Error(), Fix: problem.Fix,
	}
}

// startCode is the code of a problem's kind.
func startCode(problem *envbuild.Error) mcpconfig.Code {
	switch problem.Kind {
	case envbuild.ErrUnset:
		return mcpconfig.CodeExpandUnset
	case envbuild.ErrSecret:
		return mcpconfig.CodeEnvVaultUnavailable
	case envbuild.ErrNotFound:
		return mcpconfig.CodeCommandNotFound
	case envbuild.ErrNotExecutable:
		return mcpconfig.CodeCommandNotExecutable
	case envbuild.ErrCwd:
		return mcpconfig.CodeCwdUnusable
	case envbuild.ErrEnvFile:
		return mcpconfig.CodeEnvFileUnusable
	}
	return mcpconfig.CodeServerUnstartable
}
