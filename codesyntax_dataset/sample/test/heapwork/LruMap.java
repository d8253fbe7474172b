package heapwork;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/**
 * A cache that drops what was not used for the longest time.
 */
public class LruMap<K, V> {

	private static final class Node<K, V> {
		K key;
		V value;
		Node<K, V> newer;
		Node<K, V> older;
	}

	private final Map<K, Node<K, V>> index = new HashMap<K, Node<K, V>>();
	private final int capacity;
	private Node<K, V> newest;
	private Node<K, V> oldest;
	private long hits;
	private long misses;

	public LruMap(int capacity) {
		this.capacity = capacity;
	}

	/**
	 * Looks up a key and marks it as used.
	 *
	 * @return null if the key is not in the cache
	 */
	public synchronized V get(K key) {
		Node<K, V> node = index.get(key);
		if (node == null) {
			misses++;
			return null;
		}
		hits++;
		unlink(node);
		linkFirst(node);
		return node.value;
	}

	/**
	 * Looks up a key, or computes its value outside of the lock.
	 */
	public V get(K key, Callable<? extends V> loader) {
		V value = get(key);
		if (value == null) {
			try {
				value = loader.call();
			} catch (RuntimeException e) {
				throw e;
			} catch (Exception e) {
				throw new IllegalStateException("cannot load " + key, e);
			}
			put(key, value);
		}
		return value;
	}

	/**
	 * Stores a value; drops the entry unused for longest if there are too many.
	 */
	public synchronized void put(K key, V value) {
		Node<K, V> node = index.get(key);
		if (node != null) {
			unlink(node);
		} else {
			node = new Node<K, V>();
			node.key = key;
			index.put(key, node);
		}
		node.value = value;
		linkFirst(node);
		if (index.size() > capacity) {
			index.remove(oldest.key);
			unlink(oldest);
		}
	}

	/**
	 * Takes a node out of the chain.
	 */
	private void unlink(Node<K, V> node) {
		if (node.newer != null)
			node.newer.older = node.older;
		else
			newest = node.older;
		if (node.older != null)
			node.older.newer = node.newer;
		else
			oldest = node.newer;
		node.newer = node.older = null;
	}

	/**
	 * Puts a node at the newer end of the chain.
	 */
	private void linkFirst(Node<K, V> node) {
		node.older = newest;
		if (newest != null)
			newest.newer = node;
		newest = node;
		if (oldest == null)
			oldest = node;
	}

	/**
	 * Share of look-ups that found something, from 0 to 1.
	 */
	public synchronized double hitRatio() {
		long asked = hits + misses;
		return asked == 0 ? 0.0 : (double) hits / asked;
	}

	/**
	 * Lists the keys, those used last first.
	 */
	public synchronized String keys() {
		StringBuilder out = new StringBuilder("[");
		for (Node<K, V> node = newest; node != null; node = node.older) {
			if (out.length() > 1)
				out.append(", ");
			out.append(node.key);
		}
		return out.append(']').toString();
	}
}
