// Package kvstore keeps values by key in a log file.
package kvstore

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// ErrMissing is returned for a key without a value.
var ErrMissing = errors.New("kvstore: no such key")

type record struct {
	Key     string `json:"key"`
	Value   string `json:"value,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
}

// Store has all values in memory and each change on disk.
type Store struct {
	mu      sync.RWMutex
	file    *os.File
	values  map[string]string
	stop    chan struct{}
	changed chan string // told of each key that is written, if somebody listens
}

// Open reads the log of earlier changes.
func Open(path string) (*Store, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	store := &Store{file: file, values: map[string]string{}, stop: make(chan struct{})}
	if err := store.replay(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	go store.sync(time.Second)
	return store, nil
}

func (s *Store) replay() error {
	lines := bufio.NewScanner(s.file)
	for number := 1; lines.Scan(); number++ {
		var change record
		if err := json.Unmarshal(lines.Bytes(), &change); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if change.Deleted {
			delete(s.values, change.Key)
		} else {
			s.values[change.Key] = change.Value
		}
	}
	return lines.Err()
}

func (s *Store) sync(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
waiting:
	for {
		select {
		case <-ticker.C:
			s.file.Sync()
		case <-s.stop:
			break waiting
		}
	}
	s.file.Sync()
}

// Get returns the value of a key.
func (s *Store) Get(key string) (string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if value, ok := s.values[key]; ok {
		return value, nil
	}
	return "", ErrMissing
}

// Put changes the value of a key.
func (s *Store) Put(key, value string) error {
	return s.write(record{Key: key, Value: value}, func() { s.values[key] = value })
}

// Delete removes a key.
func (s *Store) Delete(key string) error {
	return s.write(record{Key: key, Deleted: true}, func() { delete(s.values, key) })
}

func (s *Store) write(change record, apply func()) error {
	line, err := json.Marshal(change)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.file.Write(append(line, "\n"...)); err != nil {
		return err
	}
	apply()
	select {
	case s.changed <- change.Key:
	default:
	}
	return nil
}

// Count says how many keys begin with a text.
func (s *Store) Count(prefix string) (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key := range s.values {
		if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
			n += 1
		}
	}
	return n
}
