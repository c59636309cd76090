// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// A variant is one of the things that are compared.
type variant struct {
	name    string
	measure func() (float64, error) // once, in the unit of the comparison
}

// A comparison measures its variants in turn, round by round, so that what the
// machine does meanwhile meets all of them.
type comparison struct {
	name     string
	unit     string
	rounds   int
	variants []variant
	targets  []target
	drop     func(variant string, err error) // goes on without one that fails, and says so; nil for none
}

// A target is a bound on the ratio of one variant to another.
type target struct {
	of, to string
	bound  bound
}

// A bound is what a number should be.
type bound struct {
	limit float64 // 0 for none: the number is shown only
	least bool    // the limit is the least, not the most
}

func atMost(limit float64) bound  { return bound{limit: limit} }
func atLeast(limit float64) bound { return bound{limit: limit, least: true} }
func shown() bound                { return bound{} }

// judge returns what the bound says of a number, in words.
func (b bound) judge(value float64) verdict {
	if b.limit == 0 {
		return verdict{}
	}
	v := verdict{Target: fmt.Sprintf("≤ %.4g", b.limit), Reached: new(bool)}
	*v.Reached = value <= b.limit
	if b.least {
		v.Target = fmt.Sprintf("≥ %.4g", b.limit)
		*v.Reached = value >= b.limit
	}
	return v
}

// run measures all rounds. Every other round goes backwards.
func (c comparison) run() (result, error) {
	values, failed := make(map[string][]float64), make(map[string]bool)
	for round := range c.rounds {
		for i := range c.variants {
			if round%2 == 1 {
				i = len(c.variants) - 1 - i
			}
			v := c.variants[i]
			if failed[v.name] {
				continue
			}
			value, err := v.measure()
			if err != nil && c.drop != nil {
				failed[v.name] = true
				c.drop(v.name, err)
				continue
			}
			if err != nil {
				return result{}, fmt.Errorf("%s, %s, round %d: %w", c.name, v.name, round+1, err)
			}
			values[v.name] = append(values[v.name], value)
		}
	}
	r := result{Name: c.name, Unit: c.unit, Rounds: c.rounds}
	for name := range failed {
		delete(values, name)
	}
	for _, v := range c.variants {
		if failed[v.name] {
			continue
		}
		r.Series = append(r.Series, series{v.name, spreadOf(values[v.name])})
	}
	for _, t := range c.targets {
		if values[t.of] != nil && values[t.to] != nil {
			r.Ratios = append(r.Ratios, t.ratio(values[t.of], values[t.to]))
		}
	}
	return r, nil
}

// ratio returns the ratio of the medians, between the quartiles of the ratios
// of the single rounds.
func (t target) ratio(of, to []float64) ratio {
	each := make([]float64, len(of))
	for i := range each {
		each[i] = of[i] / to[i]
	}
	s := spreadOf(each)
	s.Median = quantile(of, 0.5) / quantile(to, 0.5)
	return ratio{Of: t.of, To: t.to, Ratio: s, verdict: t.bound.judge(s.Median)}
}
