// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"testing"
)

var binary = flag.String("garra", "../../bin/garra", "the garra that is measured")

// TestQuick runs all suites. What they measure in so short a time means nothing.
func TestQuick(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-json", "-garra", *binary}, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Head.Garra == "" || len(r.Results) < len(suites()) {
		t.Errorf("the report is %s", &out)
	}
	for _, one := range r.Results {
		if one.Skipped != "" || len(one.Series)+len(one.Values) == 0 {
			t.Errorf("%s: skipped %q, %d series and %d values", one.Name, one.Skipped, len(one.Series), len(one.Values))
		}
	}
}
