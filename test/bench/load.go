// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A request is what a caller asks again and again.
type request struct{ method, params string }

// echoCall is a small tools/call of a tool of that name.
func echoCall(tool string) request {
	return request{"tools/call", `{"name":` + strconv.Quote(tool) + `,"arguments":{"text":"sixteen letters."}}`}
}

// bigCall is a tools/call whose result has so many bytes.
func bigCall(tool string, bytes int) request {
	return request{"tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"bytes":%d}}`, tool, bytes)}
}

// sleepCall is a tools/call that keeps its server from doing anything else.
func sleepCall(tool string, d time.Duration) request {
	return request{"tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"ms":%d}}`, tool, d.Milliseconds())}
}

func (r request) ask(c caller) ([]byte, error) { return c.call(r.method, r.params) }

// latency is the median of n calls one after the other, in µs.
func latency(c caller, r request, n int) func() (float64, error) {
	return func() (float64, error) {
		times, err := timesOf(c, r, n)
		return quantile(times, 0.5), err
	}
}

// timesOf calls n times and returns how long each took, in µs.
func timesOf(c caller, r request, n int) ([]float64, error) {
	times := make([]float64, n)
	for i := range times {
		began := time.Now()
		if _, err := r.ask(c); err != nil {
			return times, err
		}
		times[i] = float64(time.Since(began).Nanoseconds()) / 1000
	}
	return times, nil
}

// once is the time of one call, in ms.
func once(c caller, r request) func() (float64, error) {
	return func() (float64, error) {
		times, err := timesOf(c, r, 1)
		return times[0] / 1000, err
	}
}

// throughput is how many calls a second all callers make together in a time;
// each has its own request.
func throughput(callers []caller, requests []request, d time.Duration) func() (float64, error) {
	return func() (float64, error) {
		counts, errs := make([]int, len(callers)), make([]error, len(callers))
		began := time.Now()
		var all sync.WaitGroup
		for i, c := range callers {
			all.Go(func() { // ends with the time; Wait below
				for time.Since(began) < d && errs[i] == nil {
					_, errs[i] = requests[i%len(requests)].ask(c)
					counts[i]++
				}
			})
		}
		all.Wait()
		total := 0
		for _, n := range counts {
			total += n
		}
		return float64(total) / time.Since(began).Seconds(), firstOf(errs)
	}
}

// slowest is the 99th percentile, in µs, of calls that each caller makes at a
// pace that leaves the machine mostly idle.
func slowest(callers []caller, requests []request, d time.Duration) func() (float64, error) {
	const pace = 2 * time.Millisecond
	return func() (float64, error) {
		times, errs := make([][]float64, len(callers)), make([]error, len(callers))
		began := time.Now()
		var all sync.WaitGroup
		for i, c := range callers {
			all.Go(func() { // ends with the time; Wait below
				for time.Since(began) < d && errs[i] == nil {
					var one []float64
					one, errs[i] = timesOf(c, requests[i%len(requests)], 1)
					times[i] = append(times[i], one...)
					time.Sleep(pace)
				}
			})
		}
		all.Wait()
		var together []float64
		for _, some := range times {
			together = append(together, some...)
		}
		return quantile(together, 0.99), firstOf(errs)
	}
}

// firstOf returns one of the errors, when there are any: those of many callers
// are mostly the same.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
