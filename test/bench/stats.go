// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A spread is what rounds gave: the median, and the quartiles around it.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf returns the spread of values, of which there is at least one.
func spreadOf(values []float64) spread {
	return spread{quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)}
}

// quantile returns the value below which that part of all values is; between
// two of them it interpolates.
func quantile(values []float64, part float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	place := part * float64(len(sorted)-1)
	below := int(place)
	low := sorted[below]
	if below+1 == len(sorted) {
		return low
	}
	return low + (place-float64(below))*(sorted[below+1]-low)
}
