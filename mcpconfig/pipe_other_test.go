// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package mcpconfig

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
