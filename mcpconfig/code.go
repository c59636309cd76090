// SPDX-License-Identifier: Apache-2.0

package mcpconfig

// Code names a kind of finding. Codes are stable: scripts may depend on them.
type Code string

// The codes that this package reports. docs/findings.md says what each means and how to mend it.
const (
	// About a whole file.
	CodeFileUnparsable Code = "file.unparsable"
	CodeFileUnreadable Code = "file.unreadable"
	CodeFileNotUTF8    Code = "file.not_utf8"
	CodeFileExposed    Code = "file.exposed"
	CodeFileIgnored    Code = "file.ignored"
	CodeConfigNone     Code = "config.none"

	// About keys and sections.
	CodeRootDialect   Code = "root.dialect"
	CodeRootUnread    Code = "root.unread"
	CodeRootMissing   Code = "root.missing"
	CodeSectionNotMap Code = "section.not_map"
	CodeKeyUnknown    Code = "key.unknown"
	CodeKeyForeign    Code = "key.foreign"
	CodeKeyDuplicate  Code = "key.duplicate"
	CodeKeyInvalid    Code = "key.invalid"

	// About a server as a whole.
	CodeServerInvalidName Code = "server.invalid_name"
	CodeServerSimilarName Code = "server.similar_name"
	CodeServerShadowed    Code = "server.shadowed"
	CodeServerNotMap      Code = "server.not_map"
	CodeServerNoTarget    Code = "server.no_target"
	CodeServerTwoTargets  Code = "server.two_targets"

	// About the value of a field.
	CodeFieldType          Code = "field.type"
	CodeFieldRange         Code = "field.range"
	CodeFieldChoice        Code = "field.choice"
	CodeFieldInvalid       Code = "field.invalid"
	CodeFieldConflict      Code = "field.conflict"
	CodeFieldRepeated      Code = "field.repeated"
	CodeFieldNoEffect      Code = "field.no_effect"
	CodeFieldNotApplicable Code = "field.not_applicable"
	CodeTransportUnknown   Code = "transport.unknown"
	CodeTimeoutUnit        Code = "timeout.unit"
	CodeCommandSpaces      Code = "command.spaces"
	CodeMemoryAddressSpace Code = "memory.address_space"
	CodeSandboxOff         Code = "sandbox.off"
	CodeURLInvalid         Code = "url.invalid"
	CodeHeadersInvalid     Code = "headers.invalid"
	CodeToolsBadPattern    Code = "tools.bad_pattern"
	CodeToolsEmptyAllow    Code = "tools.empty_allow"
	CodeSettingIgnored     Code = "setting.ignored"

	// About the environment and references.
	CodeEnvInvalidName      Code = "env.invalid_name"
	CodeEnvNull             Code = "env.null"
	CodeEnvInherited        Code = "env.inherited"
	CodeEnvVaultUnavailable Code = "env.vault_unavailable"
	CodeVaultReference      Code = "vault.reference"
	CodeSecretArgument      Code = "secret.argument"
	CodeSecretPlaintext     Code = "secret.plaintext"
	CodeExpandLiteral       Code = "expand.literal"
	CodeExpandNested        Code = "expand.nested"
	CodeExpandClient        Code = "expand.client_variable"
)

// The codes of what the files alone don't show. This package doesn't report them: `garra config
// check` does.
const (
	CodeToolsUnknownName     Code = "tools.unknown_name"
	CodeExpandUnset          Code = "expand.unset"
	CodeCommandNotFound      Code = "command.not_found"
	CodeCommandNotExecutable Code = "command.not_executable"
	CodeCwdUnusable          Code = "cwd.unusable"
	CodeEnvFileUnusable      Code = "env_file.unusable"
	CodeServerUnstartable    Code = "server.unstartable"
	CodeServerItself         Code = "server.itself"
)

// Severity returns the severity of every finding with this code. A code that this package does
// not know counts as an Error.
func (c Code) Severity() Severity {
	switch c {
	case CodeFileIgnored, CodeRootUnread, CodeKeyUnknown, CodeServerSimilarName,
		CodeServerShadowed, CodeFieldRepeated, CodeFieldNotApplicable, CodeTimeoutUnit,
		CodeCommandSpaces, CodeMemoryAddressSpace, CodeSandboxOff, CodeToolsEmptyAllow, CodeSettingIgnored, CodeEnvNull,
		CodeEnvInherited, CodeEnvVaultUnavailable, CodeSecretArgument, CodeSecretPlaintext,
		CodeExpandLiteral, CodeExpandClient,
		CodeToolsUnknownName, CodeExpandUnset, CodeCommandNotFound, CodeCommandNotExecutable,
		CodeCwdUnusable, CodeEnvFileUnusable, CodeServerUnstartable,
		CodeServerItself:
		return Warning
	case CodeFileExposed, CodeConfigNone, CodeRootDialect, CodeKeyForeign,
		CodeFieldNoEffect:
		return Info
	default:
		return Error
	}
}
