<?php

namespace Parcelpost;

class Tracker implements \IteratorAggregate
{
    private array $events = [];
    private $listeners = [];

    public function __construct(private Store $store, private int $patience = 3)
    {
    }

    public function on(string $state, \Closure $listener): static
    {
        $this->listeners[$state][] = $listener;

        return $this;
    }

    /** Notes that a parcel was seen, and tells everyone who waits for it. */
    public function seen(string $number, string $state, string $where = '', ?\DateTimeImmutable $at = null): void
    {
        $event = new Event($number, $state, at: $at ?? new \DateTimeImmutable('now'), where: $where);
        $this->events[$number][] = $event;
        foreach ($this->listeners[$state] ?? [] as &$listener) {
            $listener($event);
        }
        unset($listener);
        $attempt = 0;
        do {
            try {
                $this->store->append($event->toArray(), flush: $state === 'delivered');
                break;
            } catch (LockedError | BusyError $error) {
                usleep(1000 * 2 ** $attempt);
            } finally {
                $attempt++;
            }
        } while ($attempt < $this->patience);
    }

    public function state(string $number): string
    {
        $events = $this->events[$number] ?? [];
        $last = end($events);

        return $last instanceof Event ? $last->state : 'unknown';
    }

    /** The parcels that nobody has seen for some days. */
    public function lost(int $days = 14): array
    {
        $limit = new \DateTimeImmutable("-$days days");
        $lost = [];
        foreach ($this->events as $number => $events) {
            $last = $events[count($events) - 1];
            if ($last->state !== 'delivered' && $last->at < $limit) {
                $lost[$number] = $last;
            }
        }
        uasort($lost, function (Event $a, Event $b) use ($limit): int {
            return $a->at <=> $b->at;
        });

        return $lost;
    }

    public function getIterator(): \Generator
    {
        foreach ($this->events as $number => $events) {
            while ($event = array_shift($events)) {
                yield $number => $event;
            }
        }
    }

    public function describe(string $number): string
    {
        $text = match ($this->state($number)) {
            'accepted', 'sorted' => 'is on its way',
            'delivered' => 'has arrived',
            default => 'has not been seen',
        };
        $count = count($this->events[$number] ?? []);

        return <<<TEXT
            Parcel $number $text.
            It was scanned $count times.
            TEXT;
    }
}
