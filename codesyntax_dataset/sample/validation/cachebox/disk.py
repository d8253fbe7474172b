"""A cache in a folder, one file per entry."""

import contextlib
import hashlib
import json
import os
import tempfile
import time


class CacheMiss(KeyError):
    """The cache has no such entry."""


def entry_path(folder, key):
    """Derive a file name from any string; entries are spread over 256 subfolders."""
    digest = hashlib.sha256(key.encode("utf-8")).hexdigest()
    return os.path.join(folder, digest[:2], digest[2:40] + ".json")


def write_entry(folder, key, value, ttl=None):
    """Store a value that JSON can express.

    Readers see the old entry or the new one, never a part of a file.

    :param ttl: seconds for which the entry is good; for ever if None
    :return: path of the file
    """
    path = entry_path(folder, key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    document = {"key": key, "stored": time.time(), "ttl": ttl, "value": value}
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), suffix=".tmp", delete=False) as out:
        json.dump(document, out)
    os.replace(out.name, path)
    return path


def read_entry(folder, key, now=None):
    """Fetch a value from the cache.

    :param now: seconds since the epoch; the present time if None
    :raises CacheMiss: if there is no entry, it is too old or its file is damaged
    """
    path = entry_path(folder, key)
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
    except FileNotFoundError:
        raise CacheMiss(key) from None
    except ValueError:
        # Somebody else wrote to the folder.
        os.unlink(path)
        raise CacheMiss(key) from None
    else:
        age = (time.time() if now is None else now) - document["stored"]
    if document["key"] != key or (document["ttl"] is not None and age > document["ttl"]):
        raise CacheMiss(key)
    return document["value"]


@contextlib.contextmanager
def folder_lock(folder, timeout=10.0, poll=0.05):
    """Keep other processes out of a folder while the block runs.

    :raises TimeoutError: if another process holds the lock all the time
    """
    path = os.path.join(folder, ".lock")
    deadline = time.monotonic() + timeout
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                raise TimeoutError("could not lock %s within %g s" % (folder, timeout))
            time.sleep(poll)
    try:
        os.write(handle, b"%d\n" % os.getpid())
        yield path
    finally:
        os.close(handle)
        os.unlink(path)


def folder_size(folder):
    """Add up the sizes of all entries, in bytes."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".json"):
                continue
            try:
                total += os.path.getsize(os.path.join(directory, name))
            except OSError:
                pass  # removed by another process
    return total


def shrink(folder, limit, log=None):
    """Delete entries, the oldest first, until the folder is no larger than a limit.

    :param limit: number of bytes
    :param log: text file for a line per deleted entry
    :return: number of deleted entries
    """
    found = []
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".json"):
                path = os.path.join(directory, name)
                status = os.stat(path)
                found.append((status.st_mtime, status.st_size, path))
    excess = sum(size for _, size, _ in found) - limit
    deleted = 0
    for _, size, path in sorted(found):
        if excess <= 0:
            break
        try:
            os.unlink(path)
        except FileNotFoundError:
            outcome = "gone"
        else:
            outcome = "deleted"
            deleted += 1
        finally:
            excess -= size
        if log is not None:
            print(outcome, path, sep="\t", file=log)
    return deleted
