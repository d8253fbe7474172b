package heapwork;

import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.NoSuchElementException;

/**
 * A priority queue in an array.
 */
public class BinaryHeap<T> {

	private Object[] items;
	private int size;
	private final Comparator<? super T> order;

	public BinaryHeap(Comparator<? super T> order) {
		this.order = order;
		this.items = new Object[8];
	}

	/**
	 * Builds a heap of all elements of a collection in linear time.
	 */
	public static <E> BinaryHeap<E> of(Collection<? extends E> elements, Comparator<? super E> order) {
		BinaryHeap<E> heap = new BinaryHeap<E>(order);
		heap.items = Arrays.copyOf(elements.toArray(), Math.max(8, elements.size()), Object[].class);
		heap.size = elements.size();
		for (int i = heap.size / 2 - 1; i >= 0; i--) {
			heap.siftDown(i);
		}
		return heap;
	}

	/**
	 * Number of elements in the heap.
	 */
	public int size() {
		return size;
	}

	/**
	 * Adds an element.
	 *
	 * @param element may be equal to others, but not null
	 */
	public void add(T element) {
		if (element == null)
			throw new NullPointerException("the heap takes no null");
		if (size == items.length)
			items = Arrays.copyOf(items, size * 2);
		items[size] = element;
		siftUp(size++);
	}

	/**
	 * Returns the smallest element without removing it.
	 */
	@SuppressWarnings("unchecked")
	public T peek() {
		if (size == 0)
			throw new NoSuchElementException("the heap is empty");
		return (T) items[0];
	}

	/**
	 * Removes and returns the smallest element.
	 */
	public T poll() {
		T smallest = peek();
		size--;
		items[0] = items[size];
		items[size] = null;
		siftDown(0);
		return smallest;
	}

	/**
	 * Adds an element and removes the smallest one, which may be the same. Faster than one
	 * after the other.
	 */
	public T addThenPoll(T element) {
		if (size == 0 || order.compare(element, peek()) <= 0)
			return element;
		T smallest = peek();
		items[0] = element;
		siftDown(0);
		return smallest;
	}

	/**
	 * Moves an element up until its parent is no larger.
	 */
	@SuppressWarnings("unchecked")
	private void siftUp(int index) {
		T moving = (T) items[index];
		while (index > 0) {
			int parent = (index - 1) >>> 1;
			if (order.compare(moving, (T) items[parent]) >= 0)
				break;
			items[index] = items[parent];
			index = parent;
		}
		items[index] = moving;
	}

	/**
	 * Moves an element down until no child is smaller.
	 */
	@SuppressWarnings("unchecked")
	private void siftDown(int index) {
		T moving = (T) items[index];
		int child;
		while ((child = 2 * index + 1) < size) {
			if (child + 1 < size && order.compare((T) items[child + 1], (T) items[child]) < 0)
				child++;
			if (order.compare(moving, (T) items[child]) <= 0)
				break;
			items[index] = items[child];
			index = child;
		}
		items[index] = moving;
	}

	/**
	 * Checks that no element is smaller than its parent. For debugging only.
	 */
	@SuppressWarnings("unchecked")
	boolean isConsistent() {
		assert size <= items.length : "size " + size;
		for (int i = 1; i < size; i++) {
			if (order.compare((T) items[i], (T) items[(i - 1) / 2]) < 0)
				return false;
		}
		return true;
	}
}
