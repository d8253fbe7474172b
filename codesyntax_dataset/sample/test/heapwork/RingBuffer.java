package heapwork;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * A queue of fixed capacity that forgets its oldest element when it is full.
 */
public class RingBuffer<T> implements Iterable<T> {

	private final T[] slots;
	private int head;
	private int size;

	@SuppressWarnings("unchecked")
	public RingBuffer(int capacity) {
		if (capacity < 1)
			throw new IllegalArgumentException("capacity must be positive: " + capacity);
		slots = (T[]) new Object[capacity];
	}

	/**
	 * Appends an element.
	 *
	 * @return the element that had to make room, or null
	 */
	public T push(T element) {
		int end = (head + size) % slots.length;
		T dropped = slots[end];
		slots[end] = element;
		if (size < slots.length) {
			size++;
			return null;
		}
		head = (head + 1) % slots.length;
		return dropped;
	}

	/**
	 * Returns the element at a position, counted from the oldest one.
	 */
	public T get(int index) {
		if (index < 0 || index >= size)
			throw new IndexOutOfBoundsException(index + " of " + size);
		return slots[(head + index) % slots.length];
	}

	/**
	 * Removes and returns the oldest element.
	 */
	public T pop() {
		T oldest = get(0);
		slots[head] = null;
		head = (head + 1) % slots.length;
		size--;
		return oldest;
	}

	/**
	 * Iterates from the oldest to the newest element. Elements cannot be removed this way.
	 */
	@Override
	public Iterator<T> iterator() {
		return new Iterator<T>() {
			private int next = 0;

			@Override
			public boolean hasNext() {
				return next < size;
			}

			@Override
			public T next() {
				if (!hasNext())
					throw new NoSuchElementException();
				return get(next++);
			}

			@Override
			public void remove() {
				throw new UnsupportedOperationException();
			}
		};
	}
}
