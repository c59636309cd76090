// SPDX-License-Identifier: Apache-2.0

package sensitive

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	for list, want := range map[string]bool{
		"API_KEY apiKey x-api-key Api.Key APIKEY githubAPIKey API_KEY_2 API_KEYS API_KEY_PROD KEY SSH_KEY": true,
		"TOKEN accessToken ACCESS_TOKENS bot-token authtoken csrftokensecret GH_TOKEN_WORK":                true,
		"PASSWORD dbPassword PGPASSWORD DB_PASS PASS MYSQL_PWD PASSWD htpasswd passphrase passPhrase":      true,
		"SECRET client_secret ClientSecret JWT_SECRET secretAccessKey JWT PAT AZURE_DEVOPS_PAT":            true,
		"AUTH BASIC_AUTH Authorization Proxy-Authorization BEARER COOKIE Set-Cookie cookies SENTRY_DSN":    true,
		"CREDENTIALS GOOGLE_CREDENTIALS_JSON creds CONNECTION_STRING connectionString seedPhrase":          true,
		"PRIVATE_KEY privateKey ENCRYPTION_KEY LICENSE_KEY S3_SECRET_KEY GOOGLE_APPLICATION_CREDENTIALS":   true,
		"MONKEY AUTHOR KEYBOARD COMPASS BYPASS TURKEY PASSTHROUGH PASS_THROUGH KEYCLOAK_URL KEYRING":       false,
		"MAX_TOKENS TOKEN_LIMIT maxTokens outputTokens TOKEN_COUNT NUM_TOKENS TOKENIZER TOKENIZERS_X":      false,
		"PUBLIC_KEY AWS_ACCESS_KEY_ID KEY_FILE PRIVATE_KEY_PATH keyPath CREDENTIALS_DIR SECRET_NAME":       false,
		"AUTH_TYPE AUTH_URL AUTH_METHOD ENABLE_AUTH USE_TOKEN PASSWORD_MIN_LENGTH TOKEN_TTL OAUTH_SCOPE":   false,
		"PWD OLDPWD HOME PATH PROJECT_KEY CACHE_KEY PRIMARY_KEY KEY_VAULT_URL COOKIE_DOMAIN SESSION_TTL":   false,
		"AUTHORITY AUTHENTICATED author_name STRIPE_PUBLISHABLE_KEY partition-key":                         false,
	} {
		for name := range strings.FieldsSeq(list) {
			if got := Name(name); got != want {
				t.Errorf("%s: %v in words %q", name, got, wordsOf(name))
			}
		}
	}
	for _, name := range []string{"", "_", "-.-", "42", "ключ", "\xff\xfe"} {
		if Name(name) {
			t.Errorf("%q is the name of a secret", name)
		}
	}
}

