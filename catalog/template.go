// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"regexp"

	"github.com/yosida95/uritemplate/v3"
)

// Bounds of the templates of one server, since each URI that nobody lists is
// held against all of them.
const (
	maxTemplates     = 100
	maxTemplateBytes = 1024
	maxVariables     = 10
)

// compileTemplate makes a regular expression, which takes time in proportion to
// the text, of a URI template (RFC 6570), or says why it can't be used.
func compileTemplate(text string) (matches *regexp.Regexp, problem string) {
	if len(text) > maxTemplateBytes {
		return nil, fmt.Sprintf("the template is over %d bytes", maxTemplateBytes)
	}
	t, err := uritemplate.New(text)
	if err != nil {
		return nil, fmt.Sprintf("it is no URI template: %v", err)
	}
	if len(t.Varnames()) > maxVariables {
		return nil, fmt.Sprintf("the template has over %d variables", maxVariables)
	}
	return t.Regexp(), ""
}
