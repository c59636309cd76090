// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/garraia/garra/internal/advice"
)

type advised struct{}

func (advised) Error() string  { return "it is broken" }
func (advised) Advice() string { return "mend it" }

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		ok   bool
	}{
		{advised{}, "mend it", true},
		{fmt.Errorf("starting: %w", errors.Join(errors.New("another"), advised{})), "mend it", true},
		{errors.New("another"), "", false},
		{nil, "", false},
	} {
		if fix, ok := advice.Of(c.err); fix != c.want || ok != c.ok {
			t.Errorf("%v: got %q, %t", c.err, fix, ok)
		}
	}
}