func TestValue(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	const key = "-----BEGIN RSA PRIVATE KEY-----\n{b64:200}\n-----END RSA PRIVATE KEY-----"
	for template, want := range map[string]Reason{
		"ghp_{alnum:36}":              "a token of GitHub",
		"  ghp_{alnum:36}\n":          "a token of GitHub",
		"xoxb-{digits:11}-{alnum:24}": "a token of Slack",
		"{jwt}":                       webToken,
		key:                           privateKey,
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----": "",
		"-----BEGIN PUBLIC KEY-----\n{b64:200}":                       "",
		"postgres://u:{alnum:9}@h/d":                                  urlPassword,
		"jdbc:postgresql://h/d?user=u&password={alnum:9}":             urlQuery,
		"postgres://u:${PW}@h/d":                                      "",
		"postgres://u@h/d":                                            "",
		"https://h/p?q=a@b:c@d":                                       "",
		"https://{hex:32}@h/1":                                        urlUser,
		"https://h/x?access_token={alnum:12}&y=1":                     urlQuery,
		"https://h/x?sig={b64:40}":                                    urlQuery,
		"https://h/x?page=2&max_tokens=100000":                        "",
		"https://h/x?token=<token>":                                   "",
		"host=h user=u password={alnum:9}":                            settings,
		"password={alnum:9} host=h":                                   settings,
		"Server=h;Pwd={alnum:9};":                                     settings,
		"the password = unknown, of course":                           "",
		"Bearer {alnum:24}":                                           credentials,
		"Bearer ${TOKEN}":                                             "",
		"Bearer of bad news":                                          "",
		`{"a":1,"api_key":"{alnum:20}"}`:                              byName,
		`{"a":"b"}`:                                                   "",
		"{alnum:40}":                                                  chance,
		"{hex:64}":                                                    chance,
		"{uuid}":                                                      "",
		"sha256:{hex:64}":                                             "",
		"1.22.333-rc.1+20261130.1234567":                              "",
		"2026-11-30T12:34:56.789Z":                                    "",
		"12345678901234567890123":                                     "",
		"/usr/lib/x86_64-linux-gnu/libfoo-1.2.3.so":                   "",
		"my-team-project-environment-name-0042":                       "",
		"SomeVeryLongCamelCaseIdentifierName":                         "",
		"sk-your-openai-api-key-goes-right-here":                      "",
		"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx":                    "",
		"a sentence of several words that goes on and on.":            "",
		"db-primary.internal.eu-west-1.example.com:5432":              "",
		"": "",
	} {
		value := fill(random, template)
		reason, ok := Value(value)
		if reason != want || ok != (want != "") {
			t.Errorf("%s (%s): %q, %v, want %q", template, value, reason, ok, want)
		}
	}
}

func TestPair(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "abc", true},
		{"API_KEY", "correct horse battery", true},
		{"PASSWORD", "1234", true},
		{"PASSWORD", "123", false},
		{"PASSWORD", "true", false},
		{"PASSWORD", " ", false},
		{"PASSWORD", "password", true},
		{"TOKEN", "/run/secrets/token", false},
		{"TOKEN", "~/token", false},
		{"TOKEN", `C:\keys\token.txt`, false},
		{"TOKEN", "token.json", false},
		{"TOKEN", "/9j4AAQSkZJRgABAQEAYABgAAD2Q==", true},
		{"TOKEN", "${TOKEN}", false},
		{"TOKEN", "prefix-${TOKEN}", true},
		{"TOKEN", "Bearer ${env:TOKEN}", false},
		{"TOKEN", "$TOKEN", false},
		{"TOKEN", "%TOKEN%", false},
		{"TOKEN", "vault:mcp.x.TOKEN", false},
		{"TOKEN", "${vault:mcp.x.TOKEN}", false},
		{"TOKEN", "${input:token}", false},
		{"TOKEN", "op://vault/item/field", false},
		{"TOKEN", "<token>", false},
		{"TOKEN", "YOUR_API_TOKEN", false},
		{"TOKEN", "your-token-here", false},
		{"TOKEN", "xxx", false},
		{"TOKEN", "...", false},
		{"TOKEN", "changeme", false},
		{"TOKEN", "https://example.com/token", false},
		{"TOKEN", "https://me:hunter2@example.com", true},
		{"KEYBOARD", "de", false},
		{"NOTES", "correct horse battery", false},
		{"COMMIT", "0123456789abcdef0123456789abcdef01234567", false},
		{"NOTES", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c", true},
		{"URL", "postgres://me:hunter2@example.com/db", true},
	} {
		if reason, got := Pair(c.name, c.value); got != c.want || got != (reason != "") && got {
			t.Errorf("%s=%s: %v, %q", c.name, c.value, got, reason)
		}
	}
}

