// SPDX-License-Identifier: Apache-2.0

package sensitive

import "strings"

// A charset is the bytes that the variable part of a token may have.
type charset int

const (
	word   charset = iota // letters, digits, "_" and "-"
	alnum                 // letters and digits
	digits                // digits
	hexa                  // hexadecimal digits of either case
	dotted                // word, and "." "=" "+" "/" "~" "%" ":"
)

func (c charset) has(b byte) bool {
	digit := b >= '0' && b <= '9'
	letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
	switch c {
	case digits:
		return digit
	case hexa:
		return digit || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
	case alnum:
		return digit || letter
	case word:
		return digit || letter || b == '_' || b == '-'
	}
	return digit || letter || strings.IndexByte("_-.=+/~%:", b) >= 0
}

// joins tells whether words with marks between them have only bytes of c.
func (c charset) joins() bool { return c == word || c == dotted }

// A shape is how tokens of an issuer look: a beginning, and so many bytes more.
type shape struct {
	issuer      string
	prefix      string
	set         charset
	least, most int
}

// fits tells whether text has the shape.
func (s shape) fits(text string) bool {
	rest, ok := strings.CutPrefix(text, s.prefix)
	if !ok || len(rest) < s.least || len(rest) > s.most {
		return false
	}
	for i := range len(rest) {
		if !s.set.has(rest[i]) {
			return false
		}
	}
	return true
}

