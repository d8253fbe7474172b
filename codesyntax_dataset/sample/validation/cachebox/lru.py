"""Caches in memory."""

import functools
import threading
import time
from collections import OrderedDict


class LRUCache:
    """Keeps the entries that were used last."""

    def __init__(self, maxsize=128, ttl=None, clock=time.time):
        """Hold at most `maxsize` entries, each for `ttl` seconds at most."""
        self.maxsize = maxsize
        self.ttl = ttl
        self.clock = clock
        self.hits = self.misses = 0
        self._entries = OrderedDict()

    def get(self, key, default=None):
        """Return the value for a key and mark it as used.

        An entry that is too old is removed and counts as a miss.
        """
        try:
            value, expires = self._entries[key]
        except KeyError:
            self.misses += 1
            return default
        if expires is not None and expires <= self.clock():
            del self._entries[key]
            self.misses += 1
            return default
        self._entries.move_to_end(key)
        self.hits += 1
        return value

    def put(self, key, value, ttl=None):
        """Store a value, dropping the entry unused for longest if there is no room left."""
        ttl = self.ttl if ttl is None else ttl
        expires = None if ttl is None else self.clock() + ttl
        self._entries[key] = (value, expires)
        self._entries.move_to_end(key)
        while len(self._entries) > self.maxsize:
            self._entries.popitem(last=False)

    def purge(self):
        """Remove all entries that are too old and return how many there were."""
        now = self.clock()
        dead = [key for key, (_, expires) in self._entries.items() if expires is not None and expires <= now]
        for key in dead:
            del self._entries[key]
        return len(dead)

    def stats(self):
        """Summarise how well the cache works."""
        asked = self.hits + self.misses
        return {
            "size": len(self._entries),
            "hits": self.hits,
            "misses": self.misses,
            "ratio": self.hits / asked if asked else 0.0,
        }


def memoize(cache, key=None):
    """Decorate a function so that its results are kept in a cache.

    Concurrent calls with the same arguments may compute the value twice, but never see
    half of it.

    :param cache: an LRUCache
    :param key: computes the cache's key from the call's arguments
    """
    lock = threading.RLock()
    missing = object()

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            place = key(*args, **kwargs) if key else (args, tuple(sorted(kwargs.items())))
            with lock:
                value = cache.get(place, missing)
            if value is missing:
                value = function(*args, **kwargs)
                with lock:
                    cache.put(place, value)
            return value

        return wrapper

    return decorate
