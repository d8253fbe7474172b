package eventbus

import "sync"

// Handler does something about an event.
type Handler func(Event) error

// Work has several goroutines handle events, and returns the errors when there are no more events.
func Work(events <-chan Event, workers int, handle Handler) []error {
	var (
		group    sync.WaitGroup
		mu       sync.Mutex
		failures []error
	)
	for n := 0; n < workers; n++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for event := range events {
				if err := handle(event); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
			}
		}()
	}
	group.Wait()
	return failures
}

// Merge sends the events of several channels to one.
func Merge(sources ...<-chan Event) <-chan Event {
	merged := make(chan Event)
	var group sync.WaitGroup
	group.Add(len(sources))
	for _, source := range sources {
		go func(source <-chan Event) {
			defer group.Done()
			for event := range source {
				merged <- event
			}
		}(source)
	}
	go func() {
		group.Wait()
		close(merged)
	}()
	return merged
}

// Batch collects events into slices of at most a size.
func Batch(events <-chan Event, size int) <-chan []Event {
	batches := make(chan []Event)
	go collect(events, batches, size)
	return batches
}

func collect(events <-chan Event, batches chan<- []Event, size int) {
	defer close(batches)
	var batch []Event
	for {
		event, open := <-events
		if open {
			batch = append(batch, event)
		}
		if len(batch) == size || (!open && len(batch) > 0) {
			batches <- append([]Event{}, batch...)
			batch = batch[:0]
		}
		if !open {
			return
		}
	}
}
