// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e holds the end-to-end tests.
package e2e
