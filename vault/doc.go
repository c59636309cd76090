// SPDX-License-Identifier: Apache-2.0

// Package vault keeps secrets.
package vault
