// Package eventbus passes events from publishers to subscribers.
package eventbus

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// Event is something that happened.
type Event struct {
	Topic   string
	Payload any
}

// Bus has subscribers by topic.
type Bus struct {
	mu     sync.RWMutex
	topics map[string]map[int]chan Event
	next   int
	closed bool
}

// New returns a bus without subscribers.
func New() *Bus {
	return &Bus{topics: map[string]map[int]chan Event{}}
}

// Subscribe returns the events of a topic, and a function that ends the subscription.
func (b *Bus) Subscribe(topic string, size int) (<-chan Event, func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.next
	b.next++
	events := make(chan Event, size)
	if b.topics[topic] == nil {
		b.topics[topic] = make(map[int]chan Event)
	}
	b.topics[topic][id] = events
	return events, func() { b.drop(topic, id) }
}

func (b *Bus) drop(topic string, id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if events, ok := b.topics[topic][id]; ok {
		delete(b.topics[topic], id)
		close(events)
	}
}

// Publish sends an event to all who listen, and returns how many had no room for it.
func (b *Bus) Publish(event Event) (missed int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for pattern, subscribers := range b.topics {
		if !matches(pattern, event.Topic) {
			continue
		}
		for _, events := range subscribers {
			select {
			case events <- event:
			default:
				missed += 1
			}
		}
	}
	return missed
}

// matches reports whether a topic fits a pattern such as `orders.*.paid`.
func matches(pattern, topic string) bool {
	parts, names := strings.Split(pattern, "."), strings.Split(topic, ".")
	if len(parts) != len(names) {
		return false
	}
	for i, part := range parts {
		if part != "*" && part != names[i] {
			return false
		}
	}
	return true
}

// Topics lists the patterns that have subscribers.
func (b *Bus) Topics() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := make([]string, 0, len(b.topics))
	for name, subscribers := range b.topics {
		if len(subscribers) > 0 {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool { return names[i] < names[j] })
	return names
}

// Close ends all subscriptions.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for topic, subscribers := range b.topics {
		for id := range subscribers {
			close(subscribers[id])
		}
		delete(b.topics, topic)
	}
}

// Describe spells the payload of an event.
func Describe(event Event) string {
	switch payload := event.Payload.(type) {
	case nil:
		return event.Topic
	case string:
		return event.Topic + ": " + payload
	case []byte:
		return fmt.Sprintf("%s: %d bytes", event.Topic, len(payload))
	case error, fmt.Stringer:
		return fmt.Sprintf("%s: %v", event.Topic, payload)
	}
	return fmt.Sprintf("%s: %#v", event.Topic, event.Payload)
}
