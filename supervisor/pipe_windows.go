// SPDX-License-Identifier: Apache-2.0

package supervisor

import "os"

// tryWrite writes nothing: Windows pipes can't be asked whether they would
// block, so every frame is written by a goroutine that may.
func tryWrite(*os.File, []byte) (int, error) { return 0, nil }