// shapes returns the shapes of tokens that their issuers have made to be
// recognised. Lengths are a little wider than what is issued today.
func shapes() []shape {
	return []shape{
		{"1Password", "ops_", dotted, 40, 2000},
		{"1Password", "A3-", word, 28, 40},
		{"Adobe", "p8e-", alnum, 30, 40},
		{"age", "AGE-SECRET-KEY-1", alnum, 50, 70},
		{"Alibaba", "LTAI", alnum, 12, 26},
		{"Amazon", "AKIA", alnum, 16, 16},
		{"Amazon", "ASIA", alnum, 16, 16},
		{"Amazon", "ABIA", alnum, 16, 16},
		{"Amazon", "ACCA", alnum, 16, 16},
		{"Amazon", "A3T", alnum, 17, 17},
		{"Amazon", "ABSK", dotted, 100, 300},
		{"Amazon", "bedrock-api-key-", dotted, 20, 2000},
		{"Anthropic", "sk-ant-", word, 24, 200},
		{"Apify", "apify_api_", alnum, 30, 50},
		{"Artifactory", "AKCp", alnum, 60, 80},
		{"Artifactory", "cmVmd", alnum, 55, 65},
		{"Atlassian", "ATATT", dotted, 60, 300},
		{"Atlassian", "ATCTT", dotted, 60, 300},
		{"Bitbucket", "ATBB", dotted, 24, 60},
		{"Authress", "sc_", dotted, 50, 200},
		{"Authress", "ext_", dotted, 50, 200},
		{"Authress", "scauth_", dotted, 50, 200},
		{"Authress", "authress_", dotted, 50, 200},
		{"Airtable", "pat", dotted, 79, 79},
		{"Brave", "BSA", word, 24, 32},
		{"Buildkite", "bkua_", alnum, 36, 44},
		{"ClickHouse", "4b1d", alnum, 38, 38},
		{"Clojars", "CLOJARS_", alnum, 60, 60},
		{"Cloudflare", "v1.0-", word, 120, 200},
		{"Databricks", "dapi", word, 32, 36},
		{"DigitalOcean", "dop_v1_", hexa, 64, 64},
		{"DigitalOcean", "doo_v1_", hexa, 64, 64},
		{"DigitalOcean", "dor_v1_", hexa, 64, 64},
		{"Docker", "dckr_pat_", word, 24, 40},
		{"Docker", "dckr_oat_", word, 24, 40},
		{"Doppler", "dp.", dotted, 40, 60},
		{"Duffel", "duffel_", dotted, 44, 60},
		{"Dynatrace", "dt0", dotted, 80, 110},
		{"EasyPost", "EZAK", alnum, 54, 54},
		{"EasyPost", "EZTK", alnum, 54, 54},
		{"ElevenLabs", "sk_", hexa, 40, 64},
		{"Flutterwave", "FLWSECK", word, 12, 60},
		{"Facebook", "EAA", alnum, 80, 400},
		{"Figma", "figd_", word, 36, 60},
		{"Firecrawl", "fc-", hexa, 32, 32},
		{"Fly.io", "fo1_", word, 40, 50},
		{"Fly.io", "fm1", dotted, 80, 4000},
		{"Fly.io", "fm2_", dotted, 80, 4000},
		{"Frame.io", "fio-u-", dotted, 60, 70},
		{"GitHub", "ghp_", alnum, 36, 255},
		{"GitHub", "gho_", alnum, 36, 255},
		{"GitHub", "ghu_", alnum, 36, 255},
		{"GitHub", "ghs_", alnum, 36, 255},
		{"GitHub", "ghr_", alnum, 36, 255},
		{"GitHub", "github_pat_", word, 60, 255},
		{"GitLab", "glpat-", dotted, 20, 330},
		{"GitLab", "glrt-", dotted, 20, 330},
		{"GitLab", "GR1348941", word, 20, 24},
		{"GitLab", "glcbt-", word, 22, 80},
		{"GitLab", "gldt-", word, 20, 80},
		{"GitLab", "glffct-", word, 20, 80},
		{"GitLab", "glft-", word, 20, 80},
		{"GitLab", "glimt-", word, 20, 80},
		{"GitLab", "glagent-", word, 40, 80},
		{"GitLab", "gloas-", word, 40, 80},
		{"GitLab", "glptt-", hexa, 40, 40},
		{"GitLab", "glsoat-", word, 20, 80},
		{"Google", "AIza", word, 35, 35},
		{"Google", "ya29.", dotted, 20, 2000},
		{"Google", "GOCSPX-", word, 24, 32},
		{"Google", "1//", word, 40, 200},
		{"Grafana", "glc_", dotted, 32, 400},
		{"Grafana", "glsa_", word, 36, 50},
		{"Grafana", "eyJrIjoi", dotted, 60, 410},
		{"Groq", "gsk_", alnum, 40, 60},
		{"Harness", "pat.", dotted, 60, 75},
		{"Harness", "sat.", dotted, 60, 75},
		{"Heroku", "HRKU-", word, 36, 64},
		{"HubSpot", "pat-na1-", word, 32, 40},
		{"HubSpot", "pat-eu1-", word, 32, 40},
		{"Hugging Face", "hf_", alnum, 30, 40},
		{"Hugging Face", "api_org_", alnum, 30, 40},
		{"Infracost", "ico-", alnum, 32, 32},
		{"Intra42", "s-s4t2", word, 60, 80},
		{"LangSmith", "lsv2_", word, 40, 60},
		{"Langfuse", "sk-lf-", word, 32, 40},
		{"Linear", "lin_api_", alnum, 32, 48},
		{"Linear", "lin_oauth_", alnum, 32, 80},
		{"Mailgun", "key-", hexa, 32, 32},
		{"Mapbox", "sk.", dotted, 60, 120},
		{"Mapbox", "pk.ey", dotted, 60, 120},
		{"Mapbox", "pk.", dotted, 80, 90},
		{"New Relic", "NRAK-", alnum, 27, 27},
		{"New Relic", "NRII-", word, 32, 32},
		{"New Relic", "NRJS-", hexa, 19, 19},
		{"Neon", "napi_", alnum, 50, 80},
		{"Notion", "ntn_", alnum, 40, 60},
		{"Notion", "secret_", alnum, 40, 50},
		{"npm", "npm_", alnum, 36, 36},
		{"Octopus Deploy", "API-", alnum, 25, 36},
		{"OpenAI", "sk-", word, 20, 250},
		{"OpenShift", "sha256~", word, 43, 43},
		{"Perplexity", "pplx-", alnum, 32, 64},
		{"Pinecone", "pcsk_", word, 40, 90},
		{"Plaid", "access-sandbox-", word, 36, 36},
		{"Plaid", "access-development-", word, 36, 36},
		{"Plaid", "access-production-", word, 36, 36},
		{"PlanetScale", "pscale_", dotted, 32, 80},
		{"PostHog", "phx_", alnum, 32, 60},
		{"Postman", "PMAK-", word, 50, 70},
		{"Prefect", "pnu_", alnum, 36, 36},
		{"Pulumi", "pul-", hexa, 40, 40},
		{"PyPI", "pypi-", word, 50, 1000},
		{"ReadMe", "rdme_", alnum, 60, 80},
		{"Render", "rnd_", alnum, 24, 40},
		{"Replicate", "r8_", alnum, 32, 40},
		{"Resend", "re_", word, 24, 40},
		{"RubyGems", "rubygems_", hexa, 48, 48},
		{"Scalingo", "tk-us-", word, 48, 48},
		{"SendGrid", "SG.", dotted, 60, 70},
		{"Brevo", "xkeysib-", word, 70, 90},
		{"Sentry", "sntrys_", dotted, 60, 500},
		{"Sentry", "sntryu_", hexa, 60, 68},
		{"SettleMint", "sm_", word, 20, 20},
		{"Shippo", "shippo_", word, 45, 45},
		{"Shopify", "shpat_", hexa, 32, 32},
		{"Shopify", "shpca_", hexa, 32, 32},
		{"Shopify", "shppa_", hexa, 32, 32},
		{"Shopify", "shpss_", hexa, 32, 32},
		{"Slack", "xoxa-", word, 8, 255},
		{"Slack", "xoxb-", word, 16, 255},
		{"Slack", "xoxc-", word, 16, 255},
		{"Slack", "xoxd-", dotted, 16, 400},
		{"Slack", "xoxe", dotted, 24, 255},
		{"Slack", "xoxo-", word, 3, 255},
		{"Slack", "xoxp-", word, 16, 255},
		{"Slack", "xoxr-", word, 8, 255},
		{"Slack", "xoxs-", word, 3, 255},
		{"Slack", "xapp-", word, 8, 255},
		{"Sonar", "squ_", hexa, 40, 40},
		{"Sonar", "sqp_", hexa, 40, 40},
		{"Sonar", "sqa_", hexa, 40, 40},
		{"Sourcegraph", "sgp_", word, 40, 64},
		{"Square", "sq0atp-", word, 22, 60},
		{"Square", "sq0csp-", word, 22, 60},
		{"Square", "EAAA", word, 22, 60},
		{"Stripe", "sk_live_", alnum, 10, 255},
		{"Stripe", "sk_test_", alnum, 10, 255},
		{"Stripe", "sk_prod_", alnum, 10, 255},
		{"Stripe", "rk_live_", alnum, 10, 255},
		{"Stripe", "rk_test_", alnum, 10, 255},
		{"Stripe", "rk_prod_", alnum, 10, 255},
		{"Stripe", "whsec_", dotted, 24, 255},
		{"Supabase", "sbp_", hexa, 40, 40},
		{"Supabase", "sb_secret_", word, 24, 60},
		{"Tailscale", "tskey-", word, 24, 100},
		{"Tavily", "tvly-", word, 24, 60},
		{"Twilio", "SK", hexa, 32, 32},
		{"Typeform", "tfp_", dotted, 40, 70},
		{"Vault", "hvs.", word, 24, 200},
		{"Vault", "hvb.", word, 100, 400},
		{"Vault", "s.", alnum, 24, 24},
		{"Vercel", "vcp_", alnum, 24, 64},
		{"xAI", "xai-", alnum, 60, 100},
		{"Yandex", "t1.", dotted, 88, 300},
		{"Yandex", "AQVN", word, 35, 38},
		{"Yandex", "y0_", word, 40, 80},
	}
}
