package ratelimit

import (
	"errors"
	"fmt"
	"math/rand"
	"time"
)

// Kind says what to do about an error.
type Kind int

const (
	Fatal Kind = iota
	Transient
	Throttled
)

func (k Kind) String() string {
	switch k {
	case Transient:
		return "transient"
	case Throttled:
		return "throttled"
	}
	return "fatal"
}

type statusError struct {
	code  int
	after time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d", e.code)
}

// Classify tells errors that may pass from those that will not.
func Classify(err error) Kind {
	var status *statusError
	if !errors.As(err, &status) {
		return Fatal
	}
	switch {
	case status.code == 429:
		return Throttled
	case status.code >= 500, status.code == 408:
		return Transient
	default:
		return Fatal
	}
}

// Backoff lists the delays before further attempts: each twice as long as the one before, with some jitter.
func Backoff(first time.Duration, attempts int, jitter float64) []time.Duration {
	delays := make([]time.Duration, 0, attempts)
	for i, delay := 0, first; i < attempts; i, delay = i+1, delay*2 {
		spread := 1 + jitter*(2*rand.Float64()-1)
		delays = append(delays, time.Duration(float64(delay)*spread))
	}
	return delays
}

// Retry calls f until it succeeds, fails for good, or there are no delays left.
func Retry(delays []time.Duration, f func() error) (err error) {
retrying:
	for attempt := 0; attempt <= len(delays); attempt++ {
		if err = f(); err == nil {
			return nil
		}
		switch kind := Classify(err); kind {
		case Fatal:
			break retrying
		case Throttled:
			time.Sleep(delays[len(delays)-1])
		default:
			if attempt < len(delays) {
				time.Sleep(delays[attempt])
			}
		}
	}
	return fmt.Errorf("giving up: %w", err)
}
