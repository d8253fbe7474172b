// Package ratelimit limits how often something may happen.
package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTooMany is returned for more tokens than a bucket can hold.
var ErrTooMany = errors.New("ratelimit: more tokens than the bucket holds")

// Bucket is a token bucket that fills at a constant rate.
type Bucket struct {
	mu       sync.Mutex
	tokens   float64
	capacity float64
	rate     float64 // tokens a second
	last     time.Time
	now      func() time.Time
}

// NewBucket returns a full bucket.
func NewBucket(rate, capacity float64) *Bucket {
	return &Bucket{tokens: capacity, capacity: capacity, rate: rate, last: time.Now(), now: time.Now}
}

// Allow takes one token if there is one.
func (b *Bucket) Allow() bool {
	return b.AllowN(1)
}

// AllowN takes n tokens if there are as many.
func (b *Bucket) AllowN(n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}

func (b *Bucket) fill() {
	now := b.now()
	elapsed := now.Sub(b.last).Seconds()
	b.last = now
	b.tokens += elapsed * b.rate
	if b.tokens > b.capacity {
		b.tokens = b.capacity
	}
}

// Wait blocks until n tokens are there, or the context is done.
func (b *Bucket) Wait(ctx context.Context, n float64) error {
	if n > b.capacity {
		return ErrTooMany
	}
	for !b.AllowN(n) {
		timer := time.NewTimer(b.delay(n))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	return nil
}

func (b *Bucket) delay(n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := n - b.tokens
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing / b.rate * float64(time.Second))
}

// Every calls f at each tick until it returns false or the context is done.
func Every(ctx context.Context, interval time.Duration, f func(int) bool) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	turn := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !f(turn) {
				return
			}
			turn++
		}
	}
}