func TestArgument(t *testing.T) {
	long := "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
	for _, c := range []struct {
		args string // separated by "|"
		want string // the places of the secrets
	}{
		{"-y|@modelcontextprotocol/server-github@2025.4.8|--verbose", ""},
		{"--token=hunter2|--token=${TOKEN}|--token=|--token|hunter2|--token|--next", "0 4"},
		{"--api-key|hunter2|--api-key-file|/run/key|--max-tokens|4096|--key|vault:KEY", "1"},
		{"--header|Authorization: Bearer hunter2|-H|X-Api-Key:hunter2|--header|Authorization:${AUTH}", "1 3"},
		{"--header|Authorization: Bearer ${TOKEN}|--header|Accept: application/json|--header=X-Token: hunter2", "4"},
		{"postgres://me:hunter2@db/x|https://mcp.example.com/sse|https://mcp.example.com/sse?token=hunter2", "0 2"},
		{"-e|API_KEY=hunter2|-e|LANG=C|--env|TOKEN=${TOKEN}|API_KEY", "1"},
		{"-u|me:hunter2|-u|1000:1000|--user|me|-p|8080:80", "1"},
		{"-v|/home/me/data:/data|--name|server|C:\\folder|localhost:8080", ""},
		{long + "|--image|ghcr.io/acme/server@sha256:" + long + "|--commit=" + long, "0"},
		{"--password|1234|--password|-1234|--no-auth|value|--auth|basic", "1"},
	} {
		args := strings.Split(c.args, "|")
		var got []string
		for i := range args {
			if _, ok := Argument(args, i); ok {
				got = append(got, string(rune('0'+i)))
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q, want %q", args, got, c.want)
		}
	}
	for _, i := range []int{-1, 1} {
		if _, ok := Argument([]string{"--token=hunter2"}, i); ok {
			t.Errorf("there is no argument %d", i)
		}
	}
}

func TestHeader(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"Authorization", "Bearer hunter2", true},
		{"authorization", "Basic dXNlcjpwYXNz", true},
		{"Authorization", "Bearer ${TOKEN}", false},
		{"Authorization", "Bearer <token>", false},
		{"Authorization", "Bearer", false},
		{"X-Api-Key", "hunter2", true},
		{"Cookie", "session=hunter2", true},
		{"Accept", "application/json, text/event-stream", false},
		{"X-Request-Id", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c", false},
		{"User-Agent", "garra/1.0 (linux; amd64)", false},
		{"X-Custom", "Bearer hunter2hunter2", true},
	} {
		if _, got := Header(c.name, c.value); got != c.want {
			t.Errorf("%s: %s: %v", c.name, c.value, got)
		}
	}
}

// TestAnyText asks about what makes no sense, and about megabytes. Blanks around
// a text don't matter.
func TestAnyText(t *testing.T) {
	ask := func(name, text string) {
		reason, _ := Value(text)
		if again, _ := Value("\n " + text + " "); again != reason && len(text) < maxText/2 {
			t.Errorf("%q: %q with blanks around, %q without", text, again, reason)
		}
		for _, f := range []func(string, string) (Reason, bool){Pair, Header} {
			if reason, ok := f(name, text); ok && reason == "" {
				t.Errorf("%q=%q is a secret without a reason", name, text)
			}
		}
		if reason, ok := Argument([]string{"--" + name, text}, 1); ok && reason == "" {
			t.Errorf("%q %q is a secret without a reason", name, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) { ask(rapid.String().Draw(t, "name"), rapid.String().Draw(t, "text")) })
	for _, piece := range []string{
		"a", "${", "{\"a\":", "<", "https://", "a:b@", "your-", "x", "-----BEGIN ", "password=", "?a=b&", "/", ".",
		"eyJ.", "0", "A1",
	} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if reason, ok := Pair(text, text); ok && reason == "" {
			t.Errorf("%q… is a secret without a reason", piece)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		"", "https://a:b@c?d=e", "password=a b=c", "{\"token\":\"x\"}", "Bearer x", "-----BEGIN PRIVATE KEY-----",
	} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		reason, ok := Pair(name, text)
		if ok && (reason == "" || len(text) > 8 && strings.Contains(string(reason), text)) {
			t.Errorf("%q: the reason %q", text, reason)
		}
	})
}
